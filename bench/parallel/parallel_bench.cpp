// One rank of a training job for throughput: bench_parallel MODEL BATCH STEPS [REPLICAS]. REPLICAS > 1: DataParallel
// over the CPU in this process, BATCH per replica. Started by run.py, with torchrun's variables for several ranks. Rank
// 0 prints one line: samples/s of the whole job, the loss of the last step, peak memory in MB.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <sys/resource.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "bench_model.h"
#include "dist/group.h"
#include "parallel/data_parallel.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/single_device.h"

namespace cohort::bench {
namespace {

constexpr int kWarmUp = 3;  // steps: buckets are rebuilt after the first one

/// LibTorch's fused AdamW, as torch.optim.AdamW(fused=True) calls it.
class FusedAdamW {
 public:
  explicit FusedAdamW(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const at::Tensor& p : parameters_) {
      first_.push_back(torch::zeros_like(p));
      second_.push_back(torch::zeros_like(p));
      steps_.push_back(torch::zeros({}, at::kFloat));
    }
  }
  void step() {
    const torch::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& p : parameters_) gradients.push_back(p.grad());
    for (at::Tensor& s : steps_) s.add_(1);
    at::_fused_adamw_(parameters_, gradients, first_, second_, {}, steps_, 1e-4, 0.9, 0.999, 0.01, 1e-8, false, false);
  }

 private:
  std::vector<at::Tensor> parameters_, first_, second_, steps_;
};

int run(int argc, char** argv) {
  if (argc < 4) {
    std::puts("usage: bench_parallel MODEL BATCH STEPS [REPLICAS]");
    return 2;
  }
  const BenchModel bench = bench_model(argv[1]);
  const int size = std::atoi(argv[2]);
  const int steps = std::atoi(argv[3]);
  const int replicas = argc > 4 ? std::atoi(argv[4]) : 1;
  torch::set_num_threads(replicas);  // one per replica

  const auto env = rank::read_environment();
  const auto model = bench.make();
  std::shared_ptr<dist::Group> group;
  std::unique_ptr<parallel::Strategy> strategy;
  if (env.launched() && env.world_size > 1) {
    group = dist::Group::create(env);
    parallel::DdpSettings settings;
    settings.gradient_as_bucket_view = true;
    strategy = std::make_unique<parallel::DistributedDataParallel>(model, group, settings);
  } else if (replicas > 1) {
    strategy = std::make_unique<parallel::DataParallel>(
        model, std::vector<DeviceId>(static_cast<std::size_t>(replicas)), parallel::DataParallelSettings{}, bench.make);
  } else {
    strategy = std::make_unique<parallel::SingleDevice>(model, DeviceId{});
  }
  std::vector<parallel::Batch> batches;
  for (int i = 0; i < 8; ++i) batches.push_back(bench.batch(i, env.rank, size * replicas));

  FusedAdamW optimizer(model->parameters());
  double loss = 0;
  std::chrono::steady_clock::time_point start;
  for (int step = -kWarmUp; step < steps; ++step) {
    if (step == 0) {
      strategy->barrier();
      start = std::chrono::steady_clock::now();
    }
    strategy->zero_grad();
    loss = strategy->forward_backward(batches[static_cast<std::size_t>(step + kWarmUp) % 8], bench.loss, {})
               .item<double>();
    optimizer.step();
    strategy->parameters_changed();
  }
  strategy->barrier();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (env.rank == 0)
    std::printf("%.3f %.7g %.0f\n", steps * size * replicas * env.world_size / seconds, loss,
                static_cast<double>(usage.ru_maxrss) / 1024);
  strategy.reset();
  if (group) group->close();
  return 0;
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  try {
    return cohort::bench::run(argc, argv);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "error: %s\n", problem.what());
    return 1;
  }
}
