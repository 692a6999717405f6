/// A few samples of a data set, evenly spread over it: what a run shows of its predictions.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>

#include "data/dataset.h"

namespace cohort::train {

class SomeSamples final : public data::Dataset {
 public:
  /// At most `count` samples, at least one.
  SomeSamples(std::shared_ptr<const data::Dataset> all, std::int64_t count)
      : all_(std::move(all)), count_(std::clamp<std::int64_t>(count, 1, all_->size())) {}
  std::int64_t size() const override { return count_; }
  /// The sample of the whole set that is their `place`-th.
  std::int64_t index_of(std::int64_t place) const { return place * all_->size() / count_; }
  /// Whether sample `index` of the whole set is one of them.
  bool holds(std::int64_t index) const {
    const std::int64_t place = (index * count_ + all_->size() - 1) / all_->size();
    return place < count_ && index_of(place) == index;
  }
  std::vector<data::FieldSpec> fields() const override { return all_->fields(); }
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override {
    all_->read(index_of(index), epoch, rows);
  }

 private:
  std::shared_ptr<const data::Dataset> all_;
  std::int64_t count_;
};

}  // namespace cohort::train
