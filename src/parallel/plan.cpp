#include "parallel/plan.h"

#include <algorithm>

#include <unistd.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "dist/cuda_plugin.h"
#include "dist/group.h"
#include "parallel/module_layout.h"
#include "parallel/single_device.h"
#include "parallel/zero_data_parallel.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

std::string names_of(const std::vector<DeviceId>& devices) {
  std::string text;
  for (const DeviceId device : devices) text += (text.empty() ? "" : ", ") + to_string(device);
  return text;
}

Mode choose_mode(const PlanInputs& inputs, const PlanSettings& settings, std::string& why) {
  const rank::Environment& env = inputs.environment;
  const std::string& mode = settings.mode;
  COHORT_THROW_UNLESS(mode == "auto" || mode == "single" || mode == "dp" || mode == "ddp",
                      "parallel mode '{}': it is auto, single, dp or ddp", mode);
  if (env.world_size > 1) {
    COHORT_THROW_UNLESS(
        mode == "auto" || mode == "ddp",
        "parallel mode '{}' is for one process, but this job has {} (from {}); start it without a launcher, or choose "
        "ddp",
        mode, env.world_size, rank::to_string(env.source));
    why = format("{} processes, from {}", env.world_size, rank::to_string(env.source));
    return Mode::kDistributedDataParallel;
  }
  if (mode == "ddp") {
    COHORT_THROW_UNLESS(
        env.launched(),
        "parallel mode 'ddp' needs processes that somebody starts: cohort launch --nproc_per_node={} train ..., or "
        "torchrun --no-python cohort train ...",
        std::max<std::size_t>(2, inputs.devices.size()));
    why = "asked for; a job of one process";
    return Mode::kDistributedDataParallel;
  }
  if (mode == "single") {
    why = "asked for";
    return Mode::kSingleDevice;
  }
  if (mode == "dp") {
    why = "asked for";
    return Mode::kDataParallel;
  }
  if (env.launched()) {
    why = format("the launcher ({}) started one process, which stands for one device", rank::to_string(env.source));
    return Mode::kSingleDevice;
  }
  if (inputs.devices.size() > 1) {
    why = format("one process that sees {} devices", inputs.devices.size());
    return Mode::kDataParallel;
  }
  why = "one process that sees one device";
  return Mode::kSingleDevice;
}

}  // namespace

DeviceId device_of_rank(const PlanInputs& inputs) {
  const rank::Environment& env = inputs.environment;
  const auto count = static_cast<int>(inputs.devices.size());
  if (inputs.devices[0].kind == DeviceKind::kCpu) return inputs.devices[0];
  // One visible device: the launcher has masked the others for this rank. (Where ranks share one, the group says so.)
  if (count == 1) return inputs.devices[0];
  const bool has_own = env.local_rank < count;
  COHORT_THROW_UNLESS(has_own,
                      "local rank {} has no device: this node shows {} ({}) to {} processes; start at most {} per node "
                      "(--nproc_per_node={}), or make more visible",
                      env.local_rank, count, names_of(inputs.devices),
                      env.local_world_size > 0 ? format("{}", env.local_world_size) : "more", count, count);
  return inputs.devices[static_cast<std::size_t>(env.local_rank)];
}

namespace {

/// What no process of this node takes, as far as this one can tell.
std::vector<DeviceId> idle_devices(const PlanInputs& inputs, const Plan& plan) {
  std::size_t used = plan.devices.size();
  if (plan.mode == Mode::kDistributedDataParallel && inputs.devices[0].kind != DeviceKind::kCpu) {
    // A single one is what a launcher's mask shows of several; of more, each local rank takes the one of its number.
    const auto processes = static_cast<std::size_t>(inputs.environment.local_world_size);
    if (inputs.devices.size() == 1 || processes == 0) return {};
    used = std::min(processes, inputs.devices.size());
  }
  return {inputs.devices.begin() + static_cast<std::ptrdiff_t>(used), inputs.devices.end()};
}

/// An elastic job with fewer processes than all: their batches grow no larger, more of them are accumulated, and the
/// batch of an optimizer step stays the same to the sample.
void keep_effective_batch(int full_world_size, std::int64_t processes, Plan& plan) {
  const std::int64_t total = plan.batch_size * full_world_size * plan.accumulation;
  const std::int64_t largest = plan.batch_size;
  for (std::int64_t parts = std::max<std::int64_t>(plan.accumulation, 1); parts <= total / processes; ++parts) {
    if (total % (processes * parts) != 0 || total / (processes * parts) > largest) continue;
    plan.accumulation = parts;
    plan.batch_size = total / (processes * parts);
    plan.warnings.push_back(
        format("{} of {} processes are there: {} batches of {} are accumulated, so that the effective batch stays {}",
               processes, full_world_size, parts, plan.batch_size, total));
    return;
  }
  throw Error(format(
      "{} of {} processes are there, and the effective batch of {} cannot be divided among them: choose one that "
      "every number of nodes divides (train.global_batch_size)",
      processes, full_world_size, total));
}

void set_batch(const PlanSettings& settings, Plan& plan) {
  const int full = plan.environment.full_world_size;
  const std::int64_t here = plan.environment.world_size;
  const std::int64_t processes = std::max<std::int64_t>(here, full);  // whom the settings are meant for
  COHORT_THROW_UNLESS(settings.accumulation >= 1,
                      "train.gradient_accumulation_steps={}: at least one backward pass makes a step",
                      settings.accumulation);
  plan.accumulation = settings.accumulation;
  if (settings.global_batch_size) {
    const std::int64_t total = *settings.global_batch_size;
    const std::int64_t parts = processes * settings.accumulation;
    COHORT_THROW_UNLESS(total >= 1, "train.global_batch_size={}: at least one sample makes a batch", total);
    if (total % parts != 0) {
      const std::int64_t below = total / parts * parts;
      const std::int64_t above = below + parts;
      throw Error(format(
          "train.global_batch_size={} cannot be divided by {} processes x {} accumulated batches; the nearest that can "
          "{}{}",
          total, processes, settings.accumulation, below > 0 ? format("are {} and ", below) : std::string("is "),
          above));
    }
    plan.batch_size = total / parts;
  } else {
    COHORT_THROW_UNLESS(settings.batch_size >= 1, "train.batch_size={}: at least one sample makes a batch",
                        settings.batch_size);
    plan.batch_size = settings.batch_size;
  }
  const auto devices = static_cast<std::int64_t>(plan.devices.size());
  COHORT_THROW_UNLESS(
      plan.batch_size >= devices,
      "train.batch_size={} cannot be divided among {} devices ({}); raise it to at least {}, or name fewer devices",
      plan.batch_size, devices, names_of(plan.devices), devices);
  if (full > here) keep_effective_batch(full, here, plan);
  plan.effective_batch = plan.batch_size * here * plan.accumulation;
}

void check_workers(const PlanInputs& inputs, const PlanSettings& settings, Plan& plan) {
  const int cores = inputs.cores > 0 ? inputs.cores : available_cores();
  const int ranks = std::max(1, plan.environment.local_world_size);
  if (settings.workers * ranks <= cores) return;
  plan.warnings.push_back(
      format("{} loader threads x {} process{} on this node are more than its {} core{}: they slow each other down; "
             "loader.workers={} "
             "would fit",
             settings.workers, ranks, ranks == 1 ? "" : "es", cores, cores == 1 ? "" : "s", cores / ranks));
}

}  // namespace

namespace {

void check_zero(int zero, const Plan& plan) {
  COHORT_THROW_UNLESS(
      zero >= 0 && zero <= 2,
      "parallel.zero={}: it is 0, 1 (optimizer state divided) or 2 (gradients, too); parameters are not "
      "divided here",
      zero);
  COHORT_THROW_UNLESS(
      zero == 0 || plan.mode != Mode::kDataParallel,
      "parallel.zero={} divides what ranks keep, and DataParallel's devices belong to one process: start "
      "a process per device, cohort launch --nproc_per_node={} train ...",
      zero, plan.devices.size());
}

/// What processes divide, in words.
std::string line_of_zero(int zero, const Plan& plan) {
  const int ranks = plan.environment.world_size;
  if (ranks == 1) return format("parallel.zero={} has no effect: one process has nobody to divide with", zero);
  return format("parallel.zero={}: the optimizer's state, averages{} are divided among {} processes", zero,
                zero == 2 ? " and gradients" : "", ranks);
}

}  // namespace

const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::kSingleDevice:
      return "single device";
    case Mode::kDataParallel:
      return "DataParallel";
    case Mode::kDistributedDataParallel:
      return "DistributedDataParallel";
  }
  return "?";
}

Plan make_plan(const PlanInputs& inputs, const PlanSettings& settings) {
  COHORT_THROW_UNLESS(!inputs.devices.empty(), "there is no device to train on");
  Plan plan;
  plan.environment = inputs.environment;
  std::string why;
  plan.mode = choose_mode(inputs, settings, why);
  const rank::Environment& env = inputs.environment;
  switch (plan.mode) {
    case Mode::kDistributedDataParallel:
      plan.devices = {device_of_rank(inputs)};
      break;
    case Mode::kDataParallel:
      plan.devices = inputs.devices;
      break;
    case Mode::kSingleDevice:
      plan.devices = {inputs.devices[0]};
      break;
  }
  check_zero(settings.zero, plan);
  set_batch(settings, plan);
  check_workers(inputs, settings, plan);

  plan.lines.push_back(format("parallel: {} ({})", to_string(plan.mode), why));
  plan.lines.push_back(format("world: {}", env.describe()));
  plan.lines.push_back(
      format("device{} of this process: {}", plan.devices.size() == 1 ? "" : "s", names_of(plan.devices)));
  if (plan.devices.size() > 1) {
    const auto [first, larger] = share_of(plan.batch_size, 0, plan.devices.size());
    const auto last = share_of(plan.batch_size, plan.devices.size() - 1, plan.devices.size()).second;
    plan.lines.push_back(format("batch of {} is divided over {} devices: {}{} each", plan.batch_size,
                                plan.devices.size(), larger, larger == last ? "" : format(" or {}", last)));
  }
  plan.lines.push_back(format("effective batch: {} = {} per process x {} process{} x {} accumulated{}",
                              plan.effective_batch, plan.batch_size, env.world_size, env.world_size == 1 ? "" : "es",
                              plan.accumulation,
                              settings.global_batch_size ? " (train.global_batch_size, divided)" : ""));
  if (settings.zero > 0) plan.lines.push_back(line_of_zero(settings.zero, plan));
  if (const std::vector<DeviceId> idle = idle_devices(inputs, plan); !idle.empty())
    plan.lines.push_back(format("{} other device{} not used: {}{}", idle.size(), idle.size() == 1 ? " is" : "s are",
                                names_of(idle), env.world_size > 1 ? " (each process of a job takes one)" : ""));
  for (const std::string& note : env.notes) plan.warnings.push_back(note);
  return plan;
}

std::vector<std::string> world_lines(const Plan& plan, dist::Group& group) {
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  return group.all_gather_bytes(format("rank {} on host {} (pid {}): {}, world_size={}", plan.environment.rank, host,
                                       getpid(), names_of(plan.devices), plan.environment.world_size));
}

std::unique_ptr<Strategy> make_strategy(const Plan& plan, std::shared_ptr<torch::nn::Module> model,
                                        std::shared_ptr<dist::Group> group, const StrategySettings& settings,
                                        const ModuleFactory& factory) {
  COHORT_CHECK(model != nullptr && !plan.devices.empty(), "a strategy needs a model and a device");
  // Current in this thread: page-locked memory and whatever else names no device would take some of device 0 otherwise.
  if (plan.devices[0].kind == DeviceKind::kCuda) dist::load_cuda_plugin().set_device(plan.devices[0].index);
  check_zero(settings.zero, plan);
  model->to(tensors::to_torch_device(plan.devices[0]));
  switch (plan.mode) {
    case Mode::kSingleDevice:
      return std::make_unique<SingleDevice>(std::move(model), plan.devices[0]);
    case Mode::kDataParallel:
      return std::make_unique<DataParallel>(std::move(model), plan.devices, settings.dp, factory);
    case Mode::kDistributedDataParallel:
      COHORT_CHECK(group != nullptr, "DistributedDataParallel needs a process group");
      COHORT_CHECK(group->options().device == plan.devices[0], "the group was made for {}, the plan says {}",
                   to_string(group->options().device), to_string(plan.devices[0]));
      if (settings.zero > 0)
        return std::make_unique<ZeroDataParallel>(std::move(model), std::move(group), settings.zero, settings.ddp);
      return std::make_unique<DistributedDataParallel>(std::move(model), std::move(group), settings.ddp);
  }
  throw Error("unknown parallel mode");
}

}  // namespace cohort::parallel
