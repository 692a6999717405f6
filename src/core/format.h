/// Text formatting: fmt, header-only in every target.
///
/// LibTorch's include tree carries a newer fmt than Debian's; header-only use keeps the two apart (their inline
/// namespaces differ), whichever of them a source file sees.
#pragma once
#include <string>
#include <utility>

#include <fmt/format.h>

namespace cohort {

template <class... Args>
std::string format(fmt::format_string<Args...> text, Args&&... args) {
  return fmt::format(text, std::forward<Args>(args)...);
}

/// "1.5 GiB", "12.0 MiB", "512 B": a byte count for people.
std::string format_bytes(double bytes);

/// "1:02:03" or "02:03": a duration in seconds for people; "--:--" where it is not finite.
std::string format_duration(double seconds);

}  // namespace cohort
