/// What of RDT's reference statistics (dataset_stat.json) belongs to a data set, and what is taken from it.
///
///   const auto names = statistics_names("datasets/libero_single_task/KITCHEN_SCENE10_close_demo.hdf5", "libero_90");
///   // KITCHEN_SCENE10_close, libero_single_task, datasets; libero_90; all
///   const std::optional<StatisticsName> found = find_statistics("configs/dataset_stat.json", names);
///   const std::vector<double> mean = reference_state_mean("configs/dataset_stat.json", found->name, slots);
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cohort::policies {

/// A name under which a file may hold a data set's statistics.
struct StatisticsName {
  std::string name;
  std::string why;  ///< "single task, named by data.paths", "data set of the configuration", "of all data"
};

/// The nearest first: what the data's path says (the file's name without "_demo", then its folders, the innermost first),
/// `data_set` (of <type>_datasets.json: the benchmark; may be empty), "all".
std::vector<StatisticsName> statistics_names(const std::string& data_path, const std::string& data_set);

/// The first of them that the file has. Throws Error where the file is no JSON object.
std::optional<StatisticsName> find_statistics(const std::string& path, const std::vector<StatisticsName>& names);

/// Mean of the state of data set `name` in a dataset_stat.json, for the numbers that lie in `slots`; empty: the file does
/// not name the data set. Throws Error naming a slot that the file fills and the data do not, or the other way round:
/// statistics of another data set.
std::vector<double> reference_state_mean(const std::string& path, const std::string& name,
                                         const std::vector<int>& slots);

/// Where data set `name` of the file has a deviation far below the data's own, as one that was computed in other units or
/// over other tasks has: "action_std of right_eef_pos_x is 0.003, a 109th of the data's 0.328 (2 more likewise)"; "" where
/// it has none. key: state_std or action_std, which may be missing. slots, deviations: of the data's numbers.
std::string small_deviations(const std::string& path, const std::string& name, const std::string& key,
                             const std::vector<int>& slots, const std::vector<double>& deviations);

}  // namespace cohort::policies
