#include "formats/ffmpeg.h"

#include <array>

#include <dlfcn.h>
extern "C" {
#include <libavcodec/version.h>
#include <libavformat/version.h>
#include <libavutil/version.h>
#include <libswscale/version.h>
}

#include "core/error.h"

namespace cohort {

namespace {

struct FfmpegLibrary {
  const char* name;
  int version;
};
constexpr std::array<FfmpegLibrary, 4> kFfmpegLibraries{{{"avutil", LIBAVUTIL_VERSION_MAJOR},
                                                         {"swscale", LIBSWSCALE_VERSION_MAJOR},
                                                         {"avcodec", LIBAVCODEC_VERSION_MAJOR},
                                                         {"avformat", LIBAVFORMAT_VERSION_MAJOR}}};

using FfmpegHandles = std::array<void*, kFfmpegLibraries.size()>;

FfmpegHandles open_libraries() {
  FfmpegHandles handles{};
  std::string packages;
  for (const FfmpegLibrary& l : kFfmpegLibraries) {
    packages += format("{}lib{}{}", packages.empty() ? "" : ", ", l.name, l.version);
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const FfmpegLibrary& l = kFfmpegLibraries[i];
    handles[i] = dlopen(format("lib{}.so.{}", l.name, l.version).c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* reason = handles[i] == nullptr ? dlerror() : nullptr;
    COHORT_THROW_UNLESS(handles[i], "video needs FFmpeg's libraries ({}): install the packages {}",
                        reason ? reason : l.name, packages);
  }
  return handles;
}

/// A failure is thrown again by every call, which tries again.
const FfmpegHandles& ffmpeg_handles() {
  static const FfmpegHandles handles = open_libraries();
  return handles;
}

}  // namespace

void open_ffmpeg() {
  ffmpeg_handles();
}

void* find_in_ffmpeg(const char* name) {
  for (void* handle : ffmpeg_handles()) {
    if (void* found = dlsym(handle, name)) return found;
  }
  COHORT_CHECK(false, "FFmpeg's libraries have no {}", name);
}

}  // namespace cohort
