/// The data sets of a robomimic configuration, and their actions, as settings of the loader.
#pragma once
#include <string>

#include "data/robot_windows.h"
#include "train/jobs/robomimic_reading.h"

namespace cohort::train {

/// Fill paths, splits, weights and filters; the RLDS sets of the DROID fork, and HDF5 files. What cannot be honoured is
/// in reading.refused, what differs in reading.notes.
void read_rlds_sets(RobomimicReading& reading, bool wants_language, data::RobotDataSettings& data);
void read_hdf5_sets(RobomimicReading& reading, data::RobotDataSettings& data);

/// The components of the action, their normalisation and their width. The sets are read before.
void read_actions(RobomimicReading& reading, data::RobotDataSettings& data);

/// env_args' name of the environment that the file was recorded in; empty where it has none or cannot be read, which is
/// said when the data are opened.
std::string environment_of(const std::string& path);

}  // namespace cohort::train
