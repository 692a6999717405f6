// Stands in for episode_video.cpp where the module render is left out.
#include "core/error.h"
#include "eval/episode_video.h"

namespace cohort::eval {

void check_video(const tasks::Task&, const VideoSettings&) {
  throw Error("this build writes no videos: it was made without the module render (see the configuration's messages)");
}

std::vector<EpisodeVideo> write_videos(tasks::Task& task, tasks::Actor&, const PolicyResult&,
                                       const std::filesystem::path&, const VideoSettings& settings) {
  check_video(task, settings);
  return {};
}

}  // namespace cohort::eval
