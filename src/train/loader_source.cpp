#include "train/loader_source.h"

#include <algorithm>

#include <torch/torch.h>

#include "core/error.h"
#include "tensors/array_tensor.h"

namespace cohort::train {

LoaderSource::LoaderSource(std::shared_ptr<const data::Dataset> dataset, const data::LoaderSettings& loader,
                           const data::SamplerSettings& sampler, Allocator& allocator)
    : dataset_(dataset), settings_(loader), sampler_(dataset->size(), sampler), loader_(dataset, loader, allocator) {
  for (const auto& field : dataset_->fields()) names_.push_back(field.name);
  COHORT_THROW_UNLESS(
      batches_per_epoch() > 0,
      "{} samples for this process make no full batch of {}: use a smaller batch_size, fewer processes, or keep "
      "the last batch",
      sampler_.size(), settings_.batch_size);
}

std::int64_t LoaderSource::batches_of(std::int64_t samples) const {
  return settings_.drop_last ? samples / settings_.batch_size
                             : (samples + settings_.batch_size - 1) / settings_.batch_size;
}

std::int64_t LoaderSource::samples_per_epoch() const {
  return dataset_->size();
}

std::int64_t LoaderSource::batches_per_epoch() const {
  return batches_of(sampler_.size());
}

std::int64_t LoaderSource::start_epoch(std::int64_t epoch, std::int64_t first_sample) {
  // Padding makes the ranks consume a few samples more than there are.
  auto share = sampler_.share(static_cast<std::uint64_t>(epoch), std::min(first_sample, dataset_->size()));
  const std::int64_t batches = batches_of(static_cast<std::int64_t>(share.indices.size()));
  loader_.start_epoch(static_cast<std::uint64_t>(epoch), std::move(share.indices), std::move(share.sample_ids));
  return batches;
}

std::optional<parallel::Batch> LoaderSource::next() {
  auto lease = std::make_shared<data::LoadedBatch>(loader_.next());
  if (!*lease) return std::nullopt;
  parallel::Batch batch;
  const auto fields = lease->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) batch.add(names_[i], tensors::to_tensor(fields[i], lease));
  const auto ids = lease->sample_ids();
  batch.sample_ids = at::from_blob(
      const_cast<std::int64_t*>(ids.data()), {static_cast<std::int64_t>(ids.size())}, [lease](void*) {}, at::kLong);
  return batch;
}

}  // namespace cohort::train
