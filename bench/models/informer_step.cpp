// One training step of Informer (forward, loss, backward, Adam; dropout on) against the reference package under
// PyTorch, in alternated pairs. See README.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>

#include <malloc.h>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "cohort_version.h"
#include "comparison.h"
#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "models/informer/informer.h"
#include "models/random_context.h"
#include "peer.h"
#include "program.h"
#include "tensors/processor.h"

namespace {
using namespace cohort;
using bench::median;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// torch.optim.Adam's fused step; its state starts at zero.
class Adam {
 public:
  explicit Adam(const torch::nn::Module& model) {
    for (const at::Tensor& p : model.parameters()) {
      if (!p.requires_grad()) continue;
      parameters_.push_back(p);
      mean_.push_back(at::zeros_like(p));
      square_.push_back(at::zeros_like(p));
      steps_.push_back(at::zeros({}, at::kFloat));
    }
  }
  void step() {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& p : parameters_) gradients.push_back(p.grad());
    for (at::Tensor& s : steps_) s.add_(1);
    at::_fused_adam_(parameters_, gradients, mean_, square_, {}, steps_, 1e-4, 0.9, 0.999, 0.0, 1e-8, false, false);
  }
  void zero_grad() {
    for (at::Tensor& p : parameters_) p.mutable_grad().reset();
  }

 private:
  std::vector<at::Tensor> parameters_, mean_, square_, steps_;
};

class Ours {
 public:
  Ours(const models::InformerSettings& settings, std::int64_t batch)
      : settings_(settings), model_(models::make_informer(settings, 0)), adam_(*model_) {
    torch::manual_seed(0);
    const std::int64_t rows = settings.label_len + settings.pred_len, marks = models::time_columns(settings);
    y_ = at::randn({batch, rows, settings.dec_in});
    input_.x_enc = at::randn({batch, settings.seq_len, settings.enc_in});
    input_.x_mark_enc = at::rand({batch, settings.seq_len, marks}) - 0.5;
    input_.x_mark_dec = at::rand({batch, rows, marks}) - 0.5;
    ids_ = at::randperm(batch, at::kLong);
  }

  double step() {
    adam_.zero_grad();
    input_.x_dec = models::informer_decoder_input(y_, settings_);
    const models::RandomContextGuard guard({.seed = 0, .step = step_++, .sample_ids = ids_});
    const at::Tensor target = y_.narrow(1, settings_.label_len, settings_.pred_len)
                                  .narrow(2, settings_.dec_in - settings_.c_out, settings_.c_out);
    const at::Tensor loss = at::mse_loss(models::informer_forward(*model_, input_), target);
    loss.backward();
    adam_.step();
    return loss.item<double>();
  }

  void evaluate() {
    const at::NoGradGuard no_grad;
    model_->eval();
    input_.x_dec = models::informer_decoder_input(y_, settings_);
    models::informer_forward(*model_, input_);
    model_->train();
  }

 private:
  models::InformerSettings settings_;
  std::shared_ptr<torch::nn::Module> model_;
  Adam adam_;
  models::InformerInput input_;
  at::Tensor y_, ids_;
  std::uint64_t step_ = 0;
};

struct Turn {
  std::vector<double> ours, theirs, ratio;
};

void print(const char* what, const Turn& turn) {
  std::printf("%-14s ours %8.1f ms", what, 1e3 * median(turn.ours));
  if (!turn.theirs.empty())
    std::printf("   reference %8.1f ms   ratio %.3f (median of %zu pairs, %.3f to %.3f)", 1e3 * median(turn.theirs),
                median(turn.ratio), turn.ratio.size(), *std::min_element(turn.ratio.begin(), turn.ratio.end()),
                *std::max_element(turn.ratio.begin(), turn.ratio.end()));
  std::printf("\n");
}

int run(int argc, char** argv) {
  tensors::prepare_arithmetic();
  models::InformerSettings settings;
  std::string reference = bench::environment_or("INFORMER_REFERENCE", "");
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  std::string peer_script = std::string(COHORT_SOURCE_DIR) + "/bench/models/informer_step.py";
  int batch = 32, pairs = 12, threads = 1;
  bool keep_heap = false;
  bench::Options options("Informer: a training step, ours against the reference package under PyTorch");
  options.add("--reference", reference, "checkout of github.com/zhouhaoyi/Informer2020 (or INFORMER_REFERENCE)");
  options.add("--python", python, "Python with torch (or COHORT_PYTHON)");
  options.add("--seq-len", settings.seq_len, "encoder rows");
  options.add("--label-len", settings.label_len, "known decoder rows");
  options.add("--pred-len", settings.pred_len, "predicted rows");
  options.add("--factor", settings.factor, "ProbSparse factor");
  options.add("--enc-in", settings.enc_in, "encoder columns");
  options.add("--dec-in", settings.dec_in, "decoder columns");
  options.add("--c-out", settings.c_out, "predicted columns");
  options.add("--d-model", settings.d_model, "width");
  options.add("--d-ff", settings.d_ff, "feed-forward width");
  options.add("--dropout", settings.dropout, "probability");
  options.add("--batch", batch, "samples per step");
  options.add("--pairs", pairs, "alternated pairs of steps");
  options.add("--threads", threads, "threads of each side");
  options.add_flag("--keep-heap", keep_heap, "our process keeps freed memory instead of returning it (mallopt)");
  if (!options.parse(argc, argv)) return options.exit_code();
  if (keep_heap) {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
  }
  at::set_num_threads(threads);

  std::optional<bench::Peer> peer;
  std::string peer_version = "none";
  if (!reference.empty()) {
    config::Fields fields;
    describe(fields, settings);
    peer.emplace(std::vector<std::string>{python, peer_script, reference, json_text(fields.to_json()),
                                          std::to_string(batch), std::to_string(threads)});
    std::istringstream ready(peer->read_line());
    std::string word, parameters;
    ready >> word >> parameters >> peer_version;
    COHORT_THROW_UNLESS(word == "ready", "the Python peer did not start");
  } else {
    std::printf("no reference package (--reference or INFORMER_REFERENCE): our side alone\n");
  }
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  std::printf("%s, %d thread(s) a side, %s, cohort %s, LibTorch %s, reference under PyTorch %s\n",
              bench::processor().c_str(), threads, date, COHORT_VERSION, TORCH_VERSION, peer_version.c_str());
  std::printf("seq %d label %d pred %d columns %d factor %d d_model %d d_ff %d batch %d dropout %g\n", settings.seq_len,
              settings.label_len, settings.pred_len, settings.enc_in, settings.factor, settings.d_model, settings.d_ff,
              batch, settings.dropout);

  Ours ours(settings, batch);
  const auto theirs = [&](const char* what) {
    std::istringstream answer(peer->ask(what));
    double seconds = 0;
    answer >> seconds;
    return seconds;
  };
  Turn step, evaluation;
  constexpr int kWarmUp = 2;
  for (int i = -kWarmUp; i < pairs; ++i)
    for (Turn* turn : {&step, &evaluation}) {
      const bool training = turn == &step;
      const double peer_seconds = peer ? theirs(training ? "step" : "eval") : 0.0;
      const auto start = Clock::now();
      if (training)
        ours.step();
      else
        ours.evaluate();
      const double seconds = seconds_since(start);
      if (i < 0) continue;
      turn->ours.push_back(seconds);
      if (peer) {
        turn->theirs.push_back(peer_seconds);
        turn->ratio.push_back(seconds / peer_seconds);
      }
    }
  print("training step", step);
  print("evaluation", evaluation);
  std::printf("%s\n", bench::peak_memory_line(peer ? &*peer : nullptr).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("informer_step", [&] { return run(argc, argv); });
}
