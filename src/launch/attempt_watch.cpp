#include "launch/attempt_watch.h"

#include <algorithm>
#include <csignal>

#include "core/error.h"
#include "launch/failure.h"

namespace cohort::launch {
namespace {
using std::chrono::milliseconds;

/// After the first failure: time for others that fail for the same cause to end by themselves, so that all causes are
/// seen.
constexpr milliseconds kSettle{200};

bool some_rank_writes_directly(const LaunchSettings& settings) {
  for (int local_rank = 0; local_rank < settings.ranks; ++local_rank)
    if (writes_directly(settings, local_rank)) return true;
  return false;
}

}  // namespace

AttemptWatch::AttemptWatch(WorkerGroup& group, SignalPipe& signals, Console& console, const LaunchSettings& settings,
                           Rendezvous& rendezvous, const Meeting& meeting, int& restarts_used)
    : group_(group),
      rendezvous_(rendezvous),
      signals_(signals),
      console_(console),
      settings_(settings),
      recovery_(group, console, settings, rendezvous, meeting, restarts_used),
      hangs_({.least = settings.hang_timeout, .elsewhere = settings.hang_timeout_elsewhere}),
      writes_directly_(some_rank_writes_directly(settings)) {}

AttemptOutcome AttemptWatch::run() {
  while (!group_.all_ended()) {
    group_.poll(signals_.fd(), time_to_wait());
    for (const int signal : signals_.take()) handle(signal);
    // One reading of the clock for both of its uses: were the time up between two of them, ranks that fail for a cause
    // that recovery helps against would be stopped before it was tried.
    const bool settled = group_.any_failed() && Clock::now() >= settled_at();
    if (group_.any_failed() && !stopping_ && ended_by_notice()) {
      // It has saved its work; the others do so as well, and nothing may disturb them.
      outcome_.stop_signal = notice_;
      set_deadline();
    }
    if (group_.any_failed() && !stopping_ && may_be_recovered(settled) && recovery_.replace_failed()) {
      failed_at_ = {};
      hangs_.forget();
    }
    if (!stopping_) recovery_.call_when_all_wait();
    if (!stopping_ && !output_is_stopped()) hangs_.look(group_, console_);
    if (!stopping_)
      if (const Interruption other = rendezvous_.interruption(); !other.why.empty()) interrupt(other);
    if (group_.any_failed() && !stopping_ && settled) stop(SIGTERM, "");
    // `cohort launch ... | head`: nobody reads any more. A job whose logs are stored goes on.
    if (console_.reader_gone() && !stopping_ && settings_.log_dir.empty()) {
      if (!group_.any_failed()) outcome_.stop_signal = SIGPIPE;
      stop(SIGTERM, "");
    }
    if (stopping_ && !killed_ && Clock::now() >= deadline_) kill();
  }
  group_.finish(stopping_ || group_.any_failed());
  outcome_.failed = group_.any_failed();
  return outcome_;
}

/// A rank that waits until it may write on does not hang: a terminal was stopped (Ctrl-S, a pager, a laptop that sleeps).
bool AttemptWatch::output_is_stopped() const {
  return console_.queued() >= Console::kMostQueued || (writes_directly_ && console_.blocks());
}

AttemptWatch::Clock::time_point AttemptWatch::settled_at() {
  if (failed_at_ == Clock::time_point{}) failed_at_ = Clock::now();
  return failed_at_ + kSettle;
}

/// A rank that a signal ended is replaced at once; where one fails by itself, others may for the same cause.
bool AttemptWatch::may_be_recovered(bool settled) const {
  const auto& workers = group_.workers();
  return std::any_of(workers.begin(), workers.end(), [](const Worker& w) { return w.failed() && w.signal != 0; }) ||
         settled;
}

milliseconds AttemptWatch::time_to_wait() {
  constexpr milliseconds kIdle{1000}, kWatching{250}, kTogether{20}, kNap{2};
  Clock::time_point next = Clock::now() + (recovery_.under_way()           ? kNap
                                           : rendezvous_.shares_recovery() ? kTogether
                                           : settings_.hang_timeout > 0    ? kWatching
                                                                           : kIdle);
  if (group_.any_failed() && !stopping_) next = std::min(next, settled_at());
  if (stopping_ && !killed_) next = std::min(next, deadline_);
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now());
  return std::max(left, milliseconds(0));
}

void AttemptWatch::interrupt(const Interruption& other) {
  outcome_.interrupted = true;
  const std::string words = format("cohort launch: {}; the ranks of this node are stopped", other.why);
  if (other.ends || !settings_.recovers()) return stop(SIGTERM, words);
  set_deadline();
  const bool parks = recovery_.park_or_stop();
  console_.line(2, "", words + (parks ? ", and what they have of the training stays in memory" : ""));
}

void AttemptWatch::set_deadline() {
  stopping_ = true;
  deadline_ =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(settings_.grace_period));
}

void AttemptWatch::stop(int signal, const std::string& words) {
  if (!words.empty()) console_.line(2, "", words);
  set_deadline();
  group_.send(signal, true);
}

void AttemptWatch::kill() {
  killed_ = true;
  group_.send(SIGKILL, true);
}

void AttemptWatch::handle(int signal) {
  if (signal == SIGCHLD) return;
  if (signal == SIGTSTP) {
    group_.send(SIGSTOP, false);
    console_.write();
    ::raise(SIGSTOP);  // until the shell continues us
    group_.send(SIGCONT, false);
    return;
  }
  if (!asks_to_stop(signal)) {
    if (is_notice(signal)) {
      console_.line(2, "", format("cohort launch: {}: passed on to the ranks", signal_name(signal)));
      if (notice_ == 0 && !failed_before(signal)) notice_ = signal;
    }
    group_.send(signal, false);
    return;
  }
  handle_stop(signal);
}

void AttemptWatch::handle_stop(int signal) {
  if (asked_) {
    console_.line(2, "", format("cohort launch: {} again: the ranks are killed", signal_name(signal)));
    kill();
    return;
  }
  asked_ = true;
  const char* another = signal == SIGINT ? "Ctrl-C again" : "a second one";
  if (stopping_) {
    // They were told to stop already: a second signal might make them give up what they are saving.
    const double left = std::chrono::duration<double>(deadline_ - Clock::now()).count();
    console_.line(2, "",
                  format("cohort launch: {}: the ranks are being stopped already and have {:.0f} s left ({} kills "
                         "them)",
                         signal_name(signal), std::max(left, 0.0), another));
    return;
  }
  if (!failed_before(signal)) outcome_.stop_signal = signal;
  stop(signal, format("cohort launch: {}: passed on to the ranks, which have {:.0f} s to end ({} kills them)",
                      signal_name(signal), settings_.grace_period, another));
}

/// True when a rank had failed by itself before this signal arrived. Whoever sends it to all processes (Ctrl-C,
/// scancel) may end a rank by it before the agent learns of it: such ranks did not fail.
bool AttemptWatch::failed_before(int signal) const {
  return std::any_of(group_.workers().begin(), group_.workers().end(),
                     [&](const Worker& w) { return w.failed() && !ended_by(w, signal); });
}

}  // namespace cohort::launch
