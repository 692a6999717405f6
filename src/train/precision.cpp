#include "train/precision.h"

#include <ATen/autocast_mode.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"

namespace cohort::train {
namespace autocast = at::autocast;

Precision parse_precision(const std::string& text) {
  if (text == "fp32" || text == "no") return Precision::kFp32;
  if (text == "bf16") return Precision::kBf16;
  if (text == "fp16") return Precision::kFp16;
  throw Error(format("'{}' is no precision; choose fp32, bf16 or fp16", text));
}

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "unknown";
}

void convert_parameters(torch::nn::Module& module, at::ScalarType type) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters())
    if (parameter.is_floating_point()) parameter.set_data(parameter.to(type));
}

PrecisionGuard::PrecisionGuard(Precision precision, c10::DeviceType device)
    : device_(device),
      former_enabled_(autocast::is_autocast_enabled(device)),
      former_type_(autocast::get_autocast_dtype(device)) {
  autocast::set_autocast_enabled(device, precision != Precision::kFp32);
  if (precision == Precision::kBf16) autocast::set_autocast_dtype(device, at::kBFloat16);
  if (precision == Precision::kFp16) autocast::set_autocast_dtype(device, at::kHalf);
  autocast::increment_nesting();
}

PrecisionGuard::~PrecisionGuard() {
  // The casts of weights that were kept are stale once an optimizer steps.
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::set_autocast_enabled(device_, former_enabled_);
  autocast::set_autocast_dtype(device_, former_type_);
}

AutocastState::AutocastState(c10::DeviceType device)
    : device_(device),
      cpu_enabled_(autocast::is_autocast_enabled(at::kCPU)),
      device_enabled_(autocast::is_autocast_enabled(device)),
      cache_(autocast::is_autocast_cache_enabled()),
      cpu_type_(autocast::get_autocast_dtype(at::kCPU)),
      device_type_(autocast::get_autocast_dtype(device)) {}

AutocastState::Guard::Guard(const AutocastState& state)
    : entered_(state),
      former_cpu_(autocast::is_autocast_enabled(at::kCPU)),
      former_device_(autocast::is_autocast_enabled(state.device_)),
      former_cache_(autocast::is_autocast_cache_enabled()),
      former_cpu_type_(autocast::get_autocast_dtype(at::kCPU)),
      former_device_type_(autocast::get_autocast_dtype(state.device_)) {
  autocast::set_autocast_enabled(at::kCPU, state.cpu_enabled_);
  autocast::set_autocast_dtype(at::kCPU, state.cpu_type_);
  autocast::set_autocast_enabled(state.device_, state.device_enabled_);
  autocast::set_autocast_dtype(state.device_, state.device_type_);
  autocast::set_autocast_cache_enabled(state.cache_);
  autocast::increment_nesting();
}

AutocastState::Guard::~Guard() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  autocast::set_autocast_enabled(entered_.device_, former_device_);
  autocast::set_autocast_dtype(entered_.device_, former_device_type_);
  autocast::set_autocast_enabled(at::kCPU, former_cpu_);
  autocast::set_autocast_dtype(at::kCPU, former_cpu_type_);
  autocast::set_autocast_cache_enabled(former_cache_);
}

}  // namespace cohort::train
