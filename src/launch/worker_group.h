/// One attempt at the job: this node's ranks from start to end. The agent runs one group after another when it
/// restarts a job; everything that must be new for each attempt lives here, what outlives it (rendezvous, console,
/// guard) is handed in.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launch/console.h"
#include "launch/guard.h"
#include "launch/job_plan.h"
#include "launch/rank_stream.h"
#include "launch/rendezvous.h"
#include "rank/page.h"

namespace cohort::launch {

struct Worker {
  int rank = 0;        ///< in the job
  int local_rank = 0;  ///< on this node
  pid_t pid = -1;
  bool started = false;
  bool ended = false;
  int exit_code = 0;  ///< where it exited
  int signal = 0;     ///< which ended it, 0 for none
  std::chrono::system_clock::time_point ended_at{};
  bool asked_to_stop = false;       ///< SIGTERM or the like had been sent before it ended
  std::string killed_for;           ///< why the agent itself killed it before it had asked it to stop; "": it did not
  std::uint64_t peak_memory = 0;    ///< bytes, after finish()
  std::filesystem::path folder;     ///< rank_<r>, with error.json and first_step
  std::unique_ptr<RankStream> out;  ///< null where the rank writes to our own descriptors
  std::unique_ptr<RankStream> err;
  int recovery = 0;                  ///< above 0: it took a dead rank's place in the job's n-th recovery
  std::unique_ptr<rank::Page> page;  ///< outlives the process: a rank that takes this one's place gets it
  bool failed() const { return ended && (exit_code != 0 || signal != 0); }
};

class WorkerGroup {
 public:
  /// plan.identity says which attempt this is, and what the agents have agreed on for it.
  WorkerGroup(const JobPlan& plan, Console& console, OrphanGuard& guard, const Rendezvous& rendezvous);
  /// Kills what still runs.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  /// Starts every rank. When one cannot be started the others are killed and Error says why.
  /// `pages`: those of an earlier round, by local rank, for what was parked there; empty: new ones.
  void start(std::vector<std::unique_ptr<rank::Page>> pages = {});
  /// After all ranks have ended: gives the pages away.
  std::vector<std::unique_ptr<rank::Page>> take_pages();

  /// Waits for output, for the descriptor `wake`, or for the time to pass; moves output along and notes ranks that
  /// ended.
  void poll(int wake, std::chrono::milliseconds at_most);

  /// Sends a signal to every running rank and all its children; to ranks that ended, their children only. A stopped
  /// process is continued, so that it can act.
  void send(int signal, bool means_stop);

  /// To one running rank, as send(signal, true).
  void send_to(const Worker& worker, int signal) const;

  bool all_ended() const;
  bool any_failed() const;

  /// For a rank that has ended: kills what it left behind, reads the rest of its output, and reaps it.
  void retire(Worker& worker);
  /// After that: starts a new process in its place, with its page and with logs of its own. `recovery` numbers it.
  /// Throws Error when it cannot be started.
  void replace(Worker& worker, int recovery);

  /// After all ranks ended: with `clean` kills what they left behind, reads the rest of their output (not longer than
  /// kDrainTime when a left-over process holds a pipe open), and reaps them.
  void finish(bool clean);

  const std::vector<Worker>& workers() const { return workers_; }
  std::vector<Worker>& workers() { return workers_; }
  /// A rank has made its first training step; false also where the ranks do not tell.
  bool has_made_a_step() const;
  /// attempt_<n>
  const std::filesystem::path& folder() const { return folder_; }
  /// Of the whole job.
  int nodes() const { return plan_.settings.nodes; }

  static constexpr std::chrono::milliseconds kDrainTime{500};

 private:
  void make_folders();
  void start_one(Worker& worker, int recovery);
  /// After it has ended and its output has been read.
  void reap(Worker& worker);
  void note_ended();
  bool read_all();
  std::vector<std::string> arguments_of(int local_rank) const;
  /// A pipe for what the rank writes there.
  std::unique_ptr<RankStream> make_stream(const Worker& worker, int stream, bool shows_bar) const;

  const JobPlan& plan_;
  Console& console_;
  OrphanGuard& guard_;
  const Rendezvous& rendezvous_;
  std::filesystem::path folder_;
  std::vector<Worker> workers_;
  bool own_groups_ = true;
  bool finished_ = false;
};

/// True when a rank of these settings writes straight to the agent's own output: it is the only one shown, and nothing
/// is stored. Bars, colours and debuggers then work as without a launcher.
bool writes_directly(const LaunchSettings& settings, int local_rank);

}  // namespace cohort::launch
