/// Ctrl-C in commands that take long: the first one is answered at once and ends the work at its next good place, the
/// second ends the program.
///
///   answer_stop_signals("stops after this step; again: at once");
///   for (...) {
///     if (const int signal = stop_wanted()) throw Stopped(signal, "stopped after 3 of 50 episodes");
#pragma once
#include <string>

#include "core/error.h"

namespace cohort {

/// Work that ended because a signal asked for it. what() says how far it came; the exit code is 128 + signal.
class Stopped : public Error {
 public:
  Stopped(int signal, const std::string& message) : Error(message), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// From now on the first SIGINT or SIGTERM only notes the wish and writes `answer` to standard error; a further one
/// ends the process as usual. `answer` must live as long as the process, as a literal does; null: nothing
/// is written. Of several ranks only rank 0 writes it.
void answer_stop_signals(const char* answer);

/// The signal that asked, or 0.
int stop_wanted();

/// For signal handlers: a line on standard error, in the place of a progress bar where there is one.
void write_stop_answer(const char* answer) noexcept;

/// Whether a signal comes so soon behind the first that it is the same wish: a terminal's Ctrl-C reaches every process
/// of the group, and `cohort launch` passes it on once more. Times of CLOCK_MONOTONIC in milliseconds. `launched`: this
/// process is a rank of a launcher.
bool is_same_wish(long long first_ms, long long now_ms, bool launched) noexcept;

}  // namespace cohort
