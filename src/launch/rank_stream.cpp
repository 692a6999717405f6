#include "launch/rank_stream.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::launch {

RankStream::RankStream(Settings settings, Console& console) : settings_(std::move(settings)), console_(console) {
  if (!settings_.file.empty()) {
    file_ = ::open(settings_.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    COHORT_THROW_UNLESS(file_ >= 0, "cannot open the log file {}: {}", settings_.file.string(), std::strerror(errno));
  }
  std::array<int, 2> ends{};
  const int made = ::pipe(ends.data());
  if (made != 0 && file_ >= 0) ::close(file_);
  COHORT_THROW_UNLESS(made == 0, "cannot make a pipe for rank {}: {}", settings_.rank, std::strerror(errno));
  for (const int fd : ends) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  read_end_ = ends[0];
  write_end_ = ends[1];
  ::fcntl(read_end_, F_SETFL, O_NONBLOCK);
}

RankStream::~RankStream() {
  close_write_end();
  if (read_end_ >= 0) ::close(read_end_);
  if (file_ >= 0) ::close(file_);
}

void RankStream::close_write_end() {
  if (write_end_ >= 0) ::close(write_end_);
  write_end_ = -1;
}

bool RankStream::read() {
  if (read_end_ < 0) return false;
  std::array<char, kReadAtOnce> buffer;
  const ssize_t n = ::read(read_end_, buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (n <= 0) {
    finish();
    return false;
  }
  last_activity_ = std::chrono::system_clock::now();
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
  if (!settings_.holds_bar) store(bytes);
  feed(bytes);
  return true;
}

void RankStream::store(std::string_view bytes) {
  while (file_ >= 0 && !bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      file_failure_ = format("cannot write {}: {}", settings_.file.string(), std::strerror(errno));
      ::close(file_);
      file_ = -1;
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void RankStream::feed(std::string_view bytes) {
  const int source = 2 * settings_.rank + settings_.stream;
  bool ended = false;
  for (std::size_t newline; (newline = bytes.find('\n')) != std::string_view::npos;) {
    if (partial_.empty()) {
      end_line(bytes.substr(0, newline));
    } else {
      partial_ += bytes.substr(0, newline);
      if (!ended && settings_.show) console_.unfinished(source, "", "");
      end_line(partial_);
      partial_.clear();
    }
    ended = true;
    bytes.remove_prefix(newline + 1);
  }
  partial_ += bytes;
  // A bar that is redrawn for hours must not grow: only its last state matters. A return at the very end may belong to
  // "\r\n".
  if (const std::size_t last = partial_.find_last_of('\r');
      last != std::string::npos && last > 0 && last + 1 < partial_.size())
    partial_.erase(0, last);
  while (partial_.size() > kLongestLine) {
    end_line(std::string_view(partial_).substr(0, kLongestLine));
    partial_.erase(0, kLongestLine);
  }
  if (settings_.show) console_.unfinished(source, settings_.prefix, after_last_return(partial_));
}

void RankStream::end_line(std::string_view text) {
  text = after_last_return(text);
  if (settings_.holds_bar) {
    store(text);
    store("\n");
  }
  if (!is_stack_frame(text)) tail_.emplace_back(text);
  if (tail_.size() > kTailLines) tail_.pop_front();
  if (settings_.show) console_.line(settings_.stream, settings_.prefix, text);
}

void RankStream::finish() {
  if (read_end_ >= 0) ::close(read_end_);
  read_end_ = -1;
  const int source = 2 * settings_.rank + settings_.stream;
  if (settings_.show) console_.unfinished(source, "", "");
  if (!partial_.empty()) end_line(partial_);
  partial_.clear();
}

bool is_stack_frame(std::string_view line) {
  constexpr std::string_view kFrame = "frame #";
  if (!line.starts_with(kFrame)) return false;
  const std::size_t end = line.find_first_not_of("0123456789", kFrame.size());
  return end > kFrame.size() && end < line.size() && line[end] == ':';
}

std::string_view after_last_return(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t last = line.find_last_of('\r');
  if (last != std::string_view::npos) line.remove_prefix(last + 1);
  constexpr std::string_view kErase = "\x1b[K";
  if (line.starts_with(kErase)) line.remove_prefix(kErase.size());
  return line;
}

}  // namespace cohort::launch
