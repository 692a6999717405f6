/// Nearest-neighbour replay of recorded episodes of any task: the baseline that a policy must beat to show that it does
/// more than remember.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "data/episodes.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace cohort::record {

/// The name under which a data set has one of the task's observations (core/observation_names.h); or its action,
/// with or without the s of robomimic's "actions". Throws Error naming the source where it has none.
std::string recorded_observation(const data::EpisodeSource& source, const std::string& name);
std::string recorded_action(const data::EpisodeSource& source, const std::string& name);

/// Reads all of the task's observations and its action of every episode into memory. Every `horizon` steps of an
/// episode it finds the recorded step whose observations are nearest to the present ones, each number divided by its
/// standard deviation over the recording and each observation weighted alike, and plays the actions that followed it;
/// at the recorded episode's end its last. Throws Error for a source without them, or of other widths, and for a
/// horizon below 1.
std::unique_ptr<tasks::Actor> make_replay_actor(const data::EpisodeSource& source, const tasks::TaskSpec& spec,
                                                std::int64_t horizon = 8, int threads = 1);

}  // namespace cohort::record
