#include "data/hdf5/metadata_process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "data/hdf5/library_lock.h"
#include "data/hdf5/metadata_reader.h"

namespace cohort::data {
namespace {

bool send_all(int socket, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::send(socket, data, size, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_all(int socket, char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::recv(socket, data, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool send_message(int socket, const std::string& message) {
  const std::uint64_t size = message.size();
  char length[sizeof size];
  std::memcpy(length, &size, sizeof size);
  return send_all(socket, length, sizeof length) && send_all(socket, message.data(), message.size());
}

bool receive_message(int socket, std::string& message) {
  char length[sizeof(std::uint64_t)];
  if (!receive_all(socket, length, sizeof length)) return false;
  std::uint64_t size = 0;
  std::memcpy(&size, length, sizeof size);
  message.resize(size);
  return receive_all(socket, message.data(), message.size());
}

/// Seconds of processor time that one question may take: damaged files can make the library go round in circles.
int seconds_per_question() {
  const char* wanted = std::getenv("COHORT_HDF5_SECONDS");
  const int seconds = wanted ? std::atoi(wanted) : 0;
  return seconds > 0 ? seconds : 60;
}

// ---- in the child

using OpenFiles = std::map<std::uint64_t, Hdf5MetadataReader>;

void answer(ByteReader& in, OpenFiles& files, ByteWriter& out) {
  const auto question = static_cast<Hdf5Question>(in.number());
  const std::uint64_t number = in.number();
  const std::string path = in.text(), name = in.text(), object = in.text();
  if (question == Hdf5Question::kClose) {
    files.erase(number);
    return;
  }
  files.try_emplace(number, path, name).first->second.answer(question, object, out);
}

/// Closes every descriptor but the socket: locks, ports and pipes of the parent must not live on here.
int keep_only(int socket) {
  const int kept = 3;
  if (socket != kept) ::dup2(socket, kept);  // first: it may be one of those that follow
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(nothing, fd);
#if defined(__linux__)
  ::close_range(kept + 1, ~0U, 0);
#else
  for (int fd = kept + 1; fd < ::getdtablesize(); ++fd) ::close(fd);
#endif
  return kept;
}

/// From now on; SIGPROF then ends the process.
void allow_seconds(int seconds) {
  const itimerval limit{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

[[noreturn]] void serve(int inherited) {
  const int socket = keep_only(inherited);
  // Signals for the job are its own affair: this process ends when the socket does.
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) std::signal(s, SIG_IGN);
  for (const int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF}) std::signal(s, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  OpenFiles files;
  for (std::string message; receive_message(socket, message);) {
    ByteReader request(std::move(message));
    allow_seconds(static_cast<int>(request.number()));
    ByteWriter out;
    try {
      ByteWriter found;
      answer(request, files, found);
      out.number(0);
      out.bytes(found.data().data(), found.data().size());
    } catch (const std::exception& e) {
      out.number(1);
      out.text(e.what());
    }
    if (!send_message(socket, out.data())) break;
    message.clear();
  }
  _exit(0);
}

}  // namespace

Hdf5Process& Hdf5Process::instance() {
  static Hdf5Process* process = new Hdf5Process;  // ends with this process, whose end closes the socket
  return *process;
}

bool Hdf5Process::runs() const {
  return child_ > 0 && owner_ == ::getpid();
}

void Hdf5Process::start() {
  if (runs()) return;
  if (socket_ >= 0) ::close(socket_);  // inherited by a fork: its answers are the parent's
  int ends[2];
  COHORT_THROW_UNLESS(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no socket for libhdf5: {}",
                      std::strerror(errno));
  {
    // Not while a writer is inside the library: its copy in the child would stay there.
    std::lock_guard lock(hdf5_library_lock());
    child_ = ::fork();
    if (child_ == 0) serve(ends[1]);
  }
  const int reason = errno;
  ::close(ends[1]);
  socket_ = ends[0];
  owner_ = ::getpid();
  if (child_ > 0) return;
  ::close(std::exchange(socket_, -1));
  throw Error(format("no process for libhdf5: {}", std::strerror(reason)));
}

std::string Hdf5Process::end(int seconds) {
  ::close(std::exchange(socket_, -1));
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
    return format("no answer within {} s of processor time", seconds);
  return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : format("code {}", WEXITSTATUS(status));
}

ByteReader Hdf5Process::ask(Hdf5Question question, std::uint64_t number, const std::string& path,
                            const std::string& object) {
  const int seconds = seconds_per_question();
  ByteWriter request;
  request.number(static_cast<std::uint64_t>(seconds));
  request.number(static_cast<std::uint64_t>(question));
  request.number(number);
  // The process may have been started in another working directory.
  request.text(std::filesystem::absolute(path).string());
  request.text(path);
  request.text(object);
  std::string reply;
  {
    std::lock_guard lock(mutex_);
    if (question == Hdf5Question::kClose && !runs()) return ByteReader("");
    start();
    if (!send_message(socket_, request.data())) {
      // Something else ended it since the last question.
      end(seconds);
      start();
      COHORT_THROW_UNLESS(send_message(socket_, request.data()), "{}: the process for libhdf5 does not answer", path);
    }
    if (!receive_message(socket_, reply))
      throw Error(format("{}: libhdf5 ends over this file ({}): it is damaged; leave it out, or make it anew", path,
                         end(seconds)));
  }
  ByteReader answer(std::move(reply));
  if (answer.number() != 0) throw Error(answer.text());
  return answer;
}

}  // namespace cohort::data
