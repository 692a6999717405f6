/// The agent's own standard output and error, written without blocking and never within somebody else's line.
#pragma once
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

namespace cohort::launch {

/// Whole lines are queued and written when the descriptor takes them, so that a stopped terminal or a slow reader never
/// keeps the agent from noticing signals and deaths. On a terminal, text that is not yet a line (a progress bar that a
/// rank redraws with carriage returns) is shown as the last line and replaced in place.
class Console {
 public:
  Console(int output, int error);

  /// Queues one line, without its newline, for standard output (1) or standard error (2).
  void line(int stream, std::string_view prefix, std::string_view text);

  /// The present unfinished line of a source; "" clears it. Of several sources the smallest number is shown. Only on a
  /// terminal.
  void unfinished(int source, std::string_view prefix, std::string_view text);

  /// True when standard error is a terminal, which alone shows unfinished lines; columns() is its width.
  bool terminal() const { return terminal_; }
  int columns() const;

  /// Adds what is waited for; after poll, write() writes what can be written.
  void add_to(std::vector<pollfd>& descriptors) const;
  void write();

  /// True where whoever writes there would have to wait: the terminal is stopped, a reader does not read.
  bool blocks() const;

  /// Bytes queued: readers pause above kMostQueued.
  std::size_t queued() const { return queued_; }
  static constexpr std::size_t kMostQueued = 1 << 20;

  /// Writes everything, waiting at most this long; what is left is dropped.
  void drain(std::chrono::milliseconds at_most);

  /// True when the reader of one of the streams is gone (EPIPE): its text is dropped from then on. So is that of a
  /// stream that cannot be written for another reason (a full disk), which the other stream then says once.
  bool reader_gone() const { return reader_gone_; }

 private:
  struct Chunk {
    int fd;
    std::string text;
    std::size_t done = 0;
  };
  struct Queue {
    std::deque<Chunk> chunks;
  };
  struct Unfinished {
    int source;
    std::string text;  ///< prefix and text, cut to the terminal's width
  };
  Queue& queue_of(int stream) { return queues_[same_device_ ? 0 : static_cast<std::size_t>(stream - 1)]; }
  void append(int stream, std::string_view text);
  void hide();
  void show();
  bool write_once(Queue& queue);
  void drop(Queue& queue, int fd, int reason);

  int fds_[2];
  bool gone_[2] = {false, false};
  bool reader_gone_ = false;
  bool terminal_ = false;
  bool output_on_terminal_ = false;  ///< standard output is that same terminal
  bool same_device_ = false;         ///< 2>&1: one queue keeps their order
  Queue queues_[2];
  std::size_t queued_ = 0;
  std::vector<Unfinished> unfinished_;  ///< by source
  bool shown_ = false;
};

/// The text cut to at most `columns` columns, counting a code point as one and escape sequences as none.
std::string cut_to_columns(std::string_view text, int columns);

}  // namespace cohort::launch
