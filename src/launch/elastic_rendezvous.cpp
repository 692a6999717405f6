#include "launch/elastic_rendezvous.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "launch/signals.h"
#include "launch/signed_message.h"

namespace cohort::launch {
namespace {

using Json = nlohmann::json;

constexpr auto kBetweenTries = std::chrono::milliseconds(200);
constexpr auto kRendezvousPoll = std::chrono::milliseconds(20);
/// An agent that has reserved its port listens within milliseconds; a machine may be busy.
constexpr auto kToListen = std::chrono::seconds(5);
/// The others notice the loss within ElasticLink::kSilence of each other.
constexpr auto kToMoveOn = std::chrono::seconds(30);

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
  if (!settings.state_file.empty())
    terms_ = std::make_shared<const TermFile>(settings.state_file, settings.run_id, secret_);
  host();
  const auto begin = Clock::now();
  const auto end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(ElasticLimits().patience));
  std::string reason;
  for (;;) {
    ElasticLink::Absence of_newest;
    if (terms_) join_newest(0, of_newest);
    bool later = of_newest.later;  // the job is somewhere
    // Where the job goes on at another endpoint, it must not begin anew at the first one.
    for (std::size_t i = 0; i < endpoints_.size() && !link_; ++i) {
      if (own_ == i && (terms_ || endpoints_.size() > 1)) continue;
      ElasticLink::Absence absence;
      if (!join(i, absence) && (i == 0 || reason.empty())) reason = absence.reason;
      later = later || absence.later;
    }
    if (!link_ && !later && own_ == std::size_t{0} && may_begin_here(of_newest)) {
      server_->activate();
      ElasticLink::Absence absence;
      join(0, absence);
    }
    if (link_) return;
    if (!of_newest.reason.empty()) reason = of_newest.reason;
    // Nobody but this machine can host; an agent of it that has the port listens at once.
    const bool alone = endpoints_.size() == 1 && !terms_;
    COHORT_THROW_UNLESS(port_in_use_.empty() || Clock::now() < (alone ? begin + kToListen : end),
                        "{}. It is for the ranks' store, and this machine hosts the rendezvous at {}, where nobody "
                        "answers: {}",
                        port_in_use_, names_of(endpoints_), reason);
    COHORT_THROW_UNLESS(Clock::now() < end,
                        "the rendezvous at {} is not there: {}. One agent must run on {}, to host it",
                        names_of(endpoints_), reason, endpoints_.front().host);
    std::this_thread::sleep_for(kBetweenTries);
  }
}

ElasticRendezvous::~ElasticRendezvous() {
  if (link_) link_->say({{"do", "leave"}});
}

/// An endpoint that is this machine's, and that no other agent of it has.
void ElasticRendezvous::host() {
  if (settings_.numbered_nodes && settings_.node_rank > 0) return;
  for (std::size_t i = 0; i < endpoints_.size() && !server_; ++i) {
    std::unique_ptr<PortReservation> port;
    try {
      port = std::make_unique<PortReservation>(endpoints_[i].host, settings_.master_port, StoreReach::kAllNodes);
    } catch (const PortInUse& problem) {
      if (settings_.numbered_nodes) throw;
      // By another agent of this job and machine, or by a stranger.
      if (is_own_address(endpoints_[i].host)) port_in_use_ = problem.what();
      continue;
    } catch (const Error&) {
      if (settings_.numbered_nodes) throw;
      continue;  // another machine's address
    }
    if (host_at(endpoints_[i], std::move(port))) own_ = i;
  }
  COHORT_THROW_UNLESS(server_ || !settings_.numbered_nodes,
                      "port {} of {}, at which the agents of this job meet (the store's and one), is in use: choose "
                      "another --master-port",
                      endpoints_.front().port, endpoints_.front().host);
}

/// The ranks' store lies on the host of the rendezvous: while there is one, there is the other.
bool ElasticRendezvous::host_at(const ElasticEndpoint& endpoint, std::unique_ptr<PortReservation> port) {
  const auto own = std::make_shared<ElasticEndpoint>(endpoint);
  ElasticLimits limits{.least = settings_.least_nodes,
                       .most = settings_.nodes,
                       .max_restarts = settings_.max_restarts,
                       .last_call = settings_.last_call,
                       .first = settings_.node_id,
                       .others_may_meet_elsewhere = endpoints_.size() > 1 || terms_};
  if (terms_)  // called by the server's thread, once it is active
    limits.claim = [terms = terms_, own]() -> std::string {
      try {
        const auto mine = terms->newest_of(*own);
        if (terms->claim({.number = mine ? mine->number + 1 : 1, .host = own->host, .port = own->port})) return "";
        return "the others go on elsewhere, as " + terms->name_of(mine ? mine->number + 1 : 1) + " says";
      } catch (const std::exception& problem) {
        return problem.what();
      }
    };
  server_ = ElasticServer::host(endpoint, limits, settings_.run_id, secret_, port->port(),
                                /*active=*/endpoints_.size() == 1 && !terms_);
  if (!server_) return false;
  port_ = std::move(port);
  own->port = server_->port();
  return true;
}

/// A job with a state file begins at the first endpoint where nobody else has claimed it; a host of an earlier one must
/// be known to be over, not only silent.
bool ElasticRendezvous::may_begin_here(const ElasticLink::Absence& of_newest) {
  if (!terms_) return true;
  const auto newest = terms_->newest();
  const ElasticEndpoint& own = endpoints_.front();
  if (newest && !of_newest.certain && !(newest->host == own.host && newest->port == own.port)) return false;
  term_ = newest ? newest->number + 1 : 1;
  return terms_->claim({.number = term_, .host = own.host, .port = own.port});
}

/// False with the reason where nobody answers, or the job does not meet there.
bool ElasticRendezvous::join(std::size_t endpoint, ElasticLink::Absence& absence) {
  Json join{
      {"job", settings_.run_id}, {"node", settings_.node_id}, {"host", own_host_name()}, {"ranks", settings_.ranks}};
  if (settings_.numbered_nodes) join["number"] = settings_.node_rank;
  if (round_ >= 0)
    join["past"] = {{"round", past_.round},
                    {"nodes", past_.nodes},
                    {"restarts", past_.restarts},
                    {"recovery", past_.recovery},
                    {"certain", past_.certain}};
  link_ = ElasticLink::connect(endpoints_[endpoint], secret_, std::move(join), absence);
  at_ = endpoint;
  return link_ != nullptr;
}

std::size_t ElasticRendezvous::index_of(const ElasticEndpoint& endpoint) {
  for (std::size_t i = 0; i < endpoints_.size(); ++i)
    if (endpoints_[i].host == endpoint.host && endpoints_[i].port == endpoint.port) return i;
  endpoints_.push_back(endpoint);
  return endpoints_.size() - 1;
}

/// Joins the host of the newest term, if that is above `after` and not this agent's own.
bool ElasticRendezvous::join_newest(int after, ElasticLink::Absence& absence) {
  const auto newest = terms_->newest();
  if (!newest || newest->number <= after) return false;
  if (newest->ended) {
    absence = {"the job has ended, as " + terms_->name_of(newest->number) + " says", true};
    if (round_ >= 0) throw JobEnded{*newest->ended, absence.reason};
    return false;
  }
  const std::size_t index = index_of({newest->host, newest->port});
  if (own_ == index) return false;
  if (!join(index, absence)) {
    absence.reason = format("{} says that {}:{} hosts it, and there: {} (where that job is over, remove the file)",
                            terms_->name_of(newest->number), newest->host, newest->port, absence.reason);
    return false;
  }
  term_ = newest->number;
  return true;
}

/// The host of the rendezvous is lost: the job goes on at another endpoint, or not at all.
void ElasticRendezvous::move_on() {
  const std::string gone = link_->gone;
  const bool certain = link_->loss == ElasticLink::Loss::kClosed;
  if (endpoints_.size() == 1 && !terms_)
    throw Error(
        format("{}. A job survives the loss of that machine where agents on two others can host the rendezvous, "
               "too: --rdzv-endpoint=A:PORT,B:PORT, or where all share a file: --rdzv-conf=state_file=PATH",
               gone));
  past_.certain = certain || terms_;
  const std::string own_address = terms_ ? link_->own_address() : "";
  link_.reset();
  if (own_ == at_) throw Error(gone);  // it is in this very process
  if (!terms_) return move_to_next(gone);
  // Who is only silent may have lost sight of this node, and comes first where it has half of the others.
  move_by_terms(gone, own_address, Clock::now() + (certain ? std::chrono::milliseconds(0) : ElasticLink::kSilence));
}

void ElasticRendezvous::move_to_next(const std::string& gone) {
  const std::size_t before = at_;
  const auto end = Clock::now() + kToMoveOn;
  ElasticLink::Absence absence;
  while (Clock::now() < end) {
    for (std::size_t step = 1; step < endpoints_.size(); ++step) {
      const std::size_t next = (before + step) % endpoints_.size();
      try {
        if (join(next, absence)) return;
      } catch (const Error& problem) {  // it ended while it answered
        absence.reason = problem.what();
      }
      stop_where_asked();
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  throw Error(
      format("{}, and at no other endpoint of {} can the job go on: {}", gone, names_of(endpoints_), absence.reason));
}

/// Whoever claims the next term hosts it, and the others follow.
void ElasticRendezvous::move_by_terms(const std::string& gone, const std::string& own_address,
                                      Clock::time_point claim_at) {
  const auto end = claim_at + kToMoveOn;
  ElasticLink::Absence absence;
  while (Clock::now() < end) {
    try {
      if (join_newest(term_, absence)) return;
      if (Clock::now() >= claim_at && claim_and_host(own_address) && join(*own_, absence)) return;
    } catch (const Error& problem) {
      absence.reason = problem.what();
    }
    stop_where_asked();
    std::this_thread::sleep_for(kBetweenTries);
  }
  throw Error(format("{}, and the job cannot go on from here: {}", gone, absence.reason));
}

/// Nodes that were cut off may look for this job later.
void ElasticRendezvous::tell_the_end(int code) {
  try {
    if (const auto term = terms_->newest_of(endpoints_[at_]))
      terms_->claim({.number = term->number + 1, .ended = code});
  } catch (const Error&) {
    // The file system is gone: then nobody else can go on by it either.
  }
}

/// False where another node has the next term.
bool ElasticRendezvous::claim_and_host(const std::string& own_address) {
  if (!server_) {
    COHORT_THROW_UNLESS(
        host_at({own_address, 0}, std::make_unique<PortReservation>(own_address, 0, StoreReach::kAllNodes)),
        "no port of {} can be had", own_address);
    own_ = index_of({own_address, server_->port()});
  }
  const ElasticEndpoint& own = endpoints_[*own_];
  if (!terms_->claim({.number = term_ + 1, .host = own.host, .port = own.port})) return false;
  ++term_;
  server_->activate();
  return true;
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
        if (is == "end") {
          if (terms_ && own_ == at_) tell_the_end(message.at("code"));
          throw JobEnded{message.at("code"), message.at("why")};
        }
        if (is != "round" || message.at("round").get<int>() == round_) continue;
        round_ = message.at("round");
        past_ = {.round = round_,
                 .nodes = message.at("nodes"),
                 .restarts = message.at("restarts"),
                 .recovery = message.at("recovery")};
        if (terms_)  // the host claims another one where it goes on without nodes that were silent
          if (const auto term = terms_->newest_of(endpoints_[at_])) term_ = term->number;
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

void ElasticRendezvous::lost(int code, const std::string& what, std::int64_t own_step) {
  link_->say(
      {{"do", "lost"}, {"round", round_}, {"code", code}, {"what", what.substr(0, 2000)}, {"own_step", own_step}});
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
