// Videos of data sets in a build without FFmpeg's libraries: refused by name.
#include "core/error.h"
#include "data/lerobot/video_frames.h"

namespace cohort::data {

struct VideoFrames::Impl {};

VideoSummary read_video_index(const std::filesystem::path&) {
  throw Error(video_frames_unavailable());
}

std::string video_frames_unavailable() {
  return "this build has no FFmpeg, so it reads no video: install libavcodec-dev, libavformat-dev, libavutil-dev and "
         "libswscale-dev, configure and build again";
}

VideoFrames::VideoFrames(std::int64_t) {}
VideoFrames::~VideoFrames() = default;
VideoFrame VideoFrames::read(const std::filesystem::path& file, double, double, std::string&) const {
  throw Error(format("{}: {}", file.string(), video_frames_unavailable()));
}
VideoSummary VideoFrames::look(const std::filesystem::path& file) const {
  throw Error(format("{}: {}", file.string(), video_frames_unavailable()));
}
std::int64_t VideoFrames::bytes() const {
  return 0;
}
std::int64_t VideoFrames::seeks() const {
  return 0;
}

}  // namespace cohort::data
