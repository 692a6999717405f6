/// One episode as it is recorded, in memory: what the task was observed to be before each step, what was done, and what
/// came of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/rlds/schema.h"
#include "tasks/rollout.h"
#include "tasks/task.h"

namespace cohort::record {

/// Which pictures are recorded, and how.
struct PictureRecording {
  std::vector<std::string> cameras;  ///< of the task; empty: no pictures
  int height = 128, width = 128;     ///< px, as the task was made with
  std::string encoding = "png";      ///< png (exact) or jpeg
  int jpeg_quality = 95;
};

/// What is written about every episode.
struct RecordingNotes {
  std::string task;         ///< name
  std::string description;  ///< JSON: Task::description()
  std::string actor;
  std::string renderer;         ///< "" without pictures
  std::string privileged = {};  ///< the task's observations that no robot measures, a,b; "": none
};

/// The field of a camera's pictures below observation/: "front" gives "front_image".
std::string picture_field(const std::string& camera);

/// steps: observation/<name> of each of the task's observations, observation/<camera>_image, the action under the
/// task's name for it, reward, discount (float32), is_first, is_last, is_terminal, language_instruction;
/// episode_metadata: file_path, seed, success, task, description, actor, with pictures renderer and cameras, and
/// privileged where the task has such observations. A step
/// holds what was observed before its action, and the reward after it; is_terminal and a discount of 0 mark an end that
/// is not a cut.
data::Feature recording_schema(const tasks::TaskSpec& spec, const PictureRecording& pictures);

class EpisodeRecord {
 public:
  EpisodeRecord() = default;
  explicit EpisodeRecord(const tasks::TaskSpec& spec) : observations_(spec.observations.size()) {}

  /// Rows of environment `env` of the task as it is now; `actions` (n_envs, width).
  void add_step(tasks::Task& task, std::int32_t env, ArrayView actions);
  void add_picture(std::size_t camera, std::string encoded);
  void add_reward(float reward) { rewards_.push_back(reward); }
  std::int64_t steps() const { return static_cast<std::int64_t>(rewards_.size()); }

  /// The episode as a tf.train.Example with the keys of recording_schema().
  std::string to_example(const tasks::TaskSpec& spec, const PictureRecording& pictures, const RecordingNotes& notes,
                         const tasks::EpisodeOutcome& outcome) const;

 private:
  std::vector<std::vector<float>> observations_;
  std::vector<std::vector<std::string>> pictures_;  ///< by camera
  std::vector<float> actions_, rewards_;
};

}  // namespace cohort::record
