#include "eval/episode_video.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "eval/video_files.h"
#include "record/recording.h"
#include "render/video.h"
#include "tasks/task.h"

namespace cohort::eval {
namespace {

using tasks::EpisodeOutcome;
using tasks::RunningEpisode;

constexpr std::size_t kCameras = 2;   // of a task that has many: what is recorded first, and one that looks elsewhere
constexpr double kMostFps = 30;       // of a task that acts more often, every so many steps are shown
constexpr double kLastSeconds = 0.7;  // that the last picture stays

/// The pictures of each episode under way, of all cameras side by side, with text, into a file of its own.
class Filming final : public tasks::RolloutObserver {
 public:
  Filming(tasks::Task& task, std::vector<std::string> cameras, const VideoSettings& settings,
          std::vector<std::filesystem::path> files)
      : task_(task),
        cameras_(std::move(cameras)),
        film_{.height = settings.height, .width = settings.width, .geom_groups = settings.geom_groups},
        every_(std::max(1, static_cast<int>(std::ceil(1 / task.spec().control_period / kMostFps - 1e-9)))),
        fps_(std::max(1.0, 1 / (task.spec().control_period * every_))),
        files_(std::move(files)),
        outcomes_(files_.size()) {}

  /// What was filmed, which is what was expected where task and policy replay.
  const std::vector<EpisodeOutcome>& outcomes() const { return outcomes_; }

  void acting(tasks::Task&, std::span<const RunningEpisode> running, ArrayView) override {
    due_.clear();
    for (const RunningEpisode& r : running)
      if (films_[r.episode].step++ % every_ == 0) due_.push_back(r);
    add_frames(due_, 1);
  }

  void ended(const RunningEpisode& r, const EpisodeOutcome& outcome) override {
    outcomes_[r.episode] = outcome;
    Film& film = films_.at(r.episode);
    film.text = outcome.success ? "success" : outcome.failed ? "fault" : "failure";
    const RunningEpisode last[] = {r};
    add_frames(last, std::max(1, static_cast<int>(kLastSeconds * fps_)));
    film.writer->finish();
    films_.erase(r.episode);
  }

 private:
  struct Film {
    std::unique_ptr<render::VideoWriter> writer;
    std::int64_t step = 0;
    std::string text;
  };

  void add_frames(std::span<const RunningEpisode> running, int times) {
    const int width = film_.width * static_cast<int>(cameras_.size()), height = film_.height;
    frame_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
    for (const RunningEpisode& r : running) {
      Film& film = films_.at(r.episode);
      if (!film.writer) film.writer = std::make_unique<render::VideoWriter>(files_[r.episode], width, height, fps_);
      for (std::size_t i = 0; i < cameras_.size(); ++i) put_beside(task_.film(cameras_[i], r.env, film_), i);
      for (std::size_t i = 0; i < cameras_.size(); ++i)
        render::draw_text({frame_, width, height}, 4 + static_cast<int>(i) * film_.width, 4,
                          i == 0 ? format("{}\nstep {} {}", cameras_[i], film.step, film.text) : cameras_[i]);
      for (int k = 0; k < times; ++k) film.writer->add(frame_);
    }
  }

  /// The picture of the camera of that place in the row.
  void put_beside(const ArrayView& picture, std::size_t place) {
    const auto pixels = picture.span<std::uint8_t>();
    const std::size_t line = static_cast<std::size_t>(film_.width) * 3;
    for (std::size_t y = 0; y < static_cast<std::size_t>(film_.height); ++y)
      std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(y * line), line,
                  frame_.begin() + static_cast<std::ptrdiff_t>((y * cameras_.size() + place) * line));
  }

  tasks::Task& task_;
  std::vector<std::string> cameras_;
  tasks::FilmSettings film_;
  int every_;   // control steps from picture to picture
  double fps_;  // so that a video takes the episode's own time
  std::vector<std::filesystem::path> files_;
  std::vector<EpisodeOutcome> outcomes_;
  std::map<std::size_t, Film> films_;
  std::vector<RunningEpisode> due_;
  std::vector<std::uint8_t> frame_;
};

}  // namespace

void check_video(const tasks::Task& task, const VideoSettings& settings) {
  const tasks::TaskSpec& spec = task.spec();
  COHORT_THROW_UNLESS(!spec.cameras.empty(), "{} has no cameras: no video can be made of it", spec.name);
  for (const std::string& camera : settings.cameras) record::check_camera(spec, camera);
  COHORT_THROW_UNLESS(settings.width >= 16 && settings.height >= 16, "videos of {} x {} pixels: at least 16 x 16",
                      settings.width, settings.height);
  const std::string missing = render::video_unavailable();
  COHORT_THROW_UNLESS(missing.empty(), "no video can be written: {}", missing);
}

std::vector<EpisodeVideo> write_videos(tasks::Task& task, tasks::Actor& actor, const PolicyResult& result,
                                       const std::filesystem::path& folder, const VideoSettings& settings) {
  check_video(task, settings);
  std::vector<EpisodeOutcome> chosen;
  for (const bool success : {true, false}) {
    int left = success ? settings.successes : settings.failures;
    for (const EpisodeOutcome& e : result.episodes)
      if (e.success == success && left-- > 0) chosen.push_back(e);
  }
  std::vector<EpisodeVideo> videos;
  std::vector<std::uint64_t> seeds;
  std::vector<std::filesystem::path> files;
  for (const EpisodeOutcome& e : chosen) {
    files.push_back(folder / video_name(result.policy, e.seed, e.success));
    videos.push_back({result.policy, e.seed, e.success, files.back()});
    seeds.push_back(e.seed);
  }
  if (chosen.empty()) return videos;
  std::vector<std::string> cameras = settings.cameras;
  if (cameras.empty()) {
    cameras = task.spec().cameras;
    cameras.resize(std::min(cameras.size(), kCameras));
  }
  Filming filming(task, std::move(cameras), settings, std::move(files));
  tasks::run_episodes(task, actor, seeds, {.max_steps = settings.max_steps, .instruction = ""}, &filming);
  for (std::size_t i = 0; i < videos.size(); ++i) {
    const EpisodeOutcome &counted = chosen[i], &filmed = filming.outcomes()[i];
    if (filmed.success == counted.success && filmed.steps == counted.steps) continue;
    const auto words = [](const EpisodeOutcome& e) {
      return format("{} after {} steps", e.success ? "success" : "no success", e.steps);
    };
    log::warning(
        "seed {} of {} was counted as {} and filmed as {}: task {} or the policy {} does not replay; see `cohort tasks "
        "{} --check`. The video shows the second",
        counted.seed, task.spec().name, words(counted), words(filmed), task.spec().name, result.policy,
        task.spec().name);
    // Its name says what it shows.
    const std::filesystem::path shown = folder / video_name(result.policy, filmed.seed, filmed.success);
    if (shown != videos[i].file) std::filesystem::rename(videos[i].file, shown);
    videos[i].success = filmed.success, videos[i].file = shown;
  }
  return videos;
}

}  // namespace cohort::eval
