#include "models/segment.h"

#include <utility>

#include <torch/types.h>

namespace cohort::models {
namespace {
thread_local SegmentRunner current_runner;
}

SegmentRunnerGuard::SegmentRunnerGuard(SegmentRunner runner)
    : former_(std::exchange(current_runner, std::move(runner))) {}

SegmentRunnerGuard::~SegmentRunnerGuard() {
  current_runner = std::move(former_);
}

at::Tensor run_segment(const torch::nn::Module& part, const Segment& segment, const std::vector<at::Tensor>& inputs) {
  if (!current_runner) return segment(inputs);
  const SegmentRunner runner = current_runner;
  const SegmentRunnerGuard inner{SegmentRunner()};
  return runner(part, segment, inputs);
}

}  // namespace cohort::models
