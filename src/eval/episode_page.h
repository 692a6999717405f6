/// A page that plays episodes of a task in a browser (view/page.h): an episode is a function of its seed, so it is run
/// again, and watched.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "eval/evaluation.h"

namespace cohort::eval {

/// An episode to be shown, and what is said of it before its seed: "expert, best".
struct EpisodeWanted {
  std::uint64_t seed = 0;
  std::string label;
};

/// The best and the worst of an evaluation: by success, then by return, then the shorter first. One where there is one.
std::vector<EpisodeWanted> best_and_worst(const PolicyResult& result);

/// Collects the episodes of one task under any number of actors.
class EpisodePages {
 public:
  /// Throws Error where the task has no scene in three dimensions.
  explicit EpisodePages(tasks::Task& task);
  /// Runs these episodes and keeps what there is to see, with reward, its terms, success and actions as curves.
  void add(tasks::Actor& actor, const std::vector<EpisodeWanted>& wanted, const tasks::RolloutSettings& settings);
  /// Writes the page, whole or not at all. Throws Error.
  void write(const std::filesystem::path& file) const;

 private:
  struct Shown {
    std::string title, poses;
  };
  tasks::Task& task_;
  std::string scene_;  ///< view::scene_document()
  std::vector<Shown> episodes_;
};

}  // namespace cohort::eval
