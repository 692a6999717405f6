#include "sim/indices.h"

#include <numeric>

#include "core/error.h"
#include "sim/index.h"

namespace cohort::sim {

Indices Indices::from_mask(std::span<const std::uint8_t> mask) {
  std::vector<std::int32_t> found;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) found.push_back(static_cast<std::int32_t>(i));
  }
  Indices indices(std::move(found));
  indices.mask_length_ = static_cast<std::int64_t>(mask.size());
  return indices;
}

std::vector<std::int32_t> Indices::resolve(int count, const char* what) const {
  if (all_) {
    std::vector<std::int32_t> every(at(count));
    std::iota(every.begin(), every.end(), 0);
    return every;
  }
  COHORT_THROW_UNLESS(mask_length_ < 0 || mask_length_ == count, "the {} mask has {} entries: there are {}", what,
                      mask_length_, count);
  for (std::int32_t i : indices_) {
    COHORT_THROW_UNLESS(i >= 0 && i < count, "{} {} does not exist: there are {}, counted from 0", what, i, count);
  }
  return indices_;
}

}  // namespace cohort::sim
