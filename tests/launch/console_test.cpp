// What of the ranks' output a terminal shows, and what a blocked or broken reader does to it.
#include "launch/console.h"

#include <csignal>
#include <cstdint>
#include <map>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/pseudo_terminal.h"
#include "launch/rank_stream.h"
#include "support/process.h"

namespace cohort::launch {
namespace {
using cohort::testing::contains;

TEST(Console, UnfinishedTextIsCutToTheTerminalAndKeepsOnlyColours) {
  EXPECT_EQ(cut_to_columns("abcdef", 4), "abcd");
  EXPECT_EQ(cut_to_columns("\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88", 2), "\xe2\x96\x88\xe2\x96\x88");
  EXPECT_EQ(cut_to_columns("\x1b[31mred\x1b[0m", 3), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(cut_to_columns("a\x1b[2Kb\x07", 9), "ab") << "what moves the cursor or rings is left out";
}

TEST(RankStream, CarriageReturnsLeaveTheLastState) {
  EXPECT_EQ(after_last_return("\r 10%\r 20%"), " 20%");
  EXPECT_EQ(after_last_return(" 10%\r 20%\r"), " 20%");
  EXPECT_EQ(after_last_return("plain"), "plain");
  EXPECT_EQ(after_last_return("windows\r"), "windows");
  EXPECT_EQ(after_last_return("bar 10%\r\x1b[Ka log line"), "a log line");
}

/// Everything that the other side of a pseudo-terminal shows.
std::string shown_on(int master) {
  std::string text;
  char buffer[4096];
  pollfd ready{master, POLLIN, 0};
  while (poll(&ready, 1, 50) > 0) {
    const ssize_t n = read(master, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

/// What the lines of a terminal read after printing the text: carriage returns and "erase to the end" carried out.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines(1);
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text.compare(i, 3, "\x1b[K") == 0) {
      lines.back().resize(column);
      i += 2;
    } else {
      if (lines.back().size() <= column) lines.back().resize(column + 1, ' ');
      lines.back()[column++] = text[i];
    }
  }
  return lines;
}

TEST(Console, AProgressBarStaysTheLastLineWhileOtherRanksPrint) {
  SKIP_WITHOUT_TERMINALS();
  int master = -1, slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  {
    Console console(slave, slave);
    ASSERT_TRUE(console.terminal());
    RankStream bar({.rank = 0, .stream = 2, .prefix = "[rank 0] ", .show = true, .file = {}}, console);
    RankStream other({.rank = 1, .stream = 1, .prefix = "[rank 1] ", .show = true, .file = {}}, console);
    const auto put = [](RankStream& stream, const std::string& text) {
      ASSERT_EQ(write(stream.write_end(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
      stream.read();
    };
    put(bar, "\r 10%");
    put(other, "hello\n");
    put(bar, "\r 20%");
    put(other, "half a li");
    console.write();
    auto lines = screen(shown_on(master));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].substr(0, 14), "[rank 1] hello");
    EXPECT_EQ(lines[1], "[rank 0]  20%");
    put(other, "ne\n");
    put(bar, "\r100%\n");
    console.write();
    lines = screen(shown_on(master));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].substr(0, 20), "[rank 1] half a line");
    EXPECT_EQ(lines[1].substr(0, 13), "[rank 0] 100%");
    EXPECT_EQ(lines[2], "");
  }
  close(slave);
  close(master);
}

TEST(Console, ABlockedReaderDoesNotBlockTheAgent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Console console(ends[1], ends[1]);
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i) {  // 2 MB into a pipe of 64 KiB that nobody reads
    console.line(1, "[rank 0] ", line);
    console.write();
  }
  EXPECT_GT(console.queued(), Console::kMostQueued);
  std::size_t read_bytes = 0;
  std::thread reader([&] {
    char buffer[1 << 16];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) read_bytes += static_cast<std::size_t>(n);
  });
  console.drain(std::chrono::seconds(20));
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(read_bytes, 2000 * (1000 + 10u));
  EXPECT_EQ(console.queued(), 0u);
}

TEST(Console, AStreamThatCannotBeWrittenIsSaidOnceOnTheOtherAndItsReaderIsNotGone) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0) << "/dev/full is part of every Linux";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Console console(full, ends[1]);
  for (const char* text : {"one", "two"}) {
    console.line(1, "", text);
    console.drain(std::chrono::seconds(5));
  }
  console.line(2, "", "still here");
  console.drain(std::chrono::seconds(5));
  EXPECT_FALSE(console.reader_gone());
  EXPECT_EQ(console.queued(), 0u);
  char buffer[4096];
  const ssize_t n = read(ends[0], buffer, sizeof buffer);
  ASSERT_GT(n, 0);
  const auto lines = cohort::testing::lines_of(std::string(buffer, static_cast<std::size_t>(n)));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(contains(lines[0], "standard output cannot be written: No space left on device")) << lines[0];
  EXPECT_EQ(lines[1], "still here");
  close(ends[0]);
  close(ends[1]);
  // Nobody is left to be told.
  Console mute(full, full);
  mute.line(1, "", "one");
  mute.line(2, "", "two");
  mute.drain(std::chrono::seconds(5));
  EXPECT_FALSE(mute.reader_gone());
  EXPECT_EQ(mute.queued(), 0u);
  close(full);
}

TEST(RankStream, AFullDiskLosesTheLogButNotTheConsole) {
  if (access("/dev/full", W_OK) != 0) FAIL() << "/dev/full is part of every Linux";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Console console(ends[1], ends[1]);
  RankStream stream({.rank = 0, .stream = 1, .prefix = "", .show = true, .file = "/dev/full"}, console);
  ASSERT_EQ(write(stream.write_end(), "line\n", 5), 5);
  stream.read();
  console.write();
  EXPECT_TRUE(contains(stream.file_failure(), "No space left")) << stream.file_failure();
  char buffer[16] = "";
  EXPECT_EQ(read(ends[0], buffer, sizeof buffer), 5);
  close(ends[0]);
  close(ends[1]);
}

TEST(RankStream, FramesOfACppStackAreToldFromOtherLines) {
  EXPECT_TRUE(is_stack_frame("frame #0: c10::Error::Error() + 0x57 (0x7f0 in libc10.so)"));
  EXPECT_TRUE(is_stack_frame("frame #41: <unknown function> + 0x2724a (0x7fee in libc.so.6)"));
  for (const char* line : {"", "frame #", "frame #x: y", "frame #12", "frame 3: dropped", "the frame #1: is blue"})
    EXPECT_FALSE(is_stack_frame(line)) << line;
}

}  // namespace
}  // namespace cohort::launch
