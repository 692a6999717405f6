// `cohort top`: what the GPUs, the processors and the ranks of this machine's jobs are doing.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/top_screen.h"
#include "core/near_file.h"
#include "core/progress_line.h"

namespace cohort::cli {
namespace {

namespace fs = std::filesystem;

/// Between the two readings of a single list: processors' use is a difference.
constexpr std::chrono::milliseconds kBetweenReadings{300};

volatile std::sig_atomic_t top_ended = 0;

bool is_screen() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' && std::strcmp(term, "dumb") != 0;
}

/// A terminal's second screen, without echo and cursor; what was there before comes back at the end.
class Screen {
 public:
  Screen() {
    if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      has_keys_ = ::tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
    }
    struct sigaction action {};
    action.sa_handler = [](int) { top_ended = 1; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
    put("\x1b[?1049h\x1b[?25l");
  }
  ~Screen() {
    put("\x1b[?25h\x1b[?1049l");
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// False once the terminal has gone.
  bool draw(const std::vector<std::string>& lines) const {
    winsize size{};
    int width = 80, height = 24;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 && size.ws_row > 1) {
      width = size.ws_col;
      height = size.ws_row;
    }
    std::string text = "\x1b[H";
    const std::size_t shown = std::min(lines.size(), static_cast<std::size_t>(height - 1));
    // One column stays free: a character in the last one would make some terminals wrap.
    for (std::size_t i = 0; i < shown; ++i) text += clip_to_width(lines[i], width - 1) + "\x1b[K\r\n";
    text +=
        "\x1b[J" + clip_to_width(shown < lines.size() ? "q ends; more than the terminal shows" : "q ends", width - 1);
    return put(text);
  }

  /// Waits for a key at most; true when it means the end.
  bool wait(double seconds) const {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (!top_ended) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left <= 0) return false;
      pollfd keys{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
      if (::poll(&keys, 1, static_cast<int>(left)) <= 0) continue;
      char key = 0;
      if (::read(STDIN_FILENO, &key, 1) <= 0) return true;  // the terminal has gone
      if (key == 'q' || key == 'Q' || key == 3) return true;
    }
    return true;
  }

 private:
  static bool put(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  termios before_{};
  bool has_keys_ = false;
};

/// The ranks of runs that were named, beside those that were found: also of runs that ended, or run elsewhere.
void add_named(monitor::Snapshot& now, const std::vector<std::string>& runs) {
  for (const std::string& name : runs) {
    const fs::path run = fs::canonical(name);
    for (rank::Status& status : rank::read_statuses(run / rank::kRanksFolder)) {
      const bool found = std::any_of(now.ranks.begin(), now.ranks.end(), [&](const monitor::LocalRank& other) {
        return other.status.pid == status.pid && other.status.started == status.started &&
               other.status.host == status.host;
      });
      if (!found) now.ranks.push_back({.status = std::move(status), .run = run});
    }
  }
}

int run_top(const std::vector<std::string>& words) {
  CLI::App app(
      "Shows the GPUs of this machine (or why there is none), its processors and memory, and what every rank of the\n"
      "jobs on it is doing. On a terminal it is drawn anew until q or Ctrl-C; elsewhere it is one list.",
      "cohort top");
  std::vector<std::string> runs;
  bool once = false, json = false;
  double interval = 1;
  app.add_option("runs", runs, "folders of runs whose ranks are shown, too, also when they ended or run elsewhere");
  app.add_flag("--once", once, "one list, also on a terminal");
  app.add_flag("--json", json, "one list as JSON");
  app.add_option("--interval", interval, "seconds between two drawings")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  if (const auto code = parse_arguments(app, words)) return *code;
  for (const std::string& run : runs)
    COHORT_THROW_UNLESS(fs::is_directory(run), "{}: there is no such run{}", run, near_file(run));
  monitor::Watcher watcher;
  const auto read = [&] {
    monitor::Snapshot now = watcher.read();
    add_named(now, runs);
    return now;
  };
  read();
  std::this_thread::sleep_for(kBetweenReadings);
  if (json) {
    std::puts(top_json(read()).c_str());
    return 0;
  }
  if (once || !is_screen()) {
    for (const std::string& line : top_lines(read())) std::puts(line.c_str());
    return 0;
  }
  const Screen screen;
  while (!top_ended && screen.draw(top_lines(read())) && !screen.wait(interval)) {
  }
  return 0;
}

const Register kTop({"top", "GPUs, processors, memory, and what the ranks of this machine's jobs are doing", run_top,
                     ""});

}  // namespace
}  // namespace cohort::cli
