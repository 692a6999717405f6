#include "serve/value.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "core/error.h"

namespace cohort::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays travel as little-endian numbers");

template <class T>
std::string bytes_of(std::span<const T> numbers) {
  std::string data(numbers.size_bytes(), '\0');
  if (!numbers.empty()) std::memcpy(data.data(), numbers.data(), numbers.size_bytes());
  return data;
}

/// IEEE 754 binary16.
float from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? std::nanf("") : sign * HUGE_VALF;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

template <class T>
std::vector<float> floats_of(const std::string& data) {
  std::vector<float> numbers(data.size() / sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T number;
    std::memcpy(&number, data.data() + i * sizeof(T), sizeof(T));
    numbers[i] = static_cast<float>(number);
  }
  return numbers;
}

}  // namespace

Value::Value() = default;
Value::Value(bool v) : of(v) {}
Value::Value(std::int64_t v) : of(v) {}
Value::Value(std::uint64_t v) : of(v) {}
Value::Value(double v) : of(v) {}
Value::Value(std::string v) : of(std::move(v)) {}
Value::Value(Bytes v) : of(std::move(v)) {}
Value::Value(NumpyArray v) : of(std::move(v)) {}
Value::Value(List v) : of(std::move(v)) {}
Value::Value(Map v) : of(std::move(v)) {}
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

const Value* find(const Map& map, std::string_view key) {
  for (const Entry& entry : map)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

const Value* find(const Value& value, std::string_view key) {
  const Map* map = std::get_if<Map>(&value.of);
  return map != nullptr ? find(*map, key) : nullptr;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (const std::int64_t n : shape) text += format("{}{}", text.size() == 1 ? "" : ", ", n);
  return text + ")";
}

std::string describe(const Value& value) {
  struct Describer {
    std::string operator()(std::monostate) const { return "nothing (None)"; }
    std::string operator()(bool) const { return "a truth value"; }
    std::string operator()(std::int64_t) const { return "a whole number"; }
    std::string operator()(std::uint64_t) const { return "a whole number"; }
    std::string operator()(double) const { return "a number"; }
    std::string operator()(const std::string&) const { return "a text"; }
    std::string operator()(const Bytes& bytes) const { return format("{} bytes", bytes.data.size()); }
    std::string operator()(const NumpyArray& array) const {
      return format(
          "an array {} {}",
          is_number(array.dtype) ? element_kind(array.dtype).name() : "of '" + array.dtype.substr(0, 40) + "'",
          shape_text(array.shape));
    }
    std::string operator()(const List& list) const { return format("a list of {}", list.size()); }
    std::string operator()(const Map& map) const {
      constexpr std::size_t kMost = 6;
      std::string keys;
      for (std::size_t i = 0; i < map.size() && i < kMost; ++i)
        keys += format("{}'{}'", i == 0 ? " (" : ", ", map[i].key.substr(0, 40));
      return format("a map of {}{}{}", map.size(), keys, map.empty() ? "" : map.size() > kMost ? ", ...)" : ")");
    }
  };
  return std::visit(Describer{}, value.of);
}

std::string ElementKind::name() const {
  if (kind == 'b') return "bool";
  return format("{}{}", kind == 'f' ? "float" : kind == 'i' ? "int" : "uint", 8 * size);
}

ElementKind element_kind(const std::string& dtype) {
  static const std::map<std::string, ElementKind> kNames{
      {"float16", {'f', 2}}, {"float32", {'f', 4}}, {"float64", {'f', 8}}, {"int8", {'i', 1}},
      {"int16", {'i', 2}},   {"int32", {'i', 4}},   {"int64", {'i', 8}},   {"uint8", {'u', 1}},
      {"uint16", {'u', 2}},  {"uint32", {'u', 4}},  {"uint64", {'u', 8}},  {"bool", {'b', 1}}};
  if (const auto named = kNames.find(dtype); named != kNames.end()) return named->second;
  if (dtype.size() == 3 && std::string_view("<|=>").find(dtype[0]) != std::string_view::npos) {
    const ElementKind read{dtype[1], dtype[2] - '0'};
    const bool known = (read.kind == 'b' && read.size == 1) ||
                       (read.kind == 'f' && (read.size == 2 || read.size == 4 || read.size == 8)) ||
                       ((read.kind == 'i' || read.kind == 'u') &&
                        (read.size == 1 || read.size == 2 || read.size == 4 || read.size == 8));
    COHORT_THROW_UNLESS(!known || dtype[0] != '>' || read.size == 1,
                        "an array has the dtype '{}', big-endian numbers: send array.astype('<{}{}')", dtype, read.kind,
                        read.size);
    if (known) return read;
  }
  throw Error(format("an array has the dtype '{}': numbers are float16 to float64, int8 to uint64 or bool",
                     dtype.size() <= 40 ? dtype : dtype.substr(0, 40) + "..."));
}

bool is_number(const std::string& dtype) {
  try {
    element_kind(dtype);
    return true;
  } catch (const Error&) {
    return false;
  }
}

NumpyArray float_array(std::vector<std::int64_t> shape, std::span<const float> numbers) {
  return {"<f4", std::move(shape), bytes_of(numbers)};
}
NumpyArray double_array(std::vector<std::int64_t> shape, std::span<const double> numbers) {
  return {"<f8", std::move(shape), bytes_of(numbers)};
}
NumpyArray byte_array(std::vector<std::int64_t> shape, std::span<const std::uint8_t> numbers) {
  return {"|u1", std::move(shape), bytes_of(numbers)};
}

std::vector<float> to_floats(const NumpyArray& array) {
  const ElementKind kind = element_kind(array.dtype);
  const std::string& data = array.data;
  switch (kind.kind) {
    case 'b':
      return floats_of<std::uint8_t>(data);
    case 'i':
      return kind.size == 1   ? floats_of<std::int8_t>(data)
             : kind.size == 2 ? floats_of<std::int16_t>(data)
             : kind.size == 4 ? floats_of<std::int32_t>(data)
                              : floats_of<std::int64_t>(data);
    case 'u':
      return kind.size == 1   ? floats_of<std::uint8_t>(data)
             : kind.size == 2 ? floats_of<std::uint16_t>(data)
             : kind.size == 4 ? floats_of<std::uint32_t>(data)
                              : floats_of<std::uint64_t>(data);
    default:
      break;
  }
  if (kind.size == 4) return floats_of<float>(data);
  if (kind.size == 8) return floats_of<double>(data);
  std::vector<float> numbers(data.size() / 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, data.data() + 2 * i, 2);
    numbers[i] = from_half(bits);
  }
  return numbers;
}

}  // namespace cohort::serve
