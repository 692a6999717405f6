/// Reading the small text files of /proc and /sys. Anything absent or unreadable is "not known", never an error.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::monitor {

std::vector<std::string_view> split_lines(std::string_view text);

/// The words between blanks.
std::vector<std::string_view> split_words(std::string_view line);

/// A decimal number at the beginning (after blanks), or nullopt when there is none or it does not fit.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// The text after `key` in the first line that begins with it ("VmRSS:", "inactive_file "), without blanks around it.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key);

}  // namespace cohort::monitor
