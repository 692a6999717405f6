// Where a run's time goes: loader, GPUs, communication, balance of ranks, what more devices brought.
#include <algorithm>
#include <cmath>

#include "doctor/examination.h"
#include "report/metric_names.h"

namespace cohort::doctor {
namespace {

namespace metric = report::metric;

constexpr double kDataShare = 0.10;             // of a step: the loader holds it up
constexpr double kExchangeShare = 0.10;         // of a step, as the guides have it
constexpr double kGoodUse = 80, kPoorUse = 50;  // % of a GPU
constexpr double kUnequal = 0.20;               // the slowest rank's work over the fastest one's
constexpr double kSmallStep = 0.005;            // s of work in a step
constexpr double kSpeedUpOfTwo = 1.2;

/// The metrics can say something.
bool has_speed(const Case& c, Findings& found) {
  if (!c.run) {
    found.leave_out("no run was named");
    return false;
  }
  if (!c.run->steady(metric::kStepsPerSecond)) {
    found.leave_out("metrics.jsonl has fewer than two reports of speed");
    return false;
  }
  return true;
}

std::string percent(double share) {
  return format("{:.0f} %", 100 * share);
}

void look_at_loader(const Case& c, Findings& found) {
  if (!has_speed(c, found)) return;
  const auto share = c.run->share(metric::kDataTime);
  if (!share || *share <= kDataShare) return;
  const std::string workers = c.run->setting("loader.workers");
  found.warning("the loader holds the training up",
                format("a step waits {} of its time for data ({:.3g} s; speed/data_s in metrics.jsonl); "
                       "loader.workers={}, {} usable cores",
                       percent(*share), *c.run->steady(metric::kDataTime), workers, c.machine.cores.usable),
                loader_remedy(c));
}

void look_at_use(const Case& c, Findings& found) {
  if (!c.run) return found.leave_out("no run was named");
  const auto use = c.run->steady(metric::kGpuUtilization);
  if (!use) return found.leave_out("the run has no figures of GPUs");
  if (*use >= kGoodUse) return;
  const double data = c.run->share(metric::kDataTime).value_or(0);
  const double exchange = c.run->share(metric::kExchangeTime).value_or(0);
  const std::string remedy =
      data > kDataShare ? "the loader is the cause: see run-loader"
      : exchange > kExchangeShare
          ? "communication is the cause: see run-communication"
          : "a larger batch, train.precision=bf16, train.cuda_graph=true on one GPU; a model as small "
            "as this one leaves a GPU idle between its kernels";
  found.warning(format("the GPUs are busy {:.0f} % of the time", *use),
                format("gpu/utilization in metrics.jsonl, second half of the run; {} of a step waits for data, {} for "
                       "other ranks",
                       percent(data), percent(exchange)),
                *use < kPoorUse ? remedy : remedy + "; 80 % and more is usual");
}

void look_at_communication(const Case& c, Findings& found) {
  if (!has_speed(c, found)) return;
  const auto share = c.run->share(metric::kExchangeTime);
  if (!share) return found.leave_out("the run has one process");
  if (*share <= kExchangeShare) return;
  const double work = c.run->steady(metric::kComputeTime).value_or(1);
  std::string remedy =
      "train.gradient_accumulation_steps=2, a larger batch, parallel.ddp.compression=fp16; NCCL_DEBUG=INFO says which "
      "link is used; if run-balance speaks too, a rank is late";
  if (c.run->setting("job") == "ppo")
    remedy =
        "fewer algorithm.num_mini_batches or algorithm.num_learning_epochs, larger num_steps_per_env or n_envs, or one "
        "rank; if run-balance speaks too, a rank is late";
  else if (work < kSmallStep)
    remedy = "the model or the batch is small: a larger train.batch_size, or one device";
  found.warning(
      "communication takes more than a tenth of a step",
      format("{} of a step exchanges gradients or waits for other ranks (speed/exchange_s); the work of a step "
             "takes {:.1f} ms",
             percent(*share), work * 1e3),
      remedy);
}

void look_at_balance(const Case& c, Findings& found) {
  if (!has_speed(c, found)) return;
  const auto most = c.run->steady(metric::kComputeTime), least = c.run->steady(metric::kLeastComputeTime);
  if (!most || !least) return found.leave_out("the run has one process");
  if (*least > 0 && *most / *least - 1 > kUnequal)
    found.warning("ranks need unequal times for equal work",
                  format("the slowest {:.1f} ms a step, the fastest {:.1f} ms", *most * 1e3, *least * 1e3),
                  "equal devices; see gpu-clocks; no other program on one of them; equal shares of cores");
  const auto use = c.run->steady(metric::kGpuUtilization), idlest = c.run->steady(metric::kLeastGpuUtilization);
  if (use && idlest && *use - *idlest > 100 * kUnequal)
    found.warning("one GPU is less busy than the others",
                  format("{:.0f} % on average, {:.0f} % the idlest", *use, *idlest),
                  "larger batches; with DataParallel use cohort launch --nproc_per_node=gpu");
}

void look_at_speed_up(const Case& c, Findings& found) {
  if (!has_speed(c, found)) return;
  if (c.run->ranks.size() < 2) return found.leave_out("the run has one process");
  const auto single = single_run_beside(*c.run);
  if (!single)
    return found.leave_out(
        "no run of this name in one process with this batch lies beside it: `cohort scaling train ...` "
        "compares");
  const double gain = *c.run->steady(metric::kSamplesPerSecond) / single->samples_per_s;
  const auto devices = static_cast<double>(c.run->ranks.size());
  if (gain >= 1 + (kSpeedUpOfTwo - 1) * (devices - 1)) return;
  const double work = c.run->steady(metric::kComputeTime).value_or(1);
  found.warning(
      format("{:.0f} devices bring {:.2f} times the speed of one", devices, gain),
      format("{:.0f} samples/s, {:.0f} in {}; a step's work takes {:.1f} ms", *c.run->steady(metric::kSamplesPerSecond),
             single->samples_per_s, single->path.string(), work * 1e3),
      c.run->ranks[0].device == "cpu" && devices > c.machine.cores.usable / 2.0
          ? "ranks on the CPU share its cores: more of them than there are idle cores bring nothing"
      : work < kSmallStep ? "model or batch too small: a larger train.batch_size, or one device"
                          : "see run-loader, run-communication, run-balance and host-cores");
}

void look_at_loss(const Case& c, Findings& found) {
  if (!c.run) return found.leave_out("no run was named");
  const auto& losses = c.run->metrics[metric::kTrainLoss];
  if (losses.values.empty()) return found.leave_out("metrics.jsonl has no loss");
  if (!std::isfinite(losses.values.back()))
    found.error("the loss is no longer a number",
                format("train/loss at step {:.0f} in metrics.jsonl", losses.steps.back()),
                "a lower train.lr, train.clip_norm=1, bf16 in place of fp16; look at the data");
  const auto skipped = c.run->steady(metric::kSkippedSteps);
  if (skipped && losses.steps.back() > 0 && *skipped > 0.05 * losses.steps.back())
    found.warning("many steps changed nothing",
                  format("train/skipped_steps {:.0f} of {:.0f}", *skipped, losses.steps.back()),
                  "a lower train.lr; bf16 in place of fp16");
}

}  // namespace

std::string loader_remedy(const Case& c) {
  const int ranks = !c.run || c.run->ranks.empty() ? 1 : c.run->ranks[0].world_size;
  return format(
      "loader.workers={} (workers x ranks at most the cores), loader.prefetch_factor=4, more data.cache_bytes; "
      "data on a local disk, images stored at the size that is trained on, HDF5 without compression",
      std::max(1, c.machine.cores.usable / ranks));
}

std::vector<Check> speed_checks() {
  return {{"run-loader", "how long steps wait for data", look_at_loader},
          {"run-gpu-use", "how busy the GPUs were", look_at_use},
          {"run-communication", "how long steps exchange gradients", look_at_communication},
          {"run-balance", "work of the slowest and the fastest rank", look_at_balance},
          {"run-speed-up", "samples/s beside a run in one process", look_at_speed_up},
          {"run-loss", "NaN, and steps that were skipped", look_at_loss}};
}

}  // namespace cohort::doctor
