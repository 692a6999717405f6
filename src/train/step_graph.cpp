#include "train/step_graph.h"

#include <utility>

#include <torch/types.h>

#include "core/log.h"
#include "core/without_stack.h"

namespace cohort::train {

StepGraph::StepGraph(std::unique_ptr<dist::DeviceGraph> graph, c10::Device device, Work work)
    : graph_(std::move(graph)), device_(device), work_(std::move(work)) {
  // CUDA's fused optimizers read a float32; the CPU's take the number as it is.
  lr_ = at::zeros({}, at::TensorOptions(device).dtype(device.is_cpu() ? at::kDouble : at::kFloat));
}

bool StepGraph::step(const parallel::Batch& batch, double lr, const models::RandomContext& context) {
  if (refused_ || !fits(batch)) return false;
  load(batch, lr);
  if (passes_ > 0) host_.refill(context);
  if (passes_ < kWarmUps) {
    try {
      graph_->warm_up([this] { run(); });
    } catch (const models::NotRecordable& reason) {
      return refuse(reason.what());
    }
    ++passes_;
    return true;
  }
  if (passes_ == kWarmUps) {
    try {
      graph_->record([this] { run(); });
    } catch (const std::exception& reason) {
      return refuse(reason.what());
    }
    ++passes_;
    log::info("steps are launched as one graph of {} from now on", device_.str());
  }
  graph_->replay();
  return true;
}

bool StepGraph::fits(const parallel::Batch& batch) const {
  if (batch_.fields.empty()) return true;
  if (batch.fields.size() != batch_.fields.size()) return false;
  for (std::size_t i = 0; i < batch.fields.size(); ++i) {
    const auto& [name, tensor] = batch.fields[i];
    const auto& [own_name, own] = batch_.fields[i];
    if (name != own_name || tensor.sizes() != own.sizes() || tensor.scalar_type() != own.scalar_type()) return false;
  }
  return true;
}

void StepGraph::load(const parallel::Batch& batch, double lr) {
  const at::NoGradGuard no_grad;
  if (batch_.fields.empty()) {
    for (const auto& [name, tensor] : batch.fields)
      batch_.add(name, at::empty(tensor.sizes(), at::TensorOptions(device_).dtype(tensor.dtype())));
  }
  for (std::size_t i = 0; i < batch.fields.size(); ++i)
    batch_.fields[i].second.copy_(batch.fields[i].second, /*non_blocking=*/true);
  // A copy: what the loader lent is its again after the step, whatever is recorded.
  batch_.sample_ids = batch.sample_ids.clone();
  lr_.fill_(lr);
}

void StepGraph::run() {
  const models::HostRecordingGuard guard(host_);
  host_.begin_pass(batch_.sample_ids);
  work_(batch_, lr_);
}

bool StepGraph::refuse(const char* why) {
  refused_ = true;
  graph_.reset();
  log::warning("steps are not launched as a graph: {}", without_stack(why));
  return false;
}

}  // namespace cohort::train
