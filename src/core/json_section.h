/// Reading a foreign JSON object key by key, so that every key is honoured or refused by name.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/json_text.h"

namespace cohort::config {

/// Whether the value is one of T's: a switch, a text, a finite number, a whole number that T can hold (5 or 5.0), or a
/// list of such. Then the target has it.
template <class T>
bool read_value(const Json& value, T& target) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) return false;
    target = value.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    static_assert(std::is_signed_v<T>);
    if (!value.is_number()) return false;
    if (value.is_number_float()) {
      const double number = value.get<double>(), end = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (!(number >= -end && number < end) || number != std::floor(number)) return false;
      target = static_cast<T>(number);
    } else {
      const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<std::uint64_t>())
                                                   : std::in_range<T>(value.get<std::int64_t>());
      if (!fits) return false;
      target = value.get<T>();
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) return false;
    target = value.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return false;
    target = value.get<std::string>();
  } else {
    if (!value.is_array()) return false;
    T items;
    for (const Json& item : value)
      if (!read_value(item, items.emplace_back())) return false;
    target = std::move(items);
  }
  return true;
}

/// "a whole number"
template <class T>
std::string kind_of() {
  if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_integral_v<T>)
    return "a whole number";
  else if constexpr (std::is_floating_point_v<T>)
    return "a number";
  else if constexpr (std::is_same_v<T, std::string>)
    return "text";
  else
    return "a list, each of whose items is " + kind_of<typename T::value_type>();
}

/// Reads an object key by key; what nobody asked for is refused at the end.
class JsonSection {
 public:
  JsonSection(const Json& json, std::string path, std::vector<std::string>& refused)
      : json_(json.is_null() ? Json::object() : json), path_(std::move(path)), refused_(refused) {
    if (!json_.is_object()) refuse(path_, json_, "is no object");
  }
  JsonSection(const JsonSection&) = delete;
  JsonSection& operator=(const JsonSection&) = delete;
  ~JsonSection() {
    if (json_.is_object())
      for (const auto& item : json_.items())
        if (!read_.contains(item.key()))
          refuse(path_ + "." + item.key(), item.value(), "is unknown here" + meant(item.key()));
  }

  /// The value, or null where the key is missing.
  const Json& get(const std::string& key) {
    static const Json kNull;
    read_[key] = true;
    return json_.is_object() && json_.contains(key) ? json_.at(key) : kNull;
  }

  /// The keys that were asked for until now, whether the object has them or not.
  std::vector<std::string> asked() const {
    std::vector<std::string> keys;
    for (const auto& [key, unused] : read_) keys.push_back(key);
    return keys;
  }

  bool has(const std::string& key) const { return json_.is_object() && json_.contains(key); }

  /// A missing key leaves the target as it is. Null switches off what is a switch, as in Python, and is refused
  /// elsewhere.
  template <class T>
  void take(const std::string& key, T& target) {
    const Json& value = get(key);
    if (!has(key)) return;
    if constexpr (std::is_same_v<T, bool>)
      if (value.is_null()) {
        target = false;
        return;
      }
    if (value.is_null())
      refuse(path_ + "." + key, value, "is no value here: give one, or leave the key out");
    else if (!read_value(value, target))
      refuse(path_ + "." + key, value, std::string("has the wrong type: it takes ") + kind_of<T>());
  }

  /// The same for a key that may be null, which stands for `when_null`.
  template <class T>
  void take_or_null(const std::string& key, T& target, const T& when_null) {
    if (has(key) && get(key).is_null())
      target = when_null;
    else
      take(key, target);
  }

  /// A text that is one of `choices`.
  void take_choice(const std::string& key, std::string& target, const std::vector<std::string>& choices) {
    const std::size_t before = refused_.size();
    std::string chosen = target;
    take(key, chosen);
    if (refused_.size() > before) return;
    if (has(key) && std::find(choices.begin(), choices.end(), chosen) == choices.end()) {
      std::string known;
      for (const std::string& choice : choices) known += (known.empty() ? "" : ", ") + choice;
      refuse(path_ + "." + key, get(key), "is not supported; there are " + known);
    } else {
      target = std::move(chosen);
    }
  }

  /// The key may have one of the values that mean "off" only.
  void off(const std::string& key, const std::function<bool(const Json&)>& is_off, const std::string& why) {
    const Json& value = get(key);
    if (!value.is_null() && !is_off(value)) refuse(path_ + "." + key, value, why);
  }

  void in(const std::string& key, const std::function<void(JsonSection&)>& body) {
    JsonSection section(get(key), path_ + "." + key, refused_);
    body(section);
  }

  void ignore(const std::string& key) { get(key); }

  /// Every entry but those that are null, which switches off what another file has said; all count as read.
  void each(const std::function<void(const std::string& name, const Json& value)>& body) {
    if (!json_.is_object()) return;
    for (const auto& [name, value] : json_.items()) {
      ignore(name);
      if (!value.is_null()) body(name, value);
    }
  }

  void refuse(const std::string& path, const Json& value, const std::string& why) {
    refused_.push_back(path + " = " + json_text(value) + " " + why);
  }
  const std::string& path() const { return path_; }

 private:
  /// Of an unknown key, in brackets, the nearest that was asked for.
  std::string meant(const std::string& key) const {
    const std::string near = nearest(key, asked());
    return near.empty() ? "" : " (is " + near + " meant?)";
  }

  Json json_;
  std::string path_;
  std::vector<std::string>& refused_;
  std::map<std::string, bool> read_;
};

inline bool is_false(const Json& value) {
  return value.is_boolean() && !value.get<bool>();
}

inline bool is_empty(const Json& value) {
  return value.empty() || is_false(value);
}

}  // namespace cohort::config
