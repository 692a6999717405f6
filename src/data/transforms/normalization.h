/// Values brought to comparable size, element by element, and back.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort::data {

/// Statistics of one vector over all steps of a data set; every list has one entry per element.
struct VectorStatistics {
  std::vector<double> mean, std, min, max, q01, q99;  ///< std: of the population (division by n)
  std::size_t width() const { return mean.size(); }
};

/// kind, per range of elements:
///   none       as they are
///   bounds     2 (x - min) / (max - min + 1e-8) - 1, clipped to [-1, 1]: the DROID pipeline's
///   quantiles  the same from the 1 % to the 99 % quantile
///   normal     (x - mean) / (std + 1e-8)
/// An element whose quantiles, or standard deviation, is below 1e-8 or a hundred thousandth of its range, is normalised by bounds, and
/// notes() say so: it is the same in almost all steps, and the rare others are what matters.
class Normalizer {
 public:
  /// `kinds` has one entry for all, or one per component; `widths` are the components' widths. constant: what an
  /// element that never changes does: error (names it), keep (stays as it is), zero (becomes 0; back it becomes its
  /// value). Throws Error also for an unknown kind and where the widths do not fit the statistics.
  Normalizer(const std::vector<std::string>& kinds, std::span<const std::int64_t> widths,
             const VectorStatistics& statistics, const std::string& constant, const std::string& what);

  std::size_t width() const { return elements_.size(); }
  /// A line for each element that is normalised in another way than its kind says, or whose scale a few steps set.
  const std::vector<std::string>& notes() const { return notes_; }
  /// value = mean + std * normalised, of each element, but for clipping. std 0: it never changes, and is normalised to 0.
  struct Scale {
    double mean = 0, std = 1;
  };
  std::vector<Scale> scales() const;
  /// In place, rows of width().
  void normalize(std::span<float> rows) const;
  void denormalize(std::span<float> rows) const;

 private:
  /// normalised = clip((x - shift) * factor + offset)
  struct Element {
    double shift = 0, factor = 1, offset = 0;
    bool clipped = false;
    bool inverted_constant = false;  // kind zero: back is shift
  };
  std::vector<Element> elements_;
  std::vector<std::string> notes_;
};

}  // namespace cohort::data
