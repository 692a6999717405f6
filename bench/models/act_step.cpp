// One training step of ACT at LeRobot's default sizes (51.6 million weights; encoder of actions, pictures, decoder, losses,
// backward, clipping, AdamW) against the same network in plain PyTorch, in alternated pairs. See README.md.
#include <cstdio>
#include <memory>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "comparison.h"
#include "core/format.h"
#include "models/random_context.h"
#include "peer.h"
#include "policies/act/act_policy.h"
#include "program.h"
#include "tensors/processor.h"
#include "train/optimizer.h"
#include "train/step_monitor.h"

namespace {
using namespace cohort;

constexpr double kClip = 10;  // LeRobot's grad_clip_norm

train::OptimizerSettings adamw() {
  train::OptimizerSettings settings;
  settings.kind = "adamw";
  settings.weight_decay = 1e-4;
  return settings;
}

models::ActSettings settings_of(int cameras, int side) {
  models::ActSettings settings;
  settings.observations = {{"observation.state", {14}, ""}};
  for (int i = 0; i < cameras; ++i)
    settings.observations.push_back({format("observation.images.camera{}", i), {3, side, side}, ""});
  return settings;
}

class Ours {
 public:
  Ours(const models::ActSettings& settings, std::int64_t batch)
      : policy_(models::make_act_policy(settings, 0)),
        adamw_(train::parameter_groups(*policy_, adamw()), adamw()),
        actions_(at::randn({batch, settings.chunk_size, settings.action_width})),
        ids_(at::randperm(batch, at::kLong)) {
    for (const models::ObservationSettings& o : settings.observations)
      observations_[o.name] = o.is_camera() ? at::randint(256, {batch, 1, o.shape[1], o.shape[2], 3}, at::kByte)
                                            : at::randn({batch, 1, o.shape[0]});
    at::Tensor mask = at::ones({batch, settings.chunk_size}, at::kBool);
    mask[0].slice(0, settings.chunk_size / 2).fill_(false);
    observations_[models::kActionMaskObservation] = mask;
  }

  double step() {
    for (at::Tensor& p : policy_->parameters()) p.mutable_grad().reset();
    const models::RandomContextGuard guard({.seed = 0, .step = step_++, .sample_ids = ids_});
    const at::Tensor loss = policy_->loss(observations_, actions_);
    loss.backward();
    const auto& gradients = adamw_.gradients();
    monitor_.finish_step(gradients, nullptr);
    monitor_.clip(gradients, kClip);
    adamw_.step(1e-5);
    return loss.item<double>();
  }

  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const at::Tensor& p : policy_->parameters()) count += p.numel();
    return count;
  }

 private:
  std::shared_ptr<models::PolicyNetwork> policy_;
  train::Optimizer adamw_;
  models::Observations observations_;
  at::Tensor actions_, ids_;
  train::StepMonitor monitor_{at::kCPU, false, false};
  std::uint64_t step_ = 0;
};

int run(int argc, char** argv) {
  tensors::prepare_arithmetic();
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  int batch = 8, side = 96, cameras = 1, pairs = 6, threads = 1;
  bool alone = false;
  bench::Options options("ACT: a training step, ours against the same network in plain PyTorch");
  options.add("--python", python, "Python with torch (or COHORT_PYTHON)");
  options.add("--batch", batch, "samples per step");
  options.add("--side", side, "px of the square pictures");
  options.add("--cameras", cameras, "pictures of a sample");
  options.add("--pairs", pairs, "alternated pairs of steps");
  options.add("--threads", threads, "threads of each side");
  options.add_flag("--alone", alone, "our side only");
  if (!options.parse(argc, argv)) return options.exit_code();
  at::set_num_threads(threads);

  bench::StepPeer peer;
  if (!alone) {
    peer = bench::start_step_peer({python, std::string(COHORT_SOURCE_DIR) + "/bench/models/act_step.py",
                                   std::to_string(batch), std::to_string(side), std::to_string(cameras),
                                   std::to_string(threads)});
  }
  Ours ours(settings_of(cameras, side), batch);
  std::printf("%s\n", bench::machine_line(format("LibTorch {}, reference under PyTorch {}, {} thread(s) a side",
                                                 TORCH_VERSION, peer.version, threads))
                          .c_str());
  std::printf("batch %d, %d camera(s) of %d px, parameters: ours %ld, reference %s\n", batch, cameras, side,
              static_cast<long>(ours.parameters()), peer.parameters.c_str());

  bench::print_steps_in_turns(
      "training step", [&] { ours.step(); }, peer.peer.get(), pairs);
  std::printf("\n%s\n", bench::peak_memory_line(peer.peer.get()).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("act_step", [&] { return run(argc, argv); });
}
