#include "launch/elastic_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/json_text.h"
#include "launch/elastic_messages.h"

namespace cohort::launch {
namespace {

using LinkJson = nlohmann::json;
using LinkClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMostHeard = 10000;  // messages that the agent has not taken yet

/// Connects within the time: a machine that is cut off answers nothing at all. -1 with the reason.
int connect_within(const addrinfo& address, milliseconds at_most, ElasticLink::Absence& absence) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    absence = {std::strerror(errno)};
    return -1;
  }
  int error = ::connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{fd, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (::poll(&waiting, 1, static_cast<int>(at_most.count())) <= 0)
      error = ETIMEDOUT;
    else
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
  }
  absence = {std::strerror(error), error == ECONNREFUSED};
  ::close(fd);
  return -1;
}

int connect_to(const ElasticEndpoint& endpoint, ElasticLink::Absence& absence) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found)) {
    absence = {format("the name '{}' cannot be resolved: {}", endpoint.host, gai_strerror(error))};
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at; at = at->ai_next)
    if (const int fd = connect_within(*at, ElasticLink::kConnectTime, absence); fd >= 0) return fd;
  return -1;
}

}  // namespace

std::unique_ptr<ElasticLink> ElasticLink::connect(const ElasticEndpoint& endpoint, const std::string& secret,
                                                  LinkJson join, Absence& absence) {
  const int fd = connect_to(endpoint, absence);
  if (fd < 0) return nullptr;
  std::unique_ptr<ElasticLink> link(
      new ElasticLink(fd, format("the rendezvous at {}:{}", endpoint.host, endpoint.port)));
  std::string payload;
  if (!link->take(kSilence, payload)) {
    absence = {"it does not answer"};
    return nullptr;
  }
  const LinkJson hello = try_json<LinkJson>(payload);
  COHORT_THROW_UNLESS(hello.is_object() && hello.contains("hello") && hello["hello"] == "cohort-rendezvous 1" &&
                          hello.contains("challenge") && hello["challenge"].is_string(),
                      "{} is something else: is it another service's port?", link->name_);
  const std::string nonce = random_digits(16);
  link->signer_ = std::make_unique<Signer>(secret, hello["challenge"].get<std::string>() + nonce, false);
  join["do"] = "join";
  join["nonce"] = nonce;
  join["ack"] = true;
  link->say(join);
  if (!link->take(kSilence, payload)) {
    absence = {"it does not answer"};
    return nullptr;
  }
  const LinkJson answer = parse_told(link->signer_->verify(payload));
  const auto is = answer["is"].get<std::string>();
  if (is == "standby") {
    absence = {"the job does not meet there", true};
    return nullptr;
  }
  if (is == "later") {
    absence = {.reason = "the job's ranks there are recovering, and a node joins after that", .later = true};
    return nullptr;
  }
  if (is != "joined" && is != "beat") link->heard.push_back(answer);
  link->thread_ = std::thread([own = link.get()] { own->listen(); });
  return link;
}

ElasticLink::~ElasticLink() {
  {
    const std::scoped_lock lock(mutex);
    over_ = true;
  }
  ::shutdown(fd_, SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
  ::close(fd_);
}

std::string ElasticLink::own_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> number{};
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  const int error = ::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, number.data(), number.size(),
                                  nullptr, 0, NI_NUMERICHOST);
  COHORT_THROW_UNLESS(error == 0, "this machine's own address towards {} is not known: {}", name_, gai_strerror(error));
  return number.data();
}

void ElasticLink::lose(Loss how, const std::string& why) {
  const std::scoped_lock lock(mutex);
  if (!gone.empty()) return;
  gone = why;
  loss = how;
}

void ElasticLink::say(const LinkJson& message) {
  const std::scoped_lock lock(mutex);
  if (!gone.empty()) return;
  const std::string bytes = signer_->sign(json_text(message, -1, BadUtf8::kReplaced));
  // What is not taken at once is not waited for: it is a beat, or one who does not listen is found silent.
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return;
  const int error = sent < 0 ? errno : EAGAIN;
  gone = error == EAGAIN ? name_ + " does not listen any more"
                         : format("{} cannot be reached any more: {}", name_, std::strerror(error));
  loss = error == EPIPE || error == ECONNRESET ? Loss::kClosed : Loss::kSilent;
}

bool ElasticLink::take(milliseconds at_most, std::string& payload) {
  const auto end = LinkClock::now() + at_most;
  for (;;) {
    if (auto next = frames_.next()) {
      payload = std::move(*next);
      return true;
    }
    const auto left = std::chrono::ceil<milliseconds>(end - LinkClock::now());
    pollfd waiting{fd_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char bytes[4096];
    const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != ECONNRESET)  // ETIMEDOUT, EHOSTUNREACH: says nothing about the agent there
      lose(Loss::kSilent, format("{} cannot be reached any more: {}", name_, std::strerror(errno)));
    COHORT_THROW_UNLESS(count > 0, "{} has closed the connection: its agent has ended, or its secret is another one",
                        name_);
    frames_.add(bytes, static_cast<std::size_t>(count));
  }
}

void ElasticLink::listen() {
  try {
    auto next_beat = LinkClock::now() + kBeat;
    auto silent_since = LinkClock::now(), looked = silent_since;
    for (;;) {
      {
        const std::scoped_lock lock(mutex);
        if (over_) return;
      }
      const auto left = std::chrono::ceil<milliseconds>(next_beat - LinkClock::now());
      std::string payload;
      if (take(std::max(left, milliseconds(0)), payload)) {
        const std::scoped_lock lock(mutex);
        LinkJson message = parse_told(signer_->verify(payload));
        COHORT_THROW_UNLESS(heard.size() < kMostHeard, "{} says more than anybody can follow", name_);
        if (message["is"] != "beat") heard.push_back(std::move(message));
        silent_since = LinkClock::now();
      }
      // Where this process itself stood still, the other side gets its time anew.
      if (LinkClock::now() - looked > kSilence) silent_since = LinkClock::now();
      looked = LinkClock::now();
      if (LinkClock::now() < next_beat) continue;
      say({{"do", "beat"}});
      next_beat = LinkClock::now() + kBeat;
      if (LinkClock::now() - silent_since > kSilence)
        return lose(Loss::kSilent, format("{} has been silent for {} s: its machine or the network has failed", name_,
                                          std::chrono::duration_cast<std::chrono::seconds>(kSilence).count()));
    }
  } catch (const std::exception& problem) {
    lose(Loss::kClosed, problem.what());
  }
}

}  // namespace cohort::launch
