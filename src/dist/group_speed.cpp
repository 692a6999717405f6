#include "dist/group_speed.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <torch/types.h>

#include "dist/group.h"

namespace cohort::dist {
namespace {

constexpr int kSmall = 200, kLarge = 5;
constexpr std::int64_t kFirstSize = 1 << 16, kLargestSize = 1 << 24;  // floats
constexpr double kLongEnough = 0.25;                                  // s of one all-reduce

double seconds_of(Group& group, at::Tensor& tensor) {
  group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  group.all_reduce(tensor, Reduction::kMax);
  if (tensor.is_cuda()) (void)tensor.flatten()[0].item<float>();  // until it is done there
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  at::Tensor slowest = at::full({1}, taken.count(), at::kDouble);
  group.all_reduce(slowest, Reduction::kMax);
  return slowest.item<double>();
}

}  // namespace

GroupSpeed measure_group(Group& group) {
  const DeviceId id = group.options().device;
  const at::Device device = id.kind == DeviceKind::kCuda
                                ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(id.index))
                                : at::Device(at::kCPU);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  GroupSpeed speed{.world_size = group.world_size()};
  at::Tensor one = at::ones({1}, options);
  std::vector<double> times;
  for (int i = 0; i < kSmall; ++i) times.push_back(seconds_of(group, one));
  std::nth_element(times.begin(), times.begin() + kSmall / 2, times.end());
  speed.latency = times[kSmall / 2];
  // A slow network is measured with less; all ranks decide by the same figure.
  for (std::int64_t size = kFirstSize;; size *= 4) {
    at::Tensor many = at::ones({size}, options);
    double best = seconds_of(group, many);
    for (int i = 1; i < kLarge && best < kLongEnough; ++i) best = std::min(best, seconds_of(group, many));
    speed.bytes = size * 4;
    speed.seconds = best;
    if (best >= kLongEnough || size >= kLargestSize) break;
  }
  const double share = 2.0 * (speed.world_size - 1) / speed.world_size;
  speed.bandwidth = share * static_cast<double>(speed.bytes) / speed.seconds;
  return speed;
}

}  // namespace cohort::dist
