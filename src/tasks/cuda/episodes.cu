// Episodes are counted where their environments are, a thread each.
#include <math.h>

#include "core/philox.h"
#include "sim/backends/cuda/current_device.h"
#include "tasks/cuda/episodes.h"

namespace cohort::tasks::cuda {
namespace {

using sim::cuda::launch_on;
using sim::cuda::OnDevice;
using sim::cuda::text;

constexpr int kThreads = 128;

unsigned blocks_for(long long n) {
  return static_cast<unsigned>((n - 1) / kThreads + 1);
}
__device__ long long own_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ bool is_finite(float x) {
  return x - x == 0.0f;
}

__global__ void count_kernel(const __grid_constant__ Episodes e) {
  const long long i = own_index();
  if (i >= e.n) return;
  bool broken = e.failed[i] != 0 || !is_finite(e.reward[i]);
  for (int k = 0; k < e.width; ++k) {
    const float x = e.observations[i * e.width + k];
    e.final_observations[i * e.width + k] = x;
    if (!is_finite(x)) broken = true;
  }
  const float reward = broken ? 0.0f : e.reward[i];
  const bool success = e.success[i] != 0, terminated = e.terminated[i] != 0, truncated = e.truncated[i] != 0;
  if (!broken && success) {
    e.with_success[i] += static_cast<double>(reward);
    ++e.counts[4 * i + kWith];
    if (terminated) ++e.counts[4 * i + kEnded];
  } else if (!broken) {
    e.without_success[i] += static_cast<double>(reward);
    ++e.counts[4 * i + kWithout];
  }
  if (!broken) {
    ++e.counts[4 * i + kSteps];
    for (int k = 0; k < e.terms; ++k)
      e.term_sums[i * e.terms + k] += static_cast<double>(e.reward_terms[i * e.terms + k]);
  }
  const long long steps = ++e.steps[i];
  e.returns[i] += static_cast<double>(reward);
  if (success) e.reached[i] = 1;
  const bool early = !truncated && e.early[i] >= 0 && steps > e.early[i];
  const bool over = broken || terminated || truncated || early, cut_off = over && !broken && !terminated;
  for (int k = 0; !broken && k < e.metrics; ++k) {
    if (e.at_end[k] != 0 && !over) continue;
    e.metric_sums[i * e.metrics + k] += static_cast<double>(e.metric_values[i * e.metrics + k]);
    ++e.metric_counts[i * e.metrics + k];
  }
  e.rewards[i] = reward;
  e.dones[i] = over ? 1.0f : 0.0f;
  e.cut_off[i] = cut_off ? 1.0f : 0.0f;
  e.broken[i] = broken ? 1.0f : 0.0f;
  e.flags[i] = static_cast<unsigned char>((over ? kOver : 0) | (broken ? kBroken : 0) | (early ? kEarly : 0) |
                                          (cut_off ? kCutOff : 0));
}

__global__ void renew_kernel(const __grid_constant__ Episodes e, const int* chosen, const long long* early,
                             double* ended, int count) {
  const long long k = own_index();
  if (k >= count) return;
  const int i = chosen[k];
  ended[2 * k] = e.returns[i];
  ended[2 * k + 1] = e.reached[i] != 0 ? 1.0 : 0.0;
  e.returns[i] = 0.0;
  e.reached[i] = 0;
  e.steps[i] = 0;
  e.early[i] = early[k];
}

__global__ void normal_kernel(float* out, int n, int width, unsigned long long seed, unsigned long long first,
                              unsigned long long step) {
  const long long k = own_index();
  if (k >= static_cast<long long>(n) * width) return;
  const RandomStream random(seed, RandomPurpose::kAction, first + static_cast<unsigned long long>(k / width), step);
  const Philox4 r = random.at(static_cast<unsigned long long>(k % width));
  const double u1 = (static_cast<double>(r.v[0]) + 1.0) / 4294967296.0, u2 = static_cast<double>(r.v[1]) / 4294967296.0;
  out[k] = static_cast<float>(::sqrt(-2.0 * ::log(u1)) * ::cos(6.283185307179586 * u2));
}

}  // namespace

const char* count(int device, void* stream, const Episodes& episodes) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(launch_on(stream, blocks_for(episodes.n), kThreads, 0, count_kernel, episodes));
}

const char* renew(int device, void* stream, const Episodes& episodes, const int* chosen, const long long* early,
                  double* ended, int count) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  if (count == 0) return nullptr;
  return text(launch_on(stream, blocks_for(count), kThreads, 0, renew_kernel, episodes, chosen, early, ended, count));
}

const char* draw_normal(int device, void* stream, float* out, int n, int width, unsigned long long seed,
                        unsigned long long first, unsigned long long step) {
  const OnDevice on(device);
  if (on.status() != cudaSuccess) return text(on.status());
  return text(launch_on(stream, blocks_for(static_cast<long long>(n) * width), kThreads, 0, normal_kernel, out, n,
                        width, seed, first, step));
}

}  // namespace cohort::tasks::cuda
