/// Who failed first, and what to tell the user.
#pragma once
#include <string>
#include <vector>

#include "launch/oom.h"
#include "launch/worker_group.h"

namespace cohort::launch {

struct JobFailure {
  int rank = 0;            ///< the first cause
  int code = 1;            ///< what the agent returns: the rank's exit code, or 128 + its signal
  bool by_itself = false;  ///< it returned an exit code: no signal ended it
  std::string text;        ///< several lines: first cause first
};

/// The first cause among the ranks that ended badly by themselves (not because they were told to stop). A rank that
/// wrote an error file failed when it wrote it; another when it last wrote to standard error, or else when it ended:
/// the process whose sockets close first need not be the one that exits first. Call after WorkerGroup::finish.
JobFailure describe_failure(const WorkerGroup& group, const OomCounts& before, const OomCounts& after,
                            std::uint64_t memory_limit, bool logs_are_kept);

/// How a job ended that a signal stopped: one line, and one for each rank that did not end as it was asked to (it
/// failed while it saved its work, say). Call after WorkerGroup::finish.
std::string describe_stop(const WorkerGroup& group, int signal);

/// True when the rank ended as one does whom this signal tells to: by it, or with the exit code 128 + its number.
bool ended_by(const Worker& worker, int signal);

}  // namespace cohort::launch
