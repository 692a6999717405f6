#include "launch/port.h"

#include <array>
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
#include "launch/port_holder.h"

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
  const std::string name = port_lock_name(port);
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

/// The first of this machine's numeric addresses that the address, a number or a name, stands for. Throws Error when it
/// is another machine's.
std::string own_address(const std::string& address, StoreReach reach) {
  const std::string remedy =
      reach == StoreReach::kThisNode
          ? "with one node leave --master_addr out"
          : "with several nodes --master_addr is an address of node 0, and this agent has --node-rank=0";
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  std::string host = address;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  COHORT_THROW_UNLESS(error == 0, "the address '{}' cannot be resolved: {}; {}", address, gai_strerror(error), remedy);
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
    std::array<char, NI_MAXHOST> number{};
    if (own &&
        ::getnameinfo(at->ai_addr, at->ai_addrlen, number.data(), number.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      return number.data();
  }
  COHORT_THROW_UNLESS(reason != EADDRNOTAVAIL, "'{}' is not an address of this machine: {}", address, remedy);
  throw Error(format("cannot bind the address '{}': {}; {}", address, std::strerror(reason), remedy));
}

bool is_loopback(const std::string& number) {
  return number == "::1" || number.rfind("127.", 0) == 0;
}

/// Where the store listens: see PortReservation::host_.
std::string listening_address(const std::string& address, StoreReach reach) {
  const std::string number = own_address(address, reach);
  if (reach == StoreReach::kThisNode) return kLoopback;
  COHORT_THROW_UNLESS(number != "0.0.0.0" && number != "::",
                      "--master_addr={}: with several nodes this is the address at which the others reach node 0",
                      address);
  // Debian's /etc/hosts gives the machine's own name 127.0.1.1: the other nodes look for it elsewhere.
  const bool by_name = is_loopback(number) && !is_loopback(address) && address != "[::1]" && address != "localhost";
  return by_name ? "" : number;
}

/// A socket bound to a numeric address and a port; -1 with errno.
int bind_number(const std::string& number, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(number.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  const int fd = stream_socket(found->ai_family);
  if (fd >= 0 && ::bind(fd, found->ai_addr, found->ai_addrlen) == 0) return fd;
  const int reason = errno;
  if (fd >= 0) ::close(fd);
  errno = reason;
  return -1;
}

[[noreturn]] void throw_in_use(int port, std::string by, StoreReach reach) {
  const int unused = some_free_port();
  const std::string holder = port_holder(port);
  if (!holder.empty()) by = by.empty() ? " by " + holder : format("{}, {}", by, holder);
  throw PortInUse(format(
      "port {} is in use on this machine{}: port {} is free, pass --master_port={}{} (`ss -ltnp sport = "
      ":{}` shows who listens)",
      port, by, unused, unused,
      reach == StoreReach::kThisNode ? ", or leave the flag out and a free port is chosen" : " on all nodes", port));
}

}  // namespace

std::string port_lock_name(int port) {
  return format("cohort-launch/master-port/{}", port);
}

bool is_own_address(const std::string& address) {
  try {
    own_address(address, StoreReach::kThisNode);
    return true;
  } catch (const Error&) {
    return false;
  }
}

PortReservation::PortReservation(const std::string& address, int port, StoreReach reach) {
  COHORT_THROW_UNLESS(port >= 0 && port <= 65535, "port {} is none: ports go from 1 to 65535, 0 chooses a free one",
                      port);
  if (port != 0) {
    // Where the name cannot be had for another reason, the agents are told apart once a rank 0 listens.
    lock_ = lock_port(port);
    if (lock_ < 0 && errno == EADDRINUSE) throw_in_use(port, " by another cohort launch", reach);
  }
  socket_ = bind_everywhere(port);
  if (socket_ < 0) {
    const int reason = errno;
    if (lock_ >= 0) ::close(lock_);
    if (reason == EADDRINUSE && port != 0) throw_in_use(port, "", reach);
    throw Error(format("cannot bind port {}: {}{}", port, std::strerror(reason),
                       reason == EACCES ? " (ports below 1024 need privileges; take a higher one)" : ""));
  }
  port_ = port_of(socket_);
  try {
    host_ = listening_address(address, reach);
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
  const int fd = host_.empty() ? bind_everywhere(port_) : bind_number(host_, port_);
  if (fd >= 0) return fd;
  throw Error(
      format("cannot bind {}:{} for the job's store: {}", host_.empty() ? "*" : host_, port_, std::strerror(errno)));
}

}  // namespace cohort::launch
