/// What cohort-torch (torch_program.h) measures for `cohort doctor`, as programs of these names.
#pragma once

namespace cohort::cli {

/// `cohort doctor --measure`: loader and step, each alone, as JSON. Its words are those of `cohort train`; before them
/// `--batch-of-rank=N`: samples of a process; without it as the settings say.
inline constexpr const char* kMeasureParts = "cohort-measure-parts";

/// `cohort doctor --measure` in the ranks of a job: rank 0 says how fast they exchange sums. The only word is `--json`.
inline constexpr const char* kMeasureRanks = "cohort-measure-ranks";

}  // namespace cohort::cli
