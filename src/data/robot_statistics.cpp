#include "data/robot_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/kept_files.h"
#include "data/sentinels.h"

namespace cohort::data {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::int64_t kEpisodesPerTask =
    32;  // the unit of parallel work and of summation: fixed, so that the result is
constexpr std::array kStatisticNames{"mean", "std", "max", "min", "q01", "q99"};
constexpr const char* kRemarks = "remarks";  // of a kept file: what was said of the data when it was read

/// Count, mean and sum of squared deviations (Chan, Golub, LeVeque 1979), smallest and largest.
struct Moments {
  std::int64_t n = 0;
  std::vector<double> mean, squares, min, max;

  explicit Moments(std::size_t width)
      : mean(width, 0),
        squares(width, 0),
        min(width, std::numeric_limits<double>::infinity()),
        max(width, -std::numeric_limits<double>::infinity()) {}

  void add(const float* row) {
    ++n;
    for (std::size_t d = 0; d < mean.size(); ++d) {
      const double value = static_cast<double>(row[d]), off = value - mean[d];
      mean[d] += off / static_cast<double>(n);
      squares[d] += off * (value - mean[d]);
      min[d] = std::min(min[d], value);
      max[d] = std::max(max[d], value);
    }
  }

  void add(const Moments& other) {
    if (other.n == 0) return;
    const double a = static_cast<double>(n), b = static_cast<double>(other.n);
    for (std::size_t d = 0; d < mean.size(); ++d) {
      const double off = other.mean[d] - mean[d];
      mean[d] += off * b / (a + b);
      squares[d] += other.squares[d] + off * off * a * b / (a + b);
      min[d] = std::min(min[d], other.min[d]);
      max[d] = std::max(max[d], other.max[d]);
    }
    n += other.n;
  }
};

/// Linear interpolation between order statistics: numpy.quantile's default.
double quantile(std::vector<float>& values, double q) {
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), values.begin() + low, values.end());
  const double below = static_cast<double>(values[static_cast<std::size_t>(low)]);
  if (static_cast<double>(low) == place) return below;
  const double above = static_cast<double>(*std::min_element(values.begin() + low + 1, values.end()));
  return below + (above - below) * (place - static_cast<double>(low));
}

VectorStatistics finish(const Moments& moments, const std::vector<float>& kept) {
  VectorStatistics statistics;
  const std::size_t width = moments.mean.size();
  for (std::size_t d = 0; d < width; ++d) {
    statistics.mean.push_back(moments.mean[d]);
    statistics.std.push_back(std::sqrt(moments.squares[d] / static_cast<double>(moments.n)));
    statistics.min.push_back(moments.min[d]);
    statistics.max.push_back(moments.max[d]);
    std::vector<float> column;
    column.reserve(kept.size() / width);
    for (std::size_t i = d; i < kept.size(); i += width) column.push_back(kept[i]);
    statistics.q01.push_back(quantile(column, 0.01));
    statistics.q99.push_back(quantile(column, 0.99));
  }
  return statistics;
}

std::string content_key(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                        const ComponentVector& action, const ComponentVector& proprio, std::int64_t stride) {
  ContentHash hash;
  hash.add(source.content_hash());
  hash.add(action.text());
  hash.add(proprio.text());
  for (const std::int64_t episode : episodes) hash.add(static_cast<std::uint64_t>(episode));
  if (stride > 1) hash.add(static_cast<std::uint64_t>(stride));
  return format("{:016x}", hash.value());
}

Json vector_json(const VectorStatistics& s) {
  Json json;
  const std::array lists{&s.mean, &s.std, &s.max, &s.min, &s.q01, &s.q99};
  for (std::size_t i = 0; i < lists.size(); ++i)
    if (!lists[i]->empty() || i < 4) json[kStatisticNames[i]] = *lists[i];
  return json;
}

VectorStatistics vector_from_json(const Json& root, const char* which, const std::string& source) {
  VectorStatistics s;
  const auto found = root.find(which);
  if (found == root.end()) return s;
  COHORT_THROW_UNLESS(found->is_object(), "{}: {} is no object", source, which);
  const std::array lists{&s.mean, &s.std, &s.max, &s.min, &s.q01, &s.q99};
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto list = found->find(kStatisticNames[i]);
    if (list == found->end() && i >= 4) list = found->find(i == 4 ? "p01" : "p99");  // as octo names them
    if (list == found->end() && i >= 4) continue;  // the DROID pipeline has no quantiles
    bool good = list != found->end() && list->is_array();
    if (good)
      for (const Json& value : *list) good = good && value.is_number();
    COHORT_THROW_UNLESS(good, "{}: {}.{} is no list of numbers", source, which, kStatisticNames[i]);
    *lists[i] = list->get<std::vector<double>>();
    COHORT_THROW_UNLESS(lists[i]->size() == s.mean.size(), "{}: {}.{} has {} numbers, but mean has {}", source, which,
                        kStatisticNames[i], lists[i]->size(), s.mean.size());
  }
  return s;
}

/// A number that stands for a missing value sets the element's scale and is learnt: a remark for each.
void find_sentinels_of(const std::string& source, const char* what, std::size_t width, const std::vector<float>& kept,
                       std::vector<std::string>& remarks) {
  for (std::size_t d = 0; d < width; ++d) {
    std::vector<float> column;
    column.reserve(kept.size() / width);
    for (std::size_t i = d; i < kept.size(); i += width) column.push_back(kept[i]);
    for (const Sentinel& found : find_sentinels(column))
      remarks.push_back(format(
          "{}: element {} of {} is {} in {} of {} steps looked at, and from {:g} to {:g} in all others; where that "
          "stands for a missing value, leave such episodes out (the filter max_abs(FIELD, LIMIT), where it is the "
          "largest), or mend the data",
          source, d, what, sentinel_text(found.value, true), found.count, column.size(), found.low, found.high));
  }
}

/// Of some episodes, or of all.
struct StatisticsPart {
  Moments action, proprio;
  std::vector<float> kept_action, kept_proprio;
};

/// Reads every step once; one of `stride` is kept for the quantiles.
StatisticsPart read_steps(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                          const ComponentVector& action, const ComponentVector& proprio, std::int64_t stride,
                          int threads) {
  const auto action_width = static_cast<std::size_t>(action.width()),
             proprio_width = static_cast<std::size_t>(proprio.width());
  const auto count = static_cast<std::int64_t>(episodes.size());
  const std::int64_t tasks = (count + kEpisodesPerTask - 1) / kEpisodesPerTask;
  std::vector<StatisticsPart> parts(static_cast<std::size_t>(tasks),
                                    StatisticsPart{Moments(action_width), Moments(proprio_width), {}, {}});
  parallel_for(tasks, threads > 0 ? threads : available_cores(), [&](std::int64_t task) {
    StatisticsPart& part = parts[static_cast<std::size_t>(task)];
    std::vector<float> rows;
    for (std::int64_t i = task * kEpisodesPerTask; i < std::min(count, (task + 1) * kEpisodesPerTask); ++i) {
      const auto episode = source.open(episodes[static_cast<std::size_t>(i)]);
      const auto collect = [&](const ComponentVector& vector, Moments& moments, std::vector<float>& kept) {
        if (vector.width() == 0) return;
        const auto width = static_cast<std::size_t>(vector.width());
        rows.resize(static_cast<std::size_t>(episode->steps()) * width);
        vector.read(*episode, 0, episode->steps(), rows);
        for (std::int64_t t = 0; t < episode->steps(); ++t) {
          const float* row = rows.data() + static_cast<std::size_t>(t) * width;
          moments.add(row);
          if (t % stride == 0) kept.insert(kept.end(), row, row + width);
        }
      };
      collect(action, part.action, part.kept_action);
      collect(proprio, part.proprio, part.kept_proprio);
    }
  });
  StatisticsPart total{Moments(action_width), Moments(proprio_width), {}, {}};
  std::size_t action_values = 0, proprio_values = 0;
  for (const StatisticsPart& part : parts) {
    action_values += part.kept_action.size();
    proprio_values += part.kept_proprio.size();
  }
  total.kept_action.reserve(action_values);  // memory that is taken as the parts give theirs back
  total.kept_proprio.reserve(proprio_values);
  for (StatisticsPart& part : parts) {
    total.action.add(part.action);
    total.proprio.add(part.proprio);
    total.kept_action.insert(total.kept_action.end(), part.kept_action.begin(), part.kept_action.end());
    total.kept_proprio.insert(total.kept_proprio.end(), part.kept_proprio.begin(), part.kept_proprio.end());
    part = StatisticsPart{Moments(0), Moments(0), {}, {}};
  }
  return total;
}

}  // namespace

Json to_json(const RobotStatistics& statistics) {
  Json json;
  json["action"] = vector_json(statistics.action);
  if (statistics.proprio.width() > 0) json["proprio"] = vector_json(statistics.proprio);
  json["num_transitions"] = statistics.transitions;
  json["num_trajectories"] = statistics.trajectories;
  return json;
}

RobotStatistics statistics_from_json(const Json& json, const std::string& source) {
  COHORT_THROW_UNLESS(json.is_object() && json.contains("action"), "{}: is no object with the field action", source);
  RobotStatistics statistics;
  statistics.action = vector_from_json(json, "action", source);
  statistics.proprio = vector_from_json(json, "proprio", source);
  for (const auto& [name, target] :
       {std::pair{"num_transitions", &statistics.transitions}, std::pair{"num_trajectories", &statistics.trajectories}})
    if (json.contains(name)) {
      COHORT_THROW_UNLESS(json[name].is_number_integer(), "{}: {} is no whole number", source, name);
      *target = json[name].get<std::int64_t>();
    }
  return statistics;
}

RobotStatistics compute_statistics(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                                   const ComponentVector& action, const ComponentVector& proprio,
                                   const fs::path& folder, const StatisticsSettings& settings) {
  COHORT_THROW_UNLESS(!episodes.empty(), "{}: no episode to compute statistics of", source.name());
  const auto action_width = static_cast<std::size_t>(action.width()),
             proprio_width = static_cast<std::size_t>(proprio.width());
  std::int64_t steps = 0;
  for (const std::int64_t episode : episodes) steps += source.steps(episode);
  const std::int64_t all_bytes = steps * static_cast<std::int64_t>((action_width + proprio_width) * sizeof(float));
  const std::int64_t room = std::max<std::int64_t>(settings.quantile_bytes, 1);
  const std::int64_t stride = std::max<std::int64_t>(1, (all_bytes + room - 1) / room);
  const std::string hash = content_key(source, episodes, action, proprio, stride);
  const std::string file = "dataset_statistics_" + hash + ".json";
  const KeptFiles files(folder, settings.cache);
  const auto known = [&]() -> std::optional<RobotStatistics> {
    const auto kept = files.read(file);
    if (!kept) return std::nullopt;
    const Json json = try_json<Json>(kept->content);
    try {
      RobotStatistics statistics = statistics_from_json(json, kept->path.string());
      statistics.hash = hash;
      if (statistics.action.width() == action_width && statistics.proprio.width() == proprio_width) {
        for (const Json& remark : json.value(kRemarks, Json::array()))
          if (remark.is_string()) log::warning("{}", remark.get<std::string>());
        return statistics;
      }
    } catch (const Error& e) {
      log::warning("{}; computing the statistics again", e.what());
    }
    return std::nullopt;
  };
  if (auto statistics = known()) return *std::move(statistics);
  const auto turn = files.turn(file);
  if (auto statistics = known()) return *std::move(statistics);

  const auto count = static_cast<std::int64_t>(episodes.size());
  if (stride > 1)
    log::info("statistics of {}: the quantiles are taken from every {}th of {} steps", source.name(), stride, steps);
  StatisticsPart total = read_steps(source, episodes, action, proprio, stride, settings.threads);
  RobotStatistics statistics{.transitions = steps, .trajectories = count, .hash = hash};
  std::vector<std::string> remarks;
  find_sentinels_of(source.name(), "the actions", action_width, total.kept_action, remarks);
  find_sentinels_of(source.name(), "the state", proprio_width, total.kept_proprio, remarks);
  for (const std::string& remark : remarks) log::warning("{}", remark);
  if (action_width > 0) statistics.action = finish(total.action, total.kept_action);
  if (proprio_width > 0) statistics.proprio = finish(total.proprio, total.kept_proprio);
  Json json = to_json(statistics);
  if (!remarks.empty()) json[kRemarks] = remarks;
  files.write(file, json_text(json, 2) + "\n", "statistics of " + source.name());
  return statistics;
}

}  // namespace cohort::data
