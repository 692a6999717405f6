/// Videos of some of the episodes that an evaluation has run. An episode is a function of its seed: it is run again,
/// and watched.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "eval/evaluation.h"

namespace cohort::eval {

struct VideoSettings {
  std::vector<std::string> cameras;  ///< of the task, side by side; empty: its first two
  int width = 256, height = 256;     ///< px of a camera's picture, whatever size the policy sees
  /// Which of MuJoCo's geom groups are shown; nothing: those that the task's own pictures show.
  std::optional<std::array<bool, 6>> geom_groups = {};
  int successes = 2;  ///< episodes that are shown of each kind, those of the lowest seeds
  int failures = 2;
  std::int64_t max_steps = 0;  ///< as the evaluation's
};

struct EpisodeVideo {
  std::string policy;
  std::uint64_t seed = 0;
  bool success = false;
  std::filesystem::path file;
};

/// Throws Error where no video can be made of this task: no cameras, no such camera, a build without video.
void check_video(const tasks::Task& task, const VideoSettings& settings);

/// Runs the chosen episodes of `result` again and writes a video of each into `folder`, with step, success and camera
/// on the pictures, which are drawn for it: what the policy sees are its own. Not collective. Throws Error.
std::vector<EpisodeVideo> write_videos(tasks::Task& task, tasks::Actor& actor, const PolicyResult& result,
                                       const std::filesystem::path& folder, const VideoSettings& settings);

}  // namespace cohort::eval
