#include "launch/console.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/format.h"

namespace cohort::launch {
namespace {

constexpr int kSmallestWidth = 20;
constexpr int kUsualWidth = 80;
/// A pipe that poll calls writable takes this much without blocking (POSIX, PIPE_BUF is at least 512 and 4096 on
/// Linux).
constexpr std::size_t kWithoutBlocking = 4096;

}  // namespace

Console::Console(int output, int error) : fds_{output, error} {
  struct stat out {};
  struct stat err {};
  terminal_ = ::isatty(error) == 1;
  same_device_ =
      ::fstat(output, &out) == 0 && ::fstat(error, &err) == 0 && out.st_dev == err.st_dev && out.st_ino == err.st_ino;
  output_on_terminal_ = terminal_ && same_device_;
}

int Console::columns() const {
  winsize size{};
  if (!terminal_ || ::ioctl(fds_[1], TIOCGWINSZ, &size) != 0 || size.ws_col < kSmallestWidth) return kUsualWidth;
  return size.ws_col;
}

void Console::append(int stream, std::string_view text) {
  if (gone_[stream - 1] || text.empty()) return;
  Queue& queue = queue_of(stream);
  const int fd = fds_[stream - 1];
  queued_ += text.size();
  if (!queue.chunks.empty() && queue.chunks.back().fd == fd && queue.chunks.back().text.size() < (1 << 16))
    queue.chunks.back().text += text;
  else
    queue.chunks.push_back({fd, std::string(text)});
}

void Console::hide() {
  if (!shown_) return;
  append(2, "\r\x1b[K");
  shown_ = false;
}

void Console::show() {
  if (!terminal_ || shown_ || unfinished_.empty()) return;
  append(2, "\r\x1b[K");
  append(2, unfinished_.front().text);
  shown_ = true;
}

void Console::line(int stream, std::string_view prefix, std::string_view text) {
  if (stream == 2 || output_on_terminal_) hide();
  append(stream, prefix);
  append(stream, text);
  append(stream, "\n");
  if (stream == 2 || output_on_terminal_) show();
}

void Console::unfinished(int source, std::string_view prefix, std::string_view text) {
  if (!terminal_) return;
  const auto at = std::lower_bound(unfinished_.begin(), unfinished_.end(), source,
                                   [](const Unfinished& u, int wanted) { return u.source < wanted; });
  const bool known = at != unfinished_.end() && at->source == source;
  const bool on_top = at == unfinished_.begin();
  if (text.empty()) {
    if (!known) return;
    unfinished_.erase(at);
    if (on_top) {
      hide();
      show();
    }
    return;
  }
  std::string shown = cut_to_columns(std::string(prefix) + std::string(text), columns() - 1);
  if (known) {
    if (at->text == shown) return;
    at->text = std::move(shown);
  } else {
    unfinished_.insert(at, {source, std::move(shown)});
  }
  if (on_top) {
    shown_ = false;
    show();
  }
}

void Console::add_to(std::vector<pollfd>& descriptors) const {
  for (const Queue& queue : queues_)
    if (!queue.chunks.empty()) descriptors.push_back({queue.chunks.front().fd, POLLOUT, 0});
}

bool Console::blocks() const {
  for (const std::size_t i : {0, 1}) {
    pollfd ready{fds_[i], POLLOUT, 0};
    if (!gone_[i] && ::poll(&ready, 1, 0) == 0) return true;
  }
  return false;
}

bool Console::write_once(Queue& queue) {
  if (queue.chunks.empty()) return false;
  Chunk& chunk = queue.chunks.front();
  pollfd ready{chunk.fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return false;
  const std::size_t size = std::min(kWithoutBlocking, chunk.text.size() - chunk.done);
  const ssize_t n = ::write(chunk.fd, chunk.text.data() + chunk.done, size);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return errno == EINTR;
  if (n < 0) {
    drop(queue, chunk.fd, errno);
    return true;
  }
  chunk.done += static_cast<std::size_t>(n);
  queued_ -= static_cast<std::size_t>(n);
  if (chunk.done == chunk.text.size()) queue.chunks.pop_front();
  return true;
}

void Console::drop(Queue& queue, int fd, int reason) {
  const int stream = fd == fds_[0] ? 1 : 2;
  for (const std::size_t i : {0, 1}) gone_[i] = gone_[i] || fds_[i] == fd;
  std::erase_if(queue.chunks, [&](const Chunk& c) {
    if (c.fd == fd) queued_ -= c.text.size() - c.done;
    return c.fd == fd;
  });
  if (reason == EPIPE) {
    reader_gone_ = true;
    return;
  }
  line(3 - stream, "",
       format("cohort launch: standard {} cannot be written: {}; what is printed there from now on is dropped, the job "
              "and its log files go on",
              stream == 1 ? "output" : "error", std::strerror(reason)));
}

void Console::write() {
  for (Queue& queue : queues_)
    while (write_once(queue)) {
    }
}

void Console::drain(std::chrono::milliseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  unfinished_.clear();
  hide();
  for (;;) {
    write();
    std::vector<pollfd> waiting;
    add_to(waiting);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (waiting.empty() || left.count() <= 0) return;
    ::poll(waiting.data(), static_cast<nfds_t>(waiting.size()), static_cast<int>(std::min<long>(left.count(), 1000)));
  }
}

std::string cut_to_columns(std::string_view text, int columns) {
  std::string result;
  int used = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    std::size_t length = 1;
    bool counts = true;
    if (c == 0x1b && i + 1 < text.size() && text[i + 1] == '[') {  // CSI ... final byte 0x40-0x7e
      length = 2;
      while (i + length < text.size() && !(text[i + length] >= 0x40 && text[i + length] <= 0x7e)) ++length;
      length = std::min(length + 1, text.size() - i);
      counts = false;
      // Of the escape sequences only colours may pass: the others move the cursor away from our line.
      if (text[i + length - 1] != 'm') {
        i += length;
        continue;
      }
    } else if (c < 0x20 || c == 0x7f) {
      if (c == '\t' && used < columns) {
        result += ' ';
        ++used;
      }
      ++i;
      continue;
    } else if (c >= 0xc0) {
      while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xc0) == 0x80) ++length;
    }
    if (counts && used == columns) {
      i += length;  // later colours still count: they may reset the earlier ones
      continue;
    }
    result.append(text.substr(i, length));
    used += counts ? 1 : 0;
    i += length;
  }
  return result;
}

}  // namespace cohort::launch
