/// What a policy sees and learns to do where nobody says it: the data set's own fields.
///
///   const OwnFields own = own_fields(*data::open_episodes("demonstrations/push"));
///   // LeRobot: {.actions = {"action"}, .proprio = {"observation.state"}, .images = {"observation.images.front"}}
#pragma once
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::train {

struct OwnFields {
  std::vector<std::string> actions, proprio, images;
  std::vector<std::string> beside_state;  ///< vectors beside LeRobot's observation.state
  std::vector<std::string> left_out;      ///< observations that no robot measures, as the data say of themselves
  std::vector<std::string>
      not_taken;  ///< other observations, with why they are none of the lists: "obs/grey: a picture of one channel"
  std::vector<std::string> not_fields;  ///< observations that are no fields of the data, with the reason
};

/// actions: `action` (RLDS, LeRobot) or `actions` (robomimic), else the one field whose name begins so. images: all cameras
/// among the observations. proprio: LeRobot's observation.state, else all observations that are vectors of real numbers.
/// What the data say is privileged (record/episode_record.h) is taken only where there are no cameras. A list is empty where
/// the data have nothing for it. What is passed over is listed: it can be named, or mended.
OwnFields own_fields(const data::EpisodeSource& source);

/// "action (7 numbers), observation.state (8 numbers), observation.images.front (a camera)", for messages.
std::string fields_text(const data::EpisodeSource& source);

}  // namespace cohort::train
