#include "core/log.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "core/error.h"
#include "core/progress.h"

namespace cohort::log {
namespace {

constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %v";
// On a terminal, where 80 columns are to hold the message: the date and the level of ordinary lines are in the file.
constexpr const char* kTerminalPattern = "%H:%M:%S %^%l%$ %v";
constexpr const char* kTerminalInfoPattern = "%H:%M:%S %v";

struct LogFile {
  std::string path;
  std::unique_ptr<spdlog::sinks::sink> sink;
  bool failed = false;  ///< said once on the console
};

/// A line from before there was a file.
struct EarlyLine {
  spdlog::log_clock::time_point time;
  Level level;
  std::string text;
};

/// More lines than programs write before they open a file; the first ones are kept.
constexpr std::size_t kMostEarlyLines = 1000;

/// Colours only on a terminal that has them, and not against the user's wish (https://no-color.org).
std::unique_ptr<spdlog::sinks::sink> make_console() {
  const char* no_color = std::getenv("NO_COLOR");
  return std::make_unique<spdlog::sinks::ansicolor_stderr_sink_st>(
      no_color != nullptr && *no_color != '\0' ? spdlog::color_mode::never : spdlog::color_mode::automatic);
}

struct State {
  std::mutex mutex;
  std::unique_ptr<spdlog::sinks::sink> console = make_console();
  std::unique_ptr<spdlog::sinks::sink> console_info = make_console();
  std::vector<LogFile> files;
  std::vector<EarlyLine> early;
  bool had_file = false;  ///< early lines are kept until then
  Level level = Level::kInfo;
  bool console_on = true;
  void (*before)() = nullptr;
  void (*after)() = nullptr;

  State() {
    const bool terminal = is_terminal(STDERR_FILENO);
    console->set_pattern(terminal ? kTerminalPattern : kPattern);
    console_info->set_pattern(terminal ? kTerminalInfoPattern : kPattern);
  }
};

State& state() {
  static State* s = new State;  // never destroyed: messages may come from static destructors
  return *s;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

spdlog::details::log_msg log_line(spdlog::log_clock::time_point time, Level level, const std::string& text) {
  return {time, spdlog::source_loc(), spdlog::string_view_t(), to_spdlog(level), spdlog::string_view_t(text)};
}

/// Call with the lock held.
void to_console(const spdlog::details::log_msg& line) {
  State& s = state();
  if (s.before) s.before();
  try {
    spdlog::sinks::sink& console = line.level == spdlog::level::info ? *s.console_info : *s.console;
    console.log(line);
    console.flush();
  } catch (const std::exception&) {
    // Standard error is gone; there is nobody left to tell.
  }
  if (s.after) s.after();
}

/// Runs a write to a file; its first failure becomes a line on the console. Call with the lock held.
template <class Write>
void guarded(LogFile& file, Write&& do_write) {
  try {
    do_write();
  } catch (const std::exception& e) {
    if (std::exchange(file.failed, true)) return;
    const std::string text =
        format("cannot write the log file {}: {}; lines will be missing in it", file.path, e.what());
    to_console(spdlog::details::log_msg(spdlog::string_view_t(), spdlog::level::err, spdlog::string_view_t(text)));
  }
}

/// Call with the lock held.
void to_files(const spdlog::details::log_msg& line) {
  for (LogFile& file : state().files)
    guarded(file, [&] {
      file.sink->log(line);
      file.sink->flush();
    });
}

}  // namespace

void set_level(Level level) {
  std::lock_guard lock(state().mutex);
  state().level = level;
}

void set_console(bool on) {
  std::lock_guard lock(state().mutex);
  state().console_on = on;
}

void add_file(const std::string& path) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  for (const LogFile& file : s.files)
    if (file.path == path) return;
  try {
    auto sink = std::make_unique<spdlog::sinks::basic_file_sink_st>(path);
    sink->set_pattern(kPattern);
    s.files.push_back({path, std::move(sink)});
  } catch (const spdlog::spdlog_ex& e) {
    throw Error(format("cannot open the log file {}: {}", path, e.what()));
  }
  s.had_file = true;
  for (const EarlyLine& early : std::exchange(s.early, {})) to_files(log_line(early.time, early.level, early.text));
}

void remove_file(const std::string& path) {
  std::lock_guard lock(state().mutex);
  std::erase_if(state().files, [&](const LogFile& file) { return file.path == path; });
}

void flush() {
  std::lock_guard lock(state().mutex);
  state().console->flush();
  state().console_info->flush();
  for (LogFile& file : state().files) guarded(file, [&] { file.sink->flush(); });
}

void set_console_guard(void (*before)(), void (*after)()) {
  std::lock_guard lock(state().mutex);
  state().before = before;
  state().after = after;
}

void write(Level level, std::string_view message) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (level < s.level) return;
  const std::string text(message);
  const spdlog::details::log_msg line = log_line(spdlog::log_clock::now(), level, text);
  to_files(line);
  if (!s.had_file && s.early.size() < kMostEarlyLines) s.early.push_back({line.time, level, text});
  if (s.console_on || level >= Level::kWarning) to_console(line);
}

void write_to_files(Level level, std::string_view message) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  const std::string text(message);
  to_files(log_line(spdlog::log_clock::now(), level, text));
}

}  // namespace cohort::log
