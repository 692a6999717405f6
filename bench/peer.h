/// A Python process that measures the same work, asked line by line so that both sides take turns.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cohort::bench {

class Peer {
 public:
  /// Starts `command` with pipes to its standard input and output. Throws Error when it cannot be started.
  explicit Peer(const std::vector<std::string>& command);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// Sends a line and returns the answer's line. Throws Error when the process has ended.
  std::string ask(const std::string& line);
  /// The next line that it prints.
  std::string read_line();
  /// Closes its input and returns the last line.
  std::string finish();

 private:
  int process_ = -1;
  int to_ = -1, from_ = -1;
  std::string buffer_;
};

/// A peer that prints "ready PARAMETERS VERSION" and answers "step" with the seconds of one; null: our side alone.
struct StepPeer {
  std::unique_ptr<Peer> peer;
  std::string parameters = "none", version = "none";
};
/// Throws Error where it says anything else first.
StepPeer start_step_peer(const std::vector<std::string>& command);

/// Runs `ours` and the peer's steps in turns and prints "TITLE  ours 12.3 ms   reference 15.1 ms   ratio 0.815 (...)"
/// without an end of line.
void print_steps_in_turns(const std::string& title, const std::function<void()>& ours, Peer* peer, int pairs);

/// "peak memory    ours 709 MiB  reference 1590 MiB  ratio 0.446": this process's, and what the peer says when it
/// finishes ("peak KIBIBYTES"); without a peer (null) ours alone.
std::string peak_memory_line(Peer* peer);

}  // namespace cohort::bench
