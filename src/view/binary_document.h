/// What the page reads: a JSON text and the arrays that it speaks of, in one string of bytes.
///
/// Layout, little endian: "COHORTV1", uint32 length of the JSON text, the text, zeros up to a multiple of 4, the arrays,
/// each at a multiple of 4. In the text an array stands as {"at": byte within the arrays, "count": elements, "type":
/// "float32"}; types are the names of JavaScript's typed arrays in small letters.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace cohort::view {

class BinaryDocument {
 public:
  nlohmann::json text = nlohmann::json::object();

  nlohmann::json add(std::span<const float> values) { return add(values, "float32"); }
  nlohmann::json add(std::span<const std::int16_t> values) { return add(values, "int16"); }
  nlohmann::json add(std::span<const std::uint16_t> values) { return add(values, "uint16"); }
  nlohmann::json add(std::span<const std::int8_t> values) { return add(values, "int8"); }
  nlohmann::json add(std::span<const std::uint8_t> values) { return add(values, "uint8"); }
  nlohmann::json add(std::span<const std::uint32_t> values) { return add(values, "uint32"); }

  std::string bytes() const;

 private:
  template <class T>
  nlohmann::json add(std::span<const T> values, const char* type) {
    return place(reinterpret_cast<const char*>(values.data()), values.size_bytes(), values.size(), type);
  }
  nlohmann::json place(const char* data, std::size_t bytes, std::size_t count, const char* type);

  std::string arrays_;
};

/// A zlib stream (RFC 1950), and base64 (RFC 4648) of any bytes.
std::string deflated(const std::string& bytes);
std::string base64(const std::string& bytes);

}  // namespace cohort::view
