/// Text formatting with fmt's syntax, checked when it is compiled.
///
/// Only fmt's argument types are seen here (its whole headers cost 3 s a source file); the work is done in vformat.cpp.
/// LibTorch's include tree carries a newer fmt than Debian's, and the LibTorch modules see that one: their vformat is a
/// second one, compiled from the same file (cmake/CohortDependencies.cmake). fmt's inline namespaces keep the two apart.
#pragma once
#include <span>
#include <string>
#include <string_view>

#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif

namespace cohort {

/// format() with its arguments erased.
std::string vformat(fmt::string_view text, fmt::format_args arguments);

/// An object, not a function: a name that is found as an object is not looked up by its arguments as well, which would find
/// std::format wherever a std::string is among them and <chrono> brings <format> (GCC 13 and later).
struct Format {
  template <class... Args>
  std::string operator()(fmt::format_string<Args...> text, Args&&... args) const {
    return cohort::vformat(text, fmt::make_format_args(args...));
  }
};
inline constexpr Format format;

/// "a, b, c".
std::string join(std::span<const std::string> texts, std::string_view separator);

/// "1.5 GiB", "12.0 MiB", "512 B": a byte count for people.
std::string format_bytes(double bytes);

/// "1:02:03" or "02:03": a duration in seconds for people; "--:--" where it is not finite.
std::string format_duration(double seconds);

}  // namespace cohort
