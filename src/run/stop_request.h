/// SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 as a wish: the training finishes its step, saves a checkpoint and returns.
#pragma once

namespace cohort::run {

/// From now on the first SIGTERM or SIGINT only notes the wish, and is answered at once on standard error with `answer`
/// (which lives as long as the process; null: nothing is said); a second one (core/stop_signal.h: is_same_wish) ends the
/// process as usual. SIGUSR1 and SIGUSR2, by which schedulers announce the end (sbatch --signal=USR1@60), note it
/// however often they come. May be called often.
void install_stop_signals(const char* answer = nullptr);

/// True once such a signal has come, or request_stop() was called.
bool stop_requested();
/// The signal that came, or 0.
int stop_signal();

/// The wish, from within the program.
void request_stop();
/// Forgets it.
void clear_stop_request();

}  // namespace cohort::run
