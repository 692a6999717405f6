/// A folder that shows a run's results under names that stay: the --output_dir of a training script, whose users look at
/// OUTPUT_DIR/training.log and OUTPUT_DIR/checkpoint-1000. The run itself lies below it, with its date.
#pragma once
#include <filesystem>

namespace cohort::report {

/// Links in `folder` to the run's log, configuration, metrics, report, charts and checkpoints. Links of an earlier run are
/// replaced; what else has such a name stays, with a warning.
void link_results(const std::filesystem::path& folder, const std::filesystem::path& run);

/// A link `folder`/checkpoint-N for each checkpoint that is in `checkpoints`; those of removed ones go.
void link_checkpoints(const std::filesystem::path& folder, const std::filesystem::path& checkpoints);

}  // namespace cohort::report
