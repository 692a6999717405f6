#include "core/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/home_path.h"
#include "core/json_text.h"
#include "core/settings_file.h"
#include "core/unknown_setting.h"
#include "core/utf8.h"

namespace cohort::config {
namespace {

struct Field {
  std::string path;
  std::string doc;
  std::string type_name;
  Json default_value;
  std::function<Json()> get;
  /// Throws Json::exception or Error when the value does not fit.
  std::function<void(const Json&)> set;
  bool is_text = false;
  bool is_list = false;
  bool was_set = false;
  bool was_overridden = false;
};

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

/// "lr" of "train.learning_rate".
std::string initials(const std::string& path) {
  std::string letters;
  char before = '_';
  for (const char c : last_part(path)) {
    if (before == '_') letters += c;
    before = c;
  }
  return letters;
}

/// The settings, at most three, that an unknown one may be meant as: a part of a path finds it ("lr", "batch"), its
/// initials do, and a path with other letters.
std::vector<std::string> similar(const std::string& typed, const std::vector<std::string>& paths) {
  constexpr std::size_t kMost = 3, kShortestPart = 3, kShortestMisspelt = 5;  // shorter ones are near to anything
  std::vector<std::string> found;
  const auto add = [&](const auto& fits) {
    for (const std::string& path : paths)
      if (found.size() < kMost && fits(path) && std::find(found.begin(), found.end(), path) == found.end())
        found.push_back(path);
  };
  const std::string word = last_part(typed);
  const auto is_word = [&](const std::string& path) { return last_part(path) == word; };
  if (word == typed) add(is_word);
  if (!found.empty()) return found;
  add([&](const std::string& path) { return path.starts_with(typed) || last_part(path).starts_with(typed); });
  if (typed.size() >= kShortestPart) add([&](const std::string& path) { return path.find(typed) != path.npos; });
  if (found.empty() && typed.size() > 1) add([&](const std::string& path) { return initials(path) == typed; });
  if (!found.empty()) return found;
  if (const std::string near = nearest(typed, paths); !near.empty()) return {near};
  add(is_word);
  if (found.empty() && word != typed) add([&](const std::string& path) { return last_part(path).starts_with(word); });
  if (!found.empty() || word.size() < kShortestMisspelt) return found;
  std::vector<std::string> words;
  for (const std::string& path : paths) words.push_back(last_part(path));
  const std::string near = nearest(word, words);
  if (!near.empty()) add([&](const std::string& path) { return last_part(path) == near; });
  return found;
}

template <class T>
T read_integer(const Json& value) {
  if (value.is_number_float()) {  // 1e5, which is a whole number, too
    constexpr double kExact = 9007199254740992;
    const double real = value.get<double>();
    COHORT_THROW_UNLESS(std::floor(real) == real && std::abs(real) <= kExact, "expected a whole number");
    return read_integer<T>(Json(static_cast<std::int64_t>(real)));
  }
  COHORT_THROW_UNLESS(value.is_number_integer(), "expected a whole number");
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    COHORT_THROW_UNLESS(number <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()), "{} is too large", number);
    return static_cast<T>(number);
  }
  const auto number = value.get<std::int64_t>();
  COHORT_THROW_UNLESS(!(std::is_unsigned_v<T> && number < 0), "{} is negative", number);
  if constexpr (sizeof(T) < 8)
    COHORT_THROW_UNLESS(number >= std::numeric_limits<T>::min() && number <= std::numeric_limits<T>::max(),
                        "{} is out of range", number);
  return static_cast<T>(number);
}

template <class T>
T read_value(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    COHORT_THROW_UNLESS(value.is_boolean(), "expected true or false");
    return value.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    return read_integer<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    COHORT_THROW_UNLESS(value.is_number(), "expected a number");
    return value.get<double>();
  } else {
    COHORT_THROW_UNLESS(value.is_string(), "expected text");
    return with_home(utf8_to_bytes(value.get_ref<const std::string&>()));
  }
}

/// JSON takes UTF-8 only; a text of a setting, such as a path, may hold any bytes.
template <class T>
Json value_json(const T& value) {
  if constexpr (std::is_same_v<T, std::string>)
    return Json(bytes_to_utf8(value));
  else
    return Json(value);
}

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>) return "true|false";
  if constexpr (std::is_integral_v<T>) return "whole number";
  if constexpr (std::is_floating_point_v<T>) return "number";
  return "text";
}

template <class T>
Field scalar_field(T& value) {
  Field f;
  f.type_name = type_name<T>();
  f.is_text = std::is_same_v<T, std::string>;
  f.get = [&value] { return value_json(value); };
  f.set = [&value](const Json& j) { value = read_value<T>(j); };
  return f;
}

template <class T>
Field optional_field(std::optional<T>& value) {
  Field f;
  f.type_name = std::string(type_name<T>()) + " or null";
  f.get = [&value] { return value ? Json(*value) : Json(nullptr); };
  f.set = [&value](const Json& j) {
    if (j.is_null())
      value.reset();
    else
      value = read_value<T>(j);
  };
  return f;
}

template <class T>
Field list_field(std::vector<T>& value) {
  Field f;
  f.type_name = std::string("list of ") + type_name<T>();
  f.is_text = std::is_same_v<T, std::string>;
  f.is_list = true;
  f.get = [&value] {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(value_json(item));
    return list;
  };
  f.set = [&value](const Json& j) {
    std::vector<T> items;
    if (j.is_array())
      for (const Json& item : j) items.push_back(read_value<T>(item));
    else
      items.push_back(read_value<T>(j));
    value = std::move(items);
  };
  return f;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// JSON, or a number as people write it and JSON does not: .5, 5., +5. What is neither is text.
Json parse_value(const std::string& text) {
  Json parsed = try_json<Json>(text);
  if (!parsed.is_discarded()) return parsed;
  std::string number = text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
  const std::size_t begin = number.starts_with('-') ? 1 : 0;
  if (number.size() > begin + 1 && number[begin] == '.' && is_digit(number[begin + 1])) number.insert(begin, "0");
  const std::size_t dot = number.find('.');
  if (dot != std::string::npos && dot > 0 && is_digit(number[dot - 1]) &&
      (dot + 1 == number.size() || !is_digit(number[dot + 1])))
    number.insert(dot + 1, "0");
  parsed = try_json<Json>(number);
  return parsed.is_number() ? parsed : value_json(text);
}

std::string without_blanks_around(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// Where the bracket that opens at `begin`, [ or (, closes; npos where none does.
std::size_t closing_bracket(const std::string& text, std::size_t begin) {
  const char open = text[begin], close = open == '[' ? ']' : ')';
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i;
  }
  return std::string::npos;
}

/// The next comma that stands in no brackets, or the text's end.
std::size_t end_of_item(const std::string& text, std::size_t begin) {
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == ',') return i;
    if (text[i] != '[' && text[i] != '(') continue;
    if (const std::size_t close = closing_bracket(text, i); close != std::string::npos) i = close;
  }
  return text.size();
}

/// "1,2", and "[a, b]" where that is no JSON: the texts of a list need no quotes, and may hold brackets themselves, as
/// "pose[0:3]" and "action | clip(-1, 1)" do.
Json parse_list(std::string text, bool is_text) {
  const bool bracketed = text.size() >= 2 && text.front() == '[' && closing_bracket(text, 0) == text.size() - 1;
  if (bracketed) text = text.substr(1, text.size() - 2);
  Json list = Json::array();
  std::size_t begin = 0;
  while (begin <= text.size() && !text.empty()) {
    const std::size_t comma = end_of_item(text, begin);
    std::string item = text.substr(begin, comma - begin);
    if (bracketed) item = without_blanks_around(item);
    list.push_back(is_text ? value_json(item) : parse_value(item));
    begin = comma + 1;
  }
  return list;
}

/// The text right of '=' as JSON: as it stands where it is valid JSON of the field's kind, else as text.
Json parse_text_value(const std::string& text, const Field& field) {
  if (field.is_list) {
    Json list = text.starts_with('[') ? try_json<Json>(text) : Json();
    return list.is_array() ? list : parse_list(text, field.is_text);
  }
  if (field.is_text) {
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      Json quoted = try_json<Json>(text);
      if (!quoted.is_discarded()) return quoted;
    }
    return value_json(text);
  }
  if (text == "True") return Json(true);
  if (text == "False") return Json(false);
  if (text == "None") return Json(nullptr);
  return parse_value(text);
}

/// Sets the field's value in an object whose members are the sections.
void put(Json& root, const Field& field) {
  Json* node = &root;
  std::size_t begin = 0;
  for (std::size_t dot; (dot = field.path.find('.', begin)) != std::string::npos; begin = dot + 1)
    node = &(*node)[field.path.substr(begin, dot - begin)];
  (*node)[field.path.substr(begin)] = field.get();
}

}  // namespace

struct Fields::Impl {
  std::vector<Field> fields;  // in the order of binding, which is the order of to_json and help
  std::map<std::string, std::size_t> index;
  std::map<std::string, std::string> aliases;
  std::string prefix;

  void add(const std::string& name, Field field, const std::string& doc) {
    field.path = prefix + name;
    field.doc = doc;
    field.default_value = field.get();
    COHORT_CHECK(index.emplace(field.path, fields.size()).second, "the setting {} is bound twice", field.path);
    fields.push_back(std::move(field));
  }

  Field& find(const std::string& path, const std::string& source) {
    const auto alias = aliases.find(path);
    const auto found = index.find(alias == aliases.end() ? path : alias->second);
    if (found != index.end()) return fields[found->second];
    std::vector<std::string> known;
    for (const Field& f : fields) known.push_back(f.path);
    // A group of settings, `data` for data.path.
    std::string inside;
    for (const Field& f : fields)
      if (f.path.starts_with(path + ".") && inside.empty()) inside = f.path;
    if (!inside.empty())
      throw UnknownSetting(format("{}: '{}' is a group of settings, of which the first is {}", source, path, inside));
    std::string meant;
    const std::vector<std::string> like = similar(path, known);
    for (std::size_t i = 0; i < like.size(); ++i)
      meant += (i == 0 ? "; did you mean '" : i + 1 == like.size() ? "' or '" : "', '") + like[i];
    if (!meant.empty()) meant += "'?";
    throw UnknownSetting(format("{}: unknown setting '{}'{}", source, path, meant));
  }

  void set(Field& field, const Json& value, const std::string& source) {
    try {
      field.set(value);
    } catch (const std::exception& e) {
      throw Error(format("{}: setting '{}' takes {}, not {} ({})", source, field.path, field.type_name,
                         json_text(value), e.what()));
    }
    field.was_set = true;
  }

  void collect(const Json& json, const std::string& path, const std::string& source,
               std::vector<std::pair<std::string, Json>>& out) {
    for (const auto& [key, value] : json.items()) {
      const std::string full = path.empty() ? key : path + "." + key;
      const bool leaf = index.contains(full) || aliases.contains(full);
      if (value.is_object() && !leaf) {
        collect(value, full, source, out);
      } else {
        find(full, source);
        out.emplace_back(full, value);
      }
    }
  }
};

Fields::Fields() : impl_(std::make_unique<Impl>()) {}
Fields::~Fields() = default;

void Fields::add(const std::string& n, bool& v, const std::string& d) {
  impl_->add(n, scalar_field(v), d);
}
void Fields::add(const std::string& n, int& v, const std::string& d) {
  impl_->add(n, scalar_field(v), d);
}
void Fields::add(const std::string& n, std::int64_t& v, const std::string& d) {
  impl_->add(n, scalar_field(v), d);
}
void Fields::add(const std::string& n, std::uint64_t& v, const std::string& d) {
  impl_->add(n, scalar_field(v), d);
}
void Fields::add(const std::string& n, double& v, const std::string& d) {
  impl_->add(n, scalar_field(v), d);
}
void Fields::add(const std::string& n, std::string& v, const std::string& d) {
  impl_->add(n, scalar_field(v), d);
}
void Fields::add(const std::string& n, std::vector<int>& v, const std::string& d) {
  impl_->add(n, list_field(v), d);
}
void Fields::add(const std::string& n, std::vector<double>& v, const std::string& d) {
  impl_->add(n, list_field(v), d);
}
void Fields::add(const std::string& n, std::vector<std::string>& v, const std::string& d) {
  impl_->add(n, list_field(v), d);
}
void Fields::add(const std::string& n, std::optional<std::int64_t>& v, const std::string& d) {
  impl_->add(n, optional_field(v), d);
}
void Fields::add(const std::string& n, std::optional<double>& v, const std::string& d) {
  impl_->add(n, optional_field(v), d);
}

void Fields::add_choice(const std::string& name, std::string& value, std::vector<std::string> choices,
                        const std::string& doc) {
  Field field = scalar_field(value);
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : "|") + choice;
  field.type_name = list;
  field.set = [&value, choices = std::move(choices)](const Json& j) {
    const std::string text = read_value<std::string>(j);
    COHORT_THROW_UNLESS(std::find(choices.begin(), choices.end(), text) != choices.end(), "no such choice");
    value = text;
  };
  impl_->add(name, std::move(field), doc);
}

void Fields::section(const std::string& name, const std::function<void()>& body) {
  const std::string outer = impl_->prefix;
  impl_->prefix = outer + name + ".";
  body();
  impl_->prefix = outer;
}

void Fields::alias(const std::string& from, const std::string& to) {
  COHORT_CHECK(impl_->index.contains(to), "alias {} points to the unknown setting {}", from, to);
  impl_->aliases[from] = to;
}

void Fields::apply_json(const Json& json, const std::string& source) {
  COHORT_THROW_UNLESS(json.is_object(), "{}: a configuration is a JSON object, not {}", source, json.type_name());
  std::vector<std::pair<std::string, Json>> assignments;
  impl_->collect(json, "", source, assignments);
  std::vector<std::pair<Field*, Json>> done;
  try {
    for (const auto& [path, value] : assignments) {
      Field& field = impl_->find(path, source);
      done.emplace_back(&field, field.get());
      impl_->set(field, value, source);
    }
  } catch (...) {
    for (auto it = done.rbegin(); it != done.rend(); ++it) it->first->set(it->second);
    throw;
  }
}

void Fields::apply_file(const std::string& path) {
  apply_json(read_settings_file(path), path);
}

void Fields::apply_override(std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  COHORT_THROW_UNLESS(equals != std::string_view::npos && equals > 0, "'{}' is no override; write key.path=value",
                      assignment);
  const std::string path(assignment.substr(0, equals));
  Field& field = impl_->find(path, "override");
  impl_->set(field, parse_text_value(std::string(assignment.substr(equals + 1)), field), "override");
  field.was_overridden = true;
}

Json Fields::to_json() const {
  Json root = Json::object();
  for (const Field& field : impl_->fields) put(root, field);
  return root;
}

Json Fields::changed() const {
  Json root = Json::object();
  for (const Field& field : impl_->fields)
    if (field.get() != field.default_value) put(root, field);
  return root;
}

bool Fields::has(const std::string& path) const {
  return impl_->index.contains(path) || impl_->aliases.contains(path);
}

std::string Fields::help() const {
  std::string text;
  for (const Field& f : impl_->fields)
    text += format("  {} = {}  ({})\n      {}\n", f.path, json_text(f.default_value), f.type_name, f.doc);
  return text;
}

bool Fields::was_set(const std::string& path) const {
  const auto found = impl_->index.find(path);
  return found != impl_->index.end() && impl_->fields[found->second].was_set;
}

bool Fields::was_overridden(const std::string& path) const {
  const auto found = impl_->index.find(path);
  return found != impl_->index.end() && impl_->fields[found->second].was_overridden;
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    // Something of the word has to be right: `x` is no misspelt `exp`.
    if (distance < best_distance && distance < word.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool is_override(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  return equals != std::string_view::npos && equals > 0 && argument.front() != '-';
}

}  // namespace cohort::config
