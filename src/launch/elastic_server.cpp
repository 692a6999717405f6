#include "launch/elastic_server.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <nlohmann/json.hpp>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "launch/elastic_messages.h"
#include "launch/signed_message.h"

namespace cohort::launch {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 1024;
constexpr int kTick = 200;  // ms between looks at the clock
constexpr std::size_t kMostConnections = 4096;
constexpr double kServerBeat = 1;                               // s
constexpr double kStrangersTime = 5;                            // s in which a connection must have joined
constexpr std::size_t kMostUnsent = 1 << 20;                    // bytes; who does not read is dropped
constexpr int kReadsAtOnce = 16;                                // of one connection, before the others have their turn
constexpr auto kNoDescriptors = std::chrono::milliseconds(50);  // waited where this process may open no more files

double now_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// A listening socket on an address of this machine; -1 where it is not ours to host.
int listen_on(const ElasticEndpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  COHORT_THROW_UNLESS(error == 0, "--rdzv-endpoint: the name '{}' cannot be resolved: {}", endpoint.host,
                      gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at; at = at->ai_next) {
    const int fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd, at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return fd;
    const int reason = errno;
    ::close(fd);
    COHORT_THROW_UNLESS(reason != EACCES, "--rdzv-endpoint: port {} may not be bound; take one above 1023",
                        endpoint.port);
  }
  return -1;
}

struct Connection {
  int fd = -1;
  double since = 0;
  std::string challenge;
  FrameReader frames;
  std::unique_ptr<Signer> signer;  // once it has joined, or asked for the state
  std::string node;                // "" before it has joined
  std::string unsent;
  int told_round = -1;
  ElasticPhase told = ElasticPhase::kEnded;  // nothing yet
  int told_recover = 0, told_go = 0;
  bool told_end = false;
  bool last_words = false;  // closed once what is unsent has been sent
  bool said_leave = false;
  bool over = false;
};

}  // namespace

struct ElasticServer::Impl {
  int socket;
  ElasticEndpoint endpoint;
  std::string job, secret;
  int store_port;
  std::atomic<bool> active;
  ElasticState state;
  double beat_at = 0;
  std::list<Connection> connections;
  int wake[2] = {-1, -1};
  std::thread thread;

  void run() {
    for (;;) {
      std::vector<pollfd> polled{{wake[0], POLLIN, 0}, {socket, POLLIN, 0}};
      std::vector<Connection*> of;
      for (Connection& c : connections) {
        polled.push_back({c.fd, static_cast<short>(c.unsent.empty() ? POLLIN : POLLIN | POLLOUT), 0});
        of.push_back(&c);
      }
      ::poll(polled.data(), polled.size(), kTick);
      if (polled[0].revents != 0) return;
      for (std::size_t i = 0; i < of.size(); ++i)
        if (polled[i + 2].revents != 0) serve(*of[i]);
      if (polled[1].revents != 0) accept_all();
      const double now = now_seconds();
      if (active) state.time_passes(now);
      const bool beats = now >= beat_at;
      if (beats) beat_at = now + kServerBeat;
      for (Connection& c : connections) {
        if (c.node.empty() && now - c.since > kStrangersTime) c.over = true;
        if (!c.over) serve_out(c, beats);
      }
      for (auto c = connections.begin(); c != connections.end();) {
        if (!c->over) {
          ++c;
          continue;
        }
        ::close(c->fd);
        if (!c->node.empty()) state.leave(c->node, "has left, or its agent has died", now, c->said_leave);
        c = connections.erase(c);
      }
    }
  }

  void serve_out(Connection& c, bool beats) {
    try {
      if (beats && !c.node.empty()) queue(c, Json{{"is", "beat"}});
      tell(c);
      if (!c.over) send(c);
      if (c.last_words && c.unsent.empty()) c.over = true;
    } catch (const std::exception& problem) {
      log::warning("rendezvous: a message to node '{}' cannot be sent: {}", c.node, problem.what());
      c.over = true;
    }
  }

  /// Makes room for another one: who has connected and says nothing must not keep nodes out.
  bool drop_a_stranger() {
    const auto oldest =
        std::find_if(connections.begin(), connections.end(), [](const Connection& c) { return c.node.empty(); });
    if (oldest == connections.end()) return false;
    ::close(oldest->fd);
    connections.erase(oldest);
    return true;
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        if (drop_a_stranger()) continue;
        std::this_thread::sleep_for(kNoDescriptors);
      }
      if (fd < 0) return;
      if (connections.size() >= kMostConnections && !drop_a_stranger()) {
        ::close(fd);
        continue;
      }
      Connection& c = connections.emplace_back();
      c.fd = fd;
      c.since = now_seconds();
      c.challenge = random_digits(16);
      c.unsent = frame(json_text(Json{{"hello", "cohort-rendezvous 1"}, {"challenge", c.challenge}}));
    }
  }

  void serve(Connection& c) {
    char bytes[8192];
    for (int reads = 0; reads < kReadsAtOnce && !c.over; ++reads) {
      const ssize_t count = ::recv(c.fd, bytes, sizeof bytes, 0);
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) c.over = true;
      if (count <= 0) break;
      try {
        c.frames.add(bytes, static_cast<std::size_t>(count));
        while (!c.over) {
          const auto payload = c.frames.next();
          if (!payload) break;
          understand(c, *payload);
        }
      } catch (const std::exception& problem) {
        // From a stranger, or one with another secret: it is told nothing.
        log::debug("rendezvous: a connection is closed: {}", problem.what());
        c.over = true;
        return;
      }
    }
  }

  void understand(Connection& c, const std::string& payload) {
    if (!c.signer) {
      // The nonce that signatures depend on is inside the first message, which is then checked as any other.
      COHORT_THROW_UNLESS(payload.size() > 64, "a message without a signature");
      const Json first = parse_message(std::string_view(payload).substr(64));
      c.signer = std::make_unique<Signer>(secret, c.challenge + text_in(first, "nonce", 64), true);
    }
    const Json message = parse_message(c.signer->verify(payload));
    const std::string what = text_in(message, "do", 16);
    const double now = now_seconds();
    if (what == "state") {
      queue(c, Json{{"is", "state"}, {"state", parse_json<Json>(state.to_json(now))}});
      return;
    }
    if (what == "join") return join(c, message, now);
    COHORT_THROW_UNLESS(!c.node.empty(), "'{}' before it has joined", what);
    state.heard(c.node, now);
    if (what == "ready") {
      state.ready(c.node, now);
    } else if (what == "finished") {
      state.finished(c.node, number_in(message, "round", 0, kMostCount), now);
    } else if (what == "failed") {
      state.failed(c.node, number_in(message, "round", 0, kMostCount), number_in(message, "code", 1, 255),
                   text_in(message, "what", kMostWords), now, flag_in(message, "again", true));
    } else if (what == "lost") {
      state.lost(c.node, number_in(message, "round", 0, kMostCount), number_in(message, "code", 1, 255),
                 text_in(message, "what", kMostWords), now,
                 message.contains("own_step") ? number_in(message, "own_step", -1, kMostCount) : -1);
    } else if (what == "waits") {
      state.waits(c.node, number_in(message, "round", 0, kMostCount), number_in(message, "recovery", 0, kMostCount),
                  now);
    } else if (what == "cannot") {
      state.cannot(c.node, number_in(message, "round", 0, kMostCount), text_in(message, "what", kMostWords), now);
    } else if (what == "leave") {
      c.said_leave = c.over = true;
    } else {
      COHORT_THROW_UNLESS(what == "beat", "'{}' is nothing to do", what);
    }
  }

  void join(Connection& c, const Json& message, double now) {
    COHORT_THROW_UNLESS(c.node.empty(), "a node joins twice");
    const std::string node = text_in(message, "node", 128), host = text_in(message, "host", 256);
    COHORT_THROW_UNLESS(!node.empty(), "a node without a name");
    const int ranks = number_in(message, "ranks", 1, kMostRanks);
    const int number = message.contains("number") ? number_in(message, "number", 0, kMostRanks) : -1;
    const bool acknowledged = flag_in(message, "ack", false);
    if (text_in(message, "job", 256) != job) return refuse(c, format("this is the rendezvous of job '{}'", job));
    if (const auto found = message.find("past"); found != message.end()) {
      COHORT_THROW_UNLESS(found->is_object() && found->contains("certain"), "a past that is none");
      const ElasticState::Past past{.round = number_in(*found, "round", 0, kMostCount),
                                    .nodes = number_in(*found, "nodes", 1, kMostRanks),
                                    .restarts = number_in(*found, "restarts", 0, kMostCount),
                                    .recovery = number_in(*found, "recovery", 0, kMostCount),
                                    .certain = flag_in(*found, "certain", false)};
      active = true;
      state.go_on_from(past, now);
    } else if (!active) {
      queue(c, Json{{"is", "standby"}});
      c.last_words = true;
      return;
    } else if (state.recovering()) {
      // Among the ranks that wait it would make a round, which ends their recovery from memory: it comes again.
      queue(c, Json{{"is", "later"}});
      c.last_words = true;
      return;
    }
    if (const std::string why = state.join(node, host, ranks, now, number); !why.empty()) return refuse(c, why);
    c.node = node;
    if (acknowledged) queue(c, Json{{"is", "joined"}});
  }

  void refuse(Connection& c, const std::string& why) { queue(c, Json{{"is", "refused"}, {"why", why}}); }

  void queue(Connection& c, const Json& message) {
    c.unsent += c.signer->sign(json_text(message, -1, BadUtf8::kReplaced));
    if (c.unsent.size() > kMostUnsent) c.over = true;
  }

  /// What has changed for this node since it was told last.
  void tell(Connection& c) {
    if (c.node.empty()) return;
    if (state.phase() == ElasticPhase::kEnded) {
      if (!c.told_end) queue(c, Json{{"is", "end"}, {"code", state.code()}, {"why", state.why()}});
      c.told_end = true;
      return;
    }
    if (state.number_of(c.node) < 0) {
      // Should it still be there, it must not take this for the host's end, and go on elsewhere.
      queue(c, Json{{"is", "end"}, {"code", 1}, {"why", "this node was silent for too long, and counts as lost"}});
      c.last_words = true;
      c.node.clear();
      return;
    }
    if (c.told == state.phase() && c.told_round == state.round()) {
      if (state.phase() == ElasticPhase::kRunning) tell_recovery(c);
      return;
    }
    const bool first = c.told_round < 0;
    c.told = state.phase();
    c.told_round = state.round();
    if (state.phase() == ElasticPhase::kGathering) {
      if (!first) queue(c, Json{{"is", "gather"}, {"why", state.why()}});
      return;
    }
    queue(c, Json{{"is", "round"},
                  {"round", state.round()},
                  {"node_rank", state.number_of(c.node)},
                  {"nodes", state.nodes().size()},
                  {"first_rank", state.first_rank(c.node)},
                  {"world_size", state.world_size()},
                  {"store_address", endpoint.host},
                  {"store_port", store_port},
                  {"restarts", state.restarts()},
                  {"recovery", state.recovery()}});
    c.told_recover = c.told_go = state.recovery();
  }

  void tell_recovery(Connection& c) {
    const int number = state.recovery();
    if (state.recovering() && c.told_recover != number) {
      queue(
          c,
          Json{{"is", "recover"}, {"number", number}, {"why", state.why_recovering()}, {"restarts", state.restarts()}});
      c.told_recover = number;
    } else if (!state.recovering() && c.told_go != number && c.told_recover == number) {
      queue(c, Json{{"is", "go"}, {"number", number}});
      c.told_go = number;
    }
  }

  void send(Connection& c) {
    while (!c.unsent.empty()) {
      const ssize_t count = ::send(c.fd, c.unsent.data(), c.unsent.size(), MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) {
        c.over = true;
        return;
      }
      c.unsent.erase(0, static_cast<std::size_t>(count));
    }
  }
};

std::unique_ptr<ElasticServer> ElasticServer::host(const ElasticEndpoint& endpoint, const ElasticLimits& limits,
                                                   const std::string& job, const std::string& secret, int store_port,
                                                   bool active) {
  const int socket = listen_on(endpoint);
  if (socket < 0) return nullptr;
  return std::unique_ptr<ElasticServer>(new ElasticServer(socket, endpoint, limits, job, secret, store_port, active));
}

ElasticServer::ElasticServer(int socket, const ElasticEndpoint& endpoint, const ElasticLimits& limits, std::string job,
                             std::string secret, int store_port, bool active)
    : impl_(new Impl{.socket = socket,
                     .endpoint = endpoint,
                     .job = std::move(job),
                     .secret = std::move(secret),
                     .store_port = store_port,
                     .active = active,
                     .state = ElasticState(limits)}) {
  COHORT_THROW_UNLESS(::pipe2(impl_->wake, O_CLOEXEC) == 0, "cannot make a pipe: {}", std::strerror(errno));
  impl_->thread = std::thread([this] { impl_->run(); });
}

int ElasticServer::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(impl_->socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

void ElasticServer::activate() {
  impl_->active = true;
}

ElasticServer::~ElasticServer() {
  ::close(impl_->wake[1]);
  impl_->thread.join();
  ::close(impl_->wake[0]);
  for (const Connection& c : impl_->connections) ::close(c.fd);
  ::close(impl_->socket);
}

}  // namespace cohort::launch
