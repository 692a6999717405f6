#include "launch/elastic_rendezvous.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "launch/signals.h"
#include "launch/signed_message.h"

namespace cohort::launch {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kBeat = std::chrono::milliseconds(1000);
constexpr auto kBetweenTries = std::chrono::milliseconds(200);
constexpr auto kRendezvousPoll = std::chrono::milliseconds(50);

/// A connection to the endpoint; -1 with the reason.
int connect_to(const ElasticEndpoint& endpoint, std::string& reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found)) {
    reason = format("the name '{}' cannot be resolved: {}", endpoint.host, gai_strerror(error));
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    if (::connect(fd, at->ai_addr, at->ai_addrlen) == 0) return fd;
    reason = std::strerror(errno);
    ::close(fd);
  }
  return -1;
}

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

}  // namespace

/// The connection, and a thread that beats and listens.
struct ElasticRendezvous::Link {
  int fd = -1;
  std::string who;
  std::unique_ptr<Signer> signer;
  FrameReader frames;
  std::mutex mutex;  // of what follows, and of sending
  std::deque<Json> heard;
  std::string gone;  // why there is no rendezvous any more
  bool over = false;
  std::thread thread;

  ~Link() {
    {
      const std::scoped_lock lock(mutex);
      over = true;
    }
    ::shutdown(fd, SHUT_RDWR);
    if (thread.joinable()) thread.join();
    ::close(fd);
  }

  void say(const Json& message) {
    const std::scoped_lock lock(mutex);
    if (!gone.empty()) return;
    const std::string bytes = signer->sign(message.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
      gone = format("{} cannot be reached any more: {}", who, std::strerror(errno));
  }

  /// The next frame; blocks. Throws Error when the connection ends first.
  std::string next_frame() {
    for (;;) {
      if (auto payload = frames.next()) return *payload;
      char bytes[4096];
      const ssize_t count = ::recv(fd, bytes, sizeof bytes, 0);
      if (count < 0 && errno == EINTR) continue;
      COHORT_THROW_UNLESS(count > 0, "{} has closed the connection: its agent has ended, or its secret is another one",
                          who);
      frames.add(bytes, static_cast<std::size_t>(count));
    }
  }

  void listen() {
    try {
      auto next_beat = Clock::now() + kBeat;
      for (;;) {
        {
          const std::scoped_lock lock(mutex);
          if (over) return;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_beat - Clock::now());
        pollfd waiting{fd, POLLIN, 0};
        if (left.count() > 0 && ::poll(&waiting, 1, static_cast<int>(left.count())) > 0) {
          const Json message = Json::parse(signer_verify(next_frame()));
          const std::scoped_lock lock(mutex);
          heard.push_back(message);
        }
        if (Clock::now() >= next_beat) {
          say({{"do", "beat"}});
          next_beat = Clock::now() + kBeat;
        }
      }
    } catch (const std::exception& problem) {
      const std::scoped_lock lock(mutex);
      if (gone.empty()) gone = problem.what();
    }
  }

  std::string signer_verify(const std::string& payload) {
    const std::scoped_lock lock(mutex);
    return signer->verify(payload);
  }
};

ElasticRendezvous::ElasticRendezvous(const LaunchSettings& settings) : settings_(settings) {
  const ElasticEndpoint endpoint{settings.rendezvous_host, settings.rendezvous_port};
  const std::string secret = read_job_secret(settings.job_secret_file);
  const ElasticLimits limits{.least = settings.least_nodes,
                             .most = settings.nodes,
                             .max_restarts = settings.max_restarts,
                             .last_call = settings.last_call,
                             .first = settings.node_id};
  // The ranks' store lies on the host of the rendezvous: while there is one, there is the other.
  try {
    port_ = std::make_unique<PortReservation>(endpoint.host, settings.master_port, StoreReach::kAllNodes);
  } catch (const Error&) {
    // Another machine's address, or another agent of this machine has that port: then it is not the host.
  }
  if (port_) server_ = ElasticServer::host(endpoint, limits, settings.run_id, secret, port_->port());
  if (!server_) port_.reset();

  link_ = std::make_unique<Link>();
  link_->who = format("the rendezvous at {}:{}", endpoint.host, endpoint.port);
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.patience));
  std::string reason;
  while ((link_->fd = connect_to(endpoint, reason)) < 0) {
    COHORT_THROW_UNLESS(Clock::now() < end, "{} is not there: {}. One agent must run on {}, to host it", link_->who,
                        reason, endpoint.host);
    std::this_thread::sleep_for(kBetweenTries);
  }
  const Json hello = Json::parse(link_->next_frame(), nullptr, false);
  COHORT_THROW_UNLESS(hello.is_object() && hello.value("hello", "") == "cohort-rendezvous 1",
                      "{} is something else: is it another service's port?", link_->who);
  const std::string nonce = random_digits(16);
  link_->signer = std::make_unique<Signer>(secret, hello.at("challenge").get<std::string>() + nonce, false);
  link_->say({{"do", "join"},
              {"job", settings.run_id},
              {"node", settings.node_id},
              {"host", own_host()},
              {"ranks", settings.ranks},
              {"nonce", nonce}});
  link_->thread = std::thread([this] { link_->listen(); });
}

ElasticRendezvous::~ElasticRendezvous() {
  link_->say({{"do", "leave"}});
}

Meeting ElasticRendezvous::meet(int /*attempt*/) {
  if (round_ >= 0) link_->say({{"do", "ready"}});
  for (;;) {
    {
      const std::scoped_lock lock(link_->mutex);
      while (!link_->heard.empty()) {
        const Json message = std::move(link_->heard.front());
        link_->heard.pop_front();
        const std::string is = message.at("is");
        COHORT_THROW_UNLESS(is != "refused", "{} refuses this node: {}", link_->who,
                            message.at("why").get<std::string>());
        if (is == "end") throw JobEnded{message.at("code"), message.at("why")};
        if (is != "round" || message.at("round").get<int>() == round_) continue;
        round_ = message.at("round");
        return {.node_rank = message.at("node_rank"),
                .nodes = message.at("nodes"),
                .first_rank = message.at("first_rank"),
                .world_size = message.at("world_size"),
                .store_address = message.at("store_address"),
                .store_port = message.at("store_port")};
      }
      if (!link_->gone.empty()) throw Error(link_->gone);
    }
    if (signals_)
      for (const int signal : signals_->take())
        if (signal != SIGCHLD && signal != SIGTSTP && signal != SIGCONT) throw StopAsked{signal};
    std::this_thread::sleep_for(kRendezvousPoll);
  }
}

int ElasticRendezvous::bind_store_socket() const {
  COHORT_CHECK(port_ != nullptr, "this node does not run rank 0");
  return port_->bind_store_socket();
}

int ElasticRendezvous::attempt(int /*asked*/) const {
  return round_;
}

std::string ElasticRendezvous::interruption() {
  const std::scoped_lock lock(link_->mutex);
  if (!link_->gone.empty()) return link_->gone;
  for (const Json& message : link_->heard) {
    if (message.at("is") == "end") return "the job ends: " + message.at("why").get<std::string>();
    if (message.at("is") == "gather") return message.at("why");
  }
  return "";
}

void ElasticRendezvous::failed(int code, const std::string& what) {
  link_->say({{"do", "failed"}, {"round", round_}, {"code", code}, {"what", what.substr(0, 2000)}});
}

void ElasticRendezvous::finished() {
  link_->say({{"do", "finished"}, {"round", round_}});
}

}  // namespace cohort::launch
