#include "launch/elastic_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::launch {
namespace {

constexpr std::size_t kMostStateBytes = 48 * 1024;

}  // namespace

const char* to_string(ElasticPhase phase) {
  switch (phase) {
    case ElasticPhase::kGathering:
      return "gathering";
    case ElasticPhase::kRunning:
      return "running";
    case ElasticPhase::kEnded:
      return "ended";
  }
  return "unknown";
}

ElasticNode* ElasticState::find(const std::string& id) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const ElasticNode& n) { return n.id == id; });
  return found == nodes_.end() ? nullptr : &*found;
}

int ElasticState::world_size() const {
  int sum = 0;
  for (const ElasticNode& node : nodes_) sum += node.ranks;
  return sum;
}

int ElasticState::first_rank(const std::string& id) const {
  int before = 0;
  for (const ElasticNode& node : nodes_) {
    if (node.id == id) return before;
    before += node.ranks;
  }
  return -1;
}

int ElasticState::number_of(const std::string& id) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].id == id) return static_cast<int>(i);
  return -1;
}

void ElasticState::gather(const std::string& why, double now) {
  if (phase_ == ElasticPhase::kEnded) return;
  if (phase_ == ElasticPhase::kRunning) {
    ++round_;
    since_ = now;
    for (ElasticNode& node : nodes_) node.ready = node.finished = false;
  }
  phase_ = ElasticPhase::kGathering;
  recovering_ = false;
  changed_ = now;
  why_ = why;
}

void ElasticState::end(int code, const std::string& why) {
  if (phase_ == ElasticPhase::kEnded) return;
  phase_ = ElasticPhase::kEnded;
  recovering_ = false;
  code_ = code;
  why_ = why;
}

std::string ElasticState::join(const std::string& id, const std::string& host, int ranks, double now, int number) {
  if (phase_ == ElasticPhase::kEnded) return "the job has ended: " + why_;
  if (const ElasticNode* other = find(id)) return format("there is a node '{}' already, on {}", id, other->host);
  if (static_cast<int>(nodes_.size()) >= limits_.most) return format("the job has all of its {} nodes", limits_.most);
  begin(now);
  ElasticNode node;
  node.id = id;
  node.host = host;
  node.ranks = ranks;
  node.number = number;
  node.heard = now;
  const auto place =
      number < 0 ? (id == limits_.first ? nodes_.begin() : nodes_.end())
                 : std::find_if(nodes_.begin(), nodes_.end(), [&](const ElasticNode& n) { return n.number > number; });
  nodes_.insert(place, node);
  gather(format("node {} on {} has joined", id, host), now);
  find(id)->ready = true;
  begin_where_all_are_ready(now);
  return "";
}

void ElasticState::leave(const std::string& id, const std::string& why, double now, bool said) {
  leave_after(id, why, said, !said && stalled_ >= 0 && now - stalled_ < limits_.lost_after, now);
}

void ElasticState::leave_after(const std::string& id, const std::string& why, bool said, bool silent, double now) {
  const ElasticNode* node = find(id);
  if (!node || phase_ == ElasticPhase::kEnded) return;
  const std::string text = format("node {} on {} {}", id, node->host, why);
  const bool needed = !node->finished;
  nodes_.erase(nodes_.begin() + (node - nodes_.data()));
  if (phase_ == ElasticPhase::kRunning && !needed) {
    if (!nodes_.empty() && std::all_of(nodes_.begin(), nodes_.end(), [](const ElasticNode& n) { return n.finished; }))
      end(0, "all ranks have ended well");
    return;
  }
  const int left = static_cast<int>(nodes_.size());
  if (!said && limits_.others_may_meet_elsewhere) {
    const bool fewer = silent && 2 * left < of_last_round_;
    if (fewer && !limits_.claim)
      return end(1,
                 format("{}; with {} of {} nodes it cannot be told who is cut off, and the others may go on elsewhere",
                        text, left, of_last_round_));
    if (limits_.claim) claim_at_ = std::max(claim_at_, now + (fewer ? 2 * limits_.lost_after : 0));
  }
  gather(left < limits_.least ? text + "; it is waited for: start the same command there again" : text, now);
  begin_where_all_are_ready(now);
}

void ElasticState::heard(const std::string& id, double now) {
  if (ElasticNode* node = find(id)) node->heard = now;
}

void ElasticState::ready(const std::string& id, double now) {
  ElasticNode* node = find(id);
  if (!node || phase_ != ElasticPhase::kGathering) return;
  node->ready = true;
  node->heard = now;
  begin_where_all_are_ready(now);
}

void ElasticState::finished(const std::string& id, int round, double now) {
  ElasticNode* node = find(id);
  if (!node || phase_ != ElasticPhase::kRunning || round != round_) return;
  node->finished = true;
  node->heard = now;
  if (std::all_of(nodes_.begin(), nodes_.end(), [](const ElasticNode& n) { return n.finished; }))
    end(0, "all ranks have ended well");
}

void ElasticState::failed(const std::string& id, int round, int code, const std::string& what, double now, bool again) {
  ElasticNode* node = find(id);
  if (!node || phase_ != ElasticPhase::kRunning || round != round_) return;
  node->heard = now;
  const std::string text = format("a rank of node {} on {} failed: {}", id, node->host, what);
  if (!again || restarts_ >= limits_.max_restarts) return end(code, text);
  ++restarts_;
  gather(text, now);
}

void ElasticState::recover(const std::string& why) {
  ++recovery_;
  recovering_ = true;
  why_recovering_ = why;
}

void ElasticState::lost(const std::string& id, int round, int code, const std::string& what, double now,
                        std::int64_t own_step) {
  ElasticNode* node = find(id);
  if (!node || phase_ != ElasticPhase::kRunning || round != round_) return;
  node->heard = now;
  node->waits = -1;
  if (recovering_ && own_step >= 0 && own_step == own_failure_) return;
  const std::string text = format("a rank of node {} on {} died: {}", id, node->host, what);
  if (restarts_ >= limits_.max_restarts) return end(code, text);
  ++restarts_;
  own_failure_ = own_step;
  if (!recovering_) recover(text);
}

void ElasticState::waits(const std::string& id, int round, int recovery, double now) {
  ElasticNode* node = find(id);
  if (!node || phase_ != ElasticPhase::kRunning || round != round_ || recovery != recovery_) return;
  node->heard = now;
  node->waits = recovery;
  node->waits_since = now;
  // Else their group broke: the agent of a rank that has died says so in a moment, or it was the network.
  if (!recovering_) return;
  if (!std::all_of(nodes_.begin(), nodes_.end(), [&](const ElasticNode& n) { return n.waits == recovery_; })) return;
  recovering_ = false;
  for (ElasticNode& n : nodes_) n.waits = -1;
}

void ElasticState::cannot(const std::string& id, int round, const std::string& why, double now) {
  const ElasticNode* node = find(id);
  if (!node || phase_ != ElasticPhase::kRunning || round != round_) return;
  gather(format("node {} on {} cannot go on from memory: {}", id, node->host, why), now);
}

void ElasticState::go_on_from(const Past& past, double now) {
  begin(now);
  if (phase_ != ElasticPhase::kGathering || past.round < round_ - 1) return;
  if (past.round >= round_) {  // the first to come
    since_ = changed_ = now;
    round_ = past.round + 1;
    of_last_round_ = past.nodes;
    why_ = "the host of the rendezvous was lost";
  }
  restarts_ = std::max(restarts_, past.restarts);
  recovery_ = std::max(recovery_, past.recovery);
  if (past.certain)
    needed_ = -1;
  else if (needed_ >= 0)
    needed_ = past.nodes / 2 + 1;
}

void ElasticState::begin(double now) {
  if (!begun_) since_ = changed_ = now;
  begun_ = true;
}

void ElasticState::time_passes(double now) {
  if (phase_ == ElasticPhase::kEnded) return;
  begin(now);
  if (last_ > 0 && now - last_ > limits_.lost_after) {
    stalled_ = now;
    for (ElasticNode& node : nodes_) node.heard = now;  // nobody could be heard
  }
  last_ = now;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const double silent = now - nodes_[i].heard;
    if (silent > limits_.lost_after)
      leave_after(nodes_[i].id, format("is lost: silent for {:.1f} s", silent), false, true, now);
  }
  if (phase_ == ElasticPhase::kRunning && !recovering_)
    for (const ElasticNode& node : nodes_)
      if (node.waits == recovery_ && now - node.waits_since > limits_.lost_after) {
        const std::string text = format("the ranks of node {} on {} have lost the others", node.id, node.host);
        if (restarts_ >= limits_.max_restarts) return end(1, text + ", and no restart is left");
        ++restarts_;
        recover(text);
        break;
      }
  if (phase_ != ElasticPhase::kGathering) return;
  if (static_cast<int>(nodes_.size()) < limits_.least && now - since_ > limits_.patience)
    return end(1, format("only {} of at least {} nodes within {:.0f} s; last of all {}", nodes_.size(), limits_.least,
                         limits_.patience, why_));
  if (static_cast<int>(nodes_.size()) < needed_ && now - since_ > 2 * limits_.lost_after)
    return end(1, format("the host of the rendezvous is silent, and {} of {} nodes have come here: without more than "
                         "half of them it cannot be told who is cut off",
                         nodes_.size(), of_last_round_));
  begin_where_all_are_ready(now);
}

void ElasticState::begin_where_all_are_ready(double now) {
  if (phase_ != ElasticPhase::kGathering || static_cast<int>(nodes_.size()) < limits_.least) return;
  if (!limits_.first.empty() && nodes_.front().id != limits_.first) return;
  if (!std::all_of(nodes_.begin(), nodes_.end(), [](const ElasticNode& n) { return n.ready; })) return;
  const int here = static_cast<int>(nodes_.size());
  if (here < needed_) return;
  // Before the first round further nodes are waited for, and those of a host that was lost come one after another. Who
  // is left after a round goes on at once: others may come when they like.
  const bool waits = of_last_round_ == 0 ? here < limits_.most : needed_ != 0 && here < of_last_round_ - 1;
  if (waits && now - changed_ < limits_.last_call) return;
  if (claim_at_ >= 0) {
    if (now < claim_at_) return;
    claim_at_ = -1;
    if (const std::string why = limits_.claim(); !why.empty()) return end(1, why_ + "; " + why);
  }
  phase_ = ElasticPhase::kRunning;
  needed_ = 0;
  of_last_round_ = here;
  for (ElasticNode& node : nodes_) {
    node.finished = false;
    node.waits = -1;
  }
}

std::string ElasticState::to_json(double now) const {
  nlohmann::ordered_json json{{"phase", to_string(phase_)},
                              {"round", round_},
                              {"why", why_},
                              {"nodes_at_least", limits_.least},
                              {"nodes_at_most", limits_.most},
                              {"restarts", restarts_},
                              {"max_restarts", limits_.max_restarts},
                              {"recovery", recovery_},
                              {"recovering", recovering_},
                              {"world_size", world_size()},
                              {"nodes", nlohmann::ordered_json::array()}};
  const auto text_of_all = [&json] { return json_text(json, -1, BadUtf8::kReplaced); };
  std::size_t bytes = text_of_all().size();
  int first = 0;
  for (const ElasticNode& node : nodes_) {
    nlohmann::ordered_json entry{
        {"id", node.id},       {"host", node.host},         {"ranks", node.ranks},         {"first_rank", first},
        {"ready", node.ready}, {"finished", node.finished}, {"silent_s", now - node.heard}};
    first += node.ranks;
    bytes += json_text(entry, -1, BadUtf8::kReplaced).size() + 1;
    if (bytes > kMostStateBytes) {
      json["nodes_left_out"] = nodes_.size() - json["nodes"].size();
      break;
    }
    json["nodes"].push_back(std::move(entry));
  }
  return text_of_all();
}

}  // namespace cohort::launch
