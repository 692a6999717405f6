/// The command line over a robomimic configuration: its keys, and the flags of robomimic's train.py.
///
///   const std::vector<std::string> of_job = lay_over(json, {"train.batch_size=64", "train.lr=1e-4"}, "droid.json");
///   // json says "batch_size": 64; of_job is {"train.lr=1e-4"}
#pragma once
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::train {

/// Lays those of `overrides` (key.path=value) over `json` that are robomimic's: keys of its sections, whether or not the
/// file has them; train.optim_params.* for algo.optim_params.*; --dataset FILE, --algo NAME and --debug as train.py means
/// them (robomimic/scripts/train.py, main). Returns the others, settings of the job. `path` is for messages. Throws Error
/// for an --algo that the file is not of.
std::vector<std::string> lay_over(config::Json& json, const std::vector<std::string>& overrides,
                                  const std::string& path);

/// As in robomimic_run.h.
std::string near_robomimic_key(const std::string& key);

/// Whether it is a key of robomimic's, or a flag of its train.py, for this configuration.
bool is_robomimic_word(const config::Json& json, const std::string& key);

}  // namespace cohort::train
