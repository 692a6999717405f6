#include "train/loader_source.h"

#include <torch/torch.h>

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

std::int64_t LoaderSource::batches_per_epoch() const {
  const std::int64_t samples = sampler_.size(), batch = settings_.batch_size;
  return settings_.drop_last ? samples / batch : (samples + batch - 1) / batch;
}

void LoaderSource::start_epoch(std::int64_t epoch, std::int64_t first_sample) {
  data::EpochShare share = sampler_.share(static_cast<std::uint64_t>(epoch), first_sample);
  loader_.start_epoch(static_cast<std::uint64_t>(epoch), std::move(share.indices), std::move(share.sample_ids));
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
