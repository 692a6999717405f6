// RDT's training step against PyTorch, SigLIP's and T5's forward against transformers, in alternated pairs; and the peak
// memory of a rank under parallel.zero=0, 1, 2 (--rank). See README.md.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "comparison.h"
#include "core/array_view.h"
#include "core/error.h"
#include "core/format.h"
#include "dist/cuda_plugin.h"
#include "dist/group.h"
#include "dist/usable_devices.h"
#include "models/initialise.h"
#include "models/language/t5.h"
#include "models/vision/siglip.h"
#include "monitor/host_figures.h"
#include "parallel/module_layout.h"
#include "parallel/plan.h"
#include "peer.h"
#include "policies/rdt/rdt.h"
#include "program.h"
#include "tensors/convert.h"
#include "tensors/processor.h"
#include "train/gradient_checkpoint.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/rank_memory.h"
#include "train/step_monitor.h"

namespace {
using namespace cohort;

constexpr double kRate = 1e-4;
const std::vector<std::string> kRdtCases{"170m", "1b", "small"};

struct RdtSize {
  models::RdtNetworkSettings network;
  std::int64_t patches = 729;
};

/// The sizes of rdt_step.py.
RdtSize rdt_size(const std::string& which) {
  RdtSize size;
  models::RdtNetworkSettings& n = size.network;
  if (which == "170m") {
    n.hidden_size = 1024;
    n.depth = 14;
  } else if (which == "small") {
    n.hidden_size = 256;
    n.depth = 6;
    n.num_heads = 8;
    n.horizon = 16;
    n.lang_token_dim = 128;
    n.max_lang_cond_len = 32;
    n.img_token_dim = 96;
    n.img_history_size = 2;
    n.num_cameras = 2;
    size.patches = 64;
  }
  return size;
}

/// A step's batch: conditions that stay, noise and timesteps that change.
parallel::Batch rdt_batch(const RdtSize& size, std::int64_t samples) {
  const models::RdtNetworkSettings& n = size.network;
  parallel::Batch batch;
  batch.add("language", torch::randn({samples, 32, n.lang_token_dim}));
  batch.add("images", torch::randn({samples, n.img_history_size * n.num_cameras * size.patches, n.img_token_dim}));
  batch.add("state", torch::randn({samples, n.state_token_dim}));
  batch.add("actions", torch::randn({samples, n.horizon, n.state_token_dim}));
  return batch;
}

at::Tensor rdt_step_loss(const models::Rdt& rdt, const parallel::Batch& batch) {
  const at::Tensor actions = batch.at("actions"), timesteps = torch::randint(0, 1000, {actions.size(0)}, at::kLong);
  const at::Device device = actions.device();
  models::RdtConditions c;
  c.language_BLE = batch.at("language");
  c.language_mask_BL = torch::ones({actions.size(0), 32}, at::TensorOptions(device).dtype(at::kBool));
  c.images_BLE = batch.at("images");
  c.state_BS = batch.at("state");
  c.state_mask_BS = c.action_mask_BS = torch::ones_like(c.state_BS);
  c.frequency_B = torch::full({actions.size(0)}, 25.0, device);
  return models::rdt_loss(rdt, c, actions, torch::randn_like(actions), timesteps.to(device),
                          rdt.schedule().factors(timesteps).to(device));
}

struct OurSide {
  std::int64_t parameters = 0;
  std::function<double()> run;
};

std::int64_t parameters_of(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

OurSide rdt_side(const std::string& which, std::int64_t batch_size, train::Precision precision, bool checkpointing,
                 const std::string& optimizer_kind, at::Device device) {
  const RdtSize size = rdt_size(which);
  const auto rdt = std::make_shared<models::Rdt>(size.network, size.patches);
  models::initialise(*rdt, 0);
  rdt->to(device);
  train::OptimizerSettings settings{.kind = optimizer_kind};
  const auto optimizer = std::make_shared<train::Optimizer>(train::parameter_groups(*rdt, settings), settings);
  const auto monitor = std::make_shared<train::StepMonitor>(device, false, false);
  const parallel::Batch batch = rdt_batch(size, batch_size).to(device, false);
  return {parameters_of(*rdt), [=] {
            for (at::Tensor& p : rdt->parameters()) p.mutable_grad().reset();
            at::Tensor loss;
            {
              const models::SegmentRunnerGuard segments(checkpointing ? train::checkpointing_runner()
                                                                      : models::SegmentRunner());
              const train::PrecisionGuard autocast(precision, device.type());
              loss = rdt_step_loss(*rdt, batch);
            }
            loss.backward();
            const auto& gradients = optimizer->gradients();
            monitor->finish_step(gradients, nullptr);
            monitor->clip(gradients, 1.0);
            optimizer->step(kRate);
            return loss.item<double>();
          }};
}

OurSide encoder_side(const std::string& which, std::int64_t batch, train::Precision precision) {
  std::function<at::Tensor()> forward;
  std::shared_ptr<torch::nn::Module> net;
  if (which.starts_with("siglip")) {
    models::SiglipVisionSettings s;
    if (which == "siglip-base")
      s = {.image_size = 224,
           .patch_size = 16,
           .hidden_size = 768,
           .num_hidden_layers = 12,
           .num_attention_heads = 12,
           .intermediate_size = 3072};
    const auto siglip = std::make_shared<models::SiglipVision>(s);
    const at::Tensor pixels = torch::rand({batch, 3, s.image_size, s.image_size}) * 2 - 1;
    forward = [=] { return siglip->forward(pixels); };
    net = siglip;
  } else {
    models::T5Settings s{.d_model = 512, .d_kv = 64, .d_ff = 1024, .num_layers = 8, .num_heads = 6};
    if (which == "t5-base") s = {.d_model = 768, .d_kv = 64, .d_ff = 2048, .num_layers = 12, .num_heads = 12};
    const auto t5 = std::make_shared<models::T5Encoder>(s);
    const at::Tensor ids = torch::randint(0, s.vocab_size, {batch, 64}, at::kLong), mask = torch::ones_like(ids);
    forward = [=] { return t5->forward(ids, mask); };
    net = t5;
  }
  models::initialise(*net, 0);
  net->eval();
  return {parameters_of(*net), [=] {
            const at::NoGradGuard no_grad;
            const train::PrecisionGuard autocast(precision, at::kCPU);
            return forward().to(at::kFloat).mean().item<double>();
          }};
}

/// As one rank of a job (cohort launch --nproc_per_node=2 -- bench_rdt_step --rank ...): steps, then this rank's peak.
int run_rank(const std::string& which, std::int64_t batch_size, int steps, int zero, const std::string& precision,
             bool checkpointing, const std::string& optimizer) {
  class Repeated final : public train::BatchSource {
   public:
    explicit Repeated(parallel::Batch batch) : batch_(std::move(batch)) {}
    std::int64_t samples_per_epoch() const override { return 1 << 20; }
    std::int64_t batches_per_epoch() const override { return 1 << 20; }
    std::int64_t start_epoch(std::int64_t, std::int64_t) override { return 1 << 20; }
    std::optional<parallel::Batch> next() override { return batch_; }
    double wait_seconds() const override { return 0.0; }

   private:
    parallel::Batch batch_;
  };
  const rank::Environment environment = rank::read_environment();
  const RdtSize size = rdt_size(which);
  const auto rdt = std::make_shared<models::Rdt>(size.network, size.patches);
  models::initialise(*rdt, 0);
  train::TrainSettings settings{.batch_size = batch_size, .steps = steps, .lr = kRate};
  settings.precision = precision;
  settings.optimizer.kind = optimizer;
  settings.clip_norm = 1.0;
  settings.gradient_checkpointing = checkpointing;
  settings.ema.enabled = true;
  settings.hash_every = 0;
  std::shared_ptr<dist::Group> group;
  if (environment.world_size > 1) group = dist::Group::create(environment);
  const parallel::Plan plan =
      parallel::make_plan({.environment = environment, .devices = {DeviceId{}}}, {.batch_size = batch_size});
  parallel::StrategySettings strategy_settings;
  strategy_settings.zero = zero;
  const auto strategy = parallel::make_strategy(plan, rdt, group, strategy_settings);
  Repeated source(rdt_batch(size, batch_size));
  train::TrainJob job{
      .strategy = strategy.get(),
      .loss = [](torch::nn::Module& module,
                 const parallel::Batch& batch) { return rdt_step_loss(dynamic_cast<models::Rdt&>(module), batch); },
      .batches = &source};
  double step_s = 0;
  job.step_observers.push_back([&](const train::StepStats& s) { step_s = s.step_time_s; });
  train::TrainLoop loop(settings, std::move(job));
  loop.run();
  const train::KeptBytes kept = loop.kept_bytes();
  std::printf("rank %d of %d, zero %d: peak %s; weights %s, gradients %s, optimizer %s, average %s; %.0f ms a step\n",
              environment.rank, environment.world_size, zero,
              format_bytes(static_cast<double>(monitor::process_memory().peak_rss)).c_str(),
              format_bytes(static_cast<double>(kept.weights)).c_str(),
              format_bytes(static_cast<double>(kept.gradients)).c_str(),
              format_bytes(static_cast<double>(kept.optimizer)).c_str(),
              format_bytes(static_cast<double>(kept.ema)).c_str(), 1e3 * step_s);
  if (group) group->close();
  return 0;
}

int measure(int argc, char** argv) {
  tensors::prepare_arithmetic();
  std::string which = "small", precision = "fp32", optimizer = "adamw";
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  int batch = 8, pairs = 6, threads = 1, zero = 0;
  std::string device_name = "cpu";
  bool rank = false, checkpointing = false, alone = false;
  bench::Options options("RDT: a training step, ours against plain PyTorch; SigLIP and T5 against transformers");
  options.add("--case", which, "what is timed")
      .one_of({"170m", "1b", "small", "siglip-base", "siglip-so400m", "t5-small", "t5-base"});
  options.add("--batch", batch, "samples per step");
  options.add("--precision", precision, "fp32 or bf16 (autocast)").one_of({"fp32", "bf16"});
  options.add("--device", device_name, "of both sides, for RDT: cpu or cuda:0");
  options.add("--optimizer", optimizer, "ours").one_of({"adamw", "adamw8bit"});
  options.add_flag("--checkpointing", checkpointing, "gradient checkpointing by block, ours alone");
  options.add("--python", python, "Python with torch, for the encoders with transformers (or COHORT_PYTHON)");
  options.add_flag("--alone", alone, "our side alone");
  options.add("--pairs", pairs, "alternated pairs of steps; with --rank: steps");
  options.add("--threads", threads, "threads of each side");
  options.add_flag("--rank", rank, "as a rank of a job: peak memory under --zero");
  options.add("--zero", zero, "with --rank: parallel.zero, 0, 1 or 2");
  if (!options.parse(argc, argv)) return options.exit_code();
  at::set_num_threads(threads);
  const bool is_rdt = std::find(kRdtCases.begin(), kRdtCases.end(), which) != kRdtCases.end();
  if (rank) {
    COHORT_THROW_UNLESS(is_rdt, "--rank trains an RDT, not {}", which);
    return run_rank(which, batch, pairs, zero, precision, checkpointing, optimizer);
  }

  const DeviceId device_id = parse_device(device_name);
  dist::check_device(device_id);
  const at::Device device = tensors::to_torch_device(device_id);
  COHORT_THROW_UNLESS(is_rdt || device.is_cpu(), "--device {}: the encoders are compared on the CPU", device_name);
  if (device.is_cuda()) dist::load_cuda_plugin().set_device(device_id.index);
  bench::StepPeer peer;
  if (!alone) {
    peer = bench::start_step_peer({python, std::string(COHORT_SOURCE_DIR) + "/bench/models/rdt_step.py", which,
                                   std::to_string(batch), precision, std::to_string(threads), device_name});
  }
  const OurSide ours = is_rdt
                           ? rdt_side(which, batch, train::parse_precision(precision), checkpointing, optimizer, device)
                           : encoder_side(which, batch, train::parse_precision(precision));
  std::printf("%s\n", bench::machine_line(format("LibTorch {}, reference under PyTorch {}, {} thread(s) a side",
                                                 TORCH_VERSION, peer.version, threads))
                          .c_str());
  std::printf("case %s, batch %d, %s on %s, parameters: ours %ld, reference %s\n", which.c_str(), batch,
              precision.c_str(), device_name.c_str(), static_cast<long>(ours.parameters), peer.parameters.c_str());
  bench::print_steps_in_turns(
      is_rdt ? "training step" : "forward", [&] { ours.run(); }, peer.peer.get(), pairs);
  if (device.is_cpu()) {
    std::printf("\n%s\n", bench::peak_memory_line(peer.peer.get()).c_str());
    return 0;
  }
  std::printf("\npeak of tensors  ours %.0f MiB", train::peak_device_bytes(device) / (1 << 20));
  if (peer.peer) {
    double kibibytes = 0;
    std::string word;
    std::istringstream(peer.peer->finish()) >> word >> kibibytes;
    std::printf("  reference %.0f MiB", kibibytes / 1024);
  }
  std::printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("rdt_step", [&] { return measure(argc, argv); });
}
