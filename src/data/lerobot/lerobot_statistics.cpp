#include "data/lerobot/lerobot_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/format.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kQuantileBins = 5000;
/// What the histogram reaches beyond the values at either end.
constexpr double kQuantileMargin = 1e-10;
/// Pictures with a side of so many pixels are thinned out to about kThinSide.
constexpr std::int64_t kLargeSide = 300, kThinSide = 150;

/// A value and how often it occurs, rising.
using Counted = std::vector<std::pair<double, std::int64_t>>;

/// Where the histogram's cumulated counts reach a share of all, between its edges.
std::array<double, 5> quantiles_of(const Counted& values, std::int64_t total) {
  const double low = values.front().first - kQuantileMargin, high = values.back().first + kQuantileMargin;
  const double step = (high - low) / static_cast<double>(kQuantileBins);
  const auto edge = [&](std::int64_t i) { return i == kQuantileBins ? high : low + static_cast<double>(i) * step; };
  std::vector<std::int64_t> counts(kQuantileBins, 0);
  for (const auto& [value, times] : values) {
    auto bin = step > 0 ? static_cast<std::int64_t>((value - low) / step) : kQuantileBins - 1;
    bin = std::clamp<std::int64_t>(bin, 0, kQuantileBins - 1);
    while (bin > 0 && edge(bin) > value) --bin;
    while (bin + 1 < kQuantileBins && edge(bin + 1) <= value) ++bin;
    counts[static_cast<std::size_t>(bin)] += times;
  }
  std::array<double, 5> found{};
  for (std::size_t q = 0; q < found.size(); ++q) {
    const double target = kLeRobotQuantiles[q] * static_cast<double>(total);
    std::int64_t before = 0, bin = 0;
    while (bin < kQuantileBins && static_cast<double>(before + counts[static_cast<std::size_t>(bin)]) < target)
      before += counts[static_cast<std::size_t>(bin++)];
    if (bin == 0 || bin == kQuantileBins) {
      found[q] = bin == 0 ? low : high;
      continue;
    }
    const double share =
        (target - static_cast<double>(before)) / static_cast<double>(counts[static_cast<std::size_t>(bin)]);
    found[q] = edge(bin) + share * (edge(bin + 1) - edge(bin));
  }
  return found;
}

void append_element(FeatureStatistics& to, const Counted& values) {
  std::int64_t total = 0;
  double sum = 0, squares = 0;
  for (const auto& [value, times] : values) total += times, sum += value * static_cast<double>(times);
  const double mean = total > 0 ? sum / static_cast<double>(total) : 0;
  for (const auto& [value, times] : values) squares += (value - mean) * (value - mean) * static_cast<double>(times);
  to.min.push_back(values.empty() ? 0 : values.front().first);
  to.max.push_back(values.empty() ? 0 : values.back().first);
  to.mean.push_back(mean);
  to.std.push_back(total > 0 ? std::sqrt(squares / static_cast<double>(total)) : 0);
  // Of a single value LeRobot takes the mean.
  std::array<double, 5> quantiles{};
  if (total > 1)
    quantiles = quantiles_of(values, total);
  else
    quantiles.fill(mean);
  for (std::size_t q = 0; q < quantiles.size(); ++q) to.quantiles[q].push_back(quantiles[q]);
}

}  // namespace

std::string lerobot_quantile_name(double quantile) {
  return format("q{:02}", static_cast<int>(quantile * 100));
}

FeatureStatistics statistics_of(std::span<const double> values, std::int64_t width, std::int64_t count) {
  COHORT_CHECK(width > 0 && static_cast<std::int64_t>(values.size()) % width == 0, "{} values of width {}",
               values.size(), width);
  FeatureStatistics statistics{.min = {}, .max = {}, .mean = {}, .std = {}, .count = count};
  std::vector<double> column;
  Counted counted;
  for (std::int64_t element = 0; element < width; ++element) {
    column.clear();
    for (auto i = static_cast<std::size_t>(element); i < values.size(); i += static_cast<std::size_t>(width)) {
      if (std::isfinite(values[i]))
        column.push_back(values[i]);
      else
        statistics.finite = false;
    }
    std::sort(column.begin(), column.end());
    counted.clear();
    for (const double value : column) {
      if (counted.empty() || counted.back().first != value) counted.emplace_back(value, 0);
      ++counted.back().second;
    }
    append_element(statistics, counted);
  }
  return statistics;
}

void PictureStatistics::add(const Image& picture) {
  std::int64_t stride = 1;
  if (std::max(picture.height, picture.width) >= kLargeSide)
    stride = std::max<std::int64_t>(1, (picture.width > picture.height ? picture.width : picture.height) / kThinSide);
  for (std::int64_t y = 0; y < picture.height; y += stride)
    for (std::int64_t x = 0; x < picture.width; x += stride) {
      const std::uint8_t* pixel = picture.row(y) + x * picture.channels;
      for (std::size_t c = 0; c < 3; ++c) ++counts_[c][pixel[picture.channels == 3 ? c : 0]];
    }
  ++frames_;
}

FeatureStatistics PictureStatistics::finish() const {
  FeatureStatistics statistics{.min = {}, .max = {}, .mean = {}, .std = {}, .count = frames_};
  for (const auto& channel : counts_) {
    Counted counted;
    for (std::size_t value = 0; value < channel.size(); ++value)
      if (channel[value] > 0) counted.emplace_back(static_cast<double>(value), channel[value]);
    append_element(statistics, counted);
  }
  for (std::vector<double>* values : {&statistics.min, &statistics.max, &statistics.mean, &statistics.std})
    for (double& value : *values) value /= 255;
  for (std::vector<double>& values : statistics.quantiles)
    for (double& value : values) value /= 255;
  return statistics;
}

std::vector<std::int64_t> sampled_frames(std::int64_t steps) {
  constexpr std::int64_t kLeast = 100, kMost = 10000;
  const auto wanted = static_cast<std::int64_t>(std::pow(static_cast<double>(steps), 0.75));
  const std::int64_t count = std::max(std::min(kLeast, steps), std::min(wanted, kMost));
  std::vector<std::int64_t> frames;
  for (std::int64_t i = 0; i < count; ++i) {
    const double place =
        count > 1 ? static_cast<double>(i) * (static_cast<double>(steps - 1) / static_cast<double>(count - 1)) : 0;
    frames.push_back(std::min(steps - 1, static_cast<std::int64_t>(std::nearbyint(place))));
  }
  return frames;
}

void SetStatistics::add(const FeatureStatistics& episode) {
  const std::size_t width = episode.mean.size();
  if (sums_.mean.empty()) {
    sums_.min = episode.min, sums_.max = episode.max;
    sums_.mean.assign(width, 0);
    squares_.assign(width, 0);
    for (std::vector<double>& values : sums_.quantiles) values.assign(width, 0);
  }
  const auto count = static_cast<double>(episode.count);
  for (std::size_t i = 0; i < width; ++i) {
    sums_.min[i] = std::min(sums_.min[i], episode.min[i]);
    sums_.max[i] = std::max(sums_.max[i], episode.max[i]);
    // Chan's update of the sum of squares about the mean, which is kept as the mean.
    const double delta = episode.mean[i] - sums_.mean[i], before = static_cast<double>(sums_.count),
                 total = before + count;
    sums_.mean[i] += delta * count / total;
    squares_[i] += episode.std[i] * episode.std[i] * count + delta * delta * before * count / total;
    for (std::size_t q = 0; q < sums_.quantiles.size(); ++q)
      sums_.quantiles[q][i] += (episode.quantiles[q][i] - sums_.quantiles[q][i]) * count / total;
  }
  sums_.count += episode.count;
  sums_.finite = sums_.finite && episode.finite;
}

FeatureStatistics SetStatistics::finish() const {
  FeatureStatistics statistics = sums_;
  for (const double squares : squares_) statistics.std.push_back(std::sqrt(squares / static_cast<double>(sums_.count)));
  return statistics;
}

}  // namespace cohort::data
