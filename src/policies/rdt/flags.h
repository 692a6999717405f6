/// The command line of RDT's reference, main.py of thu-ml/RoboticsDiffusionTransformer, as settings of `cohort train
/// rdt`: every flag of it is honoured, without meaning here (a line says why), or refused by name with what to do.
///
///   ForeignWords flags = read_rdt_flags({"train_batch_size=16", "max_train_steps=20000", "train.ema.power=0.8"});
///   for (const std::string& text : flags.overrides) fields.apply_override(text);
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "policies/algorithm.h"

namespace cohort::policies {

/// Whether main.py has a switch of this name: one without a value.
bool is_rdt_switch(std::string_view name);

/// The flag of main.py that is meant by a misspelt one; empty: none is near.
std::string near_rdt_flag(const std::string& name);

/// `words`: NAME=VALUE; those that are no flag of main.py stay as they are. Throws Error naming every flag that cannot
/// be honoured.
ForeignWords read_rdt_flags(const std::vector<std::string>& words);

}  // namespace cohort::policies
