/// What a message of openpi's policy-server protocol holds: maps, lists, texts, numbers and NumPy arrays.
///
///   const Value message = unpack(bytes);                              // serve/msgpack.h
///   if (const Value* prompt = find(message, "prompt")) ...
///   const Value answer{Map{{"actions", float_array({2, 7}, rows)}}};
///   const std::string reply = pack(answer);
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cohort::serve {

/// A contiguous little-endian array, row-major.
struct NumpyArray {
  std::string dtype;                ///< as NumPy's dtype.str has it: "<f4", "|u1"
  std::vector<std::int64_t> shape;  ///< empty: a single number
  std::string data;                 ///< bytes
};

struct Bytes {
  std::string data;
};

struct Value;
struct Entry;
using List = std::vector<Value>;
/// In the order of the message. Keys are texts; keys of bytes are taken for texts.
using Map = std::vector<Entry>;

struct Value {
  Value();
  Value(bool v);
  Value(std::int64_t v);
  Value(std::uint64_t v);
  Value(double v);
  Value(std::string v);
  Value(const char* v) = delete;  // would become a truth value
  Value(Bytes v);
  Value(NumpyArray v);
  Value(List v);
  Value(Map v);
  // Not inline: GCC 12 sees uninitialised memory in copies of a variant that it inlines (its bug 105562).
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Bytes, NumpyArray, List, Map> of;
};

struct Entry {
  std::string key;
  Value value;
};

/// The value under a key; null where there is none, or where `value` is no map.
const Value* find(const Value& value, std::string_view key);
const Value* find(const Map& map, std::string_view key);

/// For messages: "a text", "an array float32 (3, 4)", "a map of 2".
std::string describe(const Value& value);
/// "(3, 224, 224)"; of a single number "()".
std::string shape_text(std::span<const std::int64_t> shape);

/// What a dtype says; size in bytes.
struct ElementKind {
  char kind = 'f';  ///< NumPy's letter: f, i, u, b
  std::int64_t size = 4;
  std::string name() const;  ///< "float32"
};
/// Reads "<f4", "|u1", "float32". Throws Error for big-endian numbers and for what is no number.
ElementKind element_kind(const std::string& dtype);
/// Whether it does so.
bool is_number(const std::string& dtype);

NumpyArray float_array(std::vector<std::int64_t> shape, std::span<const float> numbers);
NumpyArray double_array(std::vector<std::int64_t> shape, std::span<const double> numbers);
NumpyArray byte_array(std::vector<std::int64_t> shape, std::span<const std::uint8_t> numbers);

/// The numbers of an array of any kind as floats, in its order.
std::vector<float> to_floats(const NumpyArray& array);

}  // namespace cohort::serve
