/// meta/ of a LeRobot data set while it is written (lerobot_writer.h): info.json, stats.json, tasks.parquet and the tables
/// of episodes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_statistics.h"
#include "data/lerobot/lerobot_videos.h"
#include "data/lerobot/lerobot_writer.h"
#include "data/lerobot/parquet_writer.h"

namespace cohort::data {

/// data/chunk-000/file-000.parquet of the file `number`.
std::filesystem::path lerobot_data_path(std::int64_t number, std::int64_t chunks_size);
std::filesystem::path lerobot_video_path(const std::string& feature, std::int64_t number, std::int64_t chunks_size);

/// Columns of data/ in the features' order, and what Hugging Face's datasets wants to find in the file about them.
std::vector<ParquetNewColumn> lerobot_columns(const std::vector<LeRobotFeature>& features);
ParquetNotes lerobot_column_notes(const std::vector<LeRobotFeature>& features);

/// What is said about an episode.
struct LeRobotEpisodeEntry {
  std::int64_t number = 0, steps = 0, begin = 0;  ///< begin: its first step among all of the set
  std::vector<std::string> tasks;
  std::int64_t data_file = 0;
  std::vector<LeRobotVideoPlace> videos;      ///< of features of the dtype video, in their order
  std::vector<FeatureStatistics> statistics;  ///< of every feature; without elements where it has none
  std::vector<std::string> notes;
};

class LeRobotMeta {
 public:
  /// `folder`: of the set, where it is being made. What it refers to must outlive it.
  LeRobotMeta(std::filesystem::path folder, const std::vector<LeRobotFeature>& features,
              const LeRobotWriterSettings& settings, const std::vector<std::string>& notes);
  ~LeRobotMeta();
  /// Of a task's text; a new one gets the next number.
  std::int64_t task_index(const std::string& task);
  void add(LeRobotEpisodeEntry episode);
  /// `codecs`: of the features of the dtype video, "av1" or "h264".
  void finish(const std::vector<std::string>& codecs);
  std::int64_t episodes() const { return episodes_; }
  std::int64_t frames() const { return frames_; }
  std::vector<std::string> not_finite() const;

 private:
  void write_episodes();
  void write_tasks() const;
  void write_info(const std::vector<std::string>& codecs) const;
  void write_statistics() const;

  std::filesystem::path folder_;
  const std::vector<LeRobotFeature>& features_;
  const LeRobotWriterSettings& settings_;
  const std::vector<std::string>& notes_;
  std::vector<std::string> tasks_;
  std::map<std::string, std::int64_t> task_numbers_;
  std::vector<LeRobotEpisodeEntry> pending_;  ///< not yet in a table
  std::unique_ptr<ParquetWriter> table_;
  std::filesystem::path table_path_;
  std::int64_t table_number_ = -1, episodes_ = 0, frames_ = 0;
  std::vector<SetStatistics> statistics_;
};

}  // namespace cohort::data
