/// Recordings of any task: episodes of an actor as a data set that tensorflow-datasets, robomimic or LeRobot reads.
///
///   const auto task = tasks::make_task("push-t", {.n_envs = 16, .threads = 2});
///   const auto expert = task->make_expert(0);
///   const RecordingReport report = record::record(*task, *expert, "outputs/data", {.episodes = 200});
///
/// The episodes are those of the seeds from first_seed on, in their order. The same settings give the same bytes for
/// any number of environments, threads and ranks, and after any number of interruptions: what is complete lies in a
/// folder beside the destination (record/piece_store.h) from which the next call goes on.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "record/episode_record.h"

namespace cohort::tasks {
class Actor;
}

namespace cohort::record {

struct RecordingSettings {
  std::string name;              ///< of the data set: small letters, digits, underscores; empty: the task's, so written
  std::string format = "rlds";   ///< rlds: out/name/1.0.0; hdf5 (robomimic's layout): out/name.hdf5; lerobot: out/name
  std::string images = "video";  ///< of lerobot: video or image, data::LeRobotConvertSettings::images
  std::string vcodec = "auto";   ///< of its videos
  /// Of lerobot: the task's observations that observation.state holds, in this order; empty: the task's own `state`, or all
  /// that are not privileged (tasks::FieldSpec).
  std::vector<std::string> state = {};
  std::int64_t episodes = 100;  ///< that are kept
  /// Of the first episode; the following take the following seeds. Evaluations take theirs from 0 on, so that the two
  /// do not meet.
  std::uint64_t first_seed = 100000;
  std::string keep = "success";      ///< or all
  std::int64_t max_steps = 0;        ///< of an episode; 0: the task's horizon
  double noise = 0;                  ///< tasks::RolloutSettings::noise
  std::uint64_t noise_seed = 0;      ///< keys it
  std::int64_t shard_episodes = 16;  ///< seeds whose kept episodes share a shard, and are made again after a kill
  PictureRecording pictures;         ///< the task must have been made with their size
  std::string renderer = "raycast";  ///< that the task draws them with
  std::string actor_identity;        ///< beside the actor's name, what else its actions depend on: a checkpoint's path
  int threads = 1;                   ///< that encode pictures
  int rank = 0, world_size = 1;      ///< of this process; all ranks see the same folders
  std::function<void()> barrier;     ///< waits for all ranks; needed where there are several
  bool silent = false;               ///< no progress bar
};

struct RecordingReport {
  std::filesystem::path path;
  std::int64_t episodes = 0, steps = 0;  ///< written
  std::int64_t attempts = 0;             ///< episodes that were run for them
  std::int64_t successes = 0;            ///< of the attempts
  std::int64_t faults = 0;               ///< attempts whose simulation or action failed
  std::int64_t resumed = 0;              ///< attempts that an earlier, interrupted call had made
  std::vector<std::string> said;         ///< what was chosen for the format, on rank 0: "video: av1, …"
};

/// Throws Error for a camera that the task does not have, naming the nearest.
void check_camera(const tasks::TaskSpec& spec, const std::string& camera);

/// Where a recording comes to lie.
std::filesystem::path recording_path(const std::filesystem::path& out, const std::string& task_name,
                                     const RecordingSettings& settings);

/// Records. Nothing is at the destination before all of it is; then the folder beside it is removed. Throws Error for
/// settings out of range, a camera that the task does not have, a destination that exists or cannot be written, and
/// when fewer than one episode of four is a success. On every rank; the report is the same on all.
RecordingReport record(tasks::Task& task, tasks::Actor& actor, const std::filesystem::path& out,
                       const RecordingSettings& settings);

}  // namespace cohort::record
