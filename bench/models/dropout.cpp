// Dropout of the models against ATen's, forward and backward, at the sizes of Informer's default configuration.
#include "models/dropout.h"

#include <benchmark/benchmark.h>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "models/random_context.h"

namespace cohort::models {
namespace {

constexpr double kP = 0.05;

void set_counters(benchmark::State& state, const at::Tensor& x) {
  // Seconds per element.
  state.counters["per_element"] = benchmark::Counter(
      static_cast<double>(x.numel()), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void forward_ours(benchmark::State& state) {
  const at::Tensor x = at::rand({32, 96, state.range(0)});
  const RandomContextGuard guard({.seed = 1, .step = 1, .sample_ids = {}});
  for (auto _ : state) benchmark::DoNotOptimize(dropout(x, {.p = kP, .id = 1}, true));
  set_counters(state, x);
}

void forward_in_place_ours(benchmark::State& state) {
  at::Tensor x = at::rand({32, 96, state.range(0)});
  const RandomContextGuard guard({.seed = 1, .step = 1, .sample_ids = {}});
  for (auto _ : state) benchmark::DoNotOptimize(dropout_(x, {.p = kP, .id = 1}, true));
  set_counters(state, x);
}

void forward_aten(benchmark::State& state) {
  const at::Tensor x = at::rand({32, 96, state.range(0)});
  for (auto _ : state) benchmark::DoNotOptimize(at::dropout(x, kP, true));
  set_counters(state, x);
}

template <class Apply>
void forward_and_backward(benchmark::State& state, const Apply& apply) {
  const at::Tensor x = at::rand({32, 96, state.range(0)}).requires_grad_();
  const at::Tensor gradient = at::rand_like(x);
  const RandomContextGuard guard({.seed = 1, .step = 1, .sample_ids = {}});
  for (auto _ : state) {
    apply(x).backward(gradient);
    at::Tensor leaf = x;
    leaf.mutable_grad().reset();
  }
  set_counters(state, x);
}

void training_ours(benchmark::State& state) {
  forward_and_backward(state, [](const at::Tensor& x) { return dropout(x, {.p = kP, .id = 1}, true); });
}

void training_aten(benchmark::State& state) {
  forward_and_backward(state, [](const at::Tensor& x) { return at::dropout(x, kP, true); });
}

BENCHMARK(forward_ours)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(forward_in_place_ours)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(forward_aten)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(training_ours)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);
BENCHMARK(training_aten)->Arg(512)->Arg(2048)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cohort::models

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
