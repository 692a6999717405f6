/// One episode of a LeRobot data set, opened.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/episodes.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/video_frames.h"

namespace cohort::data {

/// Where a field of the steps lies.
struct LeRobotField {
  enum class Place : std::uint8_t { kColumn, kPixels, kTask, kVideo };
  Place place = Place::kColumn;
  std::size_t camera = 0;       ///< of LeRobotInfo::cameras
  bool channels_first = false;  ///< of kPixels
};

/// Of the column of pictures or texts: values of kBytes.
std::size_t find_bytes(const ParquetFile& file, const StepField& field, const std::string& where);

/// What opened episodes share with their source.
class LeRobotDetails {
 public:
  virtual ~LeRobotDetails() = default;
  virtual const LeRobotInfo& info() const = 0;
  virtual const std::vector<StepField>& step_fields() const = 0;
  virtual const std::vector<LeRobotField>& places() const = 0;
  virtual const VideoFrames& videos() const = 0;
  virtual double tolerance() const = 0;
  virtual std::shared_ptr<const ParquetFile> table(std::size_t file) const = 0;
  /// Counts memory that an opened episode came to hold.
  virtual void count_bytes(std::int64_t episode, std::int64_t bytes) const = 0;
  /// Says once for the set that frames are matched by number: an episode's time stamps are a clock's (`farthest`, s,
  /// from those of its steps), or its video has another rate than the table (`rate`, frames/s).
  virtual void say_matched_by_number(std::int64_t number, double farthest, double rate) const = 0;
};

/// The field with the text of a step's task.
inline constexpr const char* kLeRobotTask = "task";
/// What is told of an episode: its first task under the name that others have for it, too.
std::vector<std::string> lerobot_metadata_names();

/// Columns are read when they are used, whole: an episode's numbers are few. Pictures are read one by one.
class LeRobotEpisode final : public Episode {
 public:
  /// `number`: of the source; `episode`: in the set.
  LeRobotEpisode(const LeRobotDetails& details, std::int64_t number, const LeRobotEpisodeInfo& episode);

  std::int64_t steps() const override { return episode_.steps; }
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const override;
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const override;
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const override;
  std::string_view text(std::size_t field, std::int64_t step) const override;
  StoredImage image(std::size_t field, std::int64_t step, std::string& scratch) const override;
  std::string_view metadata(std::string_view name) const override;
  std::string location() const override;
  /// Without what is read later.
  std::int64_t bytes() const;
  /// Reads every field that is no picture. Throws Error at the first that is not sound.
  void check_columns() const;

 private:
  using Column = std::variant<std::monostate, std::vector<float>, std::vector<double>, std::vector<std::int64_t>,
                              std::vector<std::uint64_t>, std::vector<std::string>>;
  void check_steps(std::size_t field, std::int64_t begin, std::int64_t count, StepKind kind) const;
  const Column& column(std::size_t field) const;
  Column load(std::size_t field) const;
  template <class T>
  std::vector<T> numbers(std::size_t column, std::int64_t elements) const;
  template <class T>
  void read_numbers(std::size_t field, std::int64_t begin, std::int64_t count, std::span<T> out) const;
  std::size_t named(const char* field) const;
  /// The text of the first step's task_index; "" where there is none.
  std::string task_of_rows() const;
  /// Where in its video a step's frame lies.
  struct FrameTime {
    double seconds = 0, tolerance = 0;
  };
  /// By the step's timestamp where these are those of the rate; else by the step's number, where the episode's part of
  /// the video has a frame per step. A clock's own stamps drift, and would name another step's frame.
  FrameTime frame_time(const LeRobotVideo& video, std::int64_t step) const;
  void read_pixels(const StepField& field, const LeRobotField& place, std::int64_t step, std::string& bytes) const;

  const LeRobotDetails& details_;
  const std::int64_t number_;
  const LeRobotEpisodeInfo& episode_;
  const std::shared_ptr<const ParquetFile> table_;
  std::vector<std::string> metadata_;  // in the order of lerobot_metadata_names()
  mutable std::mutex mutex_;           // of what is read late
  mutable std::once_flag stamps_read_;
  mutable double farthest_stamp_ = 0;  // s, of a timestamp from its step's number at the rate
  mutable std::vector<Column> columns_;
  mutable std::vector<std::atomic<bool>> loaded_;
};

}  // namespace cohort::data
