// Video in a build without FFmpeg's libraries: refused by name.
#include "core/error.h"
#include "formats/video_writer.h"

namespace cohort {

struct VideoWriter::Impl {};

std::string video_unavailable(const std::string&) {
  return "this build has no FFmpeg: install libavcodec-dev, libavformat-dev, libavutil-dev and libswscale-dev and "
         "build "
         "again";
}

VideoWriter::VideoWriter(const std::filesystem::path& path, int, int, double, const VideoSettings&) {
  throw Error(format("{}: {}", path.string(), video_unavailable("")));
}
VideoWriter::~VideoWriter() = default;
void VideoWriter::add(std::span<const std::uint8_t>) {}
void VideoWriter::cut() {}
void VideoWriter::finish() {}
std::int64_t VideoWriter::bytes() const {
  return 0;
}
std::int64_t VideoWriter::frames() const {
  return 0;
}

}  // namespace cohort
