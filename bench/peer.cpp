#include "peer.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comparison.h"
#include "core/error.h"

namespace cohort::bench {

Peer::Peer(const std::vector<std::string>& command) {
  int in[2], out[2];
  COHORT_THROW_UNLESS(pipe(in) == 0 && pipe(out) == 0, "no pipe for the peer: {}", std::strerror(errno));
  process_ = fork();
  COHORT_THROW_UNLESS(process_ >= 0, "the peer does not start: {}", std::strerror(errno));
  if (process_ == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    for (const int fd : {in[0], in[1], out[0], out[1]}) close(fd);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  std::signal(SIGPIPE, SIG_IGN);
}

Peer::~Peer() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  int status = 0;
  if (process_ > 0) waitpid(process_, &status, 0);
}

std::string Peer::read_line() {
  for (;;) {
    const auto end = buffer_.find('\n');
    if (end != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char chunk[4096];
    const auto got = read(from_, chunk, sizeof chunk);
    COHORT_THROW_UNLESS(got > 0, "the Python peer has ended; its own message stands above");
    buffer_.append(chunk, static_cast<std::size_t>(got));
  }
}

std::string Peer::ask(const std::string& line) {
  const std::string message = line + "\n";
  COHORT_THROW_UNLESS(write(to_, message.data(), message.size()) == static_cast<ssize_t>(message.size()),
                      "the Python peer has ended; its own message stands above");
  return read_line();
}

std::string Peer::finish() {
  close(to_);
  to_ = -1;
  return read_line();
}

StepPeer start_step_peer(const std::vector<std::string>& command) {
  StepPeer started{.peer = std::make_unique<Peer>(command)};
  std::istringstream ready(started.peer->read_line());
  std::string word;
  ready >> word >> started.parameters >> started.version;
  COHORT_THROW_UNLESS(word == "ready", "the Python peer did not start");
  return started;
}

void print_steps_in_turns(const std::string& title, const std::function<void()>& ours, Peer* peer, int pairs) {
  std::vector<Side> sides{{"ours", [&] { return seconds_of(ours); }}};
  if (peer != nullptr) sides.push_back({"reference", [&] { return std::stod(peer->ask("step")); }});
  const auto seconds = take_turns(sides, pairs);
  std::printf("%s  ours %9.1f ms", title.c_str(), 1e3 * median(seconds[0]));
  if (peer == nullptr) return;
  std::vector<double> ratio;
  for (std::size_t i = 0; i < seconds[0].size(); ++i) ratio.push_back(seconds[0][i] / seconds[1][i]);
  std::printf("   reference %9.1f ms   ratio %.3f (median of %zu pairs, %.3f to %.3f)", 1e3 * median(seconds[1]),
              median(ratio), ratio.size(), *std::min_element(ratio.begin(), ratio.end()),
              *std::max_element(ratio.begin(), ratio.end()));
}

std::string peak_memory_line(Peer* peer) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double ours = static_cast<double>(usage.ru_maxrss) / 1024;
  std::string line = format("peak memory    ours {:8.0f} MiB", ours);
  if (peer == nullptr) return line;
  std::istringstream last(peer->finish());
  std::string word;
  double kibibytes = 0;
  last >> word >> kibibytes;
  const double theirs = kibibytes / 1024;
  return line + format("  reference {:8.0f} MiB  ratio {:.3f}", theirs, ours / theirs);
}

}  // namespace cohort::bench
