/// The command line of lerobot-train (0.6.1) as settings of `cohort train act`: every flag of it is honoured, without
/// meaning here (a line says why), or refused by name with what to do.
///
///   cohort train act --policy.type=act --dataset.repo_id=me/pick --dataset.root=data/pick --batch_size=8 --steps=100000
#pragma once
#include <string>
#include <vector>

#include "policies/algorithm.h"

namespace cohort::policies {

/// The flag of lerobot-train that is meant by a misspelt one; empty: none is near.
std::string near_lerobot_flag(const std::string& name);

/// `words`: NAME=VALUE; those that are no flag of lerobot-train stay as they are. Throws Error naming every flag that
/// cannot be honoured.
ForeignWords read_lerobot_flags(const std::vector<std::string>& words);

}  // namespace cohort::policies
