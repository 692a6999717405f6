#include "data/lerobot/lerobot_videos.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::data {
namespace {

/// No file is longer, s: LeRobot compares a frame's time in the file as float32 within 1e-4 s, and from 1024 s on the next
/// float32 is 1.2e-4 s away.
constexpr double kLongestVideo = 1000;
constexpr int kSmallestAv1 = 64;  // pixels of a side

}  // namespace

VideoSettings lerobot_video_settings(const std::string& vcodec, int height, int width) {
  const VideoSettings av1{.encoder = "libsvtav1", .preset = "12", .crf = 30, .key_every = 2, .independent_parts = true};
  const VideoSettings h264{
      .encoder = "libx264", .preset = "medium", .crf = 30, .key_every = 2, .independent_parts = true};
  COHORT_THROW_UNLESS(vcodec == "auto" || vcodec == "libsvtav1" || vcodec == "h264",
                      "'{}' is no encoder of videos: auto, libsvtav1 (AV1) or h264", vcodec);
  COHORT_THROW_UNLESS(height % 2 == 0 && width % 2 == 0,
                      "pictures of {} x {} do not go into a video, whose sides are even: store them as pictures "
                      "(--images image)",
                      height, width);
  const bool small = std::min(height, width) < kSmallestAv1;
  COHORT_THROW_UNLESS(vcodec != "libsvtav1" || !small,
                      "SVT-AV1 encodes pictures of {} x {} pixels and more, not {} x {}: choose h264 (--vcodec h264)",
                      kSmallestAv1, kSmallestAv1, height, width);
  const std::string no_av1 = video_unavailable(av1.encoder), no_h264 = video_unavailable(h264.encoder);
  if (vcodec == "h264" || (vcodec == "auto" && (small || !no_av1.empty()))) {
    COHORT_THROW_UNLESS(no_h264.empty(), "{}; or store pictures (--images image)", no_h264);
    return h264;
  }
  COHORT_THROW_UNLESS(no_av1.empty(), "{}: choose h264 (--vcodec h264), or store pictures (--images image)", no_av1);
  return av1;
}

std::string lerobot_codec_name(const VideoSettings& settings) {
  return settings.encoder == "libsvtav1" ? "av1" : "h264";
}

LeRobotVideos::LeRobotVideos(std::function<std::filesystem::path(std::int64_t)> path, int height, int width, double fps,
                             std::int64_t file_bytes, VideoSettings settings)
    : path_(std::move(path)),
      height_(height),
      width_(width),
      fps_(fps),
      file_bytes_(file_bytes),
      settings_(std::move(settings)) {}

void LeRobotVideos::begin_episode(std::int64_t frames) {
  if (writer_) {
    const std::int64_t there = writer_->frames(), bytes = writer_->bytes();
    if (bytes + bytes / there * frames >= file_bytes_ || static_cast<double>(there + frames) > kLongestVideo * fps_)
      finish();
  }
  if (!writer_) writer_ = std::make_unique<VideoWriter>(path_(++number_), width_, height_, fps_, settings_);
  first_ = writer_->frames();
}

void LeRobotVideos::add(std::span<const std::uint8_t> rgb) {
  writer_->add(rgb);
}

LeRobotVideoPlace LeRobotVideos::end_episode() {
  writer_->cut();
  return {.number = number_,
          .begin = static_cast<double>(first_) / fps_,
          .end = static_cast<double>(writer_->frames()) / fps_};
}

void LeRobotVideos::finish() {
  if (writer_) writer_->finish();
  writer_.reset();
}

}  // namespace cohort::data
