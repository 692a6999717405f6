// Video in a build without FFmpeg's libraries: refused by name.
#include "core/error.h"
#include "render/video.h"

namespace cohort::render {

struct VideoWriter::Impl {};

std::string video_unavailable() {
  return "this build has no FFmpeg: install libavcodec-dev, libavformat-dev, libavutil-dev and libswscale-dev and "
         "build "
         "again";
}

VideoWriter::VideoWriter(const std::filesystem::path& path, int, int, double) {
  throw Error(format("{}: {}", path.string(), video_unavailable()));
}
VideoWriter::~VideoWriter() = default;
void VideoWriter::add(std::span<const std::uint8_t>) {}
void VideoWriter::finish() {}
std::int64_t VideoWriter::frames() const {
  return 0;
}

}  // namespace cohort::render
