/// Signals as something to poll: handlers write the number into a pipe.
#pragma once
#include <csignal>
#include <vector>

namespace cohort::launch {

/// While it lives, the given signals do nothing but appear on fd(). A signal that the
/// process was started to ignore (nohup) stays ignored. One at a time in a process. SIGPIPE is ignored meanwhile.
class SignalPipe {
 public:
  explicit SignalPipe(const std::vector<int>& signals);
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  int fd() const { return read_; }
  /// The signals that arrived since the last call, in order.
  std::vector<int> take();

 private:
  struct Previous {
    int signal;
    struct sigaction action;
  };
  std::vector<Previous> previous_;
  int read_ = -1;
  int write_ = -1;
};

/// The signal asks a job to stop.
bool asks_to_stop(int signal);
/// SIGUSR1 or SIGUSR2, which a scheduler sends some time before it ends a job. A rank may end by it, or not.
bool is_notice(int signal);

}  // namespace cohort::launch
