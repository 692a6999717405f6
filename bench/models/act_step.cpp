// One training step of ACT (forward with dropout, loss, backward, clipping, AdamW) against lerobot's under PyTorch, in
// alternated pairs, by processor time. See README.md.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <sstream>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "comparison.h"
#include "core/error.h"
#include "core/format.h"
#include "models/random_context.h"
#include "peer.h"
#include "policies/act/act_policy.h"
#include "program.h"
#include "tensors/processor.h"
#include "train/optimizer.h"

namespace {
using namespace cohort;
using bench::median;

/// The default network on what act_step.py sees.
models::ActSettings settings_of(const std::string& which) {
  models::ActSettings settings;
  settings.observations = {{.name = "state", .shape = {14}, .shares = ""}};
  if (which == "state") {
    settings.observations.push_back({.name = "environment", .shape = {14}, .shares = ""});
    settings.environment_state = {"environment"};
  } else {
    settings.observations.push_back({.name = "top", .shape = {3, 96, 96}, .shares = ""});
  }
  return settings;
}

train::OptimizerSettings adamw() {
  train::OptimizerSettings settings;
  settings.weight_decay = 1e-4;
  return settings;
}

class Ours {
 public:
  Ours(const models::ActSettings& settings, std::int64_t batch)
      : policy_(models::make_act_policy(settings, 0)),
        optimizer_(train::parameter_groups(*policy_, adamw()), adamw()),
        actions_(at::randn({batch, settings.chunk_size, settings.action_width})) {
    for (const models::ObservationSettings& o : settings.observations)
      observations_[o.name] = o.is_camera() ? at::randint(256, {batch, 1, o.shape[1], o.shape[2], 3}, at::kByte)
                                            : at::randn({batch, 1, o.shape[0]});
  }

  double step() {
    policy_->zero_grad();
    const models::RandomContextGuard guard({.seed = 0, .step = step_++, .sample_ids = at::arange(actions_.size(0))});
    const at::Tensor loss = policy_->loss(observations_, actions_);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(policy_->parameters(), 10.0);
    optimizer_.step(1e-5);
    return loss.item<double>();
  }

  std::int64_t parameters() const {
    std::int64_t count = 0;
    for (const at::Tensor& p : policy_->parameters()) count += p.numel();
    return count;
  }

 private:
  std::shared_ptr<models::PolicyNetwork> policy_;
  train::Optimizer optimizer_;
  models::Observations observations_;
  at::Tensor actions_;
  std::uint64_t step_ = 0;
};

/// Processor seconds of this process: other work on the machine does not count.
double processor_seconds() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int run(int argc, char** argv) {
  tensors::settle_processor();
  std::string which = "state", python = bench::environment_or("COHORT_LEROBOT_PYTHON", "");
  int batch = 8, pairs = 8, threads = 1;
  bench::Options options("ACT: a training step, ours against lerobot's under PyTorch");
  options.add("--python", python, "Python with lerobot 0.6.1 (or COHORT_LEROBOT_PYTHON)");
  options.add("--case", which, "state: 28 numbers; image: a camera of 96 x 96 and 14 numbers")
      .one_of({"state", "image"});
  options.add("--batch", batch, "samples per step");
  options.add("--pairs", pairs, "alternated pairs of steps");
  options.add("--threads", threads, "threads of each side");
  if (!options.parse(argc, argv)) return options.exit_code();
  at::set_num_threads(threads);

  std::optional<bench::Peer> peer;
  std::string peer_version = "none", peer_parameters = "none";
  if (!python.empty()) {
    peer.emplace(std::vector<std::string>{python, std::string(COHORT_SOURCE_DIR) + "/bench/models/act_step.py", which,
                                          std::to_string(batch), std::to_string(threads)});
    std::istringstream ready(peer->read_line());
    std::string word;
    ready >> word >> peer_parameters >> peer_version;
    COHORT_THROW_UNLESS(word == "ready", "the Python peer did not start");
  } else {
    std::printf("no Python with lerobot (--python or COHORT_LEROBOT_PYTHON): our side alone\n");
  }
  Ours ours(settings_of(which), batch);
  std::printf("%s\n", bench::machine_line(format("LibTorch {}, lerobot under PyTorch {}, {} thread(s) a side",
                                                 TORCH_VERSION, peer_version, threads))
                          .c_str());
  std::printf("case %s, batch %d, parameters: ours %ld, lerobot %s\n", which.c_str(), batch,
              static_cast<long>(ours.parameters()), peer_parameters.c_str());
  std::vector<bench::Side> sides{{"ours", [&] {
                                    const double begin = processor_seconds();
                                    ours.step();
                                    return processor_seconds() - begin;
                                  }}};
  if (peer)
    sides.push_back({"lerobot", [&] {
                       double seconds = 0;
                       std::istringstream answer(peer->ask("step"));
                       answer >> seconds;
                       return seconds;
                     }});
  const auto seconds = bench::take_turns(sides, pairs);
  std::printf("training step  ours %9.1f ms of processor time", 1e3 * median(seconds[0]));
  if (peer) {
    std::vector<double> ratio;
    for (std::size_t i = 0; i < seconds[0].size(); ++i) ratio.push_back(seconds[0][i] / seconds[1][i]);
    std::printf("   lerobot %9.1f ms   ratio %.3f (median of %zu pairs, %.3f to %.3f)", 1e3 * median(seconds[1]),
                median(ratio), ratio.size(), *std::min_element(ratio.begin(), ratio.end()),
                *std::max_element(ratio.begin(), ratio.end()));
  }
  std::printf("\n%s\n", bench::peak_memory_line(peer ? &*peer : nullptr).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("act_step", [&] { return run(argc, argv); });
}
