/// The command line of RDT's reference, main.py of thu-ml/RoboticsDiffusionTransformer, as settings of `cohort train
/// rdt`: every flag of it is honoured, without meaning here (a line says why), or refused by name with what to do.
///
///   RdtFlags flags = read_rdt_flags({"train_batch_size=16", "max_train_steps=20000", "train.ema.power=0.8"});
///   for (const std::string& text : flags.overrides) fields.apply_override(text);
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cohort::train {

struct RdtFlags {
  std::vector<std::string> overrides;  ///< settings of the job, in the order of the flags
  std::vector<std::string> notes;      ///< flags that have no effect here, with the reason
};

/// Whether main.py has a switch of this name: one without a value.
bool is_rdt_switch(std::string_view name);

/// `words`: NAME=VALUE; those that are no flag of main.py stay as they are. Throws Error naming every flag that cannot
/// be honoured.
RdtFlags read_rdt_flags(const std::vector<std::string>& words);

}  // namespace cohort::train
