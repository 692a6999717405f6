#include "launch/elastic_rendezvous.h"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include <unistd.h>

#include "core/error.h"
#include "launch/signals.h"
#include "launch/signed_message.h"

namespace cohort::launch {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kBetweenTries = std::chrono::milliseconds(200);
constexpr auto kRendezvousPoll = std::chrono::milliseconds(20);
/// The others notice the loss within ElasticLink::kSilence of each other.
constexpr auto kToMoveOn = std::chrono::seconds(30);

std::string own_host() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string names_of(const std::vector<ElasticEndpoint>& endpoints) {
  std::string text;
  for (const ElasticEndpoint& e : endpoints) text += format("{}{}:{}", text.empty() ? "" : ", ", e.host, e.port);
  return text;
}

}  // namespace

ElasticRendezvous::ElasticRendezvous(const LaunchSettings& settings)
    : settings_(settings), secret_(read_job_secret(settings.job_secret_file)) {
  endpoints_.push_back({settings.rendezvous_host, settings.rendezvous_port});
  for (const auto& [name, port] : settings.further_endpoints) endpoints_.push_back({name, port});
  host();
  const auto end = Clock::now() +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(ElasticLimits().patience));
  std::string reason;
  for (;;) {
    // Where the job goes on at another endpoint, it must not begin anew at the first one.
    for (std::size_t i = 0; i < endpoints_.size() && !link_; ++i) {
      if (own_ == i && endpoints_.size() > 1) continue;
      std::string why;
      if (!join(i, why) && (i == 0 || reason.empty())) reason = why;
    }
    if (!link_ && own_ == std::size_t{0}) {
      server_->activate();
      join(0, reason);
    }
    if (link_) return;
    COHORT_THROW_UNLESS(Clock::now() < end,
                        "the rendezvous at {} is not there: {}. One agent must run on {}, to host it",
                        names_of(endpoints_), reason, endpoints_.front().host);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

ElasticRendezvous::~ElasticRendezvous() {
  if (link_) link_->say({{"do", "leave"}});
}

/// An endpoint that is this machine's, and that no other agent of it has. The ranks' store lies on the host of the
/// rendezvous: while there is one, there is the other.
void ElasticRendezvous::host() {
  const ElasticLimits limits{.least = settings_.least_nodes,
                             .most = settings_.nodes,
                             .max_restarts = settings_.max_restarts,
                             .last_call = settings_.last_call,
                             .first = settings_.node_id,
                             .others_may_meet_elsewhere = endpoints_.size() > 1};
  for (std::size_t i = 0; i < endpoints_.size() && !server_; ++i) {
    try {
      port_ = std::make_unique<PortReservation>(endpoints_[i].host, settings_.master_port, StoreReach::kAllNodes);
    } catch (const Error&) {
      continue;  // another machine's address, or another agent of this machine has that port
    }
    server_ = ElasticServer::host(endpoints_[i], limits, settings_.run_id, secret_, port_->port(),
                                  /*active=*/endpoints_.size() == 1);
    if (server_)
      own_ = i;
    else
      port_.reset();
  }
}

/// False with the reason where nobody answers, or the job does not meet there.
bool ElasticRendezvous::join(std::size_t endpoint, std::string& reason) {
  Json join{{"job", settings_.run_id}, {"node", settings_.node_id}, {"host", own_host()}, {"ranks", settings_.ranks}};
  if (round_ >= 0)
    join["past"] = {{"round", past_.round},
                    {"nodes", past_.nodes},
                    {"restarts", past_.restarts},
                    {"recovery", past_.recovery},
                    {"certain", past_.certain}};
  link_ = ElasticLink::connect(endpoints_[endpoint], secret_, std::move(join), reason);
  at_ = endpoint;
  return link_ != nullptr;
}

/// The host of the rendezvous is lost: the job goes on at another endpoint, or not at all.
void ElasticRendezvous::move_on() {
  const std::string gone = link_->gone;
  const std::size_t before = at_;
  if (endpoints_.size() == 1)
    throw Error(
        format("{}. A job survives the loss of that machine where agents on two others can host the rendezvous, "
               "too: --rdzv-endpoint=A:PORT,B:PORT",
               gone));
  past_.certain = link_->loss == ElasticLink::Loss::kClosed;
  link_.reset();
  if (own_ == before) throw Error(gone);  // it is in this very process
  const auto end = Clock::now() + kToMoveOn;
  std::string reason;
  while (Clock::now() < end) {
    for (std::size_t step = 1; step < endpoints_.size(); ++step) {
      const std::size_t next = (before + step) % endpoints_.size();
      try {
        if (join(next, reason)) return;
      } catch (const Error& problem) {  // it ended while it answered
        reason = problem.what();
      }
      stop_where_asked();
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  throw Error(format("{}, and at no other endpoint of {} can the job go on: {}", gone, names_of(endpoints_), reason));
}

void ElasticRendezvous::stop_where_asked() {
  if (!signals_) return;
  for (const int signal : signals_->take())
    if (signal != SIGCHLD && signal != SIGTSTP && signal != SIGCONT) throw StopAsked{signal};
}

Meeting ElasticRendezvous::meet(int /*attempt*/) {
  if (round_ >= 0) link_->say({{"do", "ready"}});
  for (;;) {
    bool gone = false;
    {
      const std::scoped_lock lock(link_->mutex);
      while (!link_->heard.empty()) {
        const Json message = std::move(link_->heard.front());
        link_->heard.pop_front();
        const std::string is = message.at("is");
        COHORT_THROW_UNLESS(is != "refused", "{} refuses this node: {}", link_->name(),
                            message.at("why").get<std::string>());
        if (is == "end") throw JobEnded{message.at("code"), message.at("why")};
        if (is != "round" || message.at("round").get<int>() == round_) continue;
        round_ = message.at("round");
        past_ = {.round = round_,
                 .nodes = message.at("nodes"),
                 .restarts = message.at("restarts"),
                 .recovery = message.at("recovery")};
        return {.node_rank = message.at("node_rank"),
                .nodes = message.at("nodes"),
                .first_rank = message.at("first_rank"),
                .world_size = message.at("world_size"),
                .store_address = message.at("store_address"),
                .store_port = message.at("store_port"),
                .recovery = message.at("recovery")};
      }
      gone = !link_->gone.empty();
    }
    if (gone) {
      if (round_ < 0) throw Error(link_->gone);
      move_on();
      continue;
    }
    stop_where_asked();
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

Interruption ElasticRendezvous::interruption() {
  const std::scoped_lock lock(link_->mutex);
  for (const Json& message : link_->heard) {
    if (message.at("is") == "end") return {"the job ends: " + message.at("why").get<std::string>(), true};
    if (message.at("is") == "gather") return {message.at("why"), false};
  }
  return {link_->gone, false};
}

void ElasticRendezvous::failed(int code, const std::string& what, bool again) {
  link_->say({{"do", "failed"}, {"round", round_}, {"code", code}, {"what", what.substr(0, 2000)}, {"again", again}});
}

void ElasticRendezvous::finished() {
  link_->say({{"do", "finished"}, {"round", round_}});
}

void ElasticRendezvous::lost(int code, const std::string& what) {
  link_->say({{"do", "lost"}, {"round", round_}, {"code", code}, {"what", what.substr(0, 2000)}});
}

void ElasticRendezvous::waits(int number) {
  link_->say({{"do", "waits"}, {"round", round_}, {"recovery", number}});
}

void ElasticRendezvous::cannot(const std::string& why) {
  link_->say({{"do", "cannot"}, {"round", round_}, {"what", why.substr(0, 2000)}});
}

std::optional<RecoveryCall> ElasticRendezvous::recovery_call() {
  const std::scoped_lock lock(link_->mutex);
  for (auto at = link_->heard.begin(); at != link_->heard.end(); ++at) {
    const std::string is = at->at("is");
    if (is != "recover" && is != "go") continue;
    RecoveryCall call{.number = at->at("number"), .go = is == "go", .why = at->value("why", "")};
    past_.recovery = call.number;
    past_.restarts = at->value("restarts", past_.restarts);
    link_->heard.erase(at);
    return call;
  }
  return std::nullopt;
}

}  // namespace cohort::launch
