/// A BinaryDocument as the page reads it.
#pragma once
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/json_text.h"

namespace cohort::test {

struct ReadDocument {
  nlohmann::json text;
  std::string arrays;

  explicit ReadDocument(const std::string& bytes) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length |= std::size_t{static_cast<unsigned char>(bytes.at(8 + i))} << (8 * i);
    text = parse_json<nlohmann::json>(bytes.substr(12, length));
    arrays = bytes.substr((12 + length + 3) / 4 * 4);
  }
  template <class T>
  std::vector<T> array(const nlohmann::json& reference) const {
    std::vector<T> out(reference.at("count").get<std::size_t>());
    const auto at = reference.at("at").get<std::size_t>();
    if (at + out.size() * sizeof(T) > arrays.size()) throw std::out_of_range("an array beyond the document's end");
    std::memcpy(out.data(), arrays.data() + at, out.size() * sizeof(T));
    return out;
  }
};

}  // namespace cohort::test
