/// Statistics of a LeRobot data set's features, as LeRobot's recorder puts them into meta/.
///
/// Source: huggingface/lerobot 0.4.4, src/lerobot/datasets/compute_stats.py. Quantiles are those of a histogram of 5000
/// bins, as there; pictures are sampled and thinned out as there, in units of [0, 1] per channel. Means and deviations
/// are summed in double precision, of pictures too, where LeRobot's squares leave the range of 8 bits.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/images/codec.h"

namespace cohort::data {

/// "q01" and so on.
inline constexpr std::array<double, 5> kLeRobotQuantiles{0.01, 0.10, 0.50, 0.90, 0.99};
std::string lerobot_quantile_name(double quantile);

struct FeatureStatistics {
  std::vector<double> min, max, mean, std;            ///< by element
  std::array<std::vector<double>, 5> quantiles = {};  ///< of kLeRobotQuantiles, by element
  std::int64_t count = 0;                             ///< steps, or frames that were sampled
  bool finite = true;                                 ///< whether all values were
};

/// Of (steps, width) values, row-major; rows of more dimensions come as several steps of their last one, `count` being the
/// steps. Values that are not finite are passed over; an element without a finite value has zeros.
FeatureStatistics statistics_of(std::span<const double> values, std::int64_t width, std::int64_t count);

/// Of pictures: three channels, grey ones counted three times.
class PictureStatistics {
 public:
  void add(const Image& picture);
  FeatureStatistics finish() const;

 private:
  std::array<std::array<std::int64_t, 256>, 3> counts_{};
  std::int64_t frames_ = 0;
};

/// Frames of an episode that its pictures' statistics are taken from, rising: all of a hundred, then steps^0.75.
std::vector<std::int64_t> sampled_frames(std::int64_t steps);

/// Those of episodes as one, weighted by count: exact but for the quantiles, of which it is the mean.
class SetStatistics {
 public:
  void add(const FeatureStatistics& episode);
  FeatureStatistics finish() const;

 private:
  FeatureStatistics sums_;
  std::vector<double> squares_;
};

}  // namespace cohort::data
