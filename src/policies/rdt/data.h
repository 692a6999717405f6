/// What RDT takes from its data: the slots of their numbers, the state's mean, and which episode is told what.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "data/robot_windows.h"
#include "policies/rdt/rdt_policy.h"

namespace cohort::policies {

/// What the settings say already.
struct RdtKept {
  bool mean = false;       ///< the mean is that of an earlier part of the run
  bool frequency = false;  ///< somebody has said ctrl_freq or ctrl_freqs: else it is what the data say (LeRobot's fps)
};

/// Fills the settings' slots, state_mean and state_std, and ctrl_freq where the data say it, and tells which statistics
/// and frequencies they are: lines for the banner. Throws Error naming a field that maps to no slot, settings
/// of another number of data sets, and statistics of another data set.
std::vector<std::string> place_rdt_numbers(models::RdtSettings& rdt, const data::RobotDataSettings& data,
                                           const std::vector<int>& state_widths, const std::vector<int>& action_widths,
                                           const data::RobotWindows& train, RdtKept keep);

/// model.rdt.before_episode of the training that wrote a checkpoint: of this one, or of the last of a run or its folder of
/// checkpoints. One that does not say it was made before there was this setting.
std::string before_episode_of(const std::filesystem::path& checkpoint);

/// data.instruction for these settings: as it is; language_instruction where episodes are told different things and the
/// data say which; empty where all are told model.rdt.instruction. `carried`: the instructions are those of a checkpoint.
std::string rdt_instruction_field(const models::RdtSettings& rdt, const data::RobotDataSettings& data, bool carried);

/// The texts that episodes are told, each once.
std::vector<std::string> told_by(const models::RdtSettings& rdt,
                                 std::initializer_list<const data::RobotWindows*> windows);

/// Row of each instruction of the windows among those that the policy carries; one for all where the data do not say it;
/// none where it carries none. Throws Error naming a text that it does not carry.
std::vector<std::int64_t> rdt_instruction_rows(const models::RdtSettings& rdt, const data::RobotWindows& windows,
                                               bool data_say_it);

}  // namespace cohort::policies
