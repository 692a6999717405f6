#include "sim/backends/cuda/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "sim/backends/cuda/memory.h"
#include "sim/backends/cuda/model_memory.h"
#include "sim/backends/cuda/runner.h"
#include "sim/batched_engine.h"
#include "sim/engine_plan.h"
#include "sim/host_memory.h"
#include "sim/listed_contacts.h"

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

cuda::WorkspaceNeed workspace_need_of(int device, const ModelView& view, int n_pad) {
  cuda::WorkspaceNeed asked{};
  need(cuda::workspace_need(device, view, n_pad / kBlock, asked), device,
       "the kernels cannot be asked for what they need");
  COHORT_THROW_UNLESS(asked.block.values_per_lane <= kMostValues,
                      "an environment of this model needs {} values of scratch memory; a GPU's thread addresses {}",
                      asked.block.values_per_lane, kMostValues);
  return asked;
}

/// Bytes of an environment on the device.
MemoryPlan plan_of(const Model& model, const ParameterSet& parameters, const FieldSet& step_leaves) {
  MemoryPlan plan = plan_of_fields(model, step_leaves, sizeof(float) + sizeof(int));
  if (parameters.any()) {
    plan.parts.push_back(
        {"parameters", ParameterStore::bytes_for_kernels(model.sizes, ParameterStore::varies(parameters))});
  }
  plan.block = kBlock;
  return plan;
}

class CudaEngine final : public BatchedEngine {
 public:
  CudaEngine(Model model, int n_envs, const EngineOptions& options)
      : BatchedEngine(std::move(model), n_envs, kBlock, options),
        device_(options.device),
        limit_(options.memory_limit) {
    const ModelView view =
        planned_view(model_, options.row_space, options.contact_capacity, step_leaves_, DeviceKind::kCuda);
    model_.sizes.row_space = view.row_space, model_.sizes.contact_capacity = view.contact_capacity;
    model_.sizes.keep_contacts = view.keep_contacts;
    check_step_leaves(model_, step_leaves_, options.parameters);
    check_device(device_);
    plan_workspace(options.parameters, true);
    stream_ = cuda::make_stream(device_);
    model_memory_ = cuda::upload_model(model_, device_, stream(), batch_.model);
    for (int f = 0; f < kFieldCount; ++f) {
      const Field field = static_cast<Field>(f);
      if (!has(field)) continue;
      fields_[at(field)] = cuda::make_device_memory(device_, stream(), field_bytes(field));
      field_memory(field) = fields_[at(field)].get();
    }
    hidden_memory_ = cuda::make_device_memory(device_, stream(), hidden_bytes());
    hidden_ = hidden_memory_.get();
    chosen_ = cuda::make_device_memory(device_, stream(), row_bytes());
    separations_ = cuda::make_device_memory(device_, stream(), separation_values() * row_bytes());
    workspace_ = cuda::make_device_scratch(device_, workspace_bytes());
    batch_.device = device_;
    batch_.stream = stream();
    batch_.data = data_view(static_cast<float*>(hidden_), [this](Field field) { return field_memory(field); });
    batch_.data.separations = separation_values() > 0 ? static_cast<float*>(separations_.get()) : nullptr;
    if ((batch_.data.left & kLeftLinks) != 0) upload_roots();
    use_workspace();
    upload_defaults();
    std::vector<std::int32_t> every(static_cast<std::size_t>(n_pad_));
    std::iota(every.begin(), every.end(), 0);
    launch_reset(every);
    wait();
    take_parameters(options.parameters);
  }

  void* stream() const override { return stream_.get(); }
  void wait() override { need(cuda::wait(device_, stream()), device_, "an earlier launch failed"); }

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
    // Of a few environments their columns only, in one copy.
    sent_envs_ = more || envs.size() > static_cast<std::size_t>(n_pad_) ? std::span<const std::int32_t>() : envs;
    columns_.clear(), column_targets_.clear();
    copy_parameter(0, host_data.body_values, mass_layout(host).size, d.body_values);
    copy_parameter(1, host_data.pair_values, kPairValues * host.npair, d.pair_values);
    copy_parameter(2, host_data.armature, host.nv, d.armature);
    copy_parameter(3, host_data.damping, host.nv, d.damping);
    copy_parameter(4, host_data.actuator_values, kActuatorValues * host.nact, d.actuator_values);
    copy_parameter(6, host_data.centres, 3 * host.nlink, d.centres);
    copy_parameter(7, host_data.gravity, 3, d.gravity);
    copy_parameter(8, host_data.losses, host.nfriction, d.losses);
    copy_parameter(9, host_data.stiffness, host.njnt, d.stiffness);
    copy_parameter(10, host_data.limits, 2 * host.nlimit, d.limits);
    copy_parameter(11, host_data.force_limits, 2 * host.nact, d.force_limits);
    copy_parameter(12, host_data.geom_values, kGeomValues * (host.ngeom + host.nray), d.geom_values);
    copy_parameter(5, inertia ? host_data.weight_ratio : nullptr, ParameterStore::ratio_rows(host), d.weight_ratio);
    send_columns();
  }

  /// Computed in host memory, from a copy of the state: the same bits.
  std::vector<Contact> contacts(int env) override {
    std::vector<float> low(static_cast<std::size_t>(n_pad_), 0.0f);
    const auto copy_of = [this](Field field) -> void* {
      return has(field) ? host_view(field, Access::kRead).data : nullptr;
    };
    DataView data = data_view(low.data(), copy_of);
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

 protected:
  void read_memory(void* to, const void* from, std::size_t bytes) override {
    need(cuda::download(device_, stream(), to, from, bytes), device_, "the state cannot be read");
  }
  void write_memory(void* to, const void* from, std::size_t bytes) override {
    need(cuda::upload(device_, stream(), to, from, bytes), device_, "the state cannot be written");
  }
  bool is_host() const override { return false; }
  void settle() override { flush_all(); }
  void state_loaded() override {
    for (Mirror& mirror : mirrors_) mirror.valid = mirror.dirty = false;
  }
  void share_parameters() override {
    if (batch_.model.varies == 0) return;
    wait();
    batch_.model.varies = 0;  // the workspaces are large enough
  }
  /// Of the host's copies; the device's memory is looked at by commit_parameters().
  void need_room(const ParameterSet& wanted, const std::string& what, double copies) const override {
    const ParameterSet now = parameters_.taken(), more = wanted & ~now;
    if (more.none()) return;
    const double each =
        ParameterStore::bytes_per_environment(model_, now | more) - ParameterStore::bytes_per_environment(model_, now);
    need_memory({.what = what, .each = each, .copies = copies}, n_, available_host_memory());
  }
  const char* place() const override { return " on a GPU"; }

 private:
  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(need_.block.bytes) * static_cast<std::size_t>(blocks_);
  }

  /// Bytes that do not grow with the environments: the model, the stacks, the workspaces of `blocks` blocks.
  double fixed_bytes(int blocks) const {
    return static_cast<double>(cuda::model_bytes(model_)) + static_cast<double>(need_.local_bytes) +
           static_cast<double>(need_.block.bytes) * blocks;
  }

  /// Decides how many workspaces there are, before they are allocated: as many as the device computes at once, fewer
  /// where they would not fit. The results are the same for any number. Throws Error and changes nothing where not even
  /// one fits. first: nothing is there yet.
  void plan_workspace(const ParameterSet& parameters, bool first) {
    ModelView view = model_.view();
    view.varies = ParameterStore::varies(parameters);
    const cuda::WorkspaceNeed asked = workspace_need_of(device_, view, n_pad_);
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
    const bool there = static_cast<bool>(own_[slot]) && to == own_[slot].get();
    if (there && !sent_envs_.empty()) {
      column_targets_.push_back({to, columns_.size(), rows});
      for (int row = 0; row < rows; ++row)
        for (const std::int32_t e : sent_envs_)
          columns_.push_back(
              from[static_cast<std::size_t>(row) * static_cast<std::size_t>(n_pad_) + static_cast<std::size_t>(e)]);
      return;
    }
    if (!own_[slot]) own_[slot] = cuda::make_device_memory(device_, stream(), bytes);
    need(cuda::upload(device_, stream(), own_[slot].get(), from, bytes), device_, "the parameters cannot be copied");
    to = static_cast<float*>(own_[slot].get());
  }

  /// What copy_parameter() has put into columns_, to the device and from there to the environments' places.
  void send_columns() {
    if (column_targets_.empty()) return;
    const std::size_t bytes = columns_.size() * sizeof(float);
    if (bytes > columns_bytes_) {
      columns_memory_ = {}, columns_bytes_ = 0;
      columns_memory_ = cuda::make_device_scratch(device_, bytes);
      columns_bytes_ = bytes;
    }
    const auto count = static_cast<int>(sent_envs_.size());
    need(cuda::upload(device_, stream(), chosen_.get(), sent_envs_.data(), sent_envs_.size_bytes()), device_,
         "the environments of parameters cannot be copied");
    need(cuda::upload(device_, stream(), columns_memory_.get(), columns_.data(), bytes), device_,
         "the parameters cannot be copied");
    for (const ColumnTarget& target : column_targets_)
      need(cuda::scatter(device_, stream(), target.to, n_pad_,
                         static_cast<const float*>(columns_memory_.get()) + target.first,
                         static_cast<const int*>(chosen_.get()), count, target.rows),
           device_, "the parameters cannot be put in their places");
  }

  int device_;
  double limit_;
  cuda::WorkspaceNeed need_{};
  int blocks_ = 0;
  // The stream outlives what is released after it.
  cuda::Stream stream_;
  DeviceMemory model_memory_, hidden_memory_, chosen_, separations_, defaults_memory_, roots_memory_, control_ranges_,
      workspace_, columns_memory_;
  std::size_t columns_bytes_ = 0;
  std::array<DeviceMemory, kFieldCount> fields_;
  std::array<DeviceMemory, 13> own_;
  std::array<Mirror, kFieldCount> mirrors_;
  cuda::Batch batch_{};
  cuda::Defaults defaults_{};
  std::vector<ControlRange> drawn_ranges_;  ///< what control_ranges_ holds
  /// Scratch of commit_parameters(): for whom columns are sent, none: for all; values [row][environment], and where each
  /// parameter's go.
  std::span<const std::int32_t> sent_envs_;
  std::vector<float> columns_;
  struct ColumnTarget {
    float* to;
    std::size_t first;
    int rows;
  };
  std::vector<ColumnTarget> column_targets_;
};

}  // namespace

std::string cuda_unusable() {
  return cuda::available() ? "" : "this build has no CUDA kernels (it was configured without nvcc)";
}

MemoryPlan plan_cuda_engine(const Model& model, const EngineOptions& options) {
  COHORT_THROW_UNLESS(cuda::available(), "cuda:{}: {}", options.device, cuda_unusable());
  check_device(options.device);
  check_step_leaves(model, options.step_leaves, options.parameters);
  ModelView view =
      planned_view(model, options.row_space, options.contact_capacity, options.step_leaves, DeviceKind::kCuda);
  view.varies = ParameterStore::varies(options.parameters);
  const cuda::WorkspaceNeed asked = workspace_need_of(options.device, view, kBlock);
  cuda::DeviceFigures figures{};
  need(cuda::describe_device(options.device, figures), options.device, "the device cannot be asked for its memory");
  MemoryPlan plan = plan_of(model, options.parameters, options.step_leaves);
  plan.fixed_bytes = static_cast<double>(cuda::model_bytes(model)) + static_cast<double>(asked.local_bytes) +
                     static_cast<double>(asked.block.bytes);
  const double free_now = static_cast<double>(figures.free_bytes) - kReserve;
  plan.available_bytes = options.memory_limit > 0 ? std::min(options.memory_limit, free_now) : free_now;
  return plan;
}

std::unique_ptr<Engine> make_cuda_engine(Model model, int n_envs, const EngineOptions& options) {
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  COHORT_THROW_UNLESS(cuda::available(), "cuda:{}: {}", options.device, cuda_unusable());
  return std::make_unique<CudaEngine>(std::move(model), n_envs, options);
}

}  // namespace cohort::sim
