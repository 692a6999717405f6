/// Statistics of the action and observation vectors of a data set, in the JSON layout of the DROID pipeline:
///   {"action": {"mean": […], "std": […], "max": […], "min": […], "q01": […], "q99": […]}, "proprio": {…},
///    "num_transitions": N, "num_trajectories": M}
/// (octo and droid_policy_learning, get_dataset_statistics; the quantiles are added.)
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/episodes.h"
#include "data/transforms/component.h"
#include "data/transforms/normalization.h"

namespace cohort::data {

struct RobotStatistics {
  VectorStatistics action, proprio;
  std::int64_t transitions = 0, trajectories = 0;
  std::string hash;  ///< of data, filters and components; names the cache file
};

struct StatisticsSettings {
  int threads = 0;  ///< 0: as many as the process has cores
  /// Bytes of values kept for exact quantiles while they are computed; beyond, every k-th step counts for them (log
  /// says so).
  std::int64_t quantile_bytes = 256 << 20;
  std::string cache = "auto";  ///< auto: beside the data, else in the user's cache folder; never; or a folder
};

/// Statistics over `episodes`, computed in parallel (the result does not depend on the threads), or read from the cache
/// file dataset_statistics_<hash>.json when there is one of the same data, episodes and components; of the processes of
/// a machine one computes them. `proprio` may be empty. `folder`: where the data lie.
RobotStatistics compute_statistics(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                                   const ComponentVector& action, const ComponentVector& proprio,
                                   const std::filesystem::path& folder, const StatisticsSettings& settings = {});

nlohmann::ordered_json to_json(const RobotStatistics& statistics);
/// Throws Error naming `source` and the field. Files without quantiles are read too.
RobotStatistics statistics_from_json(const nlohmann::ordered_json& json, const std::string& source);

}  // namespace cohort::data
