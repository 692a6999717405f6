/// Batches from data/: a sampler deals the epoch's order out to the ranks, a loader prepares the batches, and their
/// memory becomes tensors without a copy.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "data/sampler.h"
#include "train/batch_source.h"

namespace cohort::train {

class LoaderSource final : public BatchSource {
 public:
  /// loader.drop_last leaves out the batch that is not full at the end of the epoch; sampler.drop_last leaves out
  /// samples that do not divide by the ranks. A batch keeps its memory lent from the loader until its last tensor is
  /// gone.
  LoaderSource(std::shared_ptr<const data::Dataset> dataset, const data::LoaderSettings& loader,
               const data::SamplerSettings& sampler, Allocator& allocator = host_allocator());

  std::int64_t samples_per_epoch() const override;
  std::int64_t batches_per_epoch() const override;
  std::int64_t start_epoch(std::int64_t epoch, std::int64_t first_sample) override;
  std::optional<parallel::Batch> next() override;

  data::LoaderStatistics statistics() const { return loader_.statistics(); }

 private:
  std::int64_t batches_of(std::int64_t samples) const;

  std::shared_ptr<const data::Dataset> dataset_;
  std::vector<std::string> names_;
  data::LoaderSettings settings_;
  data::DistributedSampler sampler_;
  data::Loader loader_;
};

}  // namespace cohort::train
