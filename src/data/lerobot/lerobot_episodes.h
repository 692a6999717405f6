/// LeRobot data sets: a folder with meta/, data/ and videos/, of the versions 2.0, 2.1 and 3.x.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"
#include "data/lerobot/video_frames.h"

namespace cohort::data {

struct LeRobotSettings {
  std::string split = "train";       ///< of meta/info.json, with slices: train[:95%]; all: every episode
  std::string on_corrupt = "error";  ///< error; or skip: read everything once, leave damaged episodes out and name them
  /// Memory of opened episodes and of decoders that is kept for reuse, half of it for each.
  std::int64_t cache_bytes = 64 << 20;
  /// s, how far a frame's time in its video may lie from its step's: LeRobot's tolerance_s; above 0, at most half a step.
  double tolerance_s = kFrameTolerance;
  int threads = 0;                    ///< that look through the tables; 0: as many as the process has cores
  std::string index_cache = "never";  ///< where it is kept which episodes are damaged: as EpisodeNotes takes it
};

/// A part of a video file.
struct LeRobotInterval {
  std::filesystem::path file;
  double begin = 0, end = 0;  ///< s
};

/// A step has every feature of meta/info.json under its own name: numbers and bools with the shape that is said there
/// (one of [1] is a scalar), texts, pictures of the tables as they lie there, frames of videos decoded (raw RGB); and
/// the text `task` of its task_index. left_out() names features of other types, and depth maps. Metadata:
/// language_instruction (the episode's first task), episode_index, fps, robot_type, and texts that Cohort wrote (kLeRobotNote). A frame is the one whose time is from_timestamp + timestamp, give or take
/// tolerance_s. meta/stats.json is not used. Episodes are ordered by episode_index.
class LeRobotEpisodes final : public EpisodeSource {
 public:
  /// Throws Error naming file and column or key for what is missing or not as meta/ says.
  explicit LeRobotEpisodes(const std::filesystem::path& folder, const LeRobotSettings& settings = {});
  ~LeRobotEpisodes() override;

  const std::string& name() const override;
  std::int64_t size() const override;
  const std::vector<StepField>& fields() const override;
  const std::vector<std::string>& metadata_names() const override;
  std::int64_t steps(std::int64_t episode) const override;
  std::shared_ptr<const Episode> open(std::int64_t episode) const override;
  /// Of numbers and texts: a picture is gone when the next one is read.
  std::int64_t bytes_when_open(std::int64_t episode, std::span<const std::size_t> fields) const override;
  /// Of meta/info.json, where the episodes lie, and names, sizes and times of change of their files.
  std::uint64_t content_hash() const override;
  std::int64_t bytes_held() const override;
  std::int64_t stored_bytes() const override;
  /// meta/info.json, and "episode 12".
  std::pair<std::filesystem::path, std::string> place(std::int64_t episode) const override;
  std::string selection() const override;
  const std::vector<std::string>& skipped() const override;
  std::vector<std::string> left_out() const override;
  std::string why_no_field(const std::string& field_name) const override;
  std::vector<std::string> element_names(const std::string& field_name) const override;
  std::string_view format_name() const override { return "lerobot"; }
  /// Its episode_index in the set.
  std::int64_t number(std::int64_t episode) const override;
  std::string schema_name(const std::string& field_name) const override;
  std::vector<MetadataType> metadata_types(std::int64_t episode, std::vector<std::string>& left_out) const override;
  double fps() const;
  const std::string& robot_type() const;
  /// Where the frames of an episode lie that are a field's pictures; nothing for a field that is no video.
  std::optional<LeRobotInterval> video(std::int64_t episode, std::size_t field) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
