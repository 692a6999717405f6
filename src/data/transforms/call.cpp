#include "data/transforms/call.h"

#include <charconv>

#include "core/error.h"

namespace cohort::data {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Call parse_call(std::string_view text) {
  text = trim(text);
  Call call{.text = std::string(text)};
  const std::size_t open = text.find('(');
  call.name = std::string(trim(text.substr(0, open)));
  COHORT_THROW_UNLESS(!call.name.empty(), "'{}' names nothing", text);
  if (open == std::string_view::npos) return call;
  COHORT_THROW_UNLESS(text.ends_with(')'), "'{}' lacks its closing parenthesis", text);
  const std::string_view inside = trim(text.substr(open + 1, text.size() - open - 2));
  if (!inside.empty()) call.arguments = split_text(inside, ',');
  return call;
}

void Call::expect_arguments(std::size_t count) const {
  COHORT_THROW_UNLESS(arguments.size() == count, "'{}' has {} arguments, but {} takes {}", text, arguments.size(), name,
                      count);
}

double Call::number(std::size_t i) const {
  const std::string& argument = arguments.at(i);
  double value = 0;
  const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  COHORT_THROW_UNLESS(error == std::errc() && end == argument.data() + argument.size(), "'{}': '{}' is no number", text,
                      argument);
  return value;
}

}  // namespace cohort::data
