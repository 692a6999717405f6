/// Where environments are (Environments::state), of all ranks together: what a checkpoint holds, whoever wrote it.
///
///   const policy::NamedTensors all = gather_environments(environments.state(), ranks);      // in the order of ids
///   environments.restore(share_of_environments(all, shares, ranks), source);                // on any number of ranks
#pragma once
#include "policy/named_tensors.h"
#include "rl/ranks.h"

namespace cohort::rl {

policy::NamedTensors gather_environments(const policy::NamedTensors& own, Ranks& ranks);
/// This rank's part. Episodes that have ended count on the first rank.
policy::NamedTensors share_of_environments(const policy::NamedTensors& all, const Shares& shares, Ranks& ranks);

}  // namespace cohort::rl
