#include "models/host_values.h"

#include <torch/types.h>

namespace cohort::models {
namespace {

thread_local HostRecording* present = nullptr;

/// Through pinned memory, which LibTorch keeps until the copy is done: the host does not wait.
at::Tensor to_device(const at::Tensor& value, at::Device device) {
  return device.is_cpu() ? value : value.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace

std::vector<at::Tensor> host_values(at::Device device, const HostFunction& function) {
  if (present != nullptr) return present->next(device, function);
  std::vector<at::Tensor> values = function(random_context());
  for (at::Tensor& value : values) value = to_device(value, device);
  return values;
}

void refuse_recording(const std::string& what) {
  if (present != nullptr) throw NotRecordable(what);
}

void HostRecording::begin_pass(const at::Tensor& sample_ids) {
  next_ = 0;
  sample_ids_ = sample_ids;
}

std::vector<at::Tensor> HostRecording::next(at::Device device, const HostFunction& function) {
  // A layer that changes the context for a part of the network would not be asked again with that change.
  if (!random_context().sample_ids.is_same(sample_ids_)) throw NotRecordable("random numbers keyed by other ids");
  if (next_ == entries_.size()) {
    Entry entry{function, function(random_context())};
    for (at::Tensor& value : entry.on_device) value = device.is_cpu() ? value.clone() : to_device(value, device);
    entries_.push_back(std::move(entry));
  }
  return entries_[next_++].on_device;
}

void HostRecording::refill(const RandomContext& context) {
  const at::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    const std::vector<at::Tensor> values = entry.function(context);
    COHORT_CHECK(values.size() == entry.on_device.size(), "{} host values, but {} were recorded", values.size(),
                 entry.on_device.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const at::Tensor& to = entry.on_device[i];
      COHORT_CHECK(values[i].sizes() == to.sizes(), "a host value of shape {}, but {} was recorded",
                   c10::str(values[i].sizes()), c10::str(to.sizes()));
      to.copy_(to.is_cpu() ? values[i] : values[i].pin_memory(), /*non_blocking=*/true);
    }
  }
}

HostRecordingGuard::HostRecordingGuard(HostRecording& recording) : former_(present) {
  present = &recording;
}
HostRecordingGuard::~HostRecordingGuard() {
  present = former_;
}

}  // namespace cohort::models
