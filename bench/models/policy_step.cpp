// One training step of a diffusion policy (encoder, noise, U-Net, loss, backward, Adam) against the DROID package's
// networks under PyTorch, in alternated pairs. See README.md.
#include <cstdio>
#include <cstdlib>
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
#include "policies/diffusion/diffusion_policy.h"
#include "program.h"
#include "tensors/processor.h"
#include "train/optimizer.h"

namespace {
using namespace cohort;

/// Default sizes of the DROID package, its MLP after the joined vector included, as in policy_step.py.
models::DiffusionPolicySettings settings_of(const std::string& which, int draws) {
  models::DiffusionPolicySettings settings;
  settings.noise_samples = draws;
  settings.encoder.combine = true;
  if (which == "state") {
    settings.action_width = 2;
    settings.encoder.observations = {{"state", {5}, ""}};
    return settings;
  }
  const std::string camera = "camera/image/varied_camera_";
  settings.encoder.observations = {{"robot_state/cartesian_position", {6}, ""},
                                   {"robot_state/gripper_position", {1}, ""},
                                   {camera + "1_left_image", {3, 128, 128}, ""},
                                   {camera + "2_left_image", {3, 128, 128}, ""}};
  models::share_cameras(settings.encoder.observations, camera);
  settings.encoder.color.enabled = settings.encoder.crop.enabled = true;
  return settings;
}

train::OptimizerSettings adam() {
  train::OptimizerSettings settings;
  settings.kind = "adam";
  return settings;
}

class Ours {
 public:
  Ours(const models::DiffusionPolicySettings& settings, std::int64_t batch)
      : policy_(models::make_diffusion_policy(settings, 0)),
        adam_(train::parameter_groups(*policy_, adam()), adam()),
        actions_(at::rand({batch, settings.horizon.prediction_horizon, settings.action_width}) * 2 - 1),
        ids_(at::randperm(batch, at::kLong)) {
    const std::int64_t frames = settings.horizon.observation_horizon;
    for (const models::ObservationSettings& o : settings.encoder.observations)
      observations_[o.name] = o.is_camera() ? at::randint(256, {batch, frames, o.shape[1], o.shape[2], 3}, at::kByte)
                                            : at::randn({batch, frames, o.shape[0]});
  }

  double step() {
    policy_->zero_grad();
    const models::RandomContextGuard guard({.seed = 0, .step = step_++, .sample_ids = ids_});
    const at::Tensor loss = models::diffusion_loss(*policy_, observations_, actions_);
    loss.backward();
    adam_.step(1e-4);
    return loss.item<double>();
  }

  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const at::Tensor& p : policy_->parameters()) count += p.numel();
    return count;
  }

 private:
  std::shared_ptr<torch::nn::Module> policy_;
  train::Optimizer adam_;
  models::Observations observations_;
  at::Tensor actions_, ids_;
  std::uint64_t step_ = 0;
};

int run(int argc, char** argv) {
  tensors::prepare_arithmetic();
  std::string reference = bench::environment_or("DROID_REFERENCE", ""), which = "state";
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  int batch = 8, draws = 8, pairs = 12, threads = 1;
  bench::Options options("Diffusion policy: a training step, ours against the DROID package's networks under PyTorch");
  options.add("--reference", reference,
              "checkout of github.com/droid-dataset/droid_policy_learning (or DROID_REFERENCE)");
  options.add("--python", python, "Python with torch, torchvision, diffusers, transformers (or COHORT_PYTHON)");
  options.add("--case", which, "state: U-Net on 5 numbers; image: the DROID configuration").one_of({"state", "image"});
  options.add("--batch", batch, "samples per step");
  options.add("--draws", draws, "noise draws per sample");
  options.add("--pairs", pairs, "alternated pairs of steps");
  options.add("--threads", threads, "threads of each side");
  if (!options.parse(argc, argv)) return options.exit_code();
  at::set_num_threads(threads);

  bench::StepPeer peer;
  if (!reference.empty()) {
    peer = bench::start_step_peer({python, std::string(COHORT_SOURCE_DIR) + "/bench/models/policy_step.py", reference,
                                   which, std::to_string(batch), std::to_string(draws), std::to_string(threads)});
  } else {
    std::printf("no reference package (--reference or DROID_REFERENCE): our side alone\n");
  }
  Ours ours(settings_of(which, draws), batch);
  std::printf("%s\n", bench::machine_line(format("LibTorch {}, reference under PyTorch {}, {} thread(s) a side",
                                                 TORCH_VERSION, peer.version, threads))
                          .c_str());
  std::printf("case %s, batch %d, %d draws per sample, parameters: ours %ld, reference %s\n", which.c_str(), batch,
              draws, static_cast<long>(ours.parameters()), peer.parameters.c_str());

  bench::print_steps_in_turns(
      "training step", [&] { ours.step(); }, peer.peer.get(), pairs);
  std::printf("\n%s\n", bench::peak_memory_line(peer.peer.get()).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("policy_step", [&] { return run(argc, argv); });
}
