/// A choice of environments, dofs, links or geoms.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace cohort::sim {

/// Which environments, dofs or links: indices, in the order of the values. Default: all.
class Indices {
 public:
  Indices() = default;
  Indices(std::int32_t one) : all_(false), indices_{one} {}
  Indices(std::vector<std::int32_t> indices) : all_(false), indices_(std::move(indices)) {}
  Indices(std::initializer_list<std::int32_t> indices) : all_(false), indices_(indices) {}
  /// The positions where mask is not 0; the mask has an entry for every environment (dof, link).
  static Indices from_mask(std::span<const std::uint8_t> mask);
  bool all() const { return all_; }
  /// The indices themselves, 0 .. count - 1 when all; throws Error for one outside [0, count) and for a mask of another
  /// length, naming `what`.
  std::vector<std::int32_t> resolve(int count, const char* what) const;

 private:
  bool all_ = true;
  std::int64_t mask_length_ = -1;  ///< -1: no mask
  std::vector<std::int32_t> indices_;
};

}  // namespace cohort::sim
