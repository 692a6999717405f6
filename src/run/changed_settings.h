/// What a run that goes on has otherwise than its checkpoint: each such setting is taken with a line, or left with one.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"

namespace cohort::run {

/// A setting of a checkpoint that the run which goes on has changed.
struct ChangedSetting {
  std::string path;         ///< algorithm.gamma
  std::string before, now;  ///< as they are written on the command line
  std::string said_before;  ///< as it is written in a sentence
};

/// The settings that differ, but for those of every run that say where, how long, how it is shown and kept, those of `free`
/// (a dot at the end: a whole section), and what only a beginning reads (say_what_only_a_beginning_reads). A path that only
/// one of both has is left out.
std::vector<ChangedSetting> changed_settings(const config::Json& checkpoint, const config::Json& now,
                                             std::span<const std::string_view> free);

/// A line for each: "x=2 from here on, and not 1 as before".
void say_changed_settings(std::span<const ChangedSetting> changed);

/// A line for each setting that the run which goes on has changed and that does nothing for it: its folder is there, and its
/// weights, first noise and loss scale are those of the checkpoint. `source`: the checkpoint; `run`: the folder that goes
/// on, empty where a new one begins with the checkpoint.
void say_what_only_a_beginning_reads(const config::Json& checkpoint, const config::Json& now, const std::string& source,
                                     const std::string& run);

}  // namespace cohort::run
