#include "weights/torch_zip.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "formats/pickle.h"
#include "formats/stored_zip.h"
#include "weights/file_mapping.h"

namespace cohort::weights {
namespace {

using Kind = PickleValue::Kind;

at::ScalarType type_of(const std::string& storage, const std::string& source) {
  static const std::map<std::string, at::ScalarType> types{
      {"FloatStorage", at::kFloat},       {"DoubleStorage", at::kDouble}, {"HalfStorage", at::kHalf},
      {"BFloat16Storage", at::kBFloat16}, {"LongStorage", at::kLong},     {"IntStorage", at::kInt},
      {"ShortStorage", at::kShort},       {"CharStorage", at::kChar},     {"ByteStorage", at::kByte},
      {"BoolStorage", at::kBool}};
  const auto found = types.find(storage);
  COHORT_THROW_UNLESS(found != types.end(), "{}: a storage is of the unknown type {}", source, storage);
  return found->second;
}

class StateDict {
 public:
  StateDict(StoredZip& zip, std::string folder, std::string source)
      : zip_(zip),
        folder_(std::move(folder)),
        source_(std::move(source)),
        mapping_(std::make_shared<FileMapping>(source_)) {}

  NamedTensors tensors_of(const PickleValue& root) {
    if (root.kind == Kind::kTensor) return {{"", tensor_of(root)}};
    COHORT_THROW_UNLESS(root.kind == Kind::kDict, "{}: holds neither a tensor nor a state dict", source_);
    const PickleValue* chosen = &root;
    if (!holds_tensors(root))
      for (const char* part : {"module", "state_dict", "model"})
        if (const PickleValue* inside = entry(root, part); inside != nullptr && holds_tensors(*inside)) {
          chosen = inside;
          log::info("{}: the weights under \"{}\" are read, the rest is left out", source_, part);
          break;
        }
    collect(*chosen, "", 0);
    COHORT_THROW_UNLESS(!tensors_.empty(), "{}: holds no tensors", source_);
    return std::move(tensors_);
  }

 private:
  static bool holds_tensors(const PickleValue& value) {
    if (value.kind != Kind::kDict) return false;
    for (std::size_t i = 1; i < value.items.size(); i += 2)
      if (value.items[i]->kind == Kind::kTensor) return true;
    return false;
  }
  static const PickleValue* entry(const PickleValue& dict, const std::string& name) {
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2)
      if (dict.items[i]->kind == Kind::kText && dict.items[i]->text == name) return dict.items[i + 1];
    return nullptr;
  }

  void collect(const PickleValue& dict, const std::string& prefix, int depth) {
    constexpr int kDeepest = 16;
    constexpr std::size_t kMost = 1000000;
    if (depth > kDeepest) return;
    for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      COHORT_THROW_UNLESS(++visited_ <= kMost, "{}: has more than {} entries", source_, kMost);
      const PickleValue &key = *dict.items[i], &value = *dict.items[i + 1];
      if (key.kind != Kind::kText) continue;
      if (value.kind == Kind::kTensor)
        tensors_.emplace_back(prefix + key.text, tensor_of(value));
      else if (value.kind == Kind::kDict)
        collect(value, prefix + key.text + ".", depth + 1);
    }
  }

  at::Tensor storage_of(const PickleValue& storage) {
    const auto [found, is_new] = storages_.try_emplace(storage.key);
    const at::ScalarType type = type_of(storage.type, source_);
    if (is_new) {
      const auto record = zip_.records().find(folder_ + "data/" + storage.key);
      COHORT_THROW_UNLESS(record != zip_.records().end(), "{}: the record data/{} is missing", source_, storage.key);
      const auto bytes = static_cast<std::int64_t>(record->second.size);
      const auto element = static_cast<std::int64_t>(at::elementSize(type));
      COHORT_THROW_UNLESS(bytes % element == 0, "{}: the record data/{} has {} bytes, which are no whole elements",
                          source_, storage.key, bytes);
      found->second = bytes_of(record->second, bytes / element, type);
    }
    COHORT_THROW_UNLESS(found->second.scalar_type() == type, "{}: the record data/{} is of two types", source_,
                        storage.key);
    return found->second;
  }

  /// The record where it lies in the file, or a copy where its place does not suit its elements.
  at::Tensor bytes_of(const StoredZip::Record& record, std::int64_t elements, at::ScalarType type) {
    COHORT_THROW_UNLESS(record.begin <= mapping_->size() && record.size <= mapping_->size() - record.begin,
                        "{}: is cut off or damaged: it has {} bytes, but bytes {} to {} are named", source_,
                        mapping_->size(), record.begin, record.begin + record.size);
    if (record.begin % at::elementSize(type) != 0 || elements == 0) {
      at::Tensor copy = at::empty({elements}, type);
      zip_.read_to(record.begin, static_cast<char*>(copy.mutable_data_ptr()), record.size);
      return copy;
    }
    return at::from_blob(
        mapping_->data() + record.begin, {elements}, [mapping = mapping_](void*) {}, at::TensorOptions(type));
  }

  at::Tensor tensor_of(const PickleValue& value) {
    const at::Tensor storage = storage_of(*value.storage);
    // Sums in floats: numbers of a damaged file may not fit 64 bits.
    double last = static_cast<double>(value.offset), elements = 1;
    for (std::size_t i = 0; i < value.sizes.size(); ++i) {
      elements *= static_cast<double>(value.sizes[i]);
      last +=
          static_cast<double>(std::max<std::int64_t>(0, value.sizes[i] - 1)) * static_cast<double>(value.strides[i]);
    }
    const auto held = static_cast<double>(storage.numel());
    COHORT_THROW_UNLESS(elements == 0 || (last < held && elements <= held),
                        "{}: a tensor reaches beyond its storage data/{} of {} elements", source_, value.storage->key,
                        storage.numel());
    if (elements == 0) return at::empty(value.sizes, storage.options());
    return storage.as_strided(value.sizes, value.strides, value.offset);
  }

  StoredZip& zip_;
  std::string folder_, source_;
  std::shared_ptr<FileMapping> mapping_;
  std::map<std::string, at::Tensor> storages_;
  NamedTensors tensors_;
  std::size_t visited_ = 0;
};

std::string beginning_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(4, '\0');
  file.read(bytes.data(), 4);
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return bytes;
}

}  // namespace

bool is_torch_file(const std::filesystem::path& path) {
  const std::string begin = beginning_of(path);
  return begin.starts_with("PK\x03\x04") || begin.starts_with("\x80\x02");
}

SafetensorsFile read_torch_zip(const std::filesystem::path& path) {
  const std::string source = path.string();
  COHORT_THROW_UNLESS(
      !beginning_of(path).starts_with("\x80"),
      "{}: is of PyTorch's format before version 1.6, which is not read; save it anew where PyTorch is: "
      "torch.save(torch.load(FILE, weights_only=True), OTHER)",
      source);
  StoredZip zip(path);
  const auto pickled = std::find_if(zip.records().begin(), zip.records().end(), [](const auto& record) {
    return record.first == "data.pkl" || record.first.ends_with("/data.pkl");
  });
  COHORT_THROW_UNLESS(pickled != zip.records().end(), "{}: is a zip archive, but not one of torch.save(): no data.pkl",
                      source);
  const std::string folder = pickled->first.substr(0, pickled->first.size() - 8);
  if (const auto order = zip.records().find(folder + "byteorder"); order != zip.records().end())
    COHORT_THROW_UNLESS(zip.read(order->second.begin, order->second.size) == "little",
                        "{}: was written on a machine of the other byte order, which is not read", source);
  const Pickle pickle(zip.read(pickled->second.begin, pickled->second.size), source);
  SafetensorsFile file{StateDict(zip, folder, source).tensors_of(pickle.root()), {}};
  const PickleValue& root = pickle.root();
  for (std::size_t i = 0; root.kind == Kind::kDict && i + 1 < root.items.size(); i += 2)
    if (root.items[i]->kind == Kind::kText && root.items[i + 1]->kind == Kind::kText)
      file.metadata.emplace(root.items[i]->text, root.items[i + 1]->text);
  return file;
}

}  // namespace cohort::weights
