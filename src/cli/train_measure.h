/// What is measured for other subcommands with the words of `cohort train`; nothing is trained. Each is a program of
/// cohort-torch (torch_program.h).
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

/// `cohort estimate`: memory, batch, hours.
int run_estimate(const std::vector<std::string>& words);

/// `cohort doctor --measure`: loader and step, each alone, as JSON. `--batch-of-rank=N` before the words: samples of a
/// process; without it as the settings say.
int run_measure_parts(const std::vector<std::string>& words);
inline constexpr const char* kMeasureParts = "cohort-measure-parts";

/// `cohort doctor --measure` in the ranks of a job: rank 0 says how fast they exchange sums. The only word is `--json`.
int run_measure_ranks(const std::vector<std::string>& words);
inline constexpr const char* kMeasureRanks = "cohort-measure-ranks";

}  // namespace cohort::cli
