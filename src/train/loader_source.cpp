#include "train/loader_source.h"

#include <algorithm>

#include <torch/types.h>

#include "tensors/convert.h"

namespace cohort::train {

LoaderSource::LoaderSource(std::shared_ptr<const data::Dataset> dataset, data::SamplerSettings sampler,
                           data::LoaderSettings loader, Allocator& allocator)
    : dataset_(std::move(dataset)),
      fields_(dataset_->fields()),
      sampler_(dataset_->size(), sampler),
      settings_(loader),
      loader_(dataset_, loader, allocator) {}

std::int64_t LoaderSource::samples_per_epoch() const {
  return dataset_->size();
}

std::int64_t LoaderSource::batches_of(std::int64_t samples) const {
  const std::int64_t batch = settings_.batch_size;
  return settings_.drop_last ? samples / batch : (samples + batch - 1) / batch;
}

std::int64_t LoaderSource::batches_per_epoch() const {
  return batches_of(sampler_.size());
}

std::int64_t LoaderSource::start_epoch(std::int64_t epoch, std::int64_t first_sample) {
  // With padding, the ranks together have consumed a few samples more than there are once an epoch is over.
  data::EpochShare share = sampler_.share(static_cast<std::uint64_t>(epoch), std::min(first_sample, dataset_->size()));
  const std::int64_t batches = batches_of(static_cast<std::int64_t>(share.indices.size()));
  loader_.start_epoch(static_cast<std::uint64_t>(epoch), std::move(share.indices), std::move(share.sample_ids));
  return batches;
}

std::optional<parallel::Batch> LoaderSource::next() {
  auto lease = std::make_shared<data::LoadedBatch>(loader_.next());
  if (!*lease) return std::nullopt;
  parallel::Batch batch;
  const std::span<const ArrayView> views = lease->fields();
  for (std::size_t i = 0; i < views.size(); ++i) batch.add(fields_[i].name, tensors::to_tensor(views[i], [lease] {}));
  const std::span<const std::int64_t> ids = lease->sample_ids();
  batch.sample_ids = at::from_blob(
      const_cast<std::int64_t*>(ids.data()), {static_cast<std::int64_t>(ids.size())}, [lease](void*) {}, at::kLong);
  return batch;
}

}  // namespace cohort::train
