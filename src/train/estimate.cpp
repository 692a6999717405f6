#include "train/estimate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>

#include <unistd.h>

#include <ATen/DeviceAccelerator.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/nn/module.h>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "monitor/gpu_figures.h"
#include "monitor/host_figures.h"
#include "parallel/plan.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/loader_source.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/rank_memory.h"
#include "train/run_alone.h"

namespace cohort::train {
namespace {

constexpr std::int64_t kSteps = 6;  // the first allocate, choose kernels and warm caches
constexpr std::int64_t kStepsOfSecondSize = 3;
constexpr double kCpuBandwidth = 5e9,
                 kGpuBandwidth = 20e9;  // bytes/s: shared memory of a host; PCIe 4.0 x16 in practice
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 32;

/// Bytes that LibTorch holds on the CPU for this thread and those that work for it.
class HostAllocations final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    const std::int64_t now = now_.fetch_add(bytes) + bytes;
    std::int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  bool memoryProfilingEnabled() const override { return true; }
  void reset_peak() { peak_ = now_.load(); }
  double now() const { return static_cast<double>(now_.load()); }
  double peak() const { return static_cast<double>(peak_.load()); }

 private:
  std::atomic<std::int64_t> now_ = 0, peak_ = 0;
};

/// The same for whichever device trains.
class Allocations {
 public:
  Allocations(c10::Device device, const HostAllocations& host) : device_(device), host_(host) {}
  double now() const { return device_.is_cpu() ? host_.now() : device_bytes(device_); }
  double peak() const { return device_.is_cpu() ? host_.peak() : peak_device_bytes(device_); }

 private:
  c10::Device device_;
  const HostAllocations& host_;
};

struct Measured {
  double weights = 0, gradients = 0, ema = 0, optimizer = 0, activations = 0, loader = 0;
  double step_s = 0, fastest_s = 0, slowest_s = 0;
  std::int64_t steps = 0;
  std::int64_t samples_per_epoch = 0;
};

/// The same steps as a run makes, without validation and checkpoints.
Measured measure(Job& job, const RunSettings& settings, const parallel::Plan& plan, std::int64_t batch,
                 std::int64_t steps, HostAllocations& host) {
  const c10::Device device = tensors::to_torch_device(plan.devices.front());
  const Allocations allocations(device, host);
  const double before = allocations.now();
  const std::shared_ptr<torch::nn::Module> model = job.make_model(settings.train.seed);
  if (settings.train.weights == "bf16") convert_parameters(*model, at::kBFloat16);
  const auto strategy = parallel::make_strategy(plan, model, nullptr, settings.parallel,
                                                [&] { return job.make_model(settings.train.seed); });
  data::LoaderSettings loader = settings.loader;
  loader.batch_size = batch;
  loader.drop_last = settings.drop_last;
  LoaderSource source(job.dataset(Part::kTrain),
                      {.world_size = 1, .rank = 0, .drop_last = settings.drop_last, .seed = settings.train.seed},
                      loader, tensors::host_allocator_for(device.type()));
  TrainSettings train = settings.train;
  train.batch_size = batch;
  train.global_batch_size.reset();
  train.steps = steps;
  train.log_every = 1;
  train.early_stopping.patience = 0;
  TrainJob training = train_job(job, *strategy, source);
  std::vector<double> step_seconds;
  training.step_observers.push_back([&](const StepStats& s) { step_seconds.push_back(s.step_time_s - s.data_time_s); });
  if (device.is_cpu())
    host.reset_peak();
  else if (device.is_cuda())
    at::accelerator::resetPeakStats(device.has_index() ? device.index() : c10::DeviceIndex{0});
  TrainLoop loop(train, std::move(training));
  loop.run();

  Measured m;
  const KeptBytes kept = loop.kept_bytes();
  m.weights = static_cast<double>(kept.weights);
  m.gradients = static_cast<double>(kept.gradients);
  m.ema = static_cast<double>(kept.ema);
  const double lasting = allocations.now() - before;
  m.optimizer = std::max(0.0, lasting - m.weights - m.gradients - m.ema);
  m.activations = std::max(0.0, allocations.peak() - before - lasting);
  m.loader = static_cast<double>(source.held_bytes());
  if (step_seconds.size() > 1) step_seconds.erase(step_seconds.begin());  // it allocates
  std::sort(step_seconds.begin(), step_seconds.end());
  m.steps = static_cast<std::int64_t>(step_seconds.size());
  if (m.steps > 0) m.fastest_s = step_seconds.front(), m.slowest_s = step_seconds.back();
  m.step_s = step_seconds.empty() ? 0 : step_seconds[step_seconds.size() / 2];
  m.samples_per_epoch = source.samples_per_epoch();
  return m;
}

/// Seconds of processor time so far, of the machine and of this process; 0 where the system does not tell.
struct CoreTimes {
  double wall = 0, machine = 0, own = 0;
};

CoreTimes core_times() {
  CoreTimes times;
  times.wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  times.own = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  // proc(5): user, nice, system, idle, iowait, irq, softirq, steal; in hundredths of a second on Linux.
  std::ifstream stat("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0;
  if (stat >> label >> user >> nice >> system >> idle >> wait >> irq >> softirq && label == "cpu")
    times.machine = (user + nice + system + irq + softirq) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return times;
}

double cores_of_others(const CoreTimes& before, const CoreTimes& after) {
  const double wall = after.wall - before.wall;
  if (wall <= 0 || after.machine <= 0) return 0;
  return std::max(0.0, (after.machine - before.machine) - (after.own - before.own)) / wall;
}

/// What a process keeps on a GPU beside its tensors: the context, kernels, what the allocator has in reserve.
double beside_tensors(c10::Device device, double tensors) {
  if (!device.is_cuda()) return 0;
  constexpr double kUsualContext = 500.0 * (1 << 20);  // where the driver does not tell this process's share
  const monitor::GpuMonitor gpus;
  for (const monitor::GpuFigures& gpu : gpus.read())
    for (const monitor::GpuProcess& process : gpu.processes.value_or(std::vector<monitor::GpuProcess>{}))
      if (process.pid == ::getpid() && process.memory)
        return std::max(0.0, static_cast<double>(*process.memory) - tensors);
  return kUsualContext;
}

double memory_there(c10::Device device, const DeviceId& id) {
  if (device.is_cuda())
    for (const GpuDevice& gpu : list_devices({.egl = false}).visible)  // CUDA knows of a MIG slice's, NVML does not
      if (gpu.cuda_index == id.index) return static_cast<double>(gpu.memory_total);
  return static_cast<double>(monitor::host_memory().usable_total);
}

/// What the step that was measured becomes on n devices.
OnDevices on_devices(int n, const Estimate& e, const Measured& m, const RunSettings& settings) {
  OnDevices on;
  on.devices = n;
  on.effective_batch = e.batch_size * n * settings.train.gradient_accumulation_steps;
  on.steps_per_epoch = std::max<std::int64_t>(1, (e.samples + on.effective_batch - 1) / on.effective_batch);
  // A ring sends 2 (n - 1) / n of the gradients over every link (Patarasuk and Yuan 2009).
  const double exchange_s = 2.0 * (n - 1) / n * m.gradients / e.bandwidth;
  on.step_s = m.step_s + exchange_s;
  on.communication = on.step_s > 0 ? exchange_s / on.step_s : 0;
  on.hours_per_epoch = on.step_s * static_cast<double>(on.steps_per_epoch) / 3600;
  const double steps = settings.train.steps > 0 ? static_cast<double>(settings.train.steps)
                                                : static_cast<double>(settings.train.epochs * on.steps_per_epoch);
  on.hours = on.step_s * steps / 3600;
  const int zero = settings.parallel.zero;
  if (n > 1 && zero < 2 && !settings.parallel.ddp.gradient_as_bucket_view) on.bucket_bytes = m.gradients;
  on.memory = e.memory.total() + on.bucket_bytes;
  if (zero > 0) on.memory -= (m.optimizer + m.ema) * (n - 1) / n;
  if (zero == 2) on.memory -= m.gradients * (n - 1) / n;
  return on;
}

}  // namespace

double parse_bytes(const std::string& text) {
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  std::string unit = text.substr(end);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  const std::size_t place = unit.empty() ? 0 : std::string("KMGT").find(unit);
  const std::size_t power = unit.empty() ? 0 : place + 1;
  COHORT_THROW_UNLESS(end > 0 && value > 0 && std::isfinite(value) && unit.size() <= 1 && place != std::string::npos,
                      "'{}' is no size of a memory: write 24G, 800M or a number of bytes", text);
  return value * std::pow(1024.0, static_cast<double>(power));
}

Estimate estimate(Job& job, const RunSettings& settings, const EstimateSettings& wanted) {
  const parallel::Plan plan = plan_alone(job, settings, "cohort estimate");
  const c10::Device device = tensors::to_torch_device(plan.devices.front());
  COHORT_THROW_UNLESS(
      device.is_cpu() || device.is_cuda(),
      "`cohort estimate` cannot count the memory of {}: its allocator keeps no figures; backend=cpu counts "
      "the same tensors",
      device.str());
  const auto host = std::make_shared<HostAllocations>();
  const c10::DebugInfoGuard counting(c10::DebugInfoKind::PROFILER_STATE, host);

  Estimate e;
  e.job = job.name();
  e.device = device.str();
  e.precision = settings.train.precision;
  e.optimizer = settings.train.optimizer.kind;
  e.batch_size = plan.batch_size;
  const CoreTimes before = core_times();
  const Measured m = measure(job, settings, plan, e.batch_size, kSteps, *host);
  e.busy_elsewhere = cores_of_others(before, core_times());
  const auto resident = static_cast<double>(monitor::process_memory().peak_rss);
  e.samples = m.samples_per_epoch;
  e.measured_step_s = m.step_s;
  e.measured_steps = m.steps;
  e.fastest_step_s = m.fastest_s;
  e.slowest_step_s = m.slowest_s;
  e.memory = {.weights = m.weights,
              .gradients = m.gradients,
              .optimizer = m.optimizer,
              .ema = m.ema,
              .activations = m.activations};
  const double tensors = e.memory.total();
  if (device.is_cpu()) {
    e.memory.loader = m.loader;
    e.memory.program = std::max(0.0, resident - tensors - m.loader);
    e.memory.checkpoint = m.weights + m.optimizer + m.ema;
    e.loader_per_sample = m.loader / static_cast<double>(e.batch_size);
  } else {
    e.memory.program = beside_tensors(device, tensors);
  }

  // A second size tells what grows with the batch.
  const std::int64_t other_size =
      e.batch_size >= 2 ? e.batch_size / 2 : std::min<std::int64_t>(2, std::max<std::int64_t>(1, e.samples));
  e.activations_fixed = m.activations;
  if (other_size != e.batch_size) {
    const Measured other = measure(job, settings, plan, other_size, kStepsOfSecondSize, *host);
    e.activations_per_sample =
        std::max(0.0, (m.activations - other.activations) / static_cast<double>(e.batch_size - other_size));
    e.activations_fixed = std::max(0.0, m.activations - e.activations_per_sample * static_cast<double>(e.batch_size));
  }

  e.limit = wanted.memory.value_or(memory_there(device, plan.devices.front()));
  const double fixed = e.memory.total() - e.memory.activations - e.memory.loader + e.activations_fixed;
  const auto fits = [&](std::int64_t batch) {
    const auto n = static_cast<double>(batch);
    const double loader = std::min(e.loader_per_sample * n, static_cast<double>(settings.loader.memory_budget_bytes));
    return fixed + e.activations_per_sample * n + loader <= e.limit;
  };
  std::int64_t low = 0, high = kLargestBatch;
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  // More samples than there are make no larger batch.
  e.largest_batch = std::min(low, e.samples);

  e.bandwidth = wanted.bandwidth.value_or(device.is_cpu() ? kCpuBandwidth : kGpuBandwidth);
  for (const int n : {1, 2, 4, 8}) e.on.push_back(on_devices(n, e, m, settings));
  return e;
}

}  // namespace cohort::train
