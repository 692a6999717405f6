#include "core/log.h"

#include <mutex>
#include <vector>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/error.h"

namespace cohort::log {
namespace {

constexpr const char* kPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %v";

struct State {
  std::mutex mutex;
  std::shared_ptr<spdlog::sinks::sink> console = std::make_shared<spdlog::sinks::stderr_sink_st>();
  std::vector<std::shared_ptr<spdlog::sinks::sink>> files;
  Level level = Level::kInfo;
  bool console_on = true;
  std::string prefix;
  void (*before)() = nullptr;
  void (*after)() = nullptr;

  State() { console->set_pattern(kPattern); }
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

}  // namespace

void set_level(Level level) {
  std::lock_guard lock(state().mutex);
  state().level = level;
}

void set_prefix(std::string prefix) {
  std::lock_guard lock(state().mutex);
  state().prefix = std::move(prefix);
}

void set_console(bool on) {
  std::lock_guard lock(state().mutex);
  state().console_on = on;
}

void add_file(const std::string& path) {
  std::lock_guard lock(state().mutex);
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(path);
    sink->set_pattern(kPattern);
    state().files.push_back(std::move(sink));
  } catch (const spdlog::spdlog_ex& e) {
    throw Error(format("cannot open the log file {}: {}", path, e.what()));
  }
}

void flush() {
  std::lock_guard lock(state().mutex);
  state().console->flush();
  for (auto& sink : state().files) sink->flush();
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
  const std::string text = s.prefix + std::string(message);
  const spdlog::details::log_msg line(spdlog::string_view_t(), to_spdlog(level), spdlog::string_view_t(text));
  for (auto& sink : s.files) {
    sink->log(line);
    sink->flush();
  }
  if (!s.console_on && level < Level::kWarning) return;
  if (s.before) s.before();
  s.console->log(line);
  s.console->flush();
  if (s.after) s.after();
}

}  // namespace cohort::log
