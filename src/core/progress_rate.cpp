#include "core/progress_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cohort {
namespace {
constexpr double kShortestInterval = 0.005;  // s; counts that come faster are taken together
}

void RateEstimate::add(double now, double done) {
  if (!started_) {
    started_ = true;
    last_time_ = now;
    last_done_ = done;
    return;
  }
  const double interval = now - last_time_;
  if (interval < kShortestInterval) return;
  const double items = done - last_done_;
  observed_ += interval;
  // The rate is taken as constant within the interval, so that long and short intervals weigh by their time.
  const double tau = std::max(time_constant_, share_of_elapsed_ * observed_);
  const double kept = std::exp(-interval / tau);
  weighted_items_ = weighted_items_ * kept + items / interval * tau * (1 - kept);
  weighted_time_ = weighted_time_ * kept + tau * (1 - kept);
  last_time_ = now;
  last_done_ = done;
}

void RateEstimate::pause(double now) {
  paused_at_ = now;
}

void RateEstimate::resume(double now) {
  last_time_ += now - paused_at_;
}

double RateEstimate::per_second() const {
  return weighted_time_ > 0 ? weighted_items_ / weighted_time_ : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace cohort
