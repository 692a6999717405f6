#include "dist/store_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "dist/address_list.h"

namespace cohort::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 4096;  // connections that may wait; every rank of a large job comes at once

std::string system_reason(int number) {
  return std::strerror(number);
}

/// Binds and listens, or returns the reason (an errno).
int try_listen(int port, bool loopback_only, OwnedSocket& out) {
  // Every address: one IPv6 socket also takes IPv4; a host without IPv6 falls back.
  for (const int family : {loopback_only ? AF_INET : AF_INET6, AF_INET}) {
    OwnedSocket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) {
      if (family == AF_INET6) continue;
      return errno;
    }
    // A restarted job may take over the port while old connections are in TIME_WAIT.
    const int on = 1;
    const int off = 0;
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int result = 0;
    if (family == AF_INET6) {
      setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      sockaddr_in6 address{};
      address.sin6_family = AF_INET6;
      address.sin6_addr = in6addr_any;
      address.sin6_port = htons(static_cast<std::uint16_t>(port));
      result = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
      if (result != 0 && errno == EADDRNOTAVAIL) continue;
    } else {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(loopback_only ? INADDR_LOOPBACK : INADDR_ANY);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      result = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
    // Two sockets with SO_REUSEADDR may be bound to one port; only listening tells whether it is taken. Clients that
    // come before the store accepts wait in the queue.
    if (result != 0 || ::listen(socket.get(), kBacklog) != 0) return errno;
    out = std::move(socket);
    return 0;
  }
  return EAFNOSUPPORT;
}

/// False when the time passed first. A signal does not end the wait.
bool wait_until_writable(int fd, std::chrono::milliseconds patience) {
  const auto end = Clock::now() + patience;
  pollfd waiting{fd, POLLOUT, 0};
  for (auto left = patience;; left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now())) {
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (ready >= 0 || errno != EINTR) return ready > 0;
    if (left.count() <= 0) return false;
  }
}

/// One attempt at every address of the host; the reason why none answered, or "".
std::string try_connect(const std::string& host, int port, std::chrono::milliseconds patience) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  AddressList list;
  const int lookup = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list.first);
  if (lookup != 0) return format("the name '{}' cannot be resolved: {}", host, gai_strerror(lookup));
  std::string reason = "it has no address";
  for (const addrinfo* entry = list.first; entry != nullptr; entry = entry->ai_next) {
    const OwnedSocket socket(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) continue;
    if (::connect(socket.get(), entry->ai_addr, entry->ai_addrlen) == 0) return "";
    if (errno != EINPROGRESS) {
      reason = system_reason(errno);
      continue;
    }
    if (!wait_until_writable(socket.get(), patience)) {
      reason = "no answer";
      continue;
    }
    int problem = 0;
    socklen_t size = sizeof problem;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem == 0) return "";
    reason = system_reason(problem);
  }
  return reason;
}

}  // namespace

OwnedSocket::~OwnedSocket() {
  if (fd_ >= 0) ::close(fd_);
}

OwnedSocket& OwnedSocket::operator=(OwnedSocket&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

int OwnedSocket::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

int bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  COHORT_THROW_UNLESS(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                      "file descriptor {} is not a socket: {}", fd, system_reason(errno));
  int port = 0;
  if (address.ss_family == AF_INET) port = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6) port = ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  COHORT_THROW_UNLESS(port != 0, "file descriptor {} is not a bound TCP socket", fd);
  return port;
}

int free_port(bool loopback_only) {
  OwnedSocket socket;
  const int problem = try_listen(0, loopback_only, socket);
  COHORT_THROW_UNLESS(problem == 0, "no TCP port can be bound: {}", system_reason(problem));
  return bound_port(socket.get());
}

OwnedSocket open_store_socket(int port, bool loopback_only, const std::string& port_origin) {
  OwnedSocket socket;
  const int problem = try_listen(port, loopback_only, socket);
  if (problem == 0) return socket;
  if (problem == EADDRINUSE) {
    const int other = free_port(loopback_only);
    throw Error(
        format("port {} ({}) is in use on this host, perhaps by a job that still runs. Port {} is free: set "
               "MASTER_PORT={} for "
               "all ranks, or start with cohort launch, which picks a free one by itself",
               port, port_origin, other, other));
  }
  if (problem == EACCES)
    throw Error(format("port {} ({}) may not be bound by this user; choose one above 1023", port, port_origin));
  throw Error(format("port {} ({}) cannot be bound: {}", port, port_origin, system_reason(problem)));
}

void wait_for_listener(const std::string& host, int port, std::chrono::milliseconds timeout, const std::string& who) {
  const auto start = Clock::now();
  auto pause = std::chrono::milliseconds(10);
  while (true) {
    const auto left = timeout - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    const std::string reason = try_connect(host, port, std::min(left, std::chrono::milliseconds(5000)));
    if (reason.empty()) return;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    if (waited + pause >= timeout)
      throw Error(format(
          "{} could not reach the store at {}:{} for {:.1f} s ({}). Check that rank 0 is running (its own output may "
          "say "
          "why not), that MASTER_ADDR={} is rank 0's host as seen from here, that all ranks have the same MASTER_PORT, "
          "and that no firewall closes it",
          who, host, port, std::chrono::duration<double>(waited).count(), reason, host));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  }
}

}  // namespace cohort::dist
