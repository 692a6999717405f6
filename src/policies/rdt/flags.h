/// The command line of RDT's reference, main.py of thu-ml/RoboticsDiffusionTransformer, as settings of `cohort train
/// rdt`: every flag of it is honoured, without meaning here (a line says why), or refused by name with what to do.
///
///   RdtFlags flags = read_rdt_flags({"train_batch_size=16", "max_train_steps=20000", "train.ema.power=0.8"});
///   for (const std::string& text : flags.overrides) fields.apply_override(text);
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cohort::policies {

struct RdtFlags {
  /// Settings of the job: first those of the files that flags name (--config_path, --deepspeed), then in the order of the
  /// flags.
  std::vector<std::string> overrides;
  std::size_t of_files = 0;           ///< how many of them are of files
  bool names_output_dir = false;      ///< --output_dir, where main.py's users look for log and checkpoints
  std::vector<std::string> defaults;  ///< main.py's, which hold where no file and no flag says another thing
  std::vector<std::string> notes;     ///< flags that have no effect here, with the reason
};

/// Whether main.py has a switch of this name: one without a value.
bool is_rdt_switch(std::string_view name);

/// The flag of main.py that is meant by a misspelt one; empty: none is near.
std::string near_rdt_flag(const std::string& name);

/// `words`: NAME=VALUE; those that are no flag of main.py stay as they are. Throws Error naming every flag that cannot
/// be honoured.
RdtFlags read_rdt_flags(const std::vector<std::string>& words);

}  // namespace cohort::policies
