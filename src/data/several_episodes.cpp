#include "data/several_episodes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kEpisodesWithFlags = 32;
constexpr std::array<std::string_view, 6> kFlagsOfEnds{"is_last",  "is_first",  "next.done",
                                                       "timeouts", "truncated", "truncations"};
// Of success as well, which comes and goes.
constexpr std::array<std::string_view, 6> kFlagsOfOutcomes{"dones",        "done",       "terminals",
                                                           "terminations", "terminated", "is_terminal"};

bool is_among(const std::string& name, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Steps before the last in which such a flag is true, where it is true in the last one and never in two that follow each
/// other: ends of episodes, and not states in which a task is solved.
std::vector<std::int64_t> outcomes_within(const std::vector<double>& flags) {
  std::vector<std::int64_t> steps;
  for (std::size_t t = 0; t < flags.size(); ++t) {
    if (flags[t] == 0) continue;
    if (t > 0 && flags[t - 1] != 0) return {};
    steps.push_back(static_cast<std::int64_t>(t));
  }
  if (steps.empty() || steps.back() + 1 != std::ssize(flags)) return {};
  steps.pop_back();
  return steps;
}

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

bool is_time(const std::string& name) {
  const std::string last = name.substr(name.find_last_of("/.") + 1);
  return last == "timestamp" || last == "timestamps" || last == "stamp" || last == "time";
}

bool is_number_of_step(const std::string& name) {
  return name == "frame_index";
}

/// Where numbers of steps run back, but for those that begin anew; "": they do not.
std::string other_order(const std::vector<double>& numbers) {
  for (std::size_t t = 1; t < numbers.size(); ++t)
    if (numbers[t] < numbers[t - 1] && numbers[t] != 0)
      return format("goes from {} to {} in step {}", numbers[t - 1], numbers[t], t);
  return "";
}

/// Where the times of an episode's steps run back, leap far further than they usually go, or go on at another rate than
/// `rate` (steps per second, 0: not known), with what that means; "": none of them.
std::string break_in_time(const std::vector<double>& times, double rate) {
  constexpr double kLeap = 50;     // usual steps
  constexpr double kOther = 1.25;  // times the rate: clocks are not that wrong
  constexpr std::size_t kFewestTimes = 10;
  constexpr const char* kSeveral =
      "so it seems to hold several episodes, or a pause, and windows go over it; write what follows as an episode of "
      "its own";
  std::vector<double> steps;
  for (std::size_t t = 1; t < times.size(); ++t)
    if (times[t] > times[t - 1]) steps.push_back(times[t] - times[t - 1]);
  if (steps.size() < kFewestTimes) return "";
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end());
  for (std::size_t t = 1; t < times.size(); ++t) {
    if (times[t] < times[t - 1])
      return format("runs back from {:.10g} to {:.10g} in step {}, {}", times[t - 1], times[t], t, kSeveral);
    if (times[t] - times[t - 1] > kLeap * *middle)
      return format("leaps from {:.10g} to {:.10g} in step {}, where it usually goes on by {:.4g}, {}", times[t - 1],
                    times[t], t, *middle, kSeveral);
  }
  if (rate > 0 && (*middle * rate > kOther || *middle * rate < 1 / kOther))
    return format(
        "usually goes on by {:.4g}, but the data say {:g} steps per second: one of them is wrong; policies that are "
        "told the rate, and videos, follow the latter",
        *middle, rate);
  return "";
}

}  // namespace

std::string holds_several(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, bool all_steps) {
  std::vector<std::size_t> fields;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const StepField& field = source.fields()[f];
    if (field.kind == StepKind::kNumber && field.elements() == 1 &&
        ((all_steps && is_time(field.name)) || is_number_of_step(field.name) || is_among(field.name, kFlagsOfEnds) ||
         is_among(field.name, kFlagsOfOutcomes)))
      fields.push_back(f);
  }
  const std::vector<std::string>& said = source.metadata_names();
  const bool has_rate = std::find(said.begin(), said.end(), "fps") != said.end();
  // Rows in another order are that first, whatever their times do.
  std::stable_partition(fields.begin(), fields.end(),
                        [&](std::size_t f) { return is_number_of_step(source.fields()[f].name); });
  const auto all = std::ssize(episodes);
  const std::int64_t count = fields.empty() ? 0 : std::min(all, kEpisodesWithFlags);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto episode = source.open(episodes[static_cast<std::size_t>(count == 1 ? 0 : i * (all - 1) / (count - 1))]);
    std::vector<double> flags(static_cast<std::size_t>(episode->steps()));
    for (const std::size_t f : fields) {
      const std::string& name = source.fields()[f].name;
      episode->read(f, 0, episode->steps(), std::span(flags));
      if (is_number_of_step(name)) {
        if (const std::string found = other_order(flags); !found.empty())
          return format("{}: {} {}, so its rows seem to be in another order than they were recorded; sort them by it",
                        episode->location(), name, found);
        continue;
      }
      if (is_time(name)) {
        double rate = 0;
        if (name == "timestamp" && has_rate) rate = std::strtod(std::string(episode->metadata("fps")).c_str(), nullptr);
        if (const std::string found = break_in_time(flags, rate); !found.empty())
          return format("{}: {} {}", episode->location(), name, found);
        continue;
      }
      const std::vector<std::int64_t> steps =
          is_among(name, kFlagsOfOutcomes) ? outcomes_within(flags) : ends_within(flags, name == "is_first");
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
