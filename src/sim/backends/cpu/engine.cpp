#include "sim/backends/cpu/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/error.h"
#include "core/log.h"
#include "core/thread_team.h"
#include "sim/backends/cpu/block_runner.h"
#include "sim/batched_engine.h"
#include "sim/engine_plan.h"
#include "sim/freed_memory.h"
#include "sim/host_memory.h"
#include "sim/kernels/lane/constraints.h"
#include "sim/listed_contacts.h"

namespace cohort::sim {

namespace {

/// Environments are padded to whole blocks of the widest lanes, so that the memory is the same for every width.
constexpr int kPadding = 16;

const BlockRunner& runner_of(LaneWidth width) {
  return *of_lanes(width, &scalar_block_runner(), avx2_block_runner(), avx512_block_runner());
}

bool processor_runs(LaneWidth width) {
#if defined(__x86_64__)
  if (width == LaneWidth::kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (width == LaneWidth::kAvx512) {
    return processor_runs(LaneWidth::kAvx2) && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw");
  }
#endif
  return width == LaneWidth::kScalar || width == LaneWidth::kAuto;
}

/// Zeros, on a boundary of the lanes' width. Pages that nobody touches take no memory: of a large model's scratch,
/// which has room for every pair of geoms at once, a step touches little.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes) : block_(std::calloc(bytes + 2 * kAlignment, 1)) {
    COHORT_THROW_UNLESS(block_ != nullptr, "{} of memory cannot be had", format_bytes(static_cast<double>(bytes)));
    const auto address = reinterpret_cast<std::uintptr_t>(block_.get());
    start_ = static_cast<char*>(block_.get()) + (kAlignment - address % kAlignment) % kAlignment;
  }
  void* get() const { return start_; }

 private:
  static constexpr std::size_t kAlignment = 64;
  FreedMemory block_;
  void* start_ = nullptr;
};

/// All but available_bytes. view: planned_view of the model.
MemoryPlan plan_of(const Model& model, ModelView view, const BlockRunner& runner, int threads,
                   const ParameterSet& parameters, const FieldSet& step_leaves) {
  MemoryPlan plan = plan_of_fields(model, step_leaves, sizeof(float) * static_cast<double>(hidden_rows(view)));
  if (parameters.any()) {
    plan.parts.push_back({"parameters", ParameterStore::bytes_per_environment(model, parameters)});
  }
  view.varies = ParameterStore::varies(parameters);
  plan.thread_bytes = static_cast<double>(runner.workspace_bytes(view));
  plan.fixed_bytes = plan.thread_bytes * threads;
  plan.block = kPadding;
  return plan;
}

class CpuEngine final : public BatchedEngine {
 public:
  CpuEngine(Model model, int n_envs, const EngineOptions& options)
      : BatchedEngine(std::move(model), n_envs, kPadding, options),
        view_(planned_view(model_, options.row_space, options.contact_capacity, step_leaves_)),
        runner_(runner_of(options.lanes)),
        threads_wanted_(std::min(options.threads, n_pad_ / kPadding)) {
    check_step_leaves(model_, step_leaves_, options.parameters);
    MemoryPlan plan = plan_of(model_, view_, runner_, threads_wanted_, options.parameters, step_leaves_);
    plan.available_bytes = available_host_memory();
    need_memory(plan, n_, threads_wanted_);
    for (int f = 0; f < kFieldCount; ++f) {
      const Field field = static_cast<Field>(f);
      if (has(field)) field_memory(field) = (fields_[static_cast<std::size_t>(f)] = Memory(field_bytes(field))).get();
    }
    hidden_memory_ = Memory(hidden_bytes());
    hidden_ = hidden_memory_.get();
    separations_ = Memory(separation_bytes());
    team_ = std::make_unique<ThreadTeam>(threads_wanted_);
    for (int t = 0; t < team_->size(); ++t) {
      workspaces_.emplace_back(static_cast<std::size_t>(runner_.workspace_bytes(view_)));
    }
    data_ = data_view(static_cast<float*>(hidden_), [this](Field field) { return field_memory(field); });
    // Most callers push nothing, and these are about as many rows as all others: read once somebody may have written
    // there.
    data_.applied = data_.link_force = nullptr;
    data_.separations = static_cast<float*>(separations_.get());
    if ((data_.left & kLeftLinks) != 0) link_root_ = roots_of_links(model_.info);
    data_.link_root = link_root_.empty() ? nullptr : link_root_.data();
    for (int e = 0; e < n_pad_; ++e) reset_one(e);
    step_work_ = [this](int t) {
      share(t, [this](int a, int b, void* w) { runner_.step(view_, data_, a, b, steps_, w); });
    };
    chosen_.reserve(static_cast<std::size_t>(n_pad_ / kPadding));
    is_chosen_.resize(static_cast<std::size_t>(n_pad_ / kPadding));
    forward_some_work_ = [this](int t) {
      const std::size_t n = static_cast<std::size_t>(team_->size()), i = static_cast<std::size_t>(t);
      for (std::size_t k = chosen_.size() * i / n; k < chosen_.size() * (i + 1) / n; ++k) {
        const int first = chosen_[k] * kPadding;
        runner_.forward(view_, data_, first, first + kPadding, workspaces_[i].get());
      }
    };
    forward_work_ = [this](int t) {
      share(t, [this](int a, int b, void* w) { runner_.forward(view_, data_, a, b, w); });
    };
    for (int t = 0; t < team_->size(); ++t) parts_.emplace_back(*this, t);
    part_work_ = [this](int t) {
      CpuPart& part = parts_[static_cast<std::size_t>(t)];
      if (part.first < part.last) (*part_body_)(part);
    };
    take_parameters(options.parameters);
  }

  ArrayView view(Field field) override {
    if (field == Field::kQfrcApplied) data_.applied = floats(field);
    if (field == Field::kXfrcApplied) data_.link_force = floats(field);
    return shape_of(field, field_memory(field));
  }

  void step(int steps) override {
    steps_ = steps;
    count_constraints();
    team_->run(step_work_);
  }
  void run_parts(const std::function<void(Part&)>& body) override {
    count_constraints();
    part_body_ = &body;
    team_->run(part_work_);
  }
  bool has_parts() const override { return true; }
  void forward() override {
    count_constraints();
    team_->run(forward_work_);
  }
  void forward_some(std::span<const std::int32_t> envs) override {
    count_constraints();
    chosen_.clear();
    for (const std::int32_t e : envs) {
      const int block = e / kPadding;
      if (is_chosen_[static_cast<std::size_t>(block)]) continue;
      is_chosen_[static_cast<std::size_t>(block)] = true;
      chosen_.push_back(block);
    }
    for (const int block : chosen_) is_chosen_[static_cast<std::size_t>(block)] = false;
    if (!chosen_.empty()) team_->run(forward_some_work_);
  }

  void reset(std::span<const std::int32_t> envs) override {
    for (std::int32_t e : envs) reset_one(e);
  }

  void commit_parameters(std::span<const std::int32_t> envs = {}) override {
    if (!parameters_.any()) return;
    ModelView view = view_;
    view.varies = parameters_.varies();
    DataView data = data_;
    parameters_.commit(view, data, envs);
    if (view.varies != view_.varies) {
      // The lanes hold more now.
      std::vector<Memory> workspaces;
      for (int t = 0; t < team_->size(); ++t) {
        workspaces.emplace_back(static_cast<std::size_t>(runner_.workspace_bytes(view)));
      }
      workspaces_ = std::move(workspaces);
    }
    view_ = view;
    data_ = data;
  }

  std::vector<Contact> contacts(int env) override { return list_contacts(model_, view_, data_, env); }

  MemoryPlan memory() const override {
    return plan_of(model_, view_, runner_, threads_wanted_, parameters_.taken(), step_leaves_);
  }

 protected:
  void read_memory(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void write_memory(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void state_loaded() override {
    std::memset(separations_.get(), 0, separation_bytes());
    if (holds_numbers(Field::kQfrcApplied)) data_.applied = floats(Field::kQfrcApplied);
    if (holds_numbers(Field::kXfrcApplied)) data_.link_force = floats(Field::kXfrcApplied);
  }
  void share_parameters() override { view_.varies = 0; }
  void need_room(const ParameterSet& wanted, const std::string& what, double copies) const override {
    const ParameterSet more = wanted & ~parameters_.taken();
    if (more.none()) return;
    const MemoryPlan now = memory(),
                     then = plan_of(model_, view_, runner_, threads_wanted_, parameters_.taken() | more, step_leaves_);
    need_memory({.what = what,
                 .each = then.bytes_per_environment() - now.bytes_per_environment(),
                 .fixed = then.fixed_bytes,  // before the old ones are given back
                 .copies = copies},
                n_, available_host_memory());
  }

 private:
  /// What thread t has.
  class CpuPart final : public Part {
   public:
    CpuPart(CpuEngine& engine, int t) : engine_(engine), t_(t) {
      engine.share(t, [this, &engine](int a, int b, void*) { first = a, last = std::min(b, engine.n_); });
    }
    void step(int steps) override {
      engine_.share(t_,
                    [&](int a, int b, void* w) { engine_.runner_.step(engine_.view_, engine_.data_, a, b, steps, w); });
    }

   private:
    CpuEngine& engine_;
    int t_;
  };

  std::size_t separation_bytes() const { return separation_values() * row_bytes(); }

  bool holds_numbers(Field field) {
    const int* const first = static_cast<const int*>(field_memory(field));  // as bits: a minus before a zero counts
    return std::any_of(first, first + field_bytes(field) / sizeof(int), [](int x) { return x != 0; });
  }

  /// The blocks of thread t: an equal, contiguous part.
  template <class F>
  void share(int t, F f) {
    const long long blocks = n_pad_ / kPadding, n = team_->size();
    const int first = static_cast<int>(blocks * t / n) * kPadding,
              last = static_cast<int>(blocks * (t + 1) / n) * kPadding;
    if (first < last) f(first, last, workspaces_[static_cast<std::size_t>(t)].get());
  }

  void reset_one(int e) {
    // As bits: a zero is one of both types.
    for (int f = 0; f < kFieldCount; ++f) {
      const Field field = static_cast<Field>(f);
      for (int i = 0; i < size_of(field); ++i) {
        static_cast<int*>(field_memory(field))[static_cast<std::ptrdiff_t>(i) * n_pad_ + e] = 0;
      }
    }
    for (int i = 0; i < hidden_rows(view_); ++i) data_.time_low[static_cast<std::ptrdiff_t>(i) * n_pad_ + e] = 0;
    for (int i = 0; i < 3 * view_.nseparation; ++i) data_.separations[static_cast<std::ptrdiff_t>(i) * n_pad_ + e] = 0;
    const auto fill = [&](Field field, const std::vector<double>& from) {
      for (std::size_t i = 0; i < from.size(); ++i) {
        floats(field)[i * static_cast<std::size_t>(n_pad_) + static_cast<std::size_t>(e)] = static_cast<float>(from[i]);
      }
    };
    fill(Field::kQpos, model_.info.qpos0);
    fill(Field::kMocapPos, model_.info.mocap_pos0);
    fill(Field::kMocapQuat, model_.info.mocap_quat0);
  }

  /// A look at every pair, which every thread of every step would take.
  void count_constraints() {
    if (view_.counted == capacity_key(view_)) return;
    view_.constraints = sim::count_constraints(view_);
    view_.counted = capacity_key(view_);
  }

  ModelView view_;
  const BlockRunner& runner_;
  int threads_wanted_;
  std::array<Memory, kFieldCount> fields_;
  Memory hidden_memory_;        ///< see hidden_rows
  Memory separations_;          ///< see Separations; no part of the state
  std::vector<int> link_root_;  ///< DataView::link_root
  DataView data_{};
  std::unique_ptr<ThreadTeam> team_;
  std::vector<Memory> workspaces_;
  std::function<void(int)> step_work_, forward_work_, forward_some_work_, part_work_;
  std::vector<int> chosen_;  ///< blocks of kPadding environments, for forward_some_work_
  std::vector<char> is_chosen_;
  std::vector<CpuPart> parts_;
  const std::function<void(Part&)>* part_body_ = nullptr;
  int steps_ = 1;
};

}  // namespace

bool runs_lanes(LaneWidth width) {
  if (!processor_runs(width)) return false;
  if (width == LaneWidth::kAvx512) return avx512_block_runner() != nullptr;
  return width != LaneWidth::kAvx2 || avx2_block_runner() != nullptr;
}

LaneWidth widest_lanes() {
  static const LaneWidth widest = [] {
    if (runs_lanes(LaneWidth::kAvx512)) return LaneWidth::kAvx512;
    if (runs_lanes(LaneWidth::kAvx2)) return LaneWidth::kAvx2;
    if (processor_runs(LaneWidth::kAvx2)) {
      log::warning(
          "this program was built for another processor (COHORT_LANES=native): its physics takes one environment at a "
          "time here, where eight would fit; `scripts/build release --target programs` mends it");
    }
    return LaneWidth::kScalar;
  }();
  return widest;
}

LaneWidth checked_lanes(LaneWidth width) {
  COHORT_THROW_UNLESS(runs_lanes(width), "this {} does not {} {} lanes: take scalar{}{} or auto",
                      processor_runs(width) ? "build" : "processor", processor_runs(width) ? "have" : "run",
                      to_string(width), runs_lanes(LaneWidth::kAvx2) ? ", avx2" : "",
                      runs_lanes(LaneWidth::kAvx512) ? ", avx512" : "");
  return width == LaneWidth::kAuto ? widest_lanes() : width;
}

MemoryPlan plan_cpu_engine(const Model& model, const EngineOptions& options) {
  check_step_leaves(model, options.step_leaves, options.parameters);
  MemoryPlan plan =
      plan_of(model, planned_view(model, options.row_space, options.contact_capacity, options.step_leaves),
              runner_of(options.lanes), options.threads, options.parameters, options.step_leaves);
  plan.available_bytes = available_host_memory();
  return plan;
}

std::unique_ptr<Engine> make_cpu_engine(Model model, int n_envs, const EngineOptions& options) {
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  COHORT_THROW_UNLESS(options.threads > 0, "{} threads: at least one is needed", options.threads);
  return std::make_unique<CpuEngine>(std::move(model), n_envs, options);
}

}  // namespace cohort::sim
