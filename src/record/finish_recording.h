/// From the pieces of a recording to a data set.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "data/convert.h"
#include "data/rlds/schema.h"
#include "record/piece_store.h"

namespace cohort::record {

struct FinishSettings {
  std::string name;         ///< of the data set
  std::string format;       ///< rlds, hdf5 or lerobot
  std::string task;         ///< for env_args
  std::string description;  ///< JSON
  int threads = 1;
  data::LeRobotConvertSettings lerobot = {};
  std::string action_field;  ///< and the names of its elements, which rlds keeps
  std::vector<std::string> action_names = {};
};

/// Puts the data set at `target`, whole or not at all, and removes the store's folder. Pieces without an episode leave
/// no shard. Throws Error; then the store is as it was. Returns what was chosen: ConvertReport::said.
std::vector<std::string> finish_recording(const PieceStore& store, const std::vector<PieceReport>& pieces,
                                          const data::Feature& schema, const std::filesystem::path& target,
                                          const FinishSettings& settings);

}  // namespace cohort::record
