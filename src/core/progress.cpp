#include "core/progress.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/format.h"
#include "core/log.h"
#include "core/progress_rate.h"
#include "core/threads.h"

namespace cohort {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";
constexpr int kDefaultWidth = 80;   // columns, where the terminal does not say
constexpr double kRateWindow = 10;  // s: what "it/s" looks back on
constexpr double kLeftWindow = 30;  // s, and at least a quarter of the run: what "time left" is derived from
constexpr double kLeftShare = 0.25;
constexpr double kTick = 1;               // s after which a bar shows that time passes
constexpr double kObservedForLeft = 1.0;  // s of counted work before a time left is claimed

/// Displays that are alive, the innermost last. One lock for all: they share the terminal.
struct Board {
  std::mutex mutex;
  std::vector<Progress::Display*> alive;
};

Board& board() {
  static Board* b = new Board;  // never destroyed: displays may end in static destructors
  return *b;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The columns that `cohort launch` has left for this process's bar, which it shows on its own terminal: it says so for
/// the one pipe whose device and inode it names. 0: this descriptor is none of its.
int columns_of_launcher(int fd) {
  const char* columns = std::getenv("COHORT_TERMINAL_COLUMNS");
  const char* stream = std::getenv("COHORT_TERMINAL_STREAM");
  struct stat status {};
  if (columns == nullptr || stream == nullptr || ::fstat(fd, &status) != 0) return 0;
  const std::string own =
      format("{}:{}", static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino));
  return own == stream ? std::max(0, std::atoi(columns)) : 0;
}

bool colors_wanted() {
  const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org
  return no_color == nullptr || *no_color == '\0';
}

/// Asked at every redraw, so that a resized window is followed without a signal handler.
int terminal_width(int fd) {
  if (const int left = columns_of_launcher(fd); left > 0) return left + 1;  // it leaves the last one free, too
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns != nullptr ? std::atoi(columns) : 0;
  return width > 0 ? width : kDefaultWidth;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // gone or full: not worth the work's life
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

bool is_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return (::isatty(fd) == 1 || columns_of_launcher(fd) > 0) && term != nullptr && *term != '\0' &&
         std::strcmp(term, "dumb") != 0;
}

class Progress::Display {
 public:
  Display(std::int64_t total, ProgressSettings settings)
      : settings_(std::move(settings)),
        total_(total),
        done_(settings_.initial),
        terminal_(!settings_.silent && is_terminal(settings_.fd)),
        unicode_(locale_is_utf8()),
        color_(colors_wanted()) {
    if (!settings_.now) settings_.now = steady_seconds;
    started_ = settings_.now();
    last_shown_ = started_;
    last_shown_done_ = done_;
  }

  /// Call these with the board's lock held.
  void begin() {
    if (settings_.silent) return;
    for (Display* other : board().alive) other->step_aside();
    board().alive.push_back(this);
    if (terminal_) draw(ProgressPhase::kRunning);
  }

  void update(std::int64_t done, std::vector<ProgressField> fields) {
    if (settings_.silent || ended_) return;
    const double now = settings_.now();
    done_ = done;
    if (!fields.empty()) fields_ = std::move(fields);
    rate_.add(now, static_cast<double>(done));
    left_rate_.add(now, static_cast<double>(done));
    if (!asked_.value_or(is_due(now, done)) || board().alive.back() != this) {
      asked_.reset();
      return;
    }
    asked_.reset();
    show(now);
  }

  /// Time has passed, and perhaps nothing else.
  void tick() {
    if (settings_.silent || ended_ || board().alive.back() != this) return;
    const double now = settings_.now(), since = now - last_shown_;
    if (terminal_
            ? since >= kTick
            : since >= settings_.plain_interval || (settings_.keep && !shown_once_ && since >= settings_.plain_first))
      show(now);
  }

  bool due(std::int64_t done) {
    asked_ = !settings_.silent && !ended_ && is_due(settings_.now(), done);
    return *asked_;
  }

  void end(ProgressPhase phase) {
    if (settings_.silent || std::exchange(ended_, true)) return;
    const double now = settings_.now();
    Display* drawn = board().alive.back();
    std::erase(board().alive, this);
    drawn->erase();
    if (settings_.keep)
      write_all(settings_.fd, (terminal_ ? bar_line(now, phase) : progress_plain_line(state(now, phase))) + "\n");
    if (drawn != this)
      drawn->redraw();
    else if (!board().alive.empty())
      board().alive.back()->come_back(now);
  }

  void erase() {
    if (drawn_) write_all(settings_.fd, kEraseLine);
  }
  void redraw() {
    if (drawn_) write_all(settings_.fd, bar_line(settings_.now(), ProgressPhase::kRunning));
  }

  bool on_terminal() const { return terminal_; }
  bool ticks() const { return settings_.ticks && !settings_.silent; }

 private:
  void step_aside() {
    if (std::exchange(aside_, true)) return;
    rate_.pause(settings_.now());
    erase();
    drawn_ = false;
  }

  void come_back(double now) {
    aside_ = false;
    rate_.resume(now);
    if (terminal_) draw(ProgressPhase::kRunning);
  }

  void show(double now) {
    if (terminal_)
      draw(ProgressPhase::kRunning);
    else
      write_all(settings_.fd, progress_plain_line(state(now, ProgressPhase::kRunning)) + "\n");
    shown_once_ = true;
    last_shown_ = now;
    last_shown_done_ = done_;
  }

  bool is_due(double now, std::int64_t done) const {
    const double since = now - last_shown_;
    if (terminal_) return since >= settings_.redraw_interval;
    // What comes before there are figures to show can wait for a moment.
    if (!shown_once_ && settings_.keep) return !fields_.empty() || !settings_.ticks || since >= settings_.plain_first;
    if (since >= settings_.plain_interval) return true;
    return total_ > 0 && settings_.keep && since >= settings_.plain_shortest &&
           static_cast<double>(done - last_shown_done_) >= settings_.plain_share * static_cast<double>(total_);
  }

  ProgressState state(double now, ProgressPhase phase) const {
    ProgressState s;
    s.label = settings_.label;
    s.done = done_;
    s.total = total_;
    s.unit = settings_.unit;
    s.samples_per_unit = settings_.samples_per_unit;
    s.elapsed = now - started_;
    s.phase = phase;
    s.fields = fields_;
    // At the end the rate of the whole run is the figure that people quote.
    s.per_second = phase == ProgressPhase::kRunning ? rate_.per_second()
                                                    : static_cast<double>(done_ - settings_.initial) / s.elapsed;
    s.left = left_rate_.observed() >= kObservedForLeft
                 ? static_cast<double>(std::max<std::int64_t>(0, total_ - done_)) / left_rate_.per_second()
                 : std::numeric_limits<double>::quiet_NaN();
    return s;
  }

  std::string bar_line(double now, ProgressPhase phase) const {
    // One column stays free: a character in the last one would make some terminals wrap.
    const ProgressStyle style{terminal_width(settings_.fd) - 1, unicode_, color_};
    return progress_bar_line(state(now, phase), style);
  }

  void draw(ProgressPhase phase) {
    write_all(settings_.fd, kEraseLine + bar_line(settings_.now(), phase));
    drawn_ = true;
  }

  ProgressSettings settings_;
  std::int64_t total_;
  std::int64_t done_;
  bool terminal_;
  bool unicode_;
  bool color_;
  double started_ = 0;
  double last_shown_ = 0;
  std::int64_t last_shown_done_ = 0;
  bool shown_once_ = false;
  bool drawn_ = false;  ///< the cursor stands behind this bar
  bool aside_ = false;
  bool ended_ = false;
  std::optional<bool> asked_;  ///< what due() has answered, for the update that follows
  RateEstimate rate_{kRateWindow, 0};
  RateEstimate left_rate_{kLeftWindow, kLeftShare};
  std::vector<ProgressField> fields_;
};

namespace {

// The lock is held from before a log line until after it, so that no bar is drawn into it.
void before_log_line() {
  board().mutex.lock();
  if (!board().alive.empty()) board().alive.back()->erase();
}

void after_log_line() {
  if (!board().alive.empty()) board().alive.back()->redraw();
  board().mutex.unlock();
}

}  // namespace

/// Wakes up every quarter of a second; whether something is shown is the display's matter.
class Progress::Ticker {
 public:
  explicit Ticker(Display& display) : thread_([this, &display] { run(display); }) {}
  ~Ticker() {
    {
      std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void run(Display& display) {
    set_thread_name("progress");
    block_signals_in_this_thread();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(250), [this] { return ends_; })) {
      std::lock_guard drawing(board().mutex);
      display.tick();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

Progress::Progress(std::int64_t total, ProgressSettings settings)
    : display_(std::make_unique<Display>(total, std::move(settings))) {
  // Outside of the board's lock: the log calls the hooks under its own.
  if (display_->on_terminal()) log::set_console_guard(before_log_line, after_log_line);
  std::lock_guard lock(board().mutex);
  display_->begin();
  if (display_->ticks()) ticker_ = std::make_unique<Ticker>(*display_);
}

Progress::~Progress() {
  ticker_.reset();
  std::lock_guard lock(board().mutex);
  display_->end(ProgressPhase::kStopped);
}

void Progress::update(std::int64_t done, std::vector<ProgressField> fields) {
  std::lock_guard lock(board().mutex);
  display_->update(done, std::move(fields));
}

bool Progress::due(std::int64_t done) {
  std::lock_guard lock(board().mutex);
  return display_->due(done);
}

void Progress::finish() {
  ticker_.reset();
  std::lock_guard lock(board().mutex);
  display_->end(ProgressPhase::kFinished);
}

bool Progress::on_terminal() const {
  return display_->on_terminal();
}

}  // namespace cohort
