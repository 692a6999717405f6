/// The TCP socket on which rank 0's store listens, and the first knock of the others.
#pragma once
#include <chrono>
#include <string>

namespace cohort::dist {

/// Owns a file descriptor; closes it unless released.
class OwnedSocket {
 public:
  explicit OwnedSocket(int fd = -1) : fd_(fd) {}
  ~OwnedSocket();
  OwnedSocket(OwnedSocket&& other) noexcept : fd_(other.release()) {}
  OwnedSocket& operator=(OwnedSocket&& other) noexcept;
  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

/// A listening socket. port 0 takes a free one. With `loopback_only` it is bound to 127.0.0.1, so that
/// nobody outside this host reaches it; otherwise to every address of the host.
/// Throws Error; a port in use is named, with a free one beside it (`port_origin` as in rank::Environment).
OwnedSocket open_store_socket(int port, bool loopback_only, const std::string& port_origin = "MASTER_PORT");

/// Port that a bound socket has. Throws Error when fd is not a bound TCP socket.
int bound_port(int fd);

/// A port that could be bound at the time of the call.
int free_port(bool loopback_only);

/// Waits until something listens at host:port. Tries again with growing pauses (10 ms to 0.5 s), since rank 0 may start
/// later. Throws Error naming the address, the time waited, the last reason, and what to check.
void wait_for_listener(const std::string& host, int port, std::chrono::milliseconds timeout, const std::string& who);

}  // namespace cohort::dist
