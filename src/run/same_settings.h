/// Ranks that were started with different settings block each other sooner or later, without a word; they are told
/// apart here, before they train.
#pragma once
#include "core/config.h"

namespace cohort::dist {
class Group;
}

namespace cohort::run {

/// Compares the settings of all ranks, but for those that concern one process or machine: paths, devices, threads, the
/// loader's workers, where results go (rank 0 says it), time limits. Throws the same Error on every rank, naming the
/// first key that differs, the first rank with another value than rank 0, and both values. Collective.
void check_same_settings(const config::Json& settings, dist::Group& group);

}  // namespace cohort::run
