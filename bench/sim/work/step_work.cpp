// What a step of the batched engine has to do for one environment, by stage: operations, accesses to the workspace,
// values of it that are touched. Counted, not timed: the same figures on any machine, of the thread that a GPU gives an
// environment and of one lane of a CPU.
//
//   sim_step_work [--envs N] [--steps S] [--warm W] [--row-space ROWS] [--keyframe K] [--noise X] MODEL...
//
// Random controls, held for five steps, of X (1) times the control's range around the keyframe's controls, or around the
// range's middle; options apply to the models that follow. The first W (half of S) steps are not counted. "32 side by
// side" is what a warp of a GPU waits for: stage by stage the most of all environments of a step, with N = 32. Searches
// over convex shapes and height fields calculate in double, which is not counted, nor is what reads the model.
//
// The counted environments have to end with the bits of the scalar engine; where they do not, this program is wrong and
// exits with 1.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <mujoco/mujoco.h>

#include "core/error.h"
#include "core/philox.h"
#include "counting_lane.h"
#include "sim/backends/cpu/engine.h"
#include "sim/engine_plan.h"
#include "sim/host/compile.h"
#include "sim/host/import/handle.h"
#include "sim/host/model.h"
#include "sim/kernels/collide/convex/search_space.h"
#include "sim/kernels/step.h"

using namespace cohort;
using namespace cohort::sim;

namespace {

using L = CountingLane;

enum Stage {
  kLoad,
  kKinematics,
  kVelocities,
  kInertia,
  kForces,
  kFactor,
  kOtherRows,
  kContacts,
  kSolver,
  kIntegration,
  kStore,
  kStages
};
constexpr std::array<const char*, kStages> kNames = {
    "load",
    "kinematics",
    "velocities, applied forces",
    "composite inertia",
    "passive forces, actuation",
    "factor, unconstrained acceleration",
    "rows of equalities, friction, limits",
    "collision and contact rows",
    "solver",
    "integration",
    "store",
};

struct Settings {
  std::string file;
  int envs = 32, steps = 200, warm = -1, row_space = -1, keyframe = -1;
  double noise = 1;
};

/// Compiled without sensors, which a step does not compute.
std::vector<std::uint8_t> without_sensors(std::vector<std::uint8_t> mjb) {
  const mj::ModelPtr m = mj::load(mjb);
  m->opt.disableflags |= mjDSBL_SENSOR;
  mjb.resize(static_cast<std::size_t>(mj_sizeModel(m.get())));
  mj_saveModel(m.get(), nullptr, mjb.data(), static_cast<int>(mjb.size()));
  return mjb;
}

/// The environments twice: as the scalar engine steps them, and in memory of this program for the counting lane.
class CountedSteps {
 public:
  explicit CountedSteps(const Settings& s, const std::vector<std::uint8_t>& mjb)
      : settings_(s), mujoco_(mj::load(mjb)), model_(import_model(mjb)) {
    EngineOptions options;
    options.lanes = LaneWidth::kScalar;
    options.row_space = s.row_space;
    engine_ = make_cpu_engine(import_model(mjb), s.envs, options);
    view_ = planned_view(model_, s.row_space, 0);
    COHORT_THROW_UNLESS(
        !view_.delayed_sensors && view_.ndelay == 0 && !view_.adhesion && view_.option.noslip_iterations == 0,
        "{}: a model with delays, adhesion or noslip iterations is not counted", s.file);
    if (s.keyframe >= 0) start_at_keyframe();
    take_memory();
  }

  const ModelView& model() const { return view_; }
  /// Values of an environment's workspace.
  int workspace() const { return static_cast<int>(values_.size()); }

  /// One step of all environments; adds each one's work to of_envs[env][stage].
  void step(int step, std::vector<std::array<Work, kStages>>& of_envs) {
    draw_controls(step);
    engine_->step(1);
    for (int e = 0; e < settings_.envs; ++e) {
      stages_ = &of_envs[static_cast<std::size_t>(e)];
      step_environment(e);
      rows += static_cast<double>(rows_of_last_);
    }
  }

  void count_touched(bool on) { counter.touched = on ? &touched_ : nullptr; }
  int touched() const { return static_cast<int>(std::count(touched_.begin(), touched_.end(), 1)); }

  /// Throws where an environment's state is not the engine's.
  void check() const {
    for (const Field field : {Field::kQpos, Field::kQvel, Field::kAct, Field::kWarmstart, Field::kTime}) {
      const ArrayView v = engine_->view(field);
      const float* const ours = row_of(field);
      for (std::int64_t i = 0; i < v.shape[1]; ++i) {
        for (std::int64_t e = 0; e < settings_.envs; ++e) {
          COHORT_THROW_UNLESS(std::memcmp(static_cast<const float*>(v.data) + e * v.strides[0] + i * v.strides[1],
                                          ours + i * n_pad_ + e, sizeof(float)) == 0,
                              "{}: {} {} of environment {} is not the engine's: this program steps otherwise",
                              settings_.file, field_name(field), i, e);
        }
      }
    }
  }

  double rows = 0;  ///< constraint rows of all environments' steps so far
  double contacts() const { return mean_of(data_.contact_count); }
  double iterations() const { return mean_of(data_.iterations); }

 private:
  double mean_of(const int* counts) const {
    double sum = 0;
    for (int e = 0; e < settings_.envs; ++e) sum += counts[e];
    return sum / settings_.envs;
  }
  const float* row_of(Field field) const {
    switch (field) {
      case Field::kQpos:
        return data_.qpos;
      case Field::kQvel:
        return data_.qvel;
      case Field::kAct:
        return data_.act;
      case Field::kWarmstart:
        return data_.warmstart;
      default:
        return data_.time;
    }
  }

  void start_at_keyframe() {
    COHORT_THROW_UNLESS(settings_.keyframe < mujoco_->nkey, "{}: no keyframe {}, it has {}", settings_.file,
                        settings_.keyframe, mujoco_->nkey);
    const auto set = [&](Field field, const double* from, int n) {
      const ArrayView v = engine_->view(field);
      for (int e = 0; e < settings_.envs; ++e) {
        for (int i = 0; i < n; ++i) {
          static_cast<float*>(v.data)[e * v.strides[0] + i * v.strides[1]] =
              static_cast<float>(from[settings_.keyframe * n + i]);
        }
      }
    };
    set(Field::kQpos, mujoco_->key_qpos, view_.nq);
    set(Field::kQvel, mujoco_->key_qvel, view_.nv);
  }

  void take_memory() {
    n_pad_ = static_cast<int>(engine_->view(Field::kQpos).strides[1]);
    const int sizes[] = {view_.nq,
                         view_.nv,
                         view_.na,
                         view_.nv,
                         1,
                         1,
                         view_.nu,
                         view_.nv,
                         3 * view_.nmocap,
                         4 * view_.nmocap,
                         3 * view_.nseparation};
    std::size_t all = 0;
    for (const int n : sizes) all += static_cast<std::size_t>(n) * static_cast<std::size_t>(n_pad_);
    state_.assign(all, 0.0f);
    counts_.assign(3 * static_cast<std::size_t>(n_pad_), 0);
    float* at = state_.data();
    const auto take = [&](int n) {
      float* const piece = at;
      at += static_cast<std::size_t>(n) * static_cast<std::size_t>(n_pad_);
      return piece;
    };
    data_.n_pad = n_pad_;
    data_.qpos = take(view_.nq), data_.qvel = take(view_.nv), data_.act = take(view_.na);
    data_.warmstart = take(view_.nv), data_.time = take(1), data_.time_low = take(1);
    data_.ctrl = take(view_.nu), data_.qacc = take(view_.nv);
    data_.mocap_pos = take(3 * view_.nmocap), data_.mocap_quat = take(4 * view_.nmocap);
    data_.separations = view_.nseparation > 0 ? take(3 * view_.nseparation) : nullptr;
    data_.status = counts_.data(), data_.contact_count = data_.status + n_pad_;
    data_.iterations = data_.contact_count + n_pad_;
    for (const auto& [field, to] : {std::pair{Field::kQpos, data_.qpos},
                                    {Field::kQvel, data_.qvel},
                                    {Field::kAct, data_.act},
                                    {Field::kMocapPos, data_.mocap_pos},
                                    {Field::kMocapQuat, data_.mocap_quat}}) {
      const ArrayView v = engine_->view(field);
      if (v.shape[1] > 0) std::memcpy(to, v.data, sizeof(float) * static_cast<std::size_t>(v.shape[1] * n_pad_));
    }
    const ConstraintCapacity most = constraint_capacity(view_, 1);
    const IntegerSizes n = integer_sizes(view_, most);
    values_.resize(static_cast<std::size_t>(lay_out<L>(view_, most, CountedPointer{}, space_)));
    touched_.assign(values_.size(), 0);
    lay_out<L>(view_, most, CountedPointer(values_.data()), space_);
    groups_.resize(static_cast<std::size_t>(n.groups) + 1);
    integers_.resize(static_cast<std::size_t>(n.cols + n.start) + 1);
    bits_.resize(static_cast<std::size_t>(n.bits) + 1);
    search_.resize(sizeof(collide::SearchSpace) / sizeof(double) + 8);
    space_.c.group = groups_.data(), space_.c.search = search_.data();
    space_.s.cols = integers_.data(), space_.s.start = integers_.data() + n.cols, space_.s.bits = bits_.data();
    counter.begin = reinterpret_cast<const char*>(values_.data());
    counter.end = counter.begin + sizeof(float) * values_.size();
  }

  void draw_controls(int step) {
    const ArrayView v = engine_->view(Field::kCtrl);
    for (int e = 0; e < settings_.envs; ++e) {
      const RandomStream random(1, RandomPurpose::kAction, static_cast<std::uint64_t>(e),
                                static_cast<std::uint64_t>(step / 5));
      for (const ActuatorInfo& a : model_.info.actuators) {
        if (a.ctrl < 0) continue;
        const double low = a.limited ? a.range[0] : -1, high = a.limited ? a.range[1] : 1;
        const double middle =
            settings_.keyframe >= 0 ? mujoco_->key_ctrl[settings_.keyframe * view_.nu + a.ctrl] : 0.5 * (low + high);
        const double x = random.uniform(static_cast<std::uint64_t>(a.ctrl)) - 0.5;
        const auto value = static_cast<float>(middle + settings_.noise * x * (high - low));
        data_.ctrl[a.ctrl * n_pad_ + e] = value;
        static_cast<float*>(v.data)[e * v.strides[0] + a.ctrl * v.strides[1]] = value;
      }
    }
  }

  void begin(Stage stage) { counter.now = &(*stages_)[stage]; }

  /// kernels/step.h's step_block with its stages apart.
  void step_environment(int env) {
    const ModelView& m = view_;
    BlockSpace<L>& b = space_;
    begin(kLoad);
    b.c.live = data_.status[env] == 0;
    if (!b.c.live) return;
    b.c.rows_are_read = b.c.contacts_are_read = false;
    const BlockEnvs envs{env, nullptr};
    load_block<L>(m, data_, envs, b);
    StepCounts<L> counts;
    counts.iterations = evaluate(b);
    counts.contacts = counts.most = b.c.contacts;
    begin(kIntegration);
    if (m.option.integrator != kRk4) {
      integrate<L>(m, b.w, solved<L>(m, b.c, counts.iterations));
    } else {
      begin_stages<L>(m, b.w);
      for (int stage = 0; stage < 4; ++stage) {
        begin(kIntegration);
        add_stage<L>(m, b.w, stage);
        if (stage == 3) break;
        counts.iterations = counts.iterations + evaluate(b);
        counts.most = max(counts.most, b.c.contacts);
      }
      begin(kIntegration);
      end_stages<L>(m, b.w);
    }
    begin(kStore);
    end_step<L>(m, data_, envs, b, counts);
  }

  /// evaluate, likewise.
  Counted evaluate(BlockSpace<L>& b) {
    const ModelView& m = view_;
    Workspace<L>& w = b.w;
    begin(kKinematics);
    kinematics<L>(m, w);
    begin(kVelocities);
    velocities<L>(m, w);
    applied_forces<L>(m, w);
    if (m.nfluid > 0) fluid_forces<L>(m, w);
    begin(kInertia);
    composite_inertia<L>(m, w);
    begin(kForces);
    tendons<L>(m, w);
    if (m.tendon_inertia) tendon_inertia<L>(m, w, true);
    passive<L>(m, w);
    begin(kFactor);
    const Pattern<L> p{m.pattern, m.pattern_start};
    copy_matrix<L>(m.nv, p, w.mass, w.factor);
    factor_in_place<L>(m.nv, p, w.factor);
    begin(kForces);
    actuation<L>(m, w);
    begin(kFactor);
    for (int d = 0; d < m.nv; ++d) w.acc_smooth[d] = w.smooth[d];
    solve_in_place<L>(m.nv, p, w.factor, w.acc_smooth);
    begin(kOtherRows);
    b.c.count = b.c.pool_used = 0;
    b.c.contacts = Counted(0.0f);
    b.c.constrained = false;
    equality_rows<L>(m, w, b.c);
    friction_rows<L>(m, w, b.c);
    limit_rows<L>(m, w, b.c);
    begin(kContacts);
    contact_rows<L>(m, w, b.c);
    rows_of_last_ = 0;
    for (int k = 0; k < b.c.count; ++k) rows_of_last_ += b.c.group[k].lanes != 0 ? b.c.group[k].edges : 0;
    begin(kSolver);
    return solve_constraints<L>(m, b);
  }

  const Settings& settings_;
  mj::ModelPtr mujoco_;
  Model model_;
  ModelView view_;
  std::unique_ptr<Engine> engine_;
  int n_pad_ = 0, rows_of_last_ = 0;
  std::vector<float> state_;
  std::vector<int> counts_, integers_;
  DataView data_{};
  BlockSpace<L> space_;
  std::vector<Counted> values_;
  std::vector<char> touched_;
  std::vector<Group> groups_;
  std::vector<unsigned long long> bits_;
  std::vector<double> search_;
  std::array<Work, kStages>* stages_ = nullptr;
};

void count(const Settings& s) {
  const EntityDeclaration entity{"model", Mjcf{s.file}};
  const std::vector<std::uint8_t> mjb = without_sensors(compile_scene(std::span(&entity, 1), {}, {}).mjb);
  const std::vector<Unsupported> missing = find_unsupported(mjb);
  COHORT_THROW_UNLESS(missing.empty(), "{}: {}", s.file, to_string(missing));
  CountedSteps steps(s, mjb);
  const ModelView& m = steps.model();
  const int warm = s.warm >= 0 ? s.warm : s.steps / 2, counted = s.steps - warm;
  std::array<Work, kStages> all{};
  std::array<double, kStages> side_by_side{};
  double contacts = 0, iterations = 0, rows_before = 0;
  for (int i = 0; i < s.steps; ++i) {
    std::vector<std::array<Work, kStages>> of_envs(static_cast<std::size_t>(s.envs));
    if (i == warm) rows_before = steps.rows;
    if (i + 1 == s.steps) steps.count_touched(true);
    steps.step(i, of_envs);
    steps.count_touched(false);
    if (i < warm) continue;
    contacts += steps.contacts(), iterations += steps.iterations();
    for (int k = 0; k < kStages; ++k) {
      double most = 0;
      for (const auto& stages : of_envs) {
        all[static_cast<std::size_t>(k)] += stages[static_cast<std::size_t>(k)];
        most = std::max(most, stages[static_cast<std::size_t>(k)].units());
      }
      side_by_side[static_cast<std::size_t>(k)] += most;
    }
  }
  steps.check();
  std::printf(
      "### %s\n%d dofs, %d bodies, %d geoms, %d pairs of geoms, row space %d; %d environments, steps %d to %d; of a "
      "step "
      "%.2f contacts, %.2f rows, %.2f iterations; workspace of %d values, %d of which the last step touched\n\n",
      s.file.substr(s.file.rfind('/') + 1).c_str(), m.nv, m.nbody, m.ngeom, m.npair, m.row_space, s.envs, warm + 1,
      s.steps, contacts / counted, (steps.rows - rows_before) / counted / s.envs, iterations / counted,
      steps.workspace(), steps.touched());
  std::printf(
      "| stage | arithmetic | choices | divisions | loads | stores | units | 32 side by side |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  const auto row = [&](const char* name, const Work& w, double most) {
    const double per = 1.0 / (static_cast<double>(counted) * s.envs);
    const auto each = [&](long long n) { return static_cast<double>(n) * per; };
    std::printf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", name, each(w.arithmetic), each(w.choices),
                each(w.divisions), each(w.loads), each(w.stores), w.units() * per, most / counted);
  };
  Work sum;
  double most = 0;
  for (std::size_t k = 0; k < kStages; ++k) {
    row(kNames[k], all[k], side_by_side[k]);
    sum += all[k], most += side_by_side[k];
  }
  row("all", sum, most);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Settings settings;
    bool any = false;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (!word.starts_with("--")) {
        settings.file = word;
        count(settings);
        any = true;
        continue;
      }
      COHORT_THROW_UNLESS(i + 1 < argc, "{} needs a number behind it", word);
      const char* const value = argv[++i];
      if (word == "--envs")
        settings.envs = std::max(1, std::atoi(value));
      else if (word == "--steps")
        settings.steps = std::max(1, std::atoi(value)), settings.warm = -1;
      else if (word == "--warm")
        settings.warm = std::clamp(std::atoi(value), 0, settings.steps - 1);
      else if (word == "--row-space")
        settings.row_space = std::atoi(value);
      else if (word == "--keyframe")
        settings.keyframe = std::atoi(value);
      else if (word == "--noise")
        settings.noise = std::atof(value);
      else
        throw Error("unknown option " + word + ": --envs, --steps, --warm, --row-space, --keyframe, --noise");
    }
    COHORT_THROW_UNLESS(any, "name model files: sim_step_work [--envs N] [--steps S] ... MODEL...");
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
