#include "parallel/data_parallel.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/log.h"
#include "dist/cuda_plugin.h"
#include "parallel/module_layout.h"
#include "parallel/replica_step.h"
#include "parallel/replica_threads.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

std::string list_of(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId device : devices) text += (text.empty() ? "" : ", ") + to_string(device);
  return text;
}

void check_devices(const std::vector<DeviceId>& devices) {
  COHORT_THROW_UNLESS(!devices.empty(), "DataParallel needs at least one device");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    COHORT_THROW_UNLESS(devices[i].kind == devices[0].kind,
                        "DataParallel over {}: the devices must be of one kind, or the fast ones wait for the slow one",
                        list_of(devices));
    COHORT_THROW_UNLESS(devices[i].kind != DeviceKind::kMetal || devices.size() == 1,
                        "DataParallel over {}: there is one Metal device", list_of(devices));
    COHORT_THROW_UNLESS(devices[i].kind == DeviceKind::kCpu ||
                            std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(i), devices[i]) ==
                                devices.begin() + static_cast<std::ptrdiff_t>(i),
                        "DataParallel over {}: {} appears twice; only the CPU may", list_of(devices),
                        to_string(devices[i]));
  }
}

}  // namespace

void describe(config::Fields& fields, DataParallelSettings& s) {
  fields.add_choice("reduction", s.reduction, {"auto", "shared", "buckets"}, "how replicas' gradients are added up");
  fields.add("bucket_cap_mb", s.bucket_cap_mb, "MiB of gradients summed in one go, with buckets");
  fields.add("first_bucket_cap_mb", s.first_bucket_cap_mb, "MiB of the first bucket, so that sums start early");
  fields.add("threads_per_replica", s.threads_per_replica,
             "CPU threads inside an operation; 0: all of the process, divided");
  fields.add("constant_buffers", s.constant_buffers,
             "endings of names of buffers that never change and need no copies");
}

struct DataParallel::Impl {
  DataParallelSettings settings;
  std::unique_ptr<Replicas> replicas;
  std::unique_ptr<ReplicaThreads> threads;
  std::unique_ptr<GradientReduction> reduction;
  std::unique_ptr<dist::DeviceReducer> copier;  // parameters to the other replicas; null with shared memory
  std::int64_t largest_batch = 0;
  bool said_smaller = false;

  bool gpu() const { return replicas->devices()[0].kind == DeviceKind::kCuda; }

  std::unique_ptr<dist::DeviceReducer> make_device_reducer(std::size_t buckets) const {
    if (!gpu()) return make_host_reducer();
    std::vector<int> indices;
    for (const DeviceId device : replicas->devices()) indices.push_back(device.index);
    return dist::load_cuda_plugin().make_device_reducer(indices, buckets);
  }

  /// Replicas that get a share of the batch.
  std::size_t share_count(std::int64_t samples) {
    const auto all = static_cast<std::int64_t>(replicas->size());
    COHORT_THROW_UNLESS(samples > 0, "the batch is empty");
    if (samples < all) {
      COHORT_THROW_UNLESS(
          largest_batch >= all,
          "a batch of {} sample{} cannot be divided among {} devices ({}); raise train.batch_size to at least {}, or "
          "name fewer devices",
          samples, samples == 1 ? "" : "s", all, list_of(replicas->devices()), all);
      if (!said_smaller)
        log::info("the last batch of {} sample{} runs on {} of {} devices", samples, samples == 1 ? "" : "s", samples,
                  all);
      said_smaller = true;
    }
    largest_batch = std::max(largest_batch, samples);
    return static_cast<std::size_t>(std::min(samples, all));
  }

  /// The shares of a batch on the replicas' devices. Tensors that already lie on the first device move from there.
  Batch share(const Batch& batch, std::size_t replica, std::size_t count) const {
    const auto [begin, size] = share_of(batch.size(), replica, count);
    const c10::Device first = tensors::to_torch_device(replicas->devices()[0]);
    const c10::Device own = tensors::to_torch_device(replicas->devices()[replica]);
    for (const auto& [name, tensor] : batch.fields)
      COHORT_THROW_UNLESS(
          tensor.is_cpu() || tensor.device() == first,
          "field '{}' of the batch lies on {}; DataParallel takes batches on the CPU or on {}, its first device", name,
          tensor.device().str(), first.str());
    return batch.slice(begin, size).to(own, /*non_blocking=*/true);
  }
};

std::pair<std::int64_t, std::int64_t> share_of(std::int64_t samples, std::size_t index, std::size_t parts) {
  const auto i = static_cast<std::int64_t>(index);
  const auto n = static_cast<std::int64_t>(parts);
  const std::int64_t size = samples / n;
  const std::int64_t larger = samples % n;
  return {i * size + std::min(i, larger), size + (i < larger ? 1 : 0)};
}

DataParallel::DataParallel(std::shared_ptr<torch::nn::Module> model, std::vector<DeviceId> devices,
                           DataParallelSettings settings, const ModuleFactory& factory)
    : impl_(std::make_unique<Impl>()) {
  Impl& self = *impl_;
  COHORT_CHECK(model != nullptr, "DataParallel needs a model");
  check_devices(devices);
  self.settings = std::move(settings);
  COHORT_THROW_UNLESS(
      self.settings.reduction == "auto" || self.settings.reduction == "shared" || self.settings.reduction == "buckets",
      "parallel.dp.reduction='{}': it is auto, shared or buckets", self.settings.reduction);
  COHORT_THROW_UNLESS(self.settings.bucket_cap_mb > 0 && self.settings.first_bucket_cap_mb > 0,
                      "dp bucket sizes must be above 0 MiB, not {} and {}", self.settings.bucket_cap_mb,
                      self.settings.first_bucket_cap_mb);
  const bool cpu = devices[0].kind == DeviceKind::kCpu;
  COHORT_THROW_UNLESS(cpu || self.settings.reduction != "shared",
                      "parallel.dp.reduction=shared needs replicas on the CPU; use buckets");
  check_on_device(*model, tensors::to_torch_device(devices[0]));

  const bool buckets = self.settings.reduction == "buckets" || (self.settings.reduction == "auto" && !cpu);
  int threads = self.settings.threads_per_replica;
  if (threads <= 0) threads = std::max(1, at::get_num_threads() / static_cast<int>(devices.size()));
  self.threads = std::make_unique<ReplicaThreads>(devices, threads);
  // Memory can be shared by replicas on the CPU only; with buckets they copy, as GPUs must, so that this path runs
  // everywhere.
  self.replicas = std::make_unique<Replicas>(std::move(model), std::move(devices), factory, cpu && !buckets);
  ReplicaParameters parameters = self.replicas->trainable();
  COHORT_THROW_UNLESS(!parameters[0].empty(), "the model has no trainable parameter");
  if (buckets) {
    constexpr double kMebibyte = 1024.0 * 1024.0;
    const BucketSettings bucket_settings{static_cast<std::size_t>(self.settings.bucket_cap_mb * kMebibyte),
                                         static_cast<std::size_t>(self.settings.first_bucket_cap_mb * kMebibyte)};
    self.copier = self.make_device_reducer(1);
    self.reduction = make_bucketed_sum(std::move(parameters), self.replicas->sparse(), bucket_settings,
                                       [&](std::size_t count) { return self.make_device_reducer(count); });
  } else {
    self.reduction = make_shared_sum(std::move(parameters));
  }
}

DataParallel::~DataParallel() = default;

torch::nn::Module& DataParallel::module() {
  return (*impl_->replicas)[0];
}
torch::nn::Module& DataParallel::replica(std::size_t index) {
  return (*impl_->replicas)[index];
}
int DataParallel::replicas() const {
  return static_cast<int>(impl_->replicas->size());
}
void DataParallel::parameters_changed() {
  impl_->replicas->follow_parameters(impl_->copier.get());
}

void DataParallel::zero_grad() {
  for (std::size_t r = 0; r < impl_->replicas->size(); ++r) drop_gradients((*impl_->replicas)[r]);
}

at::Tensor DataParallel::forward_backward(const Batch& batch, const LossFunction& loss,
                                          const BackwardOptions& options) {
  Impl& self = *impl_;
  const std::size_t count = self.share_count(batch.size());
  self.replicas->follow_mode();
  if (count > 1 && self.replicas->has_buffers_to_follow(self.settings.constant_buffers))
    self.threads->run(count, [&](std::size_t r) { self.replicas->follow_buffers(r, self.settings.constant_buffers); });

  std::vector<at::Tensor> losses(count);
  self.reduction->begin(count, options.synchronise);
  try {
    self.threads->run(
        count,
        [&](std::size_t r) {
          const Batch part = self.share(batch, r, count);
          losses[r] = checked_loss(loss, (*self.replicas)[r], part);
          const double share = static_cast<double>(part.size()) / static_cast<double>(batch.size());
          backward_weighted(losses[r], options.weight * share, options.loss_scale);
          losses[r] = losses[r].detach() * share;
          self.reduction->backward_ended(r);
        },
        [&](std::size_t r) { self.reduction->reduce_share(r); });
  } catch (...) {
    self.reduction->abandon();
    zero_grad();
    throw;
  }
  self.reduction->end();
  at::Tensor total = losses[0];
  for (std::size_t r = 1; r < count; ++r) total = total + losses[r].to(total.device(), /*non_blocking=*/true);
  return total;
}

at::Tensor DataParallel::forward(const Batch& batch, const ForwardFunction& function) {
  Impl& self = *impl_;
  COHORT_THROW_UNLESS(batch.size() > 0, "the batch is empty");
  const auto count = static_cast<std::size_t>(std::min(batch.size(), static_cast<std::int64_t>(self.replicas->size())));
  self.replicas->follow_mode();
  const at::NoGradGuard no_grad;
  if (count > 1)
    self.threads->run(count, [&](std::size_t r) { self.replicas->follow_buffers(r, self.settings.constant_buffers); });
  std::vector<at::Tensor> outputs(count);
  self.threads->run(count, [&](std::size_t r) {
    const Batch part = self.share(batch, r, count);
    outputs[r] = function((*self.replicas)[r], part);
    COHORT_THROW_UNLESS(outputs[r].defined() && outputs[r].dim() > 0 && outputs[r].size(0) == part.size(),
                        "the function given to DataParallel::forward must return one row per sample");
  });
  for (at::Tensor& output : outputs) output = output.to(outputs[0].device(), /*non_blocking=*/true);
  return count == 1 ? outputs[0] : at::cat(outputs);
}

}  // namespace cohort::parallel
