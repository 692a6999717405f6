/// The loader as the training loop sees it: shares of a DistributedSampler, as tensors without copies.
#pragma once
#include <memory>

#include "data/loader.h"
#include "data/sampler.h"
#include "train/batch_source.h"

namespace cohort::train {

class LoaderSource final : public BatchSource {
 public:
  /// settings.drop_last leaves out the last batches that are not full; without it, ranks are kept in step by the
  /// sampler's padding. `allocator` must outlive every batch.
  LoaderSource(std::shared_ptr<const data::Dataset> dataset, data::SamplerSettings sampler, data::LoaderSettings loader,
               Allocator& allocator);

  std::int64_t samples_per_epoch() const override;
  std::int64_t batches_per_epoch() const override;
  std::int64_t start_epoch(std::int64_t epoch, std::int64_t first_sample) override;
  std::optional<parallel::Batch> next() override;
  /// Bytes of all its buffers.
  std::int64_t held_bytes() const { return loader_.statistics().bytes_held; }
  double wait_seconds() const override { return loader_.statistics().wait_seconds; }

 private:
  std::int64_t batches_of(std::int64_t samples) const;

  std::shared_ptr<const data::Dataset> dataset_;
  std::vector<data::FieldSpec> fields_;
  data::DistributedSampler sampler_;
  data::LoaderSettings settings_;
  data::Loader loader_;
};

}  // namespace cohort::train
