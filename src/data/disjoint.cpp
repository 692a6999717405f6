#include "data/disjoint.h"

#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

struct EpisodeNumber {
  std::size_t set;
  std::int64_t episode;
};

/// The places of the episodes of a data set, by the file's own path.
class Places {
 public:
  explicit Places(const RobotWindows& windows) : windows_(windows) {}
  std::pair<std::string, std::string> of(const EpisodeNumber& number) {
    auto [path, place] = windows_.source(number.set).place(number.episode);
    const auto [known, is_new] = canonical_.try_emplace(path);
    if (is_new) {
      std::error_code error;
      known->second = fs::weakly_canonical(path, error);
      if (error) known->second = path;
    }
    return {known->second.string(), std::move(place)};
  }
  template <class Body>
  void for_each(const Body& body) {
    for (std::size_t set = 0; set < windows_.sets(); ++set)
      for (const std::int64_t episode : windows_.episodes(set)) body(EpisodeNumber{set, episode});
  }

 private:
  const RobotWindows& windows_;
  std::map<fs::path, fs::path> canonical_;
};

std::size_t hash_of(const std::pair<std::string, std::string>& place) {
  return std::hash<std::string>()(place.first + '\n' + place.second);
}

}  // namespace

void check_disjoint(const RobotWindows& train, const RobotWindows& validation) {
  Places trained(train), validated(validation);
  // By hash, not by text: a large set has millions of episodes.
  std::unordered_multimap<std::size_t, EpisodeNumber> known;
  trained.for_each([&](const EpisodeNumber& number) { known.emplace(hash_of(trained.of(number)), number); });
  std::int64_t shared = 0, all = 0;
  std::string first;
  validated.for_each([&](const EpisodeNumber& number) {
    ++all;
    const auto place = validated.of(number);
    const auto [begin, end] = known.equal_range(hash_of(place));
    for (auto same = begin; same != end; ++same) {
      if (trained.of(same->second) != place) continue;
      if (shared++ == 0) first = place.first + ": " + place.second;
      return;
    }
  });
  COHORT_THROW_UNLESS(
      shared == 0,
      "{} of {} episodes that validate are also trained on, the first is {}; let data.splits and validation.splits "
      "have "
      "no episode in common (two masks of an HDF5 file, train[:90%] and train[90%:] of RLDS or LeRobot data), or leave "
      "validation "
      "out with validation.splits=[]",
      shared, all, first);
}

}  // namespace cohort::data
