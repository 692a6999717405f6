/// Names with arguments, as configuration texts write them: "clip(-1, 1)".
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

struct Call {
  std::string text;  ///< as written, for messages
  std::string name;
  std::vector<std::string> arguments;

  /// Throws Error where there are not so many.
  void expect_arguments(std::size_t count) const;
  /// Argument i as a number; throws Error.
  double number(std::size_t i) const;
};

/// Throws Error on an unclosed parenthesis or text behind it.
Call parse_call(std::string_view text);
/// Parts between separators, without blanks at their ends.
std::vector<std::string> split_text(std::string_view text, char separator);

}  // namespace cohort::data
