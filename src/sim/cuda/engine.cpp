#include "sim/cuda/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "sim/cpu/contacts.h"
#include "sim/cpu/parameters.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/model_memory.h"
#include "sim/cuda/runner.h"
#include "sim/data_of_fields.h"
#include "sim/engine_plan.h"
#include "sim/host_memory.h"

namespace cohort::sim {

namespace {

using cuda::DeviceMemory;
using cuda::need;

/// Environments of a block: a warp's threads (cuda/lane.h, which only nvcc reads).
constexpr int kBlock = 32;
/// Left free on the device, for what the driver and graphs take besides.
constexpr double kReserve = 64.0 * (1 << 20);
/// A thread's offsets into its block's values are 32-bit integers.
constexpr long long kMostValues = (1ll << 31) / kBlock - 1;

/// What a step leaves as the caller wrote it.
bool is_input(Field field) {
  return field >= Field::kCtrl && field <= Field::kMocapQuat;
}
std::size_t at(Field field) {
  return static_cast<std::size_t>(field);
}

/// A field's copy in host memory.
struct Mirror {
  cuda::HostMemory memory;
  bool valid = false;    ///< holds what the device holds
  bool dirty = false;    ///< was written: goes to the device before the next launch
  bool exposed = false;  ///< the caller has the device's pointer and may write through it at any time
};

void check_device(int device) {
  const int count = cuda::device_count();
  COHORT_THROW_UNLESS(device >= 0 && device < count, "cuda:{} does not exist: this process sees {} CUDA devices",
                      device, count);
}

cuda::WorkspaceNeed workspace_need_of(int device, const ModelView& view) {
  cuda::WorkspaceNeed asked{};
  need(cuda::workspace_need(device, view, asked), device, "the kernels cannot be asked for what they need");
  COHORT_THROW_UNLESS(asked.block.values_per_lane <= kMostValues,
                      "an environment of this model needs {} values of scratch memory; a GPU's thread addresses {}",
                      asked.block.values_per_lane, kMostValues);
  return asked;
}

/// Bytes of an environment on the device.
MemoryPlan plan_of(const Model& model, const ParameterSet& parameters, const FieldSet& step_leaves) {
  MemoryPlan plan;
  double state = sizeof(float) + sizeof(int), derived = 0;
  for (int f = 0; f < kFieldCount; ++f) {
    const Field field = static_cast<Field>(f);
    if (!has_field(step_leaves, field)) continue;
    (is_state(field) ? state : derived) += 4.0 * field_size(model.info, field);
  }
  plan.parts = {{"state and inputs", state}, {"derived", derived}};
  if (model.sizes.nseparation > 0) plan.parts.push_back({"separating directions", 12.0 * model.sizes.nseparation});
  if (parameters.any()) {
    plan.parts.push_back(
        {"parameters", ParameterStore::bytes_for_kernels(model.sizes, ParameterStore::varies(parameters))});
  }
  plan.block = kBlock;
  return plan;
}

class CudaEngine final : public Engine {
 public:
  CudaEngine(Model model, int n_envs, const CudaEngineOptions& options)
      : model_(std::move(model)),
        device_(options.device),
        n_(n_envs),
        n_pad_(padded(n_envs, kBlock)),
        limit_(options.memory_limit),
        step_leaves_(options.step_leaves),
        parameters_(model_, n_pad_) {
    // The rule is of measurements on CPUs, and keeps both backends' bits alike until one is measured on a GPU.
    const ModelView view = planned_view(model_, options.row_space, options.contact_capacity, step_leaves_);
    model_.sizes.row_space = view.row_space, model_.sizes.contact_capacity = view.contact_capacity;
    model_.sizes.keep_contacts = view.keep_contacts;
    check_step_leaves(model_, step_leaves_, options.parameters);
    check_device(device_);
    plan_workspace(options.parameters, true);
    stream_ = cuda::make_stream(device_);
    model_memory_ = cuda::upload_model(model_, device_, stream(), batch_.model);
    for (int f = 0; f < kFieldCount; ++f) {
      const Field field = static_cast<Field>(f);
      if (has(field)) fields_[at(field)] = cuda::make_device_memory(device_, stream(), field_bytes(field));
    }
    hidden_ = cuda::make_device_memory(device_, stream(), hidden_bytes());
    chosen_ = cuda::make_device_memory(device_, stream(), row_bytes());
    separations_ = cuda::make_device_memory(device_, stream(), separation_values() * row_bytes());
    workspace_ = cuda::make_device_scratch(device_, workspace_bytes());
    batch_.device = device_;
    batch_.stream = stream();
    batch_.data = data_of_fields(
        n_pad_, static_cast<float*>(hidden_.get()), [this](Field field) { return floats(field); },
        [this](Field field) { return ints(field); });
    batch_.data.separations = separation_values() > 0 ? static_cast<float*>(separations_.get()) : nullptr;
    batch_.data.left = left_bits(step_leaves_);
    if ((batch_.data.left & kLeftLinks) != 0) upload_roots();
    use_workspace();
    upload_defaults();
    std::vector<std::int32_t> every(static_cast<std::size_t>(n_pad_));
    std::iota(every.begin(), every.end(), 0);
    launch_reset(every);
    wait();
    parameters_.take(options.parameters, n_, [&] { commit_parameters(); });
  }

  EngineKind kind() const override { return EngineKind::kBatched; }
  const ModelInfo& info() const override { return model_.info; }
  int n_envs() const override { return n_; }
  void* stream() const override { return stream_.get(); }
  void wait() override { need(cuda::wait(device_, stream()), device_, "an earlier launch failed"); }

  bool has(Field field) const override { return has_field(step_leaves_, field); }

  ArrayView view(Field field) override {
    Mirror& mirror = mirrors_[at(field)];
    flush(field);
    mirror.exposed = true;
    ArrayView v = shape_of(field, fields_[at(field)].get());
    v.device = {DeviceKind::kCuda, device_};
    v.stream = stream();
    return v;
  }

  ArrayView host_view(Field field, Access access) override {
    COHORT_CHECK(access == Access::kRead || field < Field::kQacc, "{} is read only", field_name(field));
    Mirror& mirror = mirrors_[at(field)];
    if (!mirror.memory) mirror.memory = cuda::make_host_memory(device_, field_bytes(field));
    if (!mirror.dirty && (!mirror.valid || mirror.exposed)) {
      need(cuda::download(device_, stream(), mirror.memory.get(), fields_[at(field)].get(), field_bytes(field)),
           device_, field_name(field));
      mirror.valid = true;
    }
    if (access == Access::kWrite) mirror.dirty = true;
    return shape_of(field, mirror.memory.get());
  }

  void step(int steps) override {
    flush_all();
    need(cuda::step(batch_, steps), device_, "the step cannot be launched");
    state_changed();
  }
  void forward() override {
    flush_all();
    need(cuda::forward(batch_), device_, "the forward pass cannot be launched");
    for (int f = 0; f < kFieldCount; ++f) {
      if (is_derived(static_cast<Field>(f))) mirrors_[static_cast<std::size_t>(f)].valid = false;
    }
  }

  void draw_controls(const RandomControls& controls, const ControlDraw& draw) override {
    const std::span<const ControlRange> ranges = controls.ranges();
    if (!control_ranges_ || !std::ranges::equal(ranges, drawn_ranges_)) {
      DeviceMemory memory = cuda::make_device_memory(device_, stream(), ranges.size_bytes());
      need(cuda::upload(device_, stream(), memory.get(), ranges.data(), ranges.size_bytes()), device_,
           "the controls' ranges cannot be copied");
      control_ranges_ = std::move(memory);
      drawn_ranges_.assign(ranges.begin(), ranges.end());
    }
    flush(Field::kCtrl);
    need(cuda::draw_controls(batch_, static_cast<const ControlRange*>(control_ranges_.get()),
                             static_cast<int>(ranges.size()), draw, n_),
         device_, "the random controls cannot be launched");
    mirrors_[at(Field::kCtrl)].valid = false;
  }

  void reset(std::span<const std::int32_t> envs) override {
    for (std::int32_t e : envs) {
      COHORT_THROW_UNLESS(e >= 0 && e < n_, "environment {} does not exist: there are {}, counted from 0", e, n_);
    }
    flush_all();
    launch_reset(envs);
    for (Mirror& mirror : mirrors_) mirror.valid = false;
  }

  ArrayView parameter(Parameter parameter) override {
    ParameterSet wanted;
    wanted.set(static_cast<std::size_t>(parameter));
    check_step_leaves(model_, step_leaves_, wanted);
    if ((wanted & ~parameters_.taken()).any()) {
      // The caller keeps what was there until the new values are in place.
      need_host_memory(wanted, parameter_name(parameter), 2.0 * sizeof(float) * parameters_.size(parameter));
      parameters_.take(wanted, n_, [&] { commit_parameters(); });
    }
    return parameters_.view(parameter, n_);
  }

  std::vector<float> model_values(Parameter parameter) const override { return parameters_.defaults(parameter); }

  void commit_parameters(std::span<const std::int32_t> envs = {}) override {
    if (!parameters_.any()) return;
    // What the kernels read is worked out in host memory, as for the CPU.
    ModelView host = model_.view();
    host.varies = parameters_.varies();
    DataView host_data{};
    host_data.n_pad = n_pad_;
    parameters_.commit(host, host_data, envs);
    wait();
    const bool more = host.varies != batch_.model.varies;
    if (more) plan_workspace(parameters_.taken(), false);  // where that does not fit all stays
    // The lanes hold more than before: the workspaces are made anew where that is so.
    if (more) {
      batch_.workspace_blocks = 0;  // no launch until there are new ones
      workspace_ = {};
      workspace_ = cuda::make_device_scratch(device_, workspace_bytes());
      use_workspace();
      batch_.model.varies = host.varies;
    }
    const bool inertia = (host.varies & (kVariesMass | kVariesArmature)) != 0;
    DataView& d = batch_.data;
    copy_parameter(0, host_data.body_values, mass_layout(host).size, d.body_values);
    copy_parameter(1, host_data.pair_values, kPairValues * host.npair, d.pair_values);
    copy_parameter(2, host_data.armature, host.nv, d.armature);
    copy_parameter(3, host_data.damping, host.nv, d.damping);
    copy_parameter(4, host_data.actuator_values, kActuatorValues * host.nact, d.actuator_values);
    copy_parameter(5, inertia ? host_data.weight_ratio : nullptr, ParameterStore::ratio_rows(host), d.weight_ratio);
  }

  std::vector<std::uint8_t> save_state() override {
    flush_all();
    std::vector<std::uint8_t> bytes(state_bytes());
    std::size_t from = 0;
    for_state([&](void* memory, std::size_t size) {
      need(cuda::download(device_, stream(), bytes.data() + from, memory, size), device_, "the state cannot be read");
      from += size;
    });
    parameters_.save(bytes);
    return bytes;
  }
  void load_state(std::span<const std::uint8_t> bytes) override {
    const std::size_t expected = state_bytes();
    const auto other = [&] {
      return Error(format("a state of {} bytes was saved; {} environments of this model take {} on a GPU", bytes.size(),
                          n_, expected));
    };
    if (bytes.size() < expected) throw other();
    const ParameterSet saved = ParameterStore::saved_in(bytes.subspan(expected));
    check_step_leaves(model_, step_leaves_, saved);
    need_host_memory(saved, "the state's parameters", 0);
    ParameterStore read(model_, n_pad_);
    if (read.load(bytes.subspan(expected)) != bytes.size() - expected) throw other();
    std::size_t from = 0;
    for_state([&](void* memory, std::size_t size) {
      need(cuda::upload(device_, stream(), memory, bytes.data() + from, size), device_, "the state cannot be written");
      from += size;
    });
    for (Mirror& mirror : mirrors_) mirror.valid = mirror.dirty = false;
    parameters_.exchange_values(read);
    if (parameters_.any()) {
      commit_parameters();
    } else if (batch_.model.varies != 0) {
      wait();
      batch_.model.varies = 0;  // the workspaces are large enough
    }
  }

  /// Computed in host memory, from a copy of the state: the same bits.
  std::vector<Contact> contacts(int env) override {
    std::vector<float> low(static_cast<std::size_t>(n_pad_), 0.0f);
    const auto memory = [this](Field field) -> void* {
      return has(field) ? host_view(field, Access::kRead).data : nullptr;
    };
    DataView data = data_of_fields(
        n_pad_, low.data(), [&](Field field) { return static_cast<float*>(memory(field)); },
        [&](Field field) { return static_cast<int*>(memory(field)); });
    ModelView host = model_.view();
    host.varies = parameters_.varies();
    if (host.varies != 0) parameters_.commit(host, data);
    return list_contacts(model_, host, data, env);
  }

  MemoryPlan memory() const override {
    MemoryPlan plan = plan_of(model_, parameters_.taken(), step_leaves_);
    plan.fixed_bytes = fixed_bytes(blocks_);
    return plan;
  }

  std::string error_text(int) const override { return ""; }

 private:
  std::size_t row_bytes() const { return 4 * static_cast<std::size_t>(n_pad_); }
  int size_of(Field field) const { return has(field) ? field_size(model_.info, field) : 0; }
  std::size_t field_bytes(Field field) const { return static_cast<std::size_t>(size_of(field)) * row_bytes(); }
  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(need_.block.bytes) * static_cast<std::size_t>(blocks_);
  }
  /// Of an environment (Separations): they are in no result, so they stay when a state is loaded.
  std::size_t separation_values() const { return 3 * static_cast<std::size_t>(model_.sizes.nseparation); }
  float* floats(Field field) { return static_cast<float*>(fields_[at(field)].get()); }
  int* ints(Field field) { return static_cast<int*>(fields_[at(field)].get()); }

  /// Bytes that do not grow with the environments: the model, the stacks, the workspaces of `blocks` blocks.
  double fixed_bytes(int blocks) const {
    return static_cast<double>(cuda::model_bytes(model_)) + static_cast<double>(need_.local_bytes) +
           static_cast<double>(need_.block.bytes) * blocks;
  }

  ArrayView shape_of(Field field, void* data) const {
    ArrayView v;
    v.data = data;
    v.type = is_float(field) ? ElementType::kFloat32 : ElementType::kInt32;
    v.rank = 2;
    v.shape = {n_, size_of(field)};
    v.strides = {1, n_pad_};
    return v;
  }

  /// Throws Error with the numbers where the host's copy of these parameters does not fit beside what is taken.
  void need_host_memory(const ParameterSet& wanted, const std::string& what, double copies) const {
    const ParameterSet now = parameters_.taken(), more = wanted & ~now;
    if (more.none()) return;
    const double each =
        ParameterStore::bytes_per_environment(model_, now | more) - ParameterStore::bytes_per_environment(model_, now);
    need_memory({.what = what, .each = each, .copies = copies}, n_, available_host_memory());
  }

  /// Decides how many workspaces there are, before they are allocated: as many as the device computes at once, fewer
  /// where they would not fit. The results are the same for any number. Throws Error and changes nothing where not even
  /// one fits. first: nothing is there yet.
  void plan_workspace(const ParameterSet& parameters, bool first) {
    ModelView view = model_.view();
    view.varies = ParameterStore::varies(parameters);
    const cuda::WorkspaceNeed asked = workspace_need_of(device_, view);
    cuda::DeviceFigures figures{};
    need(cuda::describe_device(device_, figures), device_, "the device cannot be asked for its memory");
    const std::string name = figures.name;
    // Later everything but the further parameters and the new workspaces is there, and the old workspaces make room.
    const MemoryPlan plan = plan_of(model_, parameters, step_leaves_);
    const double each = first ? plan.bytes_per_environment()
                              : ParameterStore::bytes_for_kernels(view, view.varies & ~batch_.model.varies);
    const double base =
        first ? static_cast<double>(cuda::model_bytes(model_)) + static_cast<double>(asked.local_bytes) : 0;
    const double free_now =
        static_cast<double>(figures.free_bytes) - kReserve + (first ? 0 : static_cast<double>(workspace_bytes()));
    const double have = limit_ > 0 ? std::min(limit_, free_now) : free_now;
    const double block = std::max(1.0, static_cast<double>(asked.block.bytes));
    const double left = have - base - each * n_pad_;
    const int useful = std::min(n_pad_ / kBlock, asked.blocks_at_once);
    const int blocks = static_cast<int>(std::min(static_cast<double>(useful), std::max(1.0, left / block)));
    const double most = kBlock * std::floor((have - base - block) / std::max(1.0, each) / kBlock);
    COHORT_THROW_UNLESS(
        left >= block,
        "{} environments need {}{} on cuda:{} ({} each{}, {} for the model and the threads, {} of scratch "
        "memory for {} environments at a time); {} of {} are free, enough for {}",
        n_, format_bytes(each * n_pad_ + base + block * blocks), first ? "" : " for their parameters", device_,
        format_bytes(each), first ? plan.parameters_of_it() : "", format_bytes(base), format_bytes(block * blocks),
        blocks * kBlock, format_bytes(std::max(0.0, have)), name, most > 0 ? static_cast<long long>(most) : 0);
    need_ = asked;
    blocks_ = blocks;
  }
  void use_workspace() {
    batch_.workspace = workspace_.get();
    batch_.block = need_.block;
    batch_.workspace_blocks = blocks_;
  }

  void upload_defaults() {
    std::vector<float> values;
    const auto append = [&](const std::vector<double>& from) {
      const std::size_t start = values.size();
      for (double x : from) values.push_back(static_cast<float>(x));
      return start;
    };
    const std::size_t qpos = append(model_.info.qpos0), pos = append(model_.info.mocap_pos0),
                      quat = append(model_.info.mocap_quat0);
    defaults_memory_ = cuda::make_device_memory(device_, stream(), values.size() * sizeof(float));
    need(cuda::upload(device_, stream(), defaults_memory_.get(), values.data(), values.size() * sizeof(float)), device_,
         "the default state cannot be copied");
    const auto* base = static_cast<const float*>(defaults_memory_.get());
    defaults_ = {base + qpos, base + pos, base + quat};
  }

  void upload_roots() {
    const std::vector<int> roots = roots_of_links(model_.info);
    roots_memory_ = cuda::make_device_memory(device_, stream(), roots.size() * sizeof(int));
    need(cuda::upload(device_, stream(), roots_memory_.get(), roots.data(), roots.size() * sizeof(int)), device_,
         "the links' roots cannot be copied");
    batch_.data.link_root = static_cast<const int*>(roots_memory_.get());
  }

  /// Indices may repeat: pieces of at most n_pad.
  void launch_reset(std::span<const std::int32_t> envs) {
    for (std::size_t from = 0; from < envs.size(); from += static_cast<std::size_t>(n_pad_)) {
      const std::size_t count = std::min(envs.size() - from, static_cast<std::size_t>(n_pad_));
      need(cuda::upload(device_, stream(), chosen_.get(), envs.data() + from, count * sizeof(std::int32_t)), device_,
           "the environments to reset cannot be copied");
      need(cuda::reset(batch_, defaults_, static_cast<const int*>(chosen_.get()), static_cast<int>(count)), device_,
           "the reset cannot be launched");
    }
  }

  void flush(Field field) {
    Mirror& mirror = mirrors_[at(field)];
    if (!mirror.dirty) return;
    need(cuda::upload(device_, stream(), fields_[at(field)].get(), mirror.memory.get(), field_bytes(field)), device_,
         field_name(field));
    mirror.dirty = false;
  }
  void flush_all() {
    for (int f = 0; f < kFieldCount; ++f) flush(static_cast<Field>(f));
  }
  void state_changed() {
    for (int f = 0; f < kFieldCount; ++f) {
      const Field field = static_cast<Field>(f);
      if (!is_input(field) && (!is_derived(field) || step_leaves_.test(at(field)))) mirrors_[at(field)].valid = false;
    }
  }

  /// Values of the host's parameters to the device; `to` is null where the environments have none of their own.
  void copy_parameter(std::size_t slot, const float* from, int rows, float*& to) {
    if (from == nullptr) {
      to = nullptr;
      return;
    }
    const std::size_t bytes = static_cast<std::size_t>(rows) * row_bytes();
    if (!own_[slot]) own_[slot] = cuda::make_device_memory(device_, stream(), bytes);
    need(cuda::upload(device_, stream(), own_[slot].get(), from, bytes), device_, "the parameters cannot be copied");
    to = static_cast<float*>(own_[slot].get());
  }

  std::size_t hidden_bytes() const { return static_cast<std::size_t>(hidden_rows(model_.sizes)) * row_bytes(); }
  std::size_t state_bytes() const {
    std::size_t bytes = hidden_bytes();
    for (int f = 0; f < kFieldCount; ++f) {
      if (is_state(static_cast<Field>(f))) bytes += field_bytes(static_cast<Field>(f));
    }
    return bytes;
  }
  template <class F>
  void for_state(F f) {
    for (int i = 0; i < kFieldCount; ++i) {
      const Field field = static_cast<Field>(i);
      if (is_state(field)) f(fields_[at(field)].get(), field_bytes(field));
    }
    f(hidden_.get(), hidden_bytes());
  }

  Model model_;
  int device_, n_, n_pad_;
  double limit_;
  FieldSet step_leaves_;
  ParameterStore parameters_;
  cuda::WorkspaceNeed need_{};
  int blocks_ = 0;
  // The stream outlives what is released after it.
  cuda::Stream stream_;
  DeviceMemory model_memory_, hidden_, chosen_, separations_, defaults_memory_, roots_memory_, control_ranges_,
      workspace_;
  std::array<DeviceMemory, kFieldCount> fields_;
  std::array<DeviceMemory, 6> own_;
  std::array<Mirror, kFieldCount> mirrors_;
  cuda::Batch batch_{};
  cuda::Defaults defaults_{};
  std::vector<ControlRange> drawn_ranges_;  ///< what control_ranges_ holds
};

}  // namespace

std::string cuda_unusable() {
  return cuda::available() ? "" : "this build has no CUDA kernels (it was configured without nvcc)";
}

MemoryPlan plan_cuda_engine(const Model& model, const CudaEngineOptions& options) {
  COHORT_THROW_UNLESS(cuda::available(), "cuda:{}: {}", options.device, cuda_unusable());
  check_device(options.device);
  check_step_leaves(model, options.step_leaves, options.parameters);
  ModelView view = planned_view(model, options.row_space, options.contact_capacity, options.step_leaves);
  view.varies = ParameterStore::varies(options.parameters);
  const cuda::WorkspaceNeed asked = workspace_need_of(options.device, view);
  cuda::DeviceFigures figures{};
  need(cuda::describe_device(options.device, figures), options.device, "the device cannot be asked for its memory");
  MemoryPlan plan = plan_of(model, options.parameters, options.step_leaves);
  plan.fixed_bytes = static_cast<double>(cuda::model_bytes(model)) + static_cast<double>(asked.local_bytes) +
                     static_cast<double>(asked.block.bytes);
  const double free_now = static_cast<double>(figures.free_bytes) - kReserve;
  plan.available_bytes = options.memory_limit > 0 ? std::min(options.memory_limit, free_now) : free_now;
  return plan;
}

std::unique_ptr<Engine> make_cuda_engine(Model model, int n_envs, const CudaEngineOptions& options) {
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  COHORT_THROW_UNLESS(cuda::available(), "cuda:{}: {}", options.device, cuda_unusable());
  return std::make_unique<CudaEngine>(std::move(model), n_envs, options);
}

}  // namespace cohort::sim
