/// Where environments are (Environments::state), of all ranks together: what a checkpoint holds, whoever wrote it.
///
///   const weights::NamedTensors all = gather_environments(environments.state(), ranks);      // in the order of ids
///   environments.restore(share_of_environments(all, shares, ranks), source);                // on any number of ranks
#pragma once
#include "rl/ranks.h"
#include "weights/named_tensors.h"

namespace cohort::rl {

weights::NamedTensors gather_environments(const weights::NamedTensors& own, Ranks& ranks);
/// This rank's part. Episodes that have ended count on the first rank.
weights::NamedTensors share_of_environments(const weights::NamedTensors& all, const Shares& shares, Ranks& ranks);

}  // namespace cohort::rl
