/// Samples addressed by index: what a loader reads and a sampler orders.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"

namespace cohort::data {

/// One named part of a sample. A batch of it has the shape (n_sample, sample_shape...).
struct FieldSpec {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> sample_shape;
  bool operator==(const FieldSpec&) const = default;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Number of samples.
  virtual std::int64_t size() const = 0;
  /// The fields of a sample, in the order in which read() writes them; the same for every sample.
  virtual std::vector<FieldSpec> fields() const = 0;
  /// Writes sample `index`, 0 <= index < size(), into rows[i]: one contiguous host view of type and sample_shape per
  /// field. `epoch` may key an augmentation (RandomPurpose::kAugmentation, id = index, step = epoch). Thread-safe,
  /// allocation-free.
  virtual void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const = 0;
};

}  // namespace cohort::data
