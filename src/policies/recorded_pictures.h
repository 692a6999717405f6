/// What drew the pictures that a policy learnt from: `cohort collect` says it in every episode, the policy's
/// configuration and so its checkpoints keep it, and whoever lets it act draws the same.
///
///   const RecordedPictures pictures = recorded_pictures(*source, "observation/front_image");
///   // {.renderer = "raycast", .size = {64, 64}}
#pragma once
#include <string>
#include <vector>

#include "core/config.h"
#include "data/episodes.h"

namespace cohort::policies {

struct RecordedPictures {
  std::string renderer;   ///< raycast, mujoco; empty: the data do not say
  std::vector<int> size;  ///< height, width of the pictures in the data, px; empty: they have several sizes

  bool operator==(const RecordedPictures&) const = default;
};

/// Binds renderer and size in the current section (by convention "recorded").
void describe(config::Fields& fields, RecordedPictures& pictures);

/// Of the first episode of a source and its field of pictures.
RecordedPictures recorded_pictures(const data::EpisodeSource& source, const std::string& field);

/// Of a run's configuration, as its checkpoints hold it; empty where it says nothing.
RecordedPictures recorded_pictures(const config::Json& configuration);

/// What both say; where they contradict each other, neither.
RecordedPictures common(const RecordedPictures& a, const RecordedPictures& b);

}  // namespace cohort::policies
