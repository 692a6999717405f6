/// Who takes part in an elastic job, and what happens when that changes: a state machine without clocks or sockets.
///
///   gathering --(all of the MAX nodes, or at least MIN of them for `last_call` s)--> running
///   running   --(a node joins, leaves, is lost, or has a rank that failed)---------> gathering
///   running   --(every node has finished)------------------------------------------> ended, code 0
///   any       --(a rank failed and no restart is left; too few nodes for `patience` s)-> ended
///
/// A round is one attempt at the job with the nodes of that moment. Before a round every node says that its ranks have
/// ended (ready).
///
/// Within a round the ranks may recover from memory (launch/recovery.h), while `running` lasts:
///
///   steps      --(a rank was lost, or a node's ranks wait and nobody says why)-----> recovering, its number grows
///   recovering --(all ranks of every node wait)------------------------------------> steps, in a group of that number
///   recovering --(a node cannot)---------------------------------------------------> gathering
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cohort::launch {

struct ElasticLimits {
  int least = 1;          ///< nodes that the job needs
  int most = 1;           ///< nodes that it takes
  int max_restarts = 0;   ///< rounds that may follow a failure of a rank; nodes that come and go cost none
  double last_call = 5;   ///< s that further nodes are waited for once `least` are ready, before the first round
  double patience = 600;  ///< s that a job waits for `least` nodes
  double lost_after = 5;  ///< s without a sign of life after which a node is lost
  std::string first;      ///< the node that is always number 0, and without which no round begins; "": any
  /// Nodes that do not hear of this rendezvous may meet elsewhere: where some were silent, it goes on only with at least
  /// half of the nodes that were there, or as `claim` says.
  bool others_may_meet_elsewhere = false;
  /// Asked before a round without nodes that were silent: why they may have gone on elsewhere; "": they have not, and
  /// now cannot any more. With fewer than half of the nodes it is asked later, so that the others come first.
  std::function<std::string()> claim = nullptr;
};

enum class ElasticPhase { kGathering, kRunning, kEnded };

struct ElasticNode {
  std::string id;
  std::string host;
  int ranks = 1;
  int number = -1;        ///< where the user has numbered the nodes
  bool ready = false;     ///< its ranks have ended, or have not begun
  bool finished = false;  ///< its ranks of this round have ended well
  int waits = -1;         ///< the recovery that all of its ranks wait for; the last one: for a reason not told yet
  double waits_since = 0;
  double heard = 0;  ///< time of the last sign of life, s
};

class ElasticState {
 public:
  explicit ElasticState(const ElasticLimits& limits) : limits_(limits) {}

  // Events, with their time in seconds. Those about unknown nodes do nothing.

  /// Why the node cannot take part; "": it does. Nodes with a `number` stand in that order.
  std::string join(const std::string& id, const std::string& host, int ranks, double now, int number = -1);
  /// `said`: the node itself has; else its connection has ended, and it may be elsewhere.
  void leave(const std::string& id, const std::string& why, double now, bool said = true);
  void heard(const std::string& id, double now);
  void ready(const std::string& id, double now);
  void finished(const std::string& id, int round, double now);
  /// `again`: it may help to start again.
  void failed(const std::string& id, int round, int code, const std::string& what, double now, bool again = true);
  /// `own_step`: the step at which its rank ended by itself; -1: a signal ended it. Ranks that do so at one step are one
  /// failure of the job.
  void lost(const std::string& id, int round, int code, const std::string& what, double now,
            std::int64_t own_step = -1);
  void waits(const std::string& id, int round, int recovery, double now);
  void cannot(const std::string& id, int round, const std::string& why, double now);
  void time_passes(double now);

  /// The rendezvous of a job that has met elsewhere before, and lost its host: its round, the nodes of that, and its
  /// counts. `certain`: the host has died; else it was silent, and more than half of the nodes must come here.
  struct Past {
    int round = 0;
    int nodes = 0;
    int restarts = 0;
    int recovery = 0;
    bool certain = false;
  };
  void go_on_from(const Past& past, double now);

  ElasticPhase phase() const { return phase_; }
  /// The number of the present round, or, while nodes gather, of the next.
  int round() const { return round_; }
  const std::vector<ElasticNode>& nodes() const { return nodes_; }
  int world_size() const;
  /// The rank of a node's first process; -1 for an unknown one.
  int first_rank(const std::string& id) const;
  int number_of(const std::string& id) const;
  /// What began the present phase, in words.
  const std::string& why() const { return why_; }
  int code() const { return code_; }
  /// The recovery that is under way, or was the last; 0: there was none.
  int recovery() const { return recovery_; }
  bool recovering() const { return recovering_; }
  const std::string& why_recovering() const { return why_recovering_; }
  int restarts() const { return restarts_; }
  /// Readable: {"phase": "running", "round": 1, "nodes": [...], ...}. Of very many nodes the last are left out, so that
  /// it fits into a message.
  std::string to_json(double now) const;

 private:
  ElasticNode* find(const std::string& id);
  void gather(const std::string& why, double now);
  void end(int code, const std::string& why);
  void leave_after(const std::string& id, const std::string& why, bool said, bool silent, double now);
  void recover(const std::string& why);
  void begin(double now);
  void begin_where_all_are_ready(double now);

  ElasticLimits limits_;
  ElasticPhase phase_ = ElasticPhase::kGathering;
  std::vector<ElasticNode> nodes_;  ///< in the order in which they came
  int round_ = 0;
  int restarts_ = 0;
  int code_ = 0;
  int recovery_ = 0;
  bool recovering_ = false;
  std::string why_recovering_;
  std::int64_t own_failure_ = -1;  ///< the step of the failure that this recovery is for, as lost() has it
  int of_last_round_ = 0;          ///< nodes
  int needed_ = 0;                 ///< nodes, besides `least`, after a host that was silent; -1: it has died
  bool begun_ = false;             ///< the first event has come, from which times count
  double last_ = 0;                ///< time_passes() was called
  double stalled_ = -1;   ///< this machine had stood still until then, for so long that the others may have moved on
  double since_ = 0;      ///< that the nodes gather
  double changed_ = 0;    ///< a node came or went
  double claim_at_ = -1;  ///< when limits_.claim is to be asked; below 0: it need not
  std::string why_ = "the job begins";
};

const char* to_string(ElasticPhase phase);

}  // namespace cohort::launch
