/// Sizes and geom groups of pictures, as they are typed.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "cli/subcommand.h"
#include "core/format.h"

namespace cohort::cli {

/// Width and height of "640x480"; with `square` also of "256". Throws UsageError naming the flag.
inline std::pair<int, int> picture_size(const std::string& flag, const std::string& text, bool square) {
  constexpr int kMost = 8192;
  int width = 0, height = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, width);
  bool whole = square && first.ec == std::errc() && first.ptr == end;
  if (whole) {
    height = width;
  } else if (first.ec == std::errc() && first.ptr != end && *first.ptr == 'x') {
    const auto second = std::from_chars(first.ptr + 1, end, height);
    whole = second.ec == std::errc() && second.ptr == end;
  }
  if (!whole || width < 1 || height < 1 || width > kMost || height > kMost)
    throw UsageError(format("{} {}: width and height in pixels, 1 to {}, e.g. 640x480", flag, text, kMost));
  return {width, height};
}

/// "0,1,3": the groups of geoms that are drawn. Throws UsageError.
inline std::array<bool, 6> geom_groups(const std::string& text) {
  std::array<bool, 6> shown{};
  const auto refuse = [&] {
    throw UsageError(
        format("--geom-groups {}: numbers of MuJoCo's groups, 0 to 5, e.g. 0,1,2 (what is drawn without this "
               "flag) or 0,3 (3: where many models keep their collision shapes)",
               text));
  };
  if (text.empty()) refuse();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end != begin + 1 || text[begin] < '0' || text[begin] > '5') refuse();
    shown[static_cast<std::size_t>(text[begin] - '0')] = true;
    begin = end + 1;
  }
  return shown;
}

inline constexpr const char* kGeomGroupsHelp =
    "which of MuJoCo's geom groups 0 to 5 are drawn, e.g. 0,3; many models keep collision shapes in 3 (default: 0,1,2)";

}  // namespace cohort::cli
