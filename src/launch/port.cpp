#include "launch/port.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::launch {
namespace {

int stream_socket(int family) {
  const int fd = ::socket(family, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd;
}

/// Binds the port on every address of both families; returns the socket, or -1 with errno.
int bind_everywhere(int port) {
  int fd = stream_socket(AF_INET6);
  if (fd >= 0) {
    const int off = 0;
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) return fd;
    const int reason = errno;
    ::close(fd);
    if (reason != EADDRNOTAVAIL && reason != EAFNOSUPPORT) {
      errno = reason;
      return -1;
    }
  }
  fd = stream_socket(AF_INET);  // a machine without IPv6
  if (fd < 0) return -1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0) return fd;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  return -1;
}

int port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

int some_free_port() {
  const int fd = bind_everywhere(0);
  if (fd < 0) return 0;
  const int port = port_of(fd);
  ::close(fd);
  return port;
}

/// A name in the abstract namespace, which belongs to the network namespace as ports do and vanishes with the process.
/// -1 with errno where it cannot be had; EADDRINUSE says that another agent has it.
int lock_port(int port) {
#if defined(__linux__)
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = format("cohort-launch/master-port/{}", port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  const int reason = errno;
  ::close(fd);
  errno = reason;
#else
  (void)port;
  errno = ENOTSUP;
#endif
  return -1;
}

/// Throws Error unless the address, a number or a name, is one of this machine's.
void check_own_address(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::string host = address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  COHORT_THROW_UNLESS(error == 0, "the address '{}' cannot be resolved: {}; with one node leave --master_addr out",
                      address, gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  int reason = EADDRNOTAVAIL;
  for (const addrinfo* at = found; at; at = at->ai_next) {
    const int fd = stream_socket(at->ai_family);
    if (fd < 0) {
      if (errno != EAFNOSUPPORT) reason = errno;
      continue;
    }
    const bool own = ::bind(fd, at->ai_addr, at->ai_addrlen) == 0;  // port 0: a free one
    if (!own) reason = errno;
    ::close(fd);
    if (own) return;
  }
  COHORT_THROW_UNLESS(
      reason != EADDRNOTAVAIL,
      "'{}' is not an address of this machine: with one node the store runs here; leave --master_addr out", address);
  throw Error(format("cannot bind the address '{}': {}; with one node leave --master_addr out", address,
                     std::strerror(reason)));
}

[[noreturn]] void throw_in_use(int port, const std::string& by) {
  const int unused = some_free_port();
  throw Error(format(
      "port {} is in use on this machine{}: port {} is free, pass --master_port={}, or leave the flag out and a free "
      "port is chosen (`ss -ltnp sport = :{}` shows who listens)",
      port, by, unused, unused, port));
}

}  // namespace

PortReservation::PortReservation(const std::string& address, int port) {
  COHORT_THROW_UNLESS(port >= 0 && port <= 65535, "port {} is none: ports go from 1 to 65535, 0 chooses a free one",
                      port);
  if (port != 0) {
    // Where the name cannot be had for another reason, the agents are told apart once a rank 0 listens.
    lock_ = lock_port(port);
    if (lock_ < 0 && errno == EADDRINUSE) throw_in_use(port, " by another cohort launch");
  }
  socket_ = bind_everywhere(port);
  if (socket_ < 0) {
    const int reason = errno;
    if (lock_ >= 0) ::close(lock_);
    if (reason == EADDRINUSE && port != 0) throw_in_use(port, "");
    throw Error(format("cannot bind port {}: {}{}", port, std::strerror(reason),
                       reason == EACCES ? " (ports below 1024 need privileges; take a higher one)" : ""));
  }
  port_ = port_of(socket_);
  try {
    check_own_address(address);
    ::close(bind_store_socket());  // rather now than when rank 0 starts
  } catch (...) {
    ::close(socket_);
    if (lock_ >= 0) ::close(lock_);
    throw;
  }
}

PortReservation::~PortReservation() {
  if (socket_ >= 0) ::close(socket_);
  if (lock_ >= 0) ::close(lock_);
}

int PortReservation::bind_store_socket() const {
  const int fd = stream_socket(AF_INET);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int reason = errno;
  if (fd >= 0) ::close(fd);
  throw Error(format("cannot bind {}:{} for the job's store: {}", kStoreAddress, port_, std::strerror(reason)));
}

}  // namespace cohort::launch
