/// Training samples of robot data: windows over episodes, with what the policy saw and what it shall do.
///
/// A window stands at step t of an episode. Observations are those of the steps t - (observation_steps - 1) · stride …
/// t, actions those of t + action_begin · stride … in steps of stride. What lies before the episode repeats its first
/// step, what lies behind it its last action (or is zero), and masks say which are real; or such windows are left out.
/// The DROID pipeline's window of 2 with 15 future actions, without the first, is observation_steps 2, action_steps 16.
///
/// An epoch is a list of windows that is a function of seed and epoch only, computed by index: nothing is stored per
/// window, whatever the size of the sets and of the shuffle buffer that a configuration asks for.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/episodes.h"
#include "data/robot_statistics.h"

namespace cohort::config {
class Fields;
}

namespace cohort::data {

struct RobotDataSettings {
  std::vector<std::string> paths;           ///< data sets: what open_episodes() takes
  std::vector<std::string> splits{"auto"};  ///< one for all or one each: OpenSettings::split
  /// How often each set is drawn from, relative to one another; empty: by their numbers of windows.
  std::vector<double> weights;
  std::string format = "auto";       ///< auto, rlds, hdf5, lerobot
  std::string on_corrupt = "error";  ///< error, skip
  std::string checksums = "first";   ///< first, always, never
  double tolerance_s = 1e-4;         ///< LeRobotSettings::tolerance_s
  std::string step_filter;           ///< kept_steps.h: idle(action)
  std::vector<std::string> filters;  ///< transforms/filter.h; "0: RULE" is for set 0 only
  std::vector<std::string> actions;  ///< transforms/component.h
  /// What whoever acts is given instead of the data's own numbers: a transform (transforms/component.h) of each component
  /// of the action, "rotation_6d->axis_angle", or "" for none; empty: of none.
  std::vector<std::string> action_answers;
  std::vector<std::string> action_normalization{"bounds"};  ///< one for all or one per component: normalization.h
  std::vector<std::string> proprio;                         ///< components of the low-dimensional observation
  std::vector<std::string> proprio_normalization{"none"};
  std::string constant_elements = "zero";  ///< error, keep, zero: see Normalizer
  std::int64_t action_width = 0;           ///< > 0: what the composed action must have; otherwise an error
  std::vector<std::string> images;         ///< image fields
  std::vector<std::string> image_transforms{"resize(128, 128)"};  ///< images/image_pipeline.h
  bool augment = true;                  ///< false: random image transforms are left out (validation)
  std::string missing_image = "error";  ///< of a step without image: error, or black
  /// Of the stored pictures: rgb, or bgr, where red and blue change places when they are read. So are the pictures of
  /// programs that hand RGB to OpenCV's imencode and take back what imdecode gives: ALOHA's and RDT's
  /// (RoboticsDiffusionTransformer, data/preprocess_scripts/agilex.py, "BGR to RGB").
  std::string image_colours = "rgb";
  /// What single sets call otherwise: "1: top=laptop", "1: action[2] = action[2] | invert" (names_of_sets.h).
  std::vector<std::string> names;
  std::string goal = "none";  ///< none, last, uniform (a later step at random), steps(N) (N steps later)
  std::string instruction;    ///< text field or metadata that says what to do; empty: none
  int observation_steps = 2;
  int action_steps = 16;
  int action_begin = 0;                  ///< of the first action, relative to the last observation
  int stride = 1;                        ///< steps between consecutive frames and actions (sub-sampling)
  std::string pad_before = "repeat";     ///< repeat, drop
  std::string pad_after = "repeat";      ///< repeat (absolute actions), zero (relative ones, after normalisation), drop
  std::int64_t windows_per_episode = 0;  ///< draw so many of each episode's windows anew in every epoch; 0: all
  std::int64_t samples_per_epoch = 0;    ///< 0: as many as there are windows
  std::int64_t shuffle_buffer_size = 0;  ///< accepted for the reference's sake: every epoch is shuffled as a whole
  std::int64_t cache_bytes = 64 << 20;   ///< of opened episodes, over all sets
  std::string statistics;                ///< file to take the statistics from instead of computing them
  std::string statistics_cache = "auto";
  std::int64_t quantile_bytes =
      256 << 20;  ///< memory while statistics are computed: StatisticsSettings::quantile_bytes
  /// Where it is kept where episodes lie, how long they are, which are damaged, which pass the filters, that their
  /// numbers are finite and what they are told to do, so that a large set is opened again without reading it: auto
  /// (sets of 64 MiB or more), never, or a folder.
  std::string index_cache = "auto";
  std::uint64_t seed = 0;  ///< of draws, goals and augmentation
  int threads = 0;         ///< for opening; 0: as many as the process has cores
  /// One for all sets or one each, instead of computing them: those of the training data, for validation. Not part of
  /// the configuration.
  std::vector<RobotStatistics> given_statistics;
};

void describe(config::Fields& fields, RobotDataSettings& settings);

/// Where a sample comes from.
struct WindowAddress {
  std::size_t set = 0;
  std::int64_t episode = 0;  ///< of the set
  std::int64_t step = 0;     ///< t
  bool operator==(const WindowAddress&) const = default;
};

class RobotWindows final : public Dataset {
 public:
  /// Throws Error before anything is trained: a missing file, a field or camera that the schema lacks, an action of
  /// another width, a value that is not finite, an element that never changes, an episode without steps.
  explicit RobotWindows(const RobotDataSettings& settings);
  ~RobotWindows() override;

  std::int64_t size() const override;
  /// "action" (action_steps, A) float32; "action_mask" (action_steps) bool, false where padded; "proprio"
  /// (observation_steps, P) float32; "observation_mask" (observation_steps) bool; "image/<field>" (observation_steps,
  /// H, W, 3) uint8 per camera; with a goal "goal/<field>" (H, W, 3) and "goal_proprio" (P); with an instruction
  /// "instruction" () int64, an index into instructions().
  std::vector<FieldSpec> fields() const override;
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override;

  /// The window that sample `index` of `epoch` is.
  WindowAddress address(std::int64_t index, std::uint64_t epoch) const;
  const std::vector<std::string>& instructions() const;
  std::size_t sets() const;
  const EpisodeSource& source(std::size_t set) const;
  /// The episodes of a set's source that windows are drawn from: those that pass the filters.
  const std::vector<std::int64_t>& episodes(std::size_t set) const;
  const RobotStatistics& statistics(std::size_t set) const;
  /// What two sets' numbers of one name hardly share: "action, element 2: -1 to 1 in a, 0 to 1 in b"; a line each.
  std::vector<std::string> differences() const;
  /// To turn a policy's output into actions and back, with the statistics of a set.
  const Normalizer& action_normalizer(std::size_t set) const;
  const Normalizer& proprio_normalizer(std::size_t set) const;
  /// Memory held now, pixel buffers of the threads excepted: tables and opened episodes.
  std::int64_t bytes_held() const;
  /// A few lines for the banner: episodes, windows, what was left out, memory, what became of the shuffle buffer.
  std::string summary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
