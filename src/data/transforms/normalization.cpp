#include "data/transforms/normalization.h"

#include <algorithm>

#include "core/error.h"

namespace cohort::data {
namespace {

constexpr double kEpsilon = 1e-8;  // octo, data/utils/data_utils.py, normalize_action_and_proprio

/// A spread of quantiles or a standard deviation below this part of max - min is nearly nothing: the element keeps one
/// value but for rare steps (a gripper that opens once in a thousand), and dividing by it would throw these far away, or
/// clip them, so that no answer could be what was recorded. Small, for quantiles are there to disregard outliers.
constexpr double kNearlyNothing = 1e-5;

/// 98 of 100 steps within this part of max - min, and not all the same: the range is that of a few steps, a glitch of a
/// sensor mostly, and bounds leave hardly anything of the others.
constexpr double kFewSteps = 1e-3;

}  // namespace

Normalizer::Normalizer(const std::vector<std::string>& kinds, std::span<const std::int64_t> widths,
                       const VectorStatistics& statistics, const std::string& constant, const std::string& what) {
  COHORT_THROW_UNLESS(constant == "error" || constant == "keep" || constant == "zero",
                      "{}: a constant element is an error, to keep or zero, not '{}'", what, constant);
  COHORT_THROW_UNLESS(kinds.size() == 1 || kinds.size() == widths.size(),
                      "{}: {} kinds of normalisation for {} components; give one for all, or one each", what,
                      kinds.size(), widths.size());
  std::size_t e = 0;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    const std::string& kind = kinds[kinds.size() == 1 ? 0 : c];
    COHORT_THROW_UNLESS(kind == "none" || kind == "bounds" || kind == "quantiles" || kind == "normal",
                        "{}: unknown normalisation '{}'; known are none, bounds, quantiles, normal", what, kind);
    for (std::int64_t i = 0; i < widths[c]; ++i, ++e) {
      COHORT_THROW_UNLESS(e < statistics.width(),
                          "{}: the vector is wider than its statistics, which have {} elements: they are of another "
                          "data set or configuration; compute them again",
                          what, statistics.width());
      Element element;
      if (kind == "bounds" || kind == "normal") {
        const bool known = e < statistics.q01.size() && e < statistics.q99.size();
        const double most = known ? statistics.q99[e] - statistics.q01[e] : 0;
        const double whole = statistics.max[e] - statistics.min[e];
        if (most > kEpsilon && most < kFewSteps * whole)
          notes_.push_back(format(
              "{}: element {} goes from {} to {}, but in 98 of 100 steps only from {} to {}: a few steps set its "
              "scale ({}), and little is left of the others; {}leave such episodes out with the filter "
              "max_abs(FIELD, LIMIT)",
              what, e, statistics.min[e], statistics.max[e], statistics.q01[e], statistics.q99[e], kind,
              most > kNearlyNothing * whole ? "normalise it by quantiles, or " : ""));
      }
      const auto sparse = [&](double spread) {
        return !(spread > std::max(kEpsilon, kNearlyNothing * (statistics.max[e] - statistics.min[e])));
      };
      if (kind != "none" && statistics.max[e] - statistics.min[e] <= kEpsilon) {
        COHORT_THROW_UNLESS(constant != "error",
                            "{}: element {} (component {}) is {} in every step, so it cannot be normalised; leave it "
                            "out, normalise it by none, or set constant_elements to keep or zero",
                            what, e, c, statistics.min[e]);
        if (constant == "zero") {
          element.shift = statistics.min[e];
          element.factor = 0;
          element.inverted_constant = true;
        }
      } else if (kind == "normal" && !sparse(statistics.std[e])) {
        element.shift = statistics.mean[e];
        element.factor = 1 / (statistics.std[e] + kEpsilon);
      } else if (kind != "none") {
        const bool quantiles = kind == "quantiles";
        COHORT_THROW_UNLESS(!quantiles || (e < statistics.q01.size() && e < statistics.q99.size()),
                            "{}: the statistics have no quantiles; compute them again", what);
        const bool by_bounds = kind == "bounds" || kind == "normal" || sparse(statistics.q99[e] - statistics.q01[e]);
        const std::vector<double>& low = by_bounds ? statistics.min : statistics.q01;
        const std::vector<double>& high = by_bounds ? statistics.max : statistics.q99;
        if (by_bounds && kind != "bounds")
          notes_.push_back(format(
              "{}: element {} is {} by its {}, nearly nothing beside its range of {} to {}: it is "
              "normalised by bounds instead of {}",
              what, e, quantiles ? statistics.q99[e] - statistics.q01[e] : statistics.std[e],
              quantiles ? "1 % and 99 % quantiles" : "standard deviation", statistics.min[e], statistics.max[e], kind));
        element.shift = low[e];
        element.factor = 2 / (high[e] - low[e] + kEpsilon);
        element.offset = -1;
        element.clipped = true;
      }
      elements_.push_back(element);
    }
  }
  COHORT_THROW_UNLESS(e == statistics.width(),
                      "{}: the vector has {} elements, but its statistics have {}: they are of another data set or "
                      "configuration; compute them again",
                      what, e, statistics.width());
}

std::vector<Normalizer::Scale> Normalizer::scales() const {
  std::vector<Scale> all;
  for (const Element& e : elements_)
    all.push_back(e.inverted_constant ? Scale{e.shift, 0} : Scale{e.shift - e.offset / e.factor, 1 / e.factor});
  return all;
}

void Normalizer::normalize(std::span<float> rows) const {
  if (elements_.empty()) return;
  for (std::size_t at = 0; at < rows.size(); at += elements_.size())
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      const Element& element = elements_[e];
      double value = (static_cast<double>(rows[at + e]) - element.shift) * element.factor + element.offset;
      if (element.clipped) value = std::clamp(value, -1.0, 1.0);
      rows[at + e] = static_cast<float>(value);
    }
}

void Normalizer::denormalize(std::span<float> rows) const {
  if (elements_.empty()) return;
  for (std::size_t at = 0; at < rows.size(); at += elements_.size())
    for (std::size_t e = 0; e < elements_.size(); ++e) {
      const Element& element = elements_[e];
      const double value = static_cast<double>(rows[at + e]);
      rows[at + e] = static_cast<float>(
          element.inverted_constant ? element.shift : (value - element.offset) / element.factor + element.shift);
    }
}

}  // namespace cohort::data
