/// Python pickles, read as data: nothing in them is called, imported or executed. What a pickle asks for by name is
/// looked up in a list of a dozen names that PyTorch's state dicts need, or of the five of a NumPy array; another one is
/// an error that names it.
///
///   const Pickle pickle(bytes, "model.bin: data.pkl");
///   const PickleValue& root = pickle.root();
///
/// Format: CPython's Lib/pickletools.py, protocols 2 to 5; of arrays: ndarray.__reduce__ and dtype.__reduce__ of NumPy.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

struct PickleValue {
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kList, kTuple, kDict, kGlobal, kStorage, kTensor, kArray };
  Kind kind = Kind::kNone;
  std::int64_t number = 0;  ///< kBool, kInt
  double real = 0;
  std::string text;                          ///< kText; kGlobal: "torch._utils _rebuild_tensor_v2"; kArray: its bytes
  std::vector<const PickleValue*> items;     ///< kList, kTuple; kDict: keys and values in turn
  std::vector<std::int64_t> sizes, strides;  ///< kTensor; kArray: sizes, row-major
  std::int64_t offset = 0;                   ///< kTensor: elements from the beginning of its storage
  const PickleValue* storage = nullptr;      ///< kTensor
  std::string type, key;                     ///< kStorage: "FloatStorage", the record's name; kArray: type "<f8"
};

/// What a pickle may hold beside numbers, texts, lists and dicts.
enum class PickleOf { kTorchState, kNumpyArray };

class Pickle {
 public:
  /// Throws Error naming `source`: a name that is not on the list, an instruction that is not needed for data, bytes
  /// that end too early or make no sense.
  Pickle(std::string_view bytes, const std::string& source, PickleOf of = PickleOf::kTorchState);
  /// Lives as long as this.
  const PickleValue& root() const { return *root_; }

 private:
  friend class PickleReader;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

}  // namespace cohort
