// The ranks of a run: alive, in step, with equal batches, on devices of their own.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/command_line.h"
#include "doctor/examination.h"
#include "doctor/recorded_machine.h"

namespace cohort::doctor {
namespace {

/// A rank that is silent for longer hangs; validations and checkpoints have a step's length of their own.
constexpr double kLongestSilence = 10, kLongestSilenceElsewhere = 120;  // s
constexpr double kStepsOfSilence = 5;

bool on_this_machine(const Case& c, const rank::Status& rank) {
  return c.live && rank.host == c.machine.host;
}

bool lives(const Case& c, const rank::Status& rank) {
  return monitor::is_alive(rank.pid, rank.started, c.root);
}

std::string who(const rank::Status& rank) {
  return format("rank {} (process {} on {})", rank.rank, rank.pid, rank.host);
}

void look_at_ranks_life(const Case& c, Findings& found) {
  if (!c.run) return found.leave_out("no run was named");
  if (c.run->ranks.empty()) return found.leave_out("the run has no ranks/rank_N.json (rank_status=false, or older)");
  for (const rank::Status& rank : c.run->ranks) {
    if (rank.phase == rank::Phase::kFailed)
      found.error(format("rank {} failed", rank.rank),
                  format("ranks/rank_{}.json: failed at step {} of {}", rank.rank, rank.step, rank.total_steps),
                  "the first message of the job says why; it goes on with cohort train resume=" +
                      shell_quoted(c.run->path.string()));
    if (rank.ended() || !on_this_machine(c, rank)) continue;
    if (!lives(c, rank)) {
      found.error(format("rank {} has gone without an end", rank.rank),
                  format("{}, {} at step {}, and there is no such process any more", who(rank), to_string(rank.phase),
                         rank.step),
                  "it was killed: by hand, by a scheduler, or by the kernel for want of memory (see host-memory); the "
                  "run goes on with cohort train resume=" +
                      shell_quoted(c.run->path.string()));
      continue;
    }
    const auto process = monitor::read_process(rank.pid, c.root);
    if (process && process->state == 'T') {
      found.error(format("rank {} is stopped", rank.rank), format("{}: state T in /proc/{}/stat", who(rank), rank.pid),
                  format("kill -CONT {}; the others wait for it", rank.pid));
      continue;
    }
    const double silence = c.machine.time - rank.time;
    const double step = std::isfinite(rank.step_s) ? rank.step_s : 0;
    const double longest = std::max(rank.phase == rank::Phase::kTraining ? kLongestSilence : kLongestSilenceElsewhere,
                                    kStepsOfSilence * step);
    if (silence > longest)
      found.error(
          format("rank {} hangs", rank.rank),
          format("{}: {} at step {}, its last beat {:.0f} s ago, a step takes {:.3g} s", who(rank),
                 to_string(rank.phase), rank.step, silence, step),
          format("gdb -p {} -batch -ex 'thread apply all bt' shows where; the rank with the smallest step is the "
                 "one that the others wait for. dist.collective_timeout_s ends such a wait",
                 rank.pid));
  }
}

void look_at_steps(const Case& c, Findings& found) {
  if (!c.run || c.run->ranks.size() < 2) return found.leave_out("there are not two ranks");
  const auto& ranks = c.run->ranks;
  const rank::Status& first = ranks.front();
  for (const rank::Status& rank : ranks) {
    const bool both_end = rank.ended() && first.ended();
    const double rate = std::isfinite(first.steps_per_s) ? first.steps_per_s : 0;
    const double apart = std::abs(rank.time - first.time);
    const double allowed = both_end ? 0 : 2 + rate * (apart + 1);
    if (std::abs(static_cast<double>(rank.step - first.step)) <= allowed) continue;
    const rank::Status& behind = rank.step < first.step ? rank : first;
    found.error("ranks are out of step",
                format("rank {} is at step {} ({}), rank {} at step {} ({}), seen {:.1f} s apart", first.rank,
                       first.step, to_string(first.phase), rank.rank, rank.step, to_string(rank.phase), apart),
                format("look at what rank {} does: its log, its data, its GPU", behind.rank));
    return;
  }
}

void look_at_batches(const Case& c, Findings& found) {
  if (!c.run || c.run->ranks.empty()) return found.leave_out("no run with ranks was named");
  const auto& ranks = c.run->ranks;
  const rank::Status& first = ranks.front();
  for (const rank::Status& rank : ranks) {
    if (rank.batches_per_epoch == first.batches_per_epoch && rank.total_steps == first.total_steps &&
        rank.world_size == first.world_size)
      continue;
    found.error("ranks have other numbers of batches",
                format("rank {}: {} batches an epoch, {} steps, world {}; rank {}: {}, {}, {}", first.rank,
                       first.batches_per_epoch, first.total_steps, first.world_size, rank.rank, rank.batches_per_epoch,
                       rank.total_steps, rank.world_size),
                "the same data and settings on every rank; drop_last=true; in a loop of your own "
                "DistributedDataParallel::join");
    break;
  }
  std::set<int> present;
  for (const rank::Status& rank : ranks) present.insert(rank.rank);
  std::vector<std::string> missing;
  for (int rank = 0; rank < first.world_size; ++rank)
    if (!present.contains(rank)) missing.push_back(format("{}", rank));
  if (!missing.empty())
    found.warning("not every rank has said what it does",
                  format("of {} ranks there is nothing of {}", first.world_size, join(missing, ", ")),
                  "all ranks must see the run's folder: a shared file system between nodes");
}

void look_at_devices_of_ranks(const Case& c, Findings& found) {
  if (!c.run || c.run->ranks.empty()) return found.leave_out("no run with ranks was named");
  std::map<std::string, const rank::Status*> users;
  for (const rank::Status& rank : c.run->ranks) {
    if (!rank.device.starts_with("cuda")) continue;
    // With a mask of its own (--virtual-local-rank) every rank calls its GPU cuda:0.
    std::string mask;
    if (on_this_machine(c, rank) && lives(c, rank))
      mask = monitor::process_variable(rank.pid, "CUDA_VISIBLE_DEVICES", c.root).value_or("");
    const auto [at, added] = users.emplace(rank.host + " " + rank.device + " " + mask, &rank);
    const bool told = !mask.empty() || rank.device != "cuda:0";
    if (!added && told)
      found.error("two ranks are on one GPU",
                  format("ranks {} and {} on {} of {}", at->second->rank, rank.rank, rank.device, rank.host),
                  "one rank per GPU: --nproc_per_node=gpu; NCCL refuses two");
  }
  const std::size_t gpus = std::max(c.machine.gpus.size(), c.devices ? c.devices->visible.size() : 0);
  const rank::Status& first = c.run->ranks.front();
  const std::string backend = c.run->setting("backend");
  if (first.device == "cpu" && gpus > 0 && backend != "cpu")
    found.warning("the run is on the CPU, and there is a GPU",
                  format("ranks/rank_{}.json: device cpu; {} GPU(s) here; backend={}", first.rank, gpus, backend),
                  "`cohort devices` says which library does not see it; backend=cuda refuses to fall back");
  if (first.device == "cpu" && (backend == "cuda" || backend == "metal"))
    found.error("the run is on another device than was asked for", format("backend={}, device cpu", backend),
                "say so in an issue: a forced backend must refuse");
  if (first.world_size == 1 && gpus > 1 && first.device.starts_with("cuda") &&
      first.device.find(',') == std::string::npos)
    found.note(format("one of {} GPUs is used", gpus), format("device {}, one process", first.device),
               "cohort launch --nproc_per_node=gpu train ...");
  if (first.device.find("cuda") != std::string::npos && first.device.find(',') != std::string::npos)
    found.note("DataParallel: one process drives several GPUs", format("device {}", first.device),
               "one process per GPU is faster: cohort launch --nproc_per_node=gpu train ...");
}

void look_at_weights(const Case& c, Findings& found) {
  if (!c.run) return found.leave_out("no run was named");
  bool any = false;
  for (const char* name : {"last", "best"}) {
    const auto file = c.run->path / "checkpoints" / name / "model.safetensors";
    const auto names = tensor_names(file);
    if (names.empty()) continue;
    any = true;
    if (std::all_of(names.begin(), names.end(), [](const std::string& n) { return n.starts_with("module."); })) {
      found.warning(
          "the weights are those of a wrapped module",
          format("{}: {} tensors, all of them named module...., e.g. {}", file.string(), names.size(), names.front()),
          "save model.module.state_dict(), or take `module.` off the names: cohort convert-weights");
      return;
    }
  }
  if (!any) found.leave_out("the run has no checkpoint");
}

}  // namespace

std::vector<Check> rank_checks() {
  return {{"run-alive", "ranks that ended, vanished, are stopped or hang", look_at_ranks_life},
          {"run-steps", "whether ranks are at the same step", look_at_steps},
          {"run-batches", "whether ranks have equal numbers of batches, and all are there", look_at_batches},
          {"run-device", "which devices the ranks are on", look_at_devices_of_ranks},
          {"run-weights", "names in the saved weights", look_at_weights}};
}

}  // namespace cohort::doctor
