// What a training step costs beside the model: the fused AdamW step, the gradient norm with clipping, and how long a
// checkpoint keeps the training waiting; against PyTorch in the same run, in alternated pairs. Shapes are those of
// Informer's parameters.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/version.h>

#include "cohort_version.h"
#include "comparison.h"
#include "core/error.h"
#include "core/json_text.h"
#include "models/informer/informer.h"
#include "peer.h"
#include "program.h"
#include "tensors/processor.h"
#include "train/checkpoint_writer.h"
#include "train/optimizer.h"
#include "train/step_monitor.h"

namespace {
using namespace cohort;
using bench::median;
using Clock = std::chrono::steady_clock;

/// Medians of alternated pairs and of their ratios.
void compare(const char* what, int pairs, const std::function<double()>& ours, const std::function<double()>& theirs) {
  std::vector<double> a, b, ratio;
  constexpr int kWarmUp = 2;
  for (int i = -kWarmUp; i < pairs; ++i) {
    const double mine = ours(), peer = theirs();
    if (i < 0) continue;
    a.push_back(mine);
    b.push_back(peer);
    ratio.push_back(mine / peer);
  }
  std::printf("%-34s ours %9.3f ms   PyTorch %9.3f ms   ratio %.3f (median of %d pairs)\n", what, 1e3 * median(a),
              1e3 * median(b), median(ratio), pairs);
}

int run(int argc, char** argv) {
  tensors::prepare_arithmetic();
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  std::string folder = (std::filesystem::temp_directory_path() / "cohort_bench_train").string();
  int pairs = 15, threads = 1;
  bench::Options options("Parts of a training step, ours against PyTorch");
  options.add("--python", python, "Python with torch and safetensors (or COHORT_PYTHON)");
  options.add("--folder", folder, "where checkpoints are written; its disk is part of the figures");
  options.add("--pairs", pairs, "alternated pairs");
  options.add("--threads", threads, "threads of each side");
  if (!options.parse(argc, argv)) return options.exit_code();
  at::set_num_threads(threads);
  const auto model = models::make_informer({}, 0);
  const train::OptimizerSettings settings{.kind = "adamw"};
  train::Optimizer optimizer(train::parameter_groups(*model, settings), settings);
  nlohmann::json shapes = nlohmann::json::array();
  std::int64_t elements = 0;
  for (const auto& [name, parameter] : optimizer.parameters()) {
    shapes.push_back(parameter.sizes().vec());
    elements += parameter.numel();
    at::Tensor(parameter).mutable_grad() = at::randn_like(parameter);
  }
  std::filesystem::create_directories(folder);
  bench::Peer peer(
      {python, COHORT_SOURCE_DIR "/bench/train/training_parts.py", std::to_string(threads), folder, json_text(shapes)});
  const std::string ready = peer.read_line();
  COHORT_THROW_UNLESS(ready.starts_with("ready "), "the Python peer did not start");
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  std::printf("%s, %u cores, %d thread(s) a side, %s, cohort %s, LibTorch %s, PyTorch %s\n", bench::processor().c_str(),
              std::thread::hardware_concurrency(), threads, date, COHORT_VERSION, TORCH_VERSION,
              ready.substr(6).c_str());
  std::printf("%zu tensors, %lld elements\n", optimizer.parameters().size(), static_cast<long long>(elements));

  const auto ask = [&](const char* what) { return [&peer, what] { return std::stod(peer.ask(what)); }; };
  compare(
      "AdamW step, fused", pairs, [&] { return bench::seconds_of([&] { optimizer.step(1e-4); }); }, ask("adamw"));

  train::StepMonitor monitor(c10::kCPU, false, false);
  compare(
      "gradient norm and clipping", pairs,
      [&] {
        return bench::seconds_of([&] {
          monitor.add_loss(at::ones({}), 1.0);
          const auto& gradients = optimizer.gradients();
          monitor.finish_step(gradients, nullptr);
          monitor.clip(gradients, 1e9);
        });
      },
      ask("clip"));

  const auto checkpoints = std::filesystem::path(folder) / "checkpoints";
  std::filesystem::remove_all(checkpoints);
  train::CheckpointWriter writer(weights::CheckpointFolder(checkpoints), 1);
  weights::CheckpointContent content;
  content.model = weights::module_state(*model);
  content.optimizer = optimizer.state();
  content.random = {{"rank_0.cpu", at::zeros({5056}, at::kByte)}};
  std::vector<double> written;
  compare(
      "checkpoint, training waits", pairs,
      [&] {
        ++content.state.step;
        const double blocked = bench::seconds_of([&] { writer.save(content); });
        written.push_back(blocked + bench::seconds_of([&] { writer.finish(); }));
        return blocked;
      },
      ask("save"));
  std::printf("%-34s ours %9.3f ms\n", "checkpoint, until it is on the disk", 1e3 * median(written));
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("training_parts", [&] { return run(argc, argv); });
}
