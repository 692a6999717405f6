#include "eval/episode_page.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "core/error.h"
#include "core/log.h"
#include "tasks/shown_scene.h"
#include "tasks/task.h"
#include "view/page.h"
#include "view/pose_track.h"
#include "view/scene_document.h"

namespace cohort::eval {
namespace {

using tasks::EpisodeOutcome;
using tasks::RunningEpisode;

constexpr double kPageFps = 30;
constexpr std::size_t kMostActions = 12;  // whose curves are shown

std::string words_of(const EpisodeOutcome& e) {
  const char* end = e.success ? "success" : e.failed ? "fault" : "failure";
  return format("seed {}: {} after {} steps, return {:.3g}", e.seed, end, e.steps, e.total_reward);
}

class WatchingEpisodes final : public tasks::RolloutObserver {
 public:
  WatchingEpisodes(tasks::Task& task, sim::Scene& scene, std::string& document, std::size_t episodes)
      : task_(task), scene_(scene), document_(document), tracks_(episodes), poses(episodes) {}

  void acting(tasks::Task&, std::span<const RunningEpisode> running, ArrayView actions) override {
    const std::span<const float> rows = actions.span<float>();
    const auto width = static_cast<std::size_t>(task_.spec().action.width());
    for (const RunningEpisode& r : running) {
      Track& t = tracks_[r.episode];
      const std::int32_t envs[] = {r.env};
      if (!t.track) {
        if (document_.empty()) document_ = view::scene_document(scene_, envs);
        t.track = std::make_unique<view::PoseTrack>(scene_, std::vector<std::int32_t>{r.env}, kPageFps);
      }
      for (std::size_t i = 0; i < std::min(width, kMostActions); ++i)
        t.curves[format("action {}", task_.spec().action.names[i])] = {
            rows[static_cast<std::size_t>(r.env) * width + i]};
      if (t.steps == 0) t.track->add(0, t.curves);
    }
  }

  void stepped(tasks::Task&, std::span<const RunningEpisode> running) override {
    const std::span<const float> reward = task_.reward().span<float>();
    const std::span<const std::uint8_t> success = task_.success().span<std::uint8_t>();
    const std::vector<std::string>& names = task_.spec().reward_terms;
    const std::span<const float> terms =
        names.empty() ? std::span<const float>{} : std::span<const float>(task_.reward_terms().span<float>());
    for (const RunningEpisode& r : running) {
      Track& t = tracks_[r.episode];
      const auto env = static_cast<std::size_t>(r.env);
      t.total += static_cast<double>(reward[env]);
      t.curves["reward"] = {reward[env]};
      t.curves["return"] = {static_cast<float>(t.total)};
      t.curves["success"] = {static_cast<float>(success[env])};
      for (std::size_t i = 0; i < names.size(); ++i) t.curves["reward " + names[i]] = {terms[env * names.size() + i]};
      const double time = static_cast<double>(++t.steps) * task_.spec().control_period;
      if (success[env] != 0 && !t.succeeded) t.succeeded = true, t.track->mark(time, "success");
      t.track->add(time, t.curves);
      t.time = time;
    }
  }

  void ended(const RunningEpisode& r, const EpisodeOutcome&) override {
    Track& t = tracks_[r.episode];
    t.track->add_last(t.time, t.curves);
    poses[r.episode] = t.track->bytes();
    t.track.reset();
  }

 private:
  struct Track {
    std::unique_ptr<view::PoseTrack> track;
    std::map<std::string, std::vector<float>> curves;
    std::int64_t steps = 0;
    double total = 0, time = 0;
    bool succeeded = false;
  };
  tasks::Task& task_;
  sim::Scene& scene_;
  std::string& document_;
  std::vector<Track> tracks_;

 public:
  std::vector<std::string> poses;  ///< of each episode, once it has ended
};

}  // namespace

std::vector<EpisodeWanted> best_and_worst(const PolicyResult& result) {
  if (result.episodes.empty()) return {};
  const auto worse = [](const EpisodeOutcome& a, const EpisodeOutcome& b) {
    return std::tuple(a.success, a.total_reward, -a.steps) < std::tuple(b.success, b.total_reward, -b.steps);
  };
  const auto [worst, best] = std::minmax_element(result.episodes.begin(), result.episodes.end(), worse);
  std::vector<EpisodeWanted> wanted{{best->seed, result.policy + ", best"}};
  if (worst != best) wanted.push_back({worst->seed, result.policy + ", worst"});
  return wanted;
}

EpisodePages::EpisodePages(tasks::Task& task) : task_(task) {
  COHORT_THROW_UNLESS(tasks::scene_of(task) != nullptr,
                      "--html: {} has no scene in three dimensions; --record-video films it", task.spec().name);
}

void EpisodePages::add(tasks::Actor& actor, const std::vector<EpisodeWanted>& wanted,
                       const tasks::RolloutSettings& settings) {
  std::vector<std::uint64_t> seeds;
  for (const EpisodeWanted& w : wanted) seeds.push_back(w.seed);
  if (seeds.empty()) return;
  WatchingEpisodes watching(task_, *tasks::scene_of(task_), scene_, wanted.size());
  const std::vector<EpisodeOutcome> outcomes = tasks::run_episodes(task_, actor, seeds, settings, &watching);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string& label = wanted[i].label;
    episodes_.push_back(
        {label.empty() ? words_of(outcomes[i]) : label + ", " + words_of(outcomes[i]), std::move(watching.poses[i])});
  }
}

void EpisodePages::write(const std::filesystem::path& file) const {
  view::PageContent content{.title = task_.spec().name, .scene = scene_, .episodes = {}};
  for (const Shown& e : episodes_) content.episodes.push_back({e.title, e.poses});
  view::write_page(file, content);
  log::info("{} episode{} in {}: open it in a browser", episodes_.size(), episodes_.size() == 1 ? "" : "s",
            file.string());
}

}  // namespace cohort::eval
