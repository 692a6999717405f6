#include "data/several_episodes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kEpisodesWithFlags = 32;
constexpr std::array<std::string_view, 6> kFlagsOfEnds{"is_last",  "is_first",  "next.done",
                                                       "timeouts", "truncated", "truncations"};

/// Steps in which the flag says that an episode ends before the last one, or begins behind the first.
std::vector<std::int64_t> ends_within(const std::vector<double>& flags, bool marks_first) {
  std::vector<std::int64_t> steps;
  auto last = std::ssize(flags);
  if (marks_first) {
    for (std::int64_t t = 1; t < last; ++t)
      if (flags[static_cast<std::size_t>(t)] != 0) steps.push_back(t);
    return std::ssize(steps) + 1 < last ? steps : std::vector<std::int64_t>{};  // true in all steps: it means nothing
  }
  while (last > 0 && flags[static_cast<std::size_t>(last - 1)] != 0) --last;
  for (std::int64_t t = 0; t < last; ++t)
    if (flags[static_cast<std::size_t>(t)] != 0) steps.push_back(t);
  return steps;
}

}  // namespace

std::string holds_several(const EpisodeSource& source, const std::vector<std::int64_t>& episodes) {
  std::vector<std::size_t> fields;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const StepField& field = source.fields()[f];
    if (field.kind == StepKind::kNumber && field.elements() == 1 &&
        std::find(kFlagsOfEnds.begin(), kFlagsOfEnds.end(), field.name) != kFlagsOfEnds.end())
      fields.push_back(f);
  }
  const auto all = std::ssize(episodes);
  const std::int64_t count = fields.empty() ? 0 : std::min(all, kEpisodesWithFlags);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto episode = source.open(episodes[static_cast<std::size_t>(count == 1 ? 0 : i * (all - 1) / (count - 1))]);
    std::vector<double> flags(static_cast<std::size_t>(episode->steps()));
    for (const std::size_t f : fields) {
      const std::string& name = source.fields()[f].name;
      episode->read(f, 0, episode->steps(), std::span(flags));
      const std::vector<std::int64_t> steps = ends_within(flags, name == "is_first");
      if (steps.empty()) continue;
      return format(
          "{}: {} is true in step {}{}, so it seems to hold several episodes, and windows go over their ends; write "
          "each as "
          "an episode of its own",
          episode->location(), name, steps.front(), steps.size() == 1 ? "" : format(" and {} more", steps.size() - 1));
    }
  }
  return "";
}

}  // namespace cohort::data
