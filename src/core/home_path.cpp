#include "core/home_path.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/format.h"

namespace cohort {
namespace {

/// The name of the variable that `$NAME/` or `${NAME}/` begins with, or "". `end`: behind it.
std::string variable_in_front(std::string_view text, std::size_t& end) {
  if (!text.starts_with('$')) return "";
  const bool braces = text.starts_with("${");
  const std::size_t begin = braces ? 2 : 1;
  end = begin;
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  while (end < text.size() && is_part(text[end])) ++end;
  if (end == begin || std::isdigit(static_cast<unsigned char>(text[begin])) != 0) return "";
  std::string name(text.substr(begin, end - begin));
  if (braces && (end == text.size() || text[end++] != '}')) return "";
  return end == text.size() || text[end] == '/' ? name : "";
}

}  // namespace

std::string with_home(const std::string& text) {
  std::size_t end = 1;
  std::string name;
  if (text.starts_with("~/"))
    name = "HOME";
  else
    name = variable_in_front(text, end);
  if (name.empty()) return text;
  const char* value = std::getenv(name.c_str());
  if (value == nullptr && end == text.size()) return text;  // a text such as $NA
  COHORT_THROW_UNLESS(value != nullptr && *value != '\0',
                      "{}: the environment variable {} is not set: set it, or write the whole path", text, name);
  std::string front = value;
  if (end < text.size() && front.size() > 1 && front.ends_with('/')) front.pop_back();
  return front + text.substr(end);
}

std::string word_with_home(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string_view name = std::string_view(word).substr(0, std::min(equals, word.size()));
  const bool names = equals != std::string::npos && !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
                       return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
                     });
  return names ? word.substr(0, equals + 1) + with_home(word.substr(equals + 1)) : with_home(word);
}

}  // namespace cohort
