/// One output stream of one rank: read from its pipe, stored, cut into lines, shown.
#pragma once
#include <chrono>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>

#include "launch/console.h"

namespace cohort::launch {

class RankStream {
 public:
  struct Settings {
    int rank = 0;
    int stream = 1;              ///< 1 standard output, 2 standard error
    std::string prefix;          ///< "[rank 0] "
    bool show = true;            ///< on the console
    std::filesystem::path file;  ///< also stored here, byte by byte; "" for not
    /// A bar is redrawn in it ten times a second for as long as the job lasts: what is stored are its lines as they
    /// end.
    bool holds_bar = false;
  };

  /// Makes the pipe and opens the file. Throws Error naming it.
  RankStream(Settings settings, Console& console);
  ~RankStream();
  RankStream(const RankStream&) = delete;
  RankStream& operator=(const RankStream&) = delete;

  /// The end that the rank writes to; closed in the agent once the rank has started.
  int write_end() const { return write_end_; }
  void close_write_end();
  /// The end to poll; -1 after the end of the stream.
  int read_end() const { return read_end_; }

  /// Reads what is there (at most kReadAtOnce bytes). False at the end of the stream.
  bool read();
  /// Ends the stream, whether or not somebody still holds the other end: what is left of a line is a line.
  void finish();

  /// The last lines, at most kTailLines, without the frames of C++ stacks, which would push out what was said before.
  const std::deque<std::string>& tail() const { return tail_; }
  /// When text last arrived; the epoch when none has.
  std::chrono::system_clock::time_point last_activity() const { return last_activity_; }
  /// Not "" when the file could not be written (a full disk): the reason. The console still gets everything.
  const std::string& file_failure() const { return file_failure_; }

  static constexpr std::size_t kReadAtOnce = 1 << 16;
  static constexpr std::size_t kTailLines = 20;
  static constexpr std::size_t kLongestLine = 1 << 16;  ///< a longer one is cut into several

 private:
  void feed(std::string_view bytes);
  void store(std::string_view bytes);
  void end_line(std::string_view text);

  Settings settings_;
  Console& console_;
  int read_end_ = -1;
  int write_end_ = -1;
  int file_ = -1;
  std::string partial_;
  std::deque<std::string> tail_;
  std::chrono::system_clock::time_point last_activity_{};
  std::string file_failure_;
};

/// What of a line with carriage returns a terminal would show in the end, taking each return to start the line anew:
/// the text after the last one that something follows, without an "erase to the end of the line" at its begin.
std::string_view after_last_return(std::string_view line);

/// A line of the C++ stack that LibTorch writes behind an error: "frame #3: at::foo() + 0x1f (0x7f.. in libtorch.so)".
bool is_stack_frame(std::string_view line);

}  // namespace cohort::launch
