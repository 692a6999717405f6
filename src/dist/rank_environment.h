/// The reading of a process's place in its job (launch/rank_environment.h), under the names that LibTorch's modules use.
#pragma once
#include "launch/rank_environment.h"

namespace cohort::dist {

using launch::EnvironmentSource;
using launch::process_variable;
using launch::RankEnvironment;
using launch::read_rank_environment;
using launch::to_string;
using launch::VariableLookup;

}  // namespace cohort::dist
