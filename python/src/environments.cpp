#include "environments.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include "bindings.h"
#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/philox.h"
#include "tasks/on_device.h"
#include "tasks/registry.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace cohort::python {
namespace {

std::size_t as_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

EnvironmentBatch::EnvironmentBatch(const std::string& task, const tasks::TaskSettings& settings, Autoreset autoreset)
    : task_(tasks::make_task(task, settings)), autoreset_(autoreset), process_(::getpid()) {
  COHORT_THROW_UNLESS(task_->device().kind == DeviceKind::kCpu,
                      "{} keeps its observations on {}: the Python layer takes tasks whose arrays lie in host memory",
                      task, to_string(task_->device()));
  const auto n = as_size(task_->n_envs());
  rewards.resize(n), terminated.resize(n), truncated.resize(n), success.resize(n), broken.resize(n);
  episode_steps.resize(n), seeds_.resize(n), episodes_.resize(n);
  for (const tasks::FieldSpec& field : task_->spec().observations) {
    widths_.push_back(field.elements());
    width_ += field.elements();
  }
}

EnvironmentBatch::~EnvironmentBatch() {
  // The threads that it would wait for did not come along when the process was forked.
  if (::getpid() != process_) static_cast<void>(task_.release());
}

void EnvironmentBatch::check_process() const {
  COHORT_THROW_UNLESS(
      ::getpid() == process_,
      "these environments of {} were made before this process was forked: make them in the process that steps them "
      "(a start method of multiprocessing other than fork, or make_vec in the worker)",
      task_->spec().name);
}

EnvironmentBatch::Turn::Turn(EnvironmentBatch& batch) : batch_(batch) {
  batch.check_process();
  bool free = false;
  COHORT_THROW_UNLESS(batch.busy_.compare_exchange_strong(free, true),
                      "another thread steps or resets these environments of {} now: one call at a time",
                      batch.task_->spec().name);
}
EnvironmentBatch::Turn::~Turn() {
  batch_.busy_ = false;
}

void EnvironmentBatch::begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) {
  task_->reset(envs, seeds);
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const auto e = as_size(envs[i]);
    seeds_[e] = seeds[i];
    episodes_[e] = 0;
    episode_steps[e] = 0;
    terminated[e] = truncated[e] = success[e] = broken[e] = 0;
    rewards[e] = 0;
  }
  std::erase_if(waiting_, [&](std::int32_t e) { return std::find(envs.begin(), envs.end(), e) != envs.end(); });
}

void EnvironmentBatch::begin_next(std::span<const std::int32_t> envs) {
  std::vector<std::uint64_t> seeds;
  for (const std::int32_t env : envs) {
    const auto e = as_size(env);
    const Philox4 bits =
        RandomStream(seeds_[e], RandomPurpose::kEnvironment, 0, static_cast<std::uint64_t>(++episodes_[e])).at(0);
    seeds.push_back((std::uint64_t{bits.v[0]} << 32) | bits.v[1]);
    episode_steps[e] = 0;
  }
  task_->reset(envs, seeds);
}

void EnvironmentBatch::step(ArrayView actions) {
  task_->step(actions);
  const auto paid = task_->reward().span<float>();
  const auto over = task_->terminated().span<std::uint8_t>(), cut = task_->truncated().span<std::uint8_t>(),
             reached = task_->success().span<std::uint8_t>(), failed = task_->broken().span<std::uint8_t>();
  const auto terms = task_->reward_terms().span<float>();
  reward_terms.assign(terms.begin(), terms.end());
  ended.clear();
  for (std::size_t e = 0; e < size(); ++e) {
    const bool fails = failed[e] != 0 || !std::isfinite(paid[e]);
    rewards[e] = fails ? 0.0f : paid[e];
    broken[e] = fails;
    success[e] = reached[e] != 0;
    terminated[e] = over[e] != 0 || fails;
    truncated[e] = cut[e] != 0;
    ++episode_steps[e];
  }
  if (!waiting_.empty()) {
    for (const std::int32_t env : waiting_) {
      const auto e = as_size(env);
      rewards[e] = 0;
      terminated[e] = truncated[e] = success[e] = broken[e] = 0;
    }
    begin_next(std::exchange(waiting_, {}));
  }
  for (std::size_t e = 0; e < size(); ++e)
    if (terminated[e] || truncated[e]) ended.push_back(static_cast<std::int32_t>(e));
  if (ended.empty()) return;
  if (autoreset_ == Autoreset::kNextStep) waiting_ = ended;
  if (autoreset_ != Autoreset::kSameStep) return;
  final_observations.resize(ended.size() * as_size(width_));
  for (std::size_t i = 0; i < ended.size(); ++i)
    observe(ended[i], std::span(final_observations).subspan(i * as_size(width_), as_size(width_)));
  begin_next(ended);
}

void EnvironmentBatch::observe(std::span<float> out) {
  std::size_t begin = 0;
  for (std::size_t field = 0; field < widths_.size(); ++field) {
    const auto values = task_->observation(field).span<float>();
    const std::size_t width = as_size(widths_[field]);
    if (widths_.size() == 1) {
      std::memcpy(out.data(), values.data(), values.size_bytes());
      return;
    }
    for (std::size_t e = 0; e < size(); ++e)
      std::memcpy(out.data() + e * as_size(width_) + begin, values.data() + e * width, width * sizeof(float));
    begin += width;
  }
}

void EnvironmentBatch::observe(std::int32_t env, std::span<float> out) {
  std::size_t begin = 0;
  for (std::size_t field = 0; field < widths_.size(); ++field) {
    const std::size_t width = as_size(widths_[field]);
    const auto values = task_->observation(field).span<float>();
    std::memcpy(out.data() + begin, values.data() + as_size(env) * width, width * sizeof(float));
    begin += width;
  }
}

namespace {

using Actions = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ActionRows = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using DeviceActions = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cuda>;
using Seeds = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
using Array = nb::ndarray<nb::numpy, T>;

/// An object that has __dlpack__ and __dlpack_device__, and is of no library.
using Tensor = nb::ndarray<nb::array_api, nb::ro>;

/// An array that owns its memory, which `fill` writes first.
template <class T, class Fill>
Array<T> new_array(std::initializer_list<std::size_t> shape, Fill fill) {
  std::size_t count = 1;
  for (const std::size_t size : shape) count *= size;
  auto memory = std::make_unique<T[]>(std::max<std::size_t>(count, 1));
  fill(memory.get(), count);
  nb::capsule owner(memory.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Array<T>(memory.release(), shape, owner);
}
template <class T, class Source>
Array<T> copied(const std::vector<Source>& values) {
  return new_array<T>({values.size()}, [&](T* to, std::size_t n) {
    std::transform(values.begin(), values.end(), to, [](Source v) { return static_cast<T>(v); });
    static_cast<void>(n);
  });
}

/// What Python holds: a share of the batch until it is closed.
class Environments {
 public:
  Environments(const std::string& task, int n_envs, const std::string& autoreset, const std::string& device,
               int threads, const std::string& engine, const std::string& renderer, int height, int width,
               bool learning, std::vector<std::string> settings) {
    tasks::TaskSettings made{.n_envs = n_envs,
                             .threads = threads > 0 ? threads : available_cores(),
                             .engine = engine,
                             .device = parse_device(device),
                             .pictures = {.height = height, .width = width, .renderer = renderer},
                             .overrides = std::move(settings),
                             .learning = learning};
    COHORT_THROW_UNLESS(autoreset == "same_step" || autoreset == "next_step" || autoreset == "disabled",
                        "autoreset '{}': same_step, next_step or disabled", autoreset);
    const nb::gil_scoped_release others_run;
    batch_ = std::make_shared<EnvironmentBatch>(task, made,
                                                autoreset == "same_step"   ? Autoreset::kSameStep
                                                : autoreset == "next_step" ? Autoreset::kNextStep
                                                                           : Autoreset::kDisabled);
  }

  EnvironmentBatch& batch() const {
    COHORT_THROW_UNLESS(batch_, "these environments are closed: make them again");
    return *batch_;
  }
  void close() { batch_.reset(); }
  bool closed() const { return !batch_; }
  int size() const { return static_cast<int>(batch().size()); }

  void begin(const Indices& envs, const Seeds& seeds) {
    EnvironmentBatch& all = batch();
    COHORT_THROW_UNLESS(envs.size() == seeds.size(), "{} seeds for {} environments", seeds.size(), envs.size());
    const std::span chosen = checked(envs);
    const nb::gil_scoped_release others_run;
    const EnvironmentBatch::Turn turn(all);
    all.begin(chosen, std::span(seeds.data(), seeds.size()));
  }
  void begin_next(const Indices& envs) {
    EnvironmentBatch& all = batch();
    const std::span chosen = checked(envs);
    const nb::gil_scoped_release others_run;
    const EnvironmentBatch::Turn turn(all);
    all.begin_next(chosen);
  }

  std::span<const std::int32_t> checked(const Indices& envs) const {
    const std::span<const std::int32_t> chosen(envs.data(), envs.size());
    for (const std::int32_t e : chosen)
      COHORT_THROW_UNLESS(e >= 0 && as_size(e) < batch().size(), "there is no environment {}: they are 0 to {}", e,
                          batch().size() - 1);
    return chosen;
  }

  void check_actions(std::size_t n, std::size_t width) const {
    const auto wanted = as_size(batch().task().spec().action.width());
    COHORT_THROW_UNLESS(n == batch().size() && width == wanted,
                        "actions of shape ({}, {}): {} takes ({}, {}), a row for each environment", n, width,
                        batch().task().spec().name, batch().size(), wanted);
  }

  /// Whether any episode ended.
  bool step(const Actions& actions) {
    check_actions(actions.shape(0), actions.shape(1));
    EnvironmentBatch& all = batch();
    const nb::gil_scoped_release others_run;
    const EnvironmentBatch::Turn turn(all);
    all.step(make_view(actions.data(),
                       {static_cast<std::int64_t>(actions.shape(0)), static_cast<std::int64_t>(actions.shape(1))}));
    return !all.ended.empty();
  }

  /// The same with actions in the memory of the device that computes the environments, valid on device_stream().
  bool step_on_device(const DeviceActions& actions) {
    check_actions(actions.shape(0), actions.shape(1));
    EnvironmentBatch& all = batch();
    const tasks::OnDevice* there = all.task().on_device();
    const DeviceId from{DeviceKind::kCuda, actions.device_id()};
    COHORT_THROW_UNLESS(there != nullptr && there->device() == from,
                        "actions on {}: {} computes its environments on {}; give the actions there, or in host memory",
                        to_string(from), all.task().spec().name,
                        there == nullptr ? "the host" : to_string(there->device()));
    ArrayView view = make_view(
        actions.data(), {static_cast<std::int64_t>(actions.shape(0)), static_cast<std::int64_t>(actions.shape(1))});
    view.device = from;
    view.stream = there->stream();
    const nb::gil_scoped_release others_run;
    const EnvironmentBatch::Turn turn(all);
    all.step(view);
    return !all.ended.empty();
  }
  /// The device in whose memory observations lie, or -1: host memory.
  int device() const {
    const tasks::OnDevice* there = batch().task().on_device();
    return there == nullptr ? -1 : there->device().index;
  }
  std::uintptr_t device_stream() const {
    const tasks::OnDevice* there = batch().task().on_device();
    return there == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(there->stream());
  }

  /// Steps with each row of actions; (steps, n) of rewards, terminations, truncations.
  nb::tuple rollout(const ActionRows& actions) {
    const std::size_t steps = actions.shape(0), n = actions.shape(1), width = actions.shape(2);
    check_actions(n, width);
    EnvironmentBatch& all = batch();
    std::vector<float> rewards(steps * n);
    std::vector<std::uint8_t> terminated(steps * n), truncated(steps * n);
    {
      const EnvironmentBatch::Turn turn(all);
      auto asked = std::chrono::steady_clock::now();
      for (std::size_t t = 0; t < steps; ++t) {
        {
          const nb::gil_scoped_release others_run;
          all.step(make_view(actions.data() + t * n * width,
                             {static_cast<std::int64_t>(n), static_cast<std::int64_t>(width)}));
          std::copy(all.rewards.begin(), all.rewards.end(), rewards.begin() + static_cast<std::ptrdiff_t>(t * n));
          std::copy(all.terminated.begin(), all.terminated.end(),
                    terminated.begin() + static_cast<std::ptrdiff_t>(t * n));
          std::copy(all.truncated.begin(), all.truncated.end(), truncated.begin() + static_cast<std::ptrdiff_t>(t * n));
        }
        const auto now = std::chrono::steady_clock::now();
        if (now - asked < kSignalsAfter) continue;
        asked = now;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      }
    }
    const auto fill = [](const auto& from) {
      return [&from](auto* to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::remove_reference_t<decltype(*to)>>(from[i]);
      };
    };
    return nb::make_tuple(new_array<float>({steps, n}, fill(rewards)), new_array<bool>({steps, n}, fill(terminated)),
                          new_array<bool>({steps, n}, fill(truncated)));
  }

  // Arrays of their own.
  Array<float> observations() const {
    EnvironmentBatch& all = batch();
    return new_array<float>({all.size(), as_size(all.width())},
                            [&](float* to, std::size_t n) { all.observe(std::span(to, n)); });
  }
  Array<float> rewards() const { return copied<float>(batch().rewards); }
  Array<bool> terminated() const { return copied<bool>(batch().terminated); }
  Array<bool> truncated() const { return copied<bool>(batch().truncated); }
  Array<bool> success() const { return copied<bool>(batch().success); }
  Array<bool> broken() const { return copied<bool>(batch().broken); }
  Array<std::int64_t> episode_steps() const { return copied<std::int64_t>(batch().episode_steps); }
  Array<std::int32_t> ended() const { return copied<std::int32_t>(batch().ended); }
  Array<float> final_observations() const {
    const EnvironmentBatch& all = batch();
    return new_array<float>({all.ended.size(), as_size(all.width())}, [&](float* to, std::size_t n) {
      std::copy_n(all.final_observations.begin(), static_cast<std::ptrdiff_t>(n), to);
    });
  }
  /// (n, terms); no columns where the task does not say what its terms are.
  Array<float> reward_terms() const {
    const std::vector<float>& terms = batch().reward_terms;
    return new_array<float>({batch().size(), terms.size() / batch().size()}, [&](float* to, std::size_t n) {
      std::copy_n(terms.begin(), static_cast<std::ptrdiff_t>(n), to);
    });
  }

  // Views: they show what the last step left, without a copy, and hold a share of what they show.
  Array<const float> field_view(std::size_t field) const {
    COHORT_THROW_UNLESS(field < batch().task().spec().observations.size(), "there is no observation {}", field);
    return view<const float>(batch().task().observation(field));
  }
  /// An observation where it is computed: columns of (n, width) in a device's memory, else the task's own array.
  Tensor field_tensor(std::size_t field) const {
    EnvironmentBatch& all = batch();
    const auto& fields = all.task().spec().observations;
    COHORT_THROW_UNLESS(field < fields.size(), "there is no observation {}", field);
    tasks::OnDevice* const there = all.task().on_device();
    std::vector<std::size_t> shape{all.size()};
    std::vector<std::int64_t> strides;
    for (const std::int64_t size : fields[field].shape) shape.push_back(as_size(size));
    std::int64_t below = 1;
    for (std::size_t i = shape.size(); i-- > 1; below *= static_cast<std::int64_t>(shape[i]))
      strides.insert(strides.begin(), below);
    strides.insert(strides.begin(), there == nullptr ? below : all.width());
    std::int64_t begin = 0;
    for (std::size_t i = 0; there != nullptr && i < field; ++i) begin += fields[i].elements();
    const ArrayView from = there == nullptr ? all.task().observation(field) : there->observations();
    return Tensor(static_cast<float*>(from.data) + begin, shape.size(), shape.data(), share(), strides.data(),
                  nb::dtype<float>(), there == nullptr ? nb::device::cpu::value : nb::device::cuda::value,
                  there == nullptr ? 0 : from.device.index);
  }

  Array<const float> reward_view() const { return row_view<const float>(batch().rewards.data()); }
  Array<const bool> terminated_view() const { return row_view<const bool>(batch().terminated.data()); }
  Array<const bool> truncated_view() const { return row_view<const bool>(batch().truncated.data()); }

  /// (environments, height, width, 3), of a camera's pictures as a policy sees them.
  Array<std::uint8_t> picture(const std::string& camera) const {
    EnvironmentBatch& all = batch();
    std::vector<std::int32_t> envs(all.size());
    for (std::size_t e = 0; e < envs.size(); ++e) envs[e] = static_cast<std::int32_t>(e);
    ArrayView drawn;
    {
      const nb::gil_scoped_release others_run;
      const EnvironmentBatch::Turn turn(all);
      drawn = all.task().picture(camera, envs);
    }
    return new_array<std::uint8_t>({all.size(), as_size(drawn.shape[1]), as_size(drawn.shape[2]), 3},
                                   [&](std::uint8_t* to, std::size_t n) { std::memcpy(to, drawn.data, n); });
  }
  /// (height, width, 3), for people.
  Array<std::uint8_t> film(const std::string& camera, std::int32_t env, int height, int width) const {
    EnvironmentBatch& all = batch();
    COHORT_THROW_UNLESS(env >= 0 && as_size(env) < all.size(), "there is no environment {}: they are 0 to {}", env,
                        all.size() - 1);
    ArrayView drawn;
    {
      const nb::gil_scoped_release others_run;
      const EnvironmentBatch::Turn turn(all);
      drawn = all.task().film(camera, env, {.height = height, .width = width});
    }
    return new_array<std::uint8_t>({as_size(drawn.shape[0]), as_size(drawn.shape[1]), 3},
                                   [&](std::uint8_t* to, std::size_t n) { std::memcpy(to, drawn.data, n); });
  }

  nb::dict spec() const {
    const tasks::Task& task = batch().task();
    const tasks::TaskSpec& s = task.spec();
    nb::list fields;
    for (const tasks::FieldSpec& field : s.observations) {
      nb::dict row;
      row["name"] = field.name;
      row["shape"] = nb::tuple(nb::cast(field.shape));
      row["unit"] = field.unit;
      row["summary"] = field.summary;
      row["privileged"] = field.privileged;
      fields.append(row);
    }
    nb::dict result;
    result["name"] = s.name;
    result["summary"] = s.summary;
    result["instruction"] = s.instruction;
    result["observations"] = fields;
    result["cameras"] = s.cameras;
    result["action_names"] = s.action.names;
    result["action_low"] = s.action.low;
    result["action_high"] = s.action.high;
    result["action_unit"] = s.action.unit;
    result["control_period"] = s.control_period;
    result["horizon"] = s.horizon;
    result["reward_terms"] = s.reward_terms;
    result["description"] = task.description();
    return result;
  }

 private:
  static constexpr std::chrono::milliseconds kSignalsAfter{20};  // Ctrl-C is answered as soon as a person expects

  nb::capsule share() const {
    return nb::capsule(new std::shared_ptr<EnvironmentBatch>(batch_),
                       [](void* p) noexcept { delete static_cast<std::shared_ptr<EnvironmentBatch>*>(p); });
  }
  template <class T>
  Array<T> view(const ArrayView& shown) const {
    std::vector<std::size_t> shape;
    for (int i = 0; i < shown.rank; ++i) shape.push_back(as_size(shown.shape[as_size(i)]));
    return Array<T>(static_cast<std::remove_const_t<T>*>(shown.data), shape.size(), shape.data(), share());
  }
  template <class T>
  Array<T> row_view(const void* data) const {
    const std::size_t n = batch().size();
    return Array<T>(static_cast<T*>(data), {n}, share());
  }

  std::shared_ptr<EnvironmentBatch> batch_;
};

}  // namespace

void bind_environments(nb::module_& m) {
  m.def(
      "task_names",
      [] {
        std::vector<std::string> names;
        for (const tasks::TaskEntry& entry : tasks::all_tasks()) names.push_back(entry.name);
        return names;
      },
      "Names of the registered tasks, those of COHORT_TASKS among them.");
  m.def("available_cores", &available_cores, "Cores that this process may use.");

  nb::class_<Environments>(
      m, "Environments",
      "A batch of environments of one task. Arrays lie in host memory; n is the number of environments.")
      .def(nb::init<const std::string&, int, const std::string&, const std::string&, int, const std::string&,
                    const std::string&, int, int, bool, std::vector<std::string>>(),
           "task"_a, "n_envs"_a, nb::kw_only(), "autoreset"_a = "same_step", "device"_a = "cpu", "threads"_a = 0,
           "engine"_a = "", "renderer"_a = "", "height"_a = 128, "width"_a = 128, "learning"_a = false,
           "settings"_a = std::vector<std::string>(),
           "threads: cores, 0: all that this process may use. height, width: px of pictures. learning: curricula move. "
           "settings: KEY=VALUE of the "
           "task. Raises Error for an unknown task and what the task refuses.")
      .def_prop_ro("n_envs", &Environments::size)
      .def_prop_ro("closed", &Environments::closed)
      .def("close", &Environments::close, "Drops the simulation; views of it live on.")
      .def("begin", &Environments::begin, "envs"_a, "seeds"_a,
           "Begins an episode in each of envs (k) int32 with its seed (k) uint64.")
      .def("begin_next", &Environments::begin_next, "envs"_a,
           "Begins the next episode of each of envs (k) int32; its seed is drawn from that of begin() and the "
           "episode's number.")
      .def("step", &Environments::step, "actions"_a,
           "One control period with actions (n, action width) float32, which are read where they lie. Returns whether "
           "any "
           "episode ended. Without Python's lock.")
      .def("step_on_device", &Environments::step_on_device, "actions"_a,
           "The same with actions in the memory of the device that computes, a DLPack capsule or an array of it, valid "
           "on device_stream.")
      .def_prop_ro("device", &Environments::device,
                   "Index of the CUDA device in whose memory observations lie; -1: host memory.")
      .def_prop_ro("device_stream", &Environments::device_stream, "cudaStream_t of all work there; 0 in host memory.")
      .def("rollout", &Environments::rollout, "actions"_a,
           "One step for each of actions (steps, n, action width) float32: rewards, terminations and truncations, each "
           "(steps, "
           "n). Ctrl-C ends it.")
      .def("observations", &Environments::observations,
           "(n, numbers) float32 of its own: all observations side by side, in the order of the spec.")
      .def("rewards", &Environments::rewards, "(n) float32 of its own, of the last step.")
      .def("terminated", &Environments::terminated, "(n) bool of its own.")
      .def("truncated", &Environments::truncated, "(n) bool of its own.")
      .def("success", &Environments::success, "(n) bool of its own: the goal is reached now.")
      .def("broken", &Environments::broken, "(n) bool of its own: the simulation failed, or an action was not finite.")
      .def("reward_terms", &Environments::reward_terms, "(n, terms) float32 of its own, whose sum the reward is.")
      .def("episode_steps", &Environments::episode_steps,
           "(n) int64 of its own: control steps since the episode began.")
      .def("ended", &Environments::ended, "(k) int32 of its own: whose episode the last step ended.")
      .def("final_observations", &Environments::final_observations,
           "(k, numbers) float32 of its own: how ended() were before they began anew (autoreset same_step).")
      .def("field_view", &Environments::field_view, "field"_a,
           "(n, shape...) float32: a view of the task's observation number `field`, which every step writes anew.")
      .def("field_tensor", &Environments::field_tensor, "field"_a,
           "(n, shape...) float32 with __dlpack__, where it is computed: of the task's observation number `field`.")
      .def("reward_view", &Environments::reward_view, "(n) float32: a view.")
      .def("terminated_view", &Environments::terminated_view, "(n) bool: a view.")
      .def("truncated_view", &Environments::truncated_view, "(n) bool: a view.")
      .def("picture", &Environments::picture, "camera"_a, "(n, height, width, 3) uint8 of its own; row 0 is the top.")
      .def("film", &Environments::film, "camera"_a, "env"_a, "height"_a = 256, "width"_a = 256,
           "(height, width, 3) uint8 of its own: an environment for a video.")
      .def("spec", &Environments::spec, "What there is to know about the task.");
}

}  // namespace cohort::python
