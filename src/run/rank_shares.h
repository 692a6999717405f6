/// Where the time of a run's steps went, and what each rank did beside the others.
///
///   for (const auto& [label, text] : rank_shares(result.ranks, "a step")) ...
///   // "a step": "12.1 ms: compute 60 %, data 1 %, communication 38 %, checkpoints 1 %"
///   // "rank 0": ..., "balance": ...
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "rank/beat.h"

namespace cohort::run {

/// Rows for a report, one per rank where there are several (16 at most). `step`: what a step of the run is called, "a
/// step" or "an iteration". Data that are not told (data_s NaN) are left out. Nothing before the first step.
std::vector<std::pair<std::string, std::string>> rank_shares(const std::vector<rank::Totals>& ranks,
                                                             const std::string& step);

/// rank::Totals as numbers that travel between ranks, and back.
std::vector<double> to_numbers(const rank::Totals& totals);
rank::Totals totals_from(const double* numbers);
inline constexpr int kTotalsNumbers = 8;  ///< how many they are

}  // namespace cohort::run
