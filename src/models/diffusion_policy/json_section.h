/// Reading a foreign JSON object key by key, so that every key is honoured or refused by name.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"

namespace cohort::models {

/// Reads an object key by key; what nobody asked for is refused at the end.
class JsonSection {
 public:
  JsonSection(const config::Json& json, std::string path, std::vector<std::string>& refused)
      : json_(json.is_null() ? config::Json::object() : json), path_(std::move(path)), refused_(refused) {
    if (!json_.is_object()) refuse(path_, json_, "is no object");
  }
  JsonSection(const JsonSection&) = delete;
  JsonSection& operator=(const JsonSection&) = delete;
  ~JsonSection() {
    if (json_.is_object())
      for (const auto& item : json_.items())
        if (!read_.contains(item.key())) refuse(path_ + "." + item.key(), item.value(), "is unknown here");
  }

  /// The value, or null where the key is missing.
  const config::Json& get(const std::string& key) {
    static const config::Json kNull;
    read_[key] = true;
    return json_.is_object() && json_.contains(key) ? json_.at(key) : kNull;
  }

  template <class T>
  void take(const std::string& key, T& target) {
    const config::Json& value = get(key);
    if (value.is_null()) return;
    try {
      target = value.get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(path_ + "." + key, value, "has the wrong type");
    }
  }

  /// The key may have one of the values that mean "off" only.
  void off(const std::string& key, const std::function<bool(const config::Json&)>& is_off, const std::string& why) {
    const config::Json& value = get(key);
    if (!value.is_null() && !is_off(value)) refuse(path_ + "." + key, value, why);
  }

  void in(const std::string& key, const std::function<void(JsonSection&)>& body) {
    JsonSection section(get(key), path_ + "." + key, refused_);
    body(section);
  }

  void ignore(const std::string& key) { get(key); }

  void refuse(const std::string& path, const config::Json& value, const std::string& why) {
    refused_.push_back(path + " = " + value.dump() + " " + why);
  }
  const std::string& path() const { return path_; }

 private:
  config::Json json_;
  std::string path_;
  std::vector<std::string>& refused_;
  std::map<std::string, bool> read_;
};

inline bool is_false(const config::Json& value) {
  return value.is_boolean() && !value.get<bool>();
}

inline bool is_empty(const config::Json& value) {
  return value.empty() || is_false(value);
}

}  // namespace cohort::models
