#include "eval/episode_video.h"

#include <algorithm>
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

constexpr int kLeastVideoSide = 240;  // px: smaller pictures are shown larger, so that the text can be read
constexpr double kLastSeconds = 0.7;  // that the last picture stays

/// The pictures of each episode under way, enlarged, with text, into a file of its own.
class Filming final : public tasks::RolloutObserver {
 public:
  Filming(tasks::Task& task, std::string camera, std::vector<std::filesystem::path> files)
      : task_(task), camera_(std::move(camera)), files_(std::move(files)), outcomes_(files_.size()) {}

  /// What was filmed, which is what was expected where task and policy replay.
  const std::vector<EpisodeOutcome>& outcomes() const { return outcomes_; }

  void acting(tasks::Task&, std::span<const RunningEpisode> running, ArrayView) override {
    for (const RunningEpisode& r : running) ++films_[r.episode].step;
    add_frames(running, 1);
  }

  void ended(const RunningEpisode& r, const EpisodeOutcome& outcome) override {
    outcomes_[r.episode] = outcome;
    Film& film = films_.at(r.episode);
    film.text = outcome.success ? "success" : outcome.failed ? "fault" : "failure";
    const RunningEpisode last[] = {r};
    add_frames(last, std::max(1, static_cast<int>(kLastSeconds / task_.spec().control_period)));
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
    std::vector<std::int32_t> envs;
    for (const RunningEpisode& r : running) envs.push_back(r.env);
    const ArrayView all = task_.picture(camera_, envs);
    const auto pixels = all.span<std::uint8_t>();
    const int height = static_cast<int>(all.shape[1]), width = static_cast<int>(all.shape[2]);
    const int scale = std::max(1, (kLeastVideoSide + width - 1) / width);
    for (const RunningEpisode& r : running) {
      Film& film = films_.at(r.episode);
      if (!film.writer) {
        const double fps = std::clamp(1 / task_.spec().control_period, 1.0, 60.0);
        film.writer = std::make_unique<render::VideoWriter>(files_[r.episode], width * scale, height * scale, fps);
      }
      const auto bytes = static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3;
      enlarge(pixels.subspan(static_cast<std::size_t>(r.env) * bytes, bytes), height, width, scale);
      render::draw_text({frame_, width * scale, height * scale}, 4, 4,
                        format("{}\nstep {} {}", camera_, film.step, film.text));
      for (int i = 0; i < times; ++i) film.writer->add(frame_);
    }
  }

  void enlarge(std::span<const std::uint8_t> picture, int height, int width, int scale) {
    frame_.resize(picture.size() * static_cast<std::size_t>(scale * scale));
    std::size_t at = 0;
    for (int y = 0; y < height * scale; ++y)
      for (int x = 0; x < width * scale; ++x) {
        const auto from = static_cast<std::size_t>((y / scale) * width + x / scale) * 3;
        for (std::size_t c = 0; c < 3; ++c) frame_[at++] = picture[from + c];
      }
  }

  tasks::Task& task_;
  std::string camera_;
  std::vector<std::filesystem::path> files_;
  std::vector<EpisodeOutcome> outcomes_;
  std::map<std::size_t, Film> films_;
  std::vector<std::uint8_t> frame_;
};

}  // namespace

void check_video(const tasks::Task& task, const VideoSettings& settings) {
  const tasks::TaskSpec& spec = task.spec();
  COHORT_THROW_UNLESS(!spec.cameras.empty(), "{} has no cameras: no video can be made of it", spec.name);
  if (!settings.camera.empty()) record::check_camera(spec, settings.camera);
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
  const std::string camera = settings.camera.empty() ? task.spec().cameras.front() : settings.camera;
  Filming filming(task, camera, std::move(files));
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
