/// The process's log: one line per message, with time and level, to standard error and to the files that were added.
#pragma once
#include <string>
#include <string_view>

#include "core/format.h"

namespace cohort::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Messages below this level are dropped. Default kInfo.
void set_level(Level level);

/// Sets the label that stands before every message on standard error and in files, e.g. "[rank 1] ". Empty by default.
void set_prefix(std::string prefix);

/// Messages of other ranks than 0 are usually repetitions: off drops everything below kWarning on standard error; files
/// still get all. Default on.
void set_console(bool on);

/// Also appends every message to this file (created with its parent folders). Throws Error when it cannot be opened.
void add_file(const std::string& path);

/// Writes and syncs everything that is buffered.
void flush();

/// A hook that runs before and after a line is written to standard error; the progress bar uses it to clear and redraw.
/// Passing nullptr removes it.
void set_console_guard(void (*before)(), void (*after)());

void write(Level level, std::string_view message);

template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kDebug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kInfo, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kWarning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kError, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace cohort::log
