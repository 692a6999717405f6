/// The process's log: one line per message, with time and level, to standard error and to the files that were added.
/// No function but add_file throws: a full disk under a log file is reported once on standard error and costs those
/// lines.
#pragma once
#include <string>
#include <string_view>

#include "core/format.h"

namespace cohort::log {

enum class Level { kDebug, kInfo, kWarning, kError };

/// Messages below this level are dropped. Default kInfo.
void set_level(Level level);

/// Messages of other ranks than 0 are usually repetitions: off drops everything below kWarning on standard error; files
/// still get all. Default on.
void set_console(bool on);

/// Also appends every message to this file (created with its parent folders). The process's first file also gets what
/// was written before (up to a thousand lines, with their own times). A file that is already among the log's
/// files is not added again. Throws Error when it cannot be opened.
void add_file(const std::string& path);

/// Closes a file that add_file opened; unknown paths are ignored.
void remove_file(const std::string& path);

/// Hands everything that is buffered to the system.
void flush();

/// Hooks that run before and after a line is written to standard error, both on the writing thread and under the log's
/// lock; the progress bar uses them to clear and redraw. They must not log. Passing nullptr removes them.
void set_console_guard(void (*before)(), void (*after)());

void write(Level level, std::string_view message);

/// To the files only: for what the program tells the user in its own way.
void write_to_files(Level level, std::string_view message);

template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kDebug, cohort::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kInfo, cohort::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kWarning, cohort::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  write(Level::kError, cohort::format(text, std::forward<Args>(args)...));
}

}  // namespace cohort::log
