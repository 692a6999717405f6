#include "parallel/zero_data_parallel.h"

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "parallel/replica_step.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

constexpr double kMebibyteOfBuckets = 1024.0 * 1024.0;
constexpr std::size_t kFirstBroadcastBytes = 250 * 1024 * 1024;

void send_from_rank_0(const std::vector<NamedTensor>& tensors, dist::Group& group) {
  if (group.world_size() == 1 || tensors.empty()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> list;
  for (const NamedTensor& t : tensors) list.push_back(t.tensor.detach());
  c10d::broadcast_coalesced(group.process_group(), list, kFirstBroadcastBytes, 0);
}

void check_stage_2(const DdpSettings& s) {
  const auto refuse = [](bool is_set, const char* name) {
    COHORT_THROW_UNLESS(!is_set,
                        "parallel.zero=2 does not know parallel.ddp.{}; leave it out, or choose parallel.zero=1", name);
  };
  refuse(s.find_unused_parameters, "find_unused_parameters");
  refuse(s.static_graph, "static_graph");
  refuse(s.compression != "none", "compression");
  COHORT_THROW_UNLESS(s.bucket_cap_mb > 0, "ddp bucket sizes must be above 0 MiB, not {}", s.bucket_cap_mb);
  COHORT_THROW_UNLESS(s.cpu_reduction == "auto" || s.cpu_reduction == "shared_memory" || s.cpu_reduction == "gloo",
                      "parallel.ddp.cpu_reduction='{}': it is auto, shared_memory or gloo", s.cpu_reduction);
}

}  // namespace

ZeroDataParallel::ZeroDataParallel(std::shared_ptr<torch::nn::Module> model, std::shared_ptr<dist::Group> group,
                                   int stage, DdpSettings settings)
    : model_(std::move(model)), group_(std::move(group)), stage_(stage), settings_(std::move(settings)) {
  COHORT_CHECK(model_ && group_, "ZeroDataParallel needs a model and a group");
  COHORT_CHECK(stage_ == 1 || stage_ == 2, "stage {} of ZeRO", stage_);
  waits_.emplace(tensors::to_torch_device(group_->options().device));
  const bool sockets = settings_.cpu_reduction == "gloo";
  if (stage_ == 1) {
    whole_ = std::make_unique<DistributedDataParallel>(model_, group_, settings_);
    shards_ = std::make_unique<ParameterShards>(parameters_of(*model_), group_, sockets);
    return;
  }
  check_stage_2(settings_);
  check_on_device(*model_, tensors::to_torch_device(group_->options().device));
  if (group_->world_size() > 1) check_same_layout(*model_, *group_);
  try {
    send_from_rank_0(parameters_of(*model_), *group_);
    if (settings_.broadcast_buffers) send_from_rank_0(buffers_of(*model_), *group_);
  } catch (const std::exception& problem) {
    if (dist::Group::is_communication_failure(problem))
      throw group_->explain(problem, "the first broadcast of the parameters");
    throw;
  }
  shards_ = std::make_unique<ParameterShards>(parameters_of(*model_), group_, sockets);
  COHORT_THROW_UNLESS(!shards_->parameters().empty(), "the model has no trainable parameter: nothing to synchronise");
  gradients_ = std::make_unique<GradientShards>(
      *shards_, group_,
      GradientShardSettings{.bucket_bytes = static_cast<std::int64_t>(settings_.bucket_cap_mb * kMebibyteOfBuckets),
                            .through_sockets = sockets});
}

ZeroDataParallel::~ZeroDataParallel() = default;

at::Tensor ZeroDataParallel::forward_backward(const Batch& batch, const LossFunction& loss,
                                              const BackwardOptions& options) {
  if (whole_) return whole_->forward_backward(batch, loss, options);
  const Batch here = place_batch(batch, tensors::to_torch_device(group_->options().device));
  try {
    if (settings_.broadcast_buffers) {
      waits_->begin();
      send_from_rank_0(changing_buffers_of(*model_, settings_.constant_buffers), *group_);
      waits_->end();
    }
    const at::Tensor value = checked_loss(loss, *model_, here);
    gradients_->begin();
    backward_weighted(value, options.weight, options.loss_scale);
    gradients_->end(options.synchronise);
    return value.detach();
  } catch (const std::exception& problem) {
    if (dynamic_cast<const Error*>(&problem) != nullptr) throw;
    if (dist::Group::is_communication_failure(problem)) throw group_->explain(problem, "the sum of gradients");
    rethrow_plain(problem);
  }
}

void ZeroDataParallel::zero_grad() {
  if (gradients_) gradients_->drop();
  drop_gradients(*model_);
}

void ZeroDataParallel::parameters_changed() {
  waits_->begin();
  shards_->share_parameters();
  waits_->end();
}

void ZeroDataParallel::mean_over_ranks(at::Tensor& values) {
  group_->all_reduce(values, dist::Reduction::kMean);
}

void ZeroDataParallel::max_over_ranks(at::Tensor& values) {
  group_->all_reduce(values, dist::Reduction::kMax);
}

double ZeroDataParallel::exchange_seconds() const {
  return (whole_ ? whole_->exchange_seconds() : gradients_->seconds()) + waits_->seconds();
}

}  // namespace cohort::parallel
