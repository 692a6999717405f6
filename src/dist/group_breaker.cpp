#include "dist/group_breaker.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::dist {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);

/// Every socket of this process: its descriptor and its inode, which no other socket has.
void for_each_socket(const std::function<void(int, std::uint64_t)>& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error)) {
    const int fd = std::atoi(at->path().filename().c_str());
    struct stat status {};
    if (::fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) visit(fd, status.st_ino);
  }
}

bool is_tcp_connection(int fd) {
  int domain = 0, protocol = 0, listens = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  size = sizeof protocol;
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return false;
  size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0) return false;
  return (domain == AF_INET || domain == AF_INET6) && protocol == IPPROTO_TCP && listens == 0;
}

}  // namespace

std::unique_ptr<GroupBreaker> GroupBreaker::of_this_process(int generation) {
  const rank::Page* page = rank::own_page();
  if (!page) return nullptr;
  return std::unique_ptr<GroupBreaker>(
      new GroupBreaker(rank::Page::adopt(::dup(page->descriptor())), static_cast<std::uint32_t>(generation)));
}

GroupBreaker::GroupBreaker(std::unique_ptr<rank::Page> page, std::uint32_t generation)
    : page_(std::move(page)), generation_(generation) {
  for_each_socket([this](int, std::uint64_t inode) { before_.insert(inode); });
  thread_ = std::thread([this] { watch(); });
}

GroupBreaker::~GroupBreaker() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GroupBreaker::watch() {
  std::unique_lock lock(mutex_);
  // Also those that are made after it was said: this process may be about to connect.
  while (!changed_.wait_for(lock, kLook, [this] { return over_; }))
    if (page_->broken_below() > generation_) shut_down();
}

void GroupBreaker::shut_down() const {
  for_each_socket([this](int fd, std::uint64_t inode) {
    if (!before_.contains(inode) && is_tcp_connection(fd)) ::shutdown(fd, SHUT_RDWR);
  });
}

}  // namespace cohort::dist
