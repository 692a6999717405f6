#include "sim/backends/mujoco/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "core/thread_team.h"
#include "sim/host/import/handle.h"
#include "sim/host/shape_bounds.h"
#include "sim/host_memory.h"

namespace cohort::sim::mj {

namespace {

struct BatchDeleter {
  void operator()(mjBatch* b) const { mjb_deleteBatch(b); }
};

/// Where MuJoCo has a field: in its state, or among its outputs (mjb_output) and in mjData.
struct FieldSource {
  int state = 0;                               ///< mjtState
  const char* output = nullptr;                ///< null: no output
  const void* (*in)(const mjData&) = nullptr;  ///< of an output
};
#define COHORT_OUTPUT(name, member)                                \
  {                                                                \
    0, name, [](const mjData& d) -> const void* { return member; } \
  }
/// By the fields' numbers.
constexpr FieldSource kSources[kFieldCount] = {
    {mjSTATE_QPOS},
    {mjSTATE_QVEL},
    {mjSTATE_ACT},
    {mjSTATE_WARMSTART},
    {mjSTATE_TIME},
    {mjSTATE_CTRL},
    {mjSTATE_QFRC_APPLIED},
    {mjSTATE_XFRC_APPLIED},
    {mjSTATE_MOCAP_POS},
    {mjSTATE_MOCAP_QUAT},
    COHORT_OUTPUT("qacc", d.qacc),
    COHORT_OUTPUT("xpos", d.xpos),
    COHORT_OUTPUT("xquat", d.xquat),
    COHORT_OUTPUT("sensordata", d.sensordata),
    COHORT_OUTPUT("xipos", d.xipos),
    COHORT_OUTPUT("cinert", d.cinert),
    COHORT_OUTPUT("cvel", d.cvel),
    COHORT_OUTPUT("cfrc_ext", d.cfrc_ext),
    COHORT_OUTPUT("qfrc_actuator", d.qfrc_actuator),
    COHORT_OUTPUT("qfrc_constraint", d.qfrc_constraint),
    {},  // kLinkTwist and kGeomForce are computed by the engine
    {},
    {},  // kStatus is the engine's own
    COHORT_OUTPUT("ncon", &d.ncon),
    COHORT_OUTPUT("solver_niter", d.solver_niter),
};
#undef COHORT_OUTPUT
const FieldSource& source_of(Field field) {
  return kSources[static_cast<int>(field)];
}

/// MuJoCo's name of a parameter, its values in the model, and how many there are.
struct ModelField {
  const char* name;
  const mjtNum* values;
  mjtSize count;
};
ModelField field_of(const mjModel& m, Parameter parameter) {
  switch (parameter) {
    case Parameter::kLinkMass:
      return {"body_mass", m.body_mass, m.nbody};
    case Parameter::kGeomFriction:
      return {"geom_friction", m.geom_friction, 3 * m.ngeom};
    case Parameter::kDofArmature:
      return {"dof_armature", m.dof_armature, m.nv};
    case Parameter::kDofDamping:
      return {"dof_damping", m.dof_damping, m.nv};
    case Parameter::kActuatorGain:
      return {"actuator_gainprm", m.actuator_gainprm, mjNGAIN * m.nactuator};
    case Parameter::kActuatorBias:
      return {"actuator_biasprm", m.actuator_biasprm, mjNBIAS * m.nactuator};
    case Parameter::kLinkCom:
      return {"body_ipos", m.body_ipos, 3 * m.nbody};
    case Parameter::kLinkInertia:
      return {"body_inertia", m.body_inertia, 3 * m.nbody};
    case Parameter::kLinkInertiaQuat:
      return {"body_iquat", m.body_iquat, 4 * m.nbody};
    case Parameter::kGravity:
      return {"opt.gravity", m.opt.gravity, 3};
    case Parameter::kDofFrictionloss:
      return {"dof_frictionloss", m.dof_frictionloss, m.nv};
    case Parameter::kJointStiffness:
      return {"jnt_stiffness", m.jnt_stiffness, m.njnt};
    case Parameter::kJointRange:
      return {"jnt_range", m.jnt_range, 2 * m.njnt};
    case Parameter::kActuatorForceRange:
      return {"actuator_forcerange", m.actuator_forcerange, 2 * m.nactuator};
    case Parameter::kGeomPos:
      return {"geom_pos", m.geom_pos, 3 * m.ngeom};
    case Parameter::kGeomQuat:
      return {"geom_quat", m.geom_quat, 4 * m.ngeom};
    case Parameter::kGeomSize:
      return {"geom_size", m.geom_size, 3 * m.ngeom};
  }
  return {};
}

/// Whether mj_setConst works out inverse weights and the like anew.
bool changes_inertia(Parameter p) {
  return p == Parameter::kLinkMass || p == Parameter::kDofArmature || p == Parameter::kLinkCom ||
         p == Parameter::kLinkInertia || p == Parameter::kLinkInertiaQuat;
}
/// Whether it moves frames that MuJoCo otherwise takes for those of bodies.
bool moves_inertia(Parameter p) {
  return p == Parameter::kLinkCom || p == Parameter::kLinkInertiaQuat;
}
/// Whether it moves a frame that may have coincided with another one.
bool moves_frames(Parameter p) {
  return moves_inertia(p) || p == Parameter::kGeomPos || p == Parameter::kGeomQuat;
}
bool is_of_geoms(Parameter p) {
  return p == Parameter::kGeomPos || p == Parameter::kGeomQuat || p == Parameter::kGeomSize;
}
/// mjModel's names of how frames are simplified (mjtSameFrame).
constexpr const char* kSameFrames[] = {"body_sameframe", "geom_sameframe", "site_sameframe"};

/// The rows of `width` values that stand `stride` apart.
ArrayView rows(void* data, ElementType type, int n, int width, std::int64_t stride) {
  ArrayView view;
  view.data = data;
  view.type = type;
  view.rank = 2;
  view.shape = {n, width};
  view.strides = {stride, 1};
  return view;
}

/// What mj_setConst derives from the inertia: body_invweight0, dof_invweight0, dof_M0, tendon_invweight0,
/// actuator_acc0.
double bytes_of_inertia(const mjModel& m) {
  return sizeof(mjtNum) * (2.0 * m.nbody + 2.0 * m.nv + m.ntendon + m.nactuator);
}

/// Bytes of an environment's own values of a parameter, and of what belongs to it alone.
double bytes_of(const mjModel& m, Parameter parameter) {
  const double own = sizeof(mjtNum) * static_cast<double>(field_of(m, parameter).count);
  // body_subtreemass
  if (parameter == Parameter::kLinkMass) return own + sizeof(mjtNum) * static_cast<double>(m.nbody);
  // geom_rbound, geom_aabb
  if (parameter == Parameter::kGeomSize) return own + sizeof(mjtNum) * 7.0 * static_cast<double>(m.ngeom);
  return moves_frames(parameter) ? own + static_cast<double>(m.nbody + m.ngeom + m.nsite) : own;
}

/// All but available_bytes.
MemoryPlan plan_of(const mjModel& m, const ModelInfo& info, int threads, const ParameterSet& parameters,
                   const FieldSet& step_leaves) {
  MemoryPlan plan;
  const auto width = static_cast<std::size_t>(mj_stateSize(&m, mjSTATE_INTEGRATION));
  plan.parts = {
      {"state", static_cast<double>(width * 2 * sizeof(mjtNum))},
      {"outputs", static_cast<double>((info.nv + 7 * info.links.size() + static_cast<std::size_t>(info.nsensordata)) *
                                          sizeof(mjtNum) +
                                      4 * sizeof(std::int32_t))},
      {"warnings", static_cast<double>(mjNWARNING * sizeof(mjWarningStat) + sizeof(std::string))}};
  for (int f = 0; f < kFieldCount; ++f) {
    const Field field = static_cast<Field>(f);
    if (!is_on_request(field) || !has_field(step_leaves, field)) continue;
    plan.parts[1].bytes += static_cast<double>(sizeof(mjtNum)) * field_size(info, field);
  }
  double own = 0;
  bool inertia = false;
  for (int p = 0; p < kParameterCount; ++p) {
    if (!parameters.test(static_cast<std::size_t>(p))) continue;
    own += bytes_of(m, static_cast<Parameter>(p));
    inertia = inertia || changes_inertia(static_cast<Parameter>(p));
  }
  if (inertia) own += bytes_of_inertia(m);
  if (own > 0) plan.parts.push_back({"parameters", own});
  plan.thread_bytes = static_cast<double>(m.narena);
  plan.fixed_bytes = static_cast<double>(m.nbuffer) + plan.thread_bytes * threads;
  return plan;
}

class MujocoEngine final : public Engine {
 public:
  MujocoEngine(std::span<const std::uint8_t> mjb, int n_envs, const EngineOptions& options)
      : model_(load(mjb)),
        info_(describe(*model_)),
        n_(n_envs),
        step_leaves_(options.step_leaves),
        leave_present_(options.leave_present) {
    // A world that breaks keeps its last state and says so; MuJoCo's own answer, to reset it, would hide the trouble.
    model_->opt.disableflags |= mjDSBL_AUTORESET;
    width_ = static_cast<std::size_t>(mj_stateSize(model_.get(), mjSTATE_INTEGRATION));
    threads_ = options.threads;
    MemoryPlan plan = plan_of(*model_, info_, threads_, options.parameters, step_leaves_);
    plan.available_bytes = available_host_memory();
    need_memory(plan, n_, threads_);
    mjBatchConfig config;
    mjb_defaultConfig(&config);
    config.nthread = options.threads;
    // A thread that MuJoCo's own pool cannot start ends the process: an Error comes from here.
    { const ThreadTeam probe(options.threads); }
    char error[1024] = "";
    batch_.reset(mjb_makeBatch(model_.get(), n_envs, &config, error, sizeof error));
    COHORT_THROW_UNLESS(batch_ != nullptr, "MuJoCo makes no batch of {} environments: {}", n_envs, error);
    COHORT_CHECK(width_ == static_cast<std::size_t>(mjb_nstate(batch_.get())), "MuJoCo's state has {} values, not {}",
                 mjb_nstate(batch_.get()), width_);
    // Registered once, so that step() allocates nothing and the pointers stay.
    for (int f = static_cast<int>(Field::kQacc); f < kFieldCount; ++f) {
      const char* name = source_of(static_cast<Field>(f)).output;
      if (!name || !has(static_cast<Field>(f))) continue;
      Output& out = outputs_[static_cast<std::size_t>(f)];
      out.data = mjb_output(batch_.get(), name, &out.size, &out.element);
      COHORT_THROW_UNLESS(out.data || field_size(info_, static_cast<Field>(f)) == 0, "MuJoCo has no output `{}`", name);
    }
    for (const Field field : {Field::kLinkTwist, Field::kGeomForce}) {
      if (has(field)) computed(field).assign(static_cast<std::size_t>(n_) * values_of(field), 0);
    }
    before_.resize(width_ * static_cast<std::size_t>(n_));
    status_.assign(static_cast<std::size_t>(n_), kStatusOk);
    contacts_.assign(static_cast<std::size_t>(n_), 0);
    iterations_.assign(static_cast<std::size_t>(n_), 0);
    errors_.resize(static_cast<std::size_t>(n_));
    mjb_reset(batch_.get(), nullptr, n_, nullptr, mjSTAGE_NONE);
    for (int p = 0; p < kParameterCount; ++p) {
      if (options.parameters.test(static_cast<std::size_t>(p))) expand(static_cast<Parameter>(p));
    }
  }

  EngineKind kind() const override { return EngineKind::kMujoco; }
  const ModelInfo& info() const override { return info_; }
  int n_envs() const override { return n_; }

  bool has(Field field) const override { return has_field(step_leaves_, field); }

  ArrayView view(Field field) override {
    const int size = has(field) ? field_size(info_, field) : 0;
    if (field == Field::kStatus) return rows(status_.data(), ElementType::kInt32, n_, 1, 1);
    if (field == Field::kContactCount) return rows(contacts_.data(), ElementType::kInt32, n_, 1, 1);
    if (field == Field::kSolverIterations) return rows(iterations_.data(), ElementType::kInt32, n_, 1, 1);
    if (const int component = source_of(field).state) {
      int found = 0;
      mjtNum* first = mjb_stateComponent(batch_.get(), component, &found);
      COHORT_CHECK(size == 0 || found == size, "MuJoCo's {} has {} values, not {}", field_name(field), found, size);
      return rows(first, ElementType::kFloat64, n_, size, static_cast<std::int64_t>(width_));
    }
    if (is_computed(field)) return rows(computed(field).data(), ElementType::kFloat64, n_, size, size);
    const Output& out = outputs_[static_cast<std::size_t>(field)];
    return rows(out.data, ElementType::kFloat64, n_, size, size);
  }

  void step(int steps) override {
    for (int s = 0; s < steps; ++s) {
      std::memcpy(before_.data(), mjb_state(batch_.get()), before_.size() * sizeof(mjtNum));
      // What forward() or contacts() met is no trouble of this step.
      std::fill_n(mjb_warning(batch_.get()), static_cast<std::size_t>(n_) * mjNWARNING, mjWarningStat{0, 0});
      if (s + 1 == steps && (computes() || leave_present_)) {
        mjb_apply(batch_.get(), nullptr, n_, step_and_compute, this, 1);
      } else {
        mjb_step(batch_.get(), nullptr, n_, 1, mjSTAGE_NONE);
      }
      inspect();
    }
  }

  void forward() override { forward_of(nullptr, n_); }
  void forward_some(std::span<const std::int32_t> envs) override {
    const std::vector<std::int32_t> rising = in_mujocos_order(envs);
    if (!rising.empty()) forward_of(rising.data(), static_cast<int>(rising.size()));
  }

  void reset(std::span<const std::int32_t> envs) override {
    const std::vector<std::int32_t> rising = in_mujocos_order(envs);
    if (rising.empty()) return;  // without a list MuJoCo takes all
    mjb_reset(batch_.get(), rising.data(), static_cast<int>(rising.size()), nullptr, mjSTAGE_NONE);
    for (std::int32_t e : rising) {
      const auto i = static_cast<std::size_t>(e);
      status_[i] = kStatusOk;
      contacts_[i] = iterations_[i] = 0;
      errors_[i].clear();
    }
  }

  std::vector<Contact> contacts(int env) override {
    std::vector<Contact> found;
    mjb_apply(batch_.get(), &env, 1, collect_contacts, &found, 0);
    return found;
  }

  std::vector<float> model_values(Parameter parameter) const override {
    const ModelField field = field_of(*model_, parameter);
    return std::vector<float>(field.values, field.values + field.count);
  }

  ArrayView parameter(Parameter parameter) override {
    ParameterSet wanted;
    wanted.set(static_cast<std::size_t>(parameter));
    if ((wanted & ~expanded_).any()) {
      // The caller keeps what was there, as floats, until the new values are in place.
      const std::size_t copies = 2 * sizeof(float) * model_values(parameter).size();
      need_room(wanted, parameter_name(parameter), static_cast<double>(copies));
    }
    return expand(parameter);
  }
  void commit_parameters(std::span<const std::int32_t> envs = {}) override {
    const std::vector<std::int32_t> rising = in_mujocos_order(envs);
    for (std::size_t p = 0; p < expanded_.size(); ++p) {
      if (!expanded_[p]) continue;
      const auto which = static_cast<Parameter>(p);
      const ArrayView v = expand(which);
      for (int k = 0; k < (rising.empty() ? n_ : static_cast<int>(rising.size())); ++k) {
        const std::int32_t e = rising.empty() ? k : rising[static_cast<std::size_t>(k)];
        const mjtNum* row = static_cast<const mjtNum*>(v.data) + e * v.strides[0];
        for (std::int64_t i = 0; i < v.shape[1]; ++i) check_parameter(which, e, i, static_cast<float>(row[i]));
        if (which == Parameter::kGeomQuat || which == Parameter::kGeomSize) check_geoms(which, e, row);
        if (moves_inertia(which)) check_simple(which, e, row, v.shape[1] / model_->nbody);
        if (which == Parameter::kLinkMass) check_masses(info_, e, [&](int link) { return row[link]; });
      }
    }
    if (expanded_.test(static_cast<std::size_t>(Parameter::kGeomSize))) {
      for (int k = 0; k < (rising.empty() ? n_ : static_cast<int>(rising.size())); ++k)
        bound_geoms(rising.empty() ? k : rising[static_cast<std::size_t>(k)]);
    }
    const int failed = rising.empty() ? mjb_setConst(batch_.get(), nullptr, n_)
                                      : mjb_setConst(batch_.get(), rising.data(), static_cast<int>(rising.size()));
    if (failed > 0) {
      for (int e = 0; e < n_; ++e) {
        if (mjb_status(batch_.get())[e]) {
          throw Error(format("environment {} has impossible parameters: {}", e, mjb_error(batch_.get(), e)));
        }
      }
    }
  }

  std::vector<std::uint8_t> save_state() override {
    std::vector<std::uint8_t> bytes;
    const auto add = [&bytes](const void* data, std::size_t size) {
      const auto* p = static_cast<const std::uint8_t*>(data);
      bytes.insert(bytes.end(), p, p + size);
    };
    add(mjb_state(batch_.get()), state_bytes());
    add(status_.data(), status_.size() * sizeof(std::int32_t));
    // Parameters that differ between environments: which, then their values.
    for (std::size_t p = 0; p < expanded_.size(); ++p) {
      const auto has = static_cast<std::uint8_t>(expanded_.test(p));
      add(&has, 1);
    }
    for (std::size_t p = 0; p < expanded_.size(); ++p) {
      if (!expanded_[p]) continue;
      const ArrayView v = expand(static_cast<Parameter>(p));
      add(v.data, v.bytes());
    }
    return bytes;
  }
  void load_state(std::span<const std::uint8_t> bytes) override {
    const std::size_t fixed = state_bytes() + status_.size() * sizeof(std::int32_t);
    std::size_t expected = fixed + expanded_.size();
    ParameterSet saved;
    for (std::size_t p = 0; p < expanded_.size() && bytes.size() > fixed + p; ++p) {
      if (bytes[fixed + p]) {
        saved.set(p);
        expected += model_values(static_cast<Parameter>(p)).size() * static_cast<std::size_t>(n_) * sizeof(mjtNum);
      }
    }
    COHORT_THROW_UNLESS(bytes.size() == expected,
                        "a state of {} bytes was saved; {} environments of this model take {}", bytes.size(), n_,
                        expected);
    need_room(saved, "the state's parameters", 0);
    std::memcpy(mjb_state(batch_.get()), bytes.data(), state_bytes());
    std::memcpy(status_.data(), bytes.data() + state_bytes(), status_.size() * sizeof(std::int32_t));
    const std::uint8_t* from = bytes.data() + fixed + expanded_.size();
    bool any = false;
    for (std::size_t p = 0; p < expanded_.size(); ++p) {
      const auto which = static_cast<Parameter>(p);
      if (bytes[fixed + p]) {
        const ArrayView v = expand(which);
        std::memcpy(v.data, from, v.bytes());
        from += v.bytes();
        any = true;
      } else if (expanded_[p]) {
        // What this scene changed and the saved one had not: the model's values again.
        const ArrayView v = expand(which);
        const std::vector<float> own = model_values(which);
        for (std::int64_t i = 0; i < v.size(); ++i) {
          static_cast<mjtNum*>(v.data)[i] = model_value(which, static_cast<std::size_t>(i) % own.size());
        }
        any = true;
      }
    }
    if (any) commit_parameters();
  }

  std::vector<std::string> state_names() const override { return {"state", field_name(Field::kStatus)}; }
  ArrayView state_array(const std::string& name, Access) override {
    if (name == field_name(Field::kStatus)) return view(Field::kStatus);
    COHORT_THROW_UNLESS(name == "state", "no array of MuJoCo's state is called '{}'", name);
    const auto width = static_cast<int>(width_);
    return rows(mjb_state(batch_.get()), ElementType::kFloat64, n_, width, width);
  }
  void state_written() override {
    if (expanded_.any()) commit_parameters();
  }
  ParameterSet parameters_in_use() const override { return expanded_; }

  MemoryPlan memory() const override { return plan_of(*model_, info_, threads_, expanded_, step_leaves_); }

  std::string error_text(int env) const override { return errors_.at(static_cast<std::size_t>(env)); }

 private:
  struct Output {
    void* data = nullptr;
    int size = 0, element = 0;
  };

  /// MuJoCo wants environments rising, each once; for others it ends the process.
  static std::vector<std::int32_t> in_mujocos_order(std::span<const std::int32_t> envs) {
    std::vector<std::int32_t> rising(envs.begin(), envs.end());
    std::sort(rising.begin(), rising.end());
    rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
    return rising;
  }

  /// The parameter's memory in MuJoCo's batch, taken at the first use.
  ArrayView expand(Parameter parameter) {
    int size = 0, element = 0;
    const char* const name = field_of(*model_, parameter).name;
    void* data = mjb_expand(batch_.get(), name, &size, &element);
    COHORT_CHECK(data != nullptr || size == 0, "MuJoCo does not expand {}", name);
    if (moves_frames(parameter) && !expanded_.test(static_cast<std::size_t>(parameter))) {
      // A frame that coincided with the one of an inertia need not do so any more.
      for (const char* const frames : kSameFrames) {
        int n = 0, bytes = 0;
        void* const flags = mjb_expand(batch_.get(), frames, &n, &bytes);
        COHORT_CHECK(flags != nullptr || n == 0, "MuJoCo does not expand {}", frames);
        if (n > 0)
          std::memset(flags, mjSAMEFRAME_NONE, static_cast<std::size_t>(n) * static_cast<std::size_t>(bytes * n_));
      }
    }
    if (is_of_geoms(parameter) && !expanded_.test(static_cast<std::size_t>(parameter))) {
      // MuJoCo's trees of the geoms' boxes are the model's.
      int n = 0, bytes = 0;
      auto* const flags = static_cast<int*>(mjb_expand(batch_.get(), "opt.disableflags", &n, &bytes));
      COHORT_CHECK(flags != nullptr && n == 1 && bytes == sizeof(int), "MuJoCo does not expand opt.disableflags");
      for (int e = 0; e < n_; ++e) flags[e] |= mjDSBL_MIDPHASE;
    }
    expanded_.set(static_cast<std::size_t>(parameter));
    return rows(data, ElementType::kFloat64, n_, size, size);
  }

  void check_geoms(Parameter which, int env, const mjtNum* row) const {
    const int width = which == Parameter::kGeomQuat ? 4 : 3;
    for (int g = 0; g < model_->ngeom; ++g) {
      float own[4];
      bool as_model = true;
      for (int i = 0; i < width; ++i) {
        own[i] = static_cast<float>(row[width * g + i]);
        as_model =
            as_model && own[i] == static_cast<float>(model_value(which, static_cast<std::size_t>(width * g + i)));
      }
      if (!as_model) check_geom(info_, which, env, g, own);
    }
  }
  /// Balls and boxes around geoms of a size of their own.
  void bound_geoms(std::int32_t env) {
    const ArrayView sizes = expand(Parameter::kGeomSize);
    const auto row = [&](const char* name) {
      int size = 0, element = 0;
      void* const data = mjb_expand(batch_.get(), name, &size, &element);
      COHORT_CHECK(data != nullptr || size == 0, "MuJoCo does not expand {}", name);
      return static_cast<mjtNum*>(data) + static_cast<std::ptrdiff_t>(env) * size;
    };
    const mjtNum* const size = static_cast<const mjtNum*>(sizes.data) + env * sizes.strides[0];
    mjtNum *const radius = row("geom_rbound"), *const box = row("geom_aabb");
    for (int g = 0; g < model_->ngeom; ++g) {
      const GeomBounds bounds = bounds_of_shape(model_->geom_type[g], size + 3 * g);
      if (!(bounds.radius > 0)) continue;
      radius[g] = bounds.radius;
      for (int i = 0; i < 3; ++i) box[6 * g + 3 + i] = bounds.half[i];
    }
  }

  /// MuJoCo keeps no entries of the inertia matrix for what a simplified link would need.
  void check_simple(Parameter parameter, int env, const mjtNum* row, std::int64_t width) const {
    for (int b = 1; b < model_->nbody; ++b) {
      if (!model_->body_simple[b]) continue;
      for (std::int64_t i = width * b; i < width * (b + 1); ++i) {
        COHORT_THROW_UNLESS(
            static_cast<float>(row[i]) == static_cast<float>(model_value(parameter, static_cast<std::size_t>(i))),
            "environment {} has impossible parameters: {}[{}] of link `{}` is another than the model's, whose inertia "
            "MuJoCo simplifies because its centre is the link's origin; give its inertial in the file a pos of 1e-6, "
            "or "
            "take the engine `batched`",
            env, parameter_name(parameter), i, info_.links[static_cast<std::size_t>(b)].name);
      }
    }
  }

  /// Throws Error with the numbers where these parameters, those that environments have left out, do not fit beside
  /// what is taken: MuJoCo would end the process.
  void need_room(const ParameterSet& wanted, const std::string& what, double copies) const {
    const ParameterSet more = wanted & ~expanded_;
    if (more.none()) return;
    const MemoryPlan then = plan_of(*model_, info_, threads_, expanded_ | more, step_leaves_);
    const double each = then.bytes_per_environment() - memory().bytes_per_environment();
    need_memory({.what = what, .each = each, .copies = copies}, n_, available_host_memory());
  }

  std::size_t state_bytes() const { return before_.size() * sizeof(mjtNum); }

  mjtNum model_value(Parameter parameter, std::size_t i) const { return field_of(*model_, parameter).values[i]; }

  /// envs: null for all.
  void forward_of(const std::int32_t* envs, int n) {
    if (computes()) {
      mjb_apply(batch_.get(), envs, n, forward_and_compute, this, 0);
    } else {
      mjb_forward(batch_.get(), envs, n, mjSTAGE_ACC);
    }
  }

  /// Fields that MuJoCo computes only where somebody asks, which has to be before its mjData goes to the next
  /// environment.
  bool computes() const { return has(Field::kLinkForce) || has(Field::kLinkTwist) || has(Field::kGeomForce); }
  static bool is_computed(Field field) { return field == Field::kLinkTwist || field == Field::kGeomForce; }
  std::vector<mjtNum>& computed(Field field) { return field == Field::kLinkTwist ? twists_ : geom_forces_; }
  std::size_t values_of(Field field) const { return static_cast<std::size_t>(field_size(info_, field)); }

  static void step_and_compute(const mjModel* m, mjData* d, int sim, void* engine) {
    mj_step(m, d);
    static_cast<MujocoEngine*>(engine)->compute(m, d, sim, true);
  }
  static void forward_and_compute(const mjModel* m, mjData* d, int sim, void* engine) {
    mj_forward(m, d);
    static_cast<MujocoEngine*>(engine)->compute(m, d, sim, false);
  }
  /// after_step: the state in `d` is a timestep ahead of what was computed of it.
  void compute(const mjModel* m, mjData* d, int sim, bool after_step) {
    if (has(Field::kLinkForce)) mj_rnePostConstraint(m, d);
    if (has(Field::kGeomForce)) find_geom_forces(m, d, sim);
    if (after_step && leave_present_) {
      mj_kinematics(m, d);
      mj_comPos(m, d);
      mj_comVel(m, d);
    }
    if (has(Field::kLinkTwist)) find_twists(m, d, sim);
    copy_outputs(*d, sim);
  }
  void find_twists(const mjModel* m, const mjData* d, int sim) {
    mjtNum* to = twists_.data() + static_cast<std::size_t>(sim) * values_of(Field::kLinkTwist);
    for (int k = 0; k < static_cast<int>(m->nbody); ++k, to += 6) {
      mjtNum velocity[6];
      mj_objectVelocity(m, d, mjOBJ_XBODY, k, velocity, 0);
      std::copy_n(velocity + 3, 3, to);
      std::copy_n(velocity, 3, to + 3);
    }
  }
  void find_geom_forces(const mjModel* m, const mjData* d, int sim) {
    const std::size_t n = values_of(Field::kGeomForce);
    mjtNum* const to = geom_forces_.data() + static_cast<std::size_t>(sim) * n;
    std::fill_n(to, n, 0);
    for (int c = 0; c < d->ncon; ++c) {
      const int* const geom = d->contact[c].geom;
      if (geom[0] < 0 || geom[1] < 0) continue;  // of flexes, which have no geoms
      mjtNum force[3];
      force_in_world(m, d, c, force);
      for (int side = 0; side < 2; ++side) {
        mjtNum* const sum = to + 6 * geom[side] + (fixed_geoms_[static_cast<std::size_t>(geom[1 - side])] ? 0 : 3);
        for (int i = 0; i < 3; ++i) sum[i] += side == 0 ? -force[i] : force[i];
      }
    }
  }
  /// On the contact's second geom.
  static void force_in_world(const mjModel* m, const mjData* d, int contact, mjtNum* force) {
    mjtNum local[6];
    mj_contactForce(m, d, contact, local);
    mju_mulMatTVec3(force, d->contact[contact].frame, local);
  }
  /// What MuJoCo does after its own functions, and not after a caller's.
  void copy_outputs(const mjData& d, int sim) const {
    for (int f = static_cast<int>(Field::kQacc); f < kFieldCount; ++f) {
      const Output& out = outputs_[static_cast<std::size_t>(f)];
      if (out.data == nullptr) continue;
      const auto bytes = static_cast<std::size_t>(out.size) * static_cast<std::size_t>(out.element);
      std::memcpy(static_cast<char*>(out.data) + static_cast<std::size_t>(sim) * bytes,
                  source_of(static_cast<Field>(f)).in(d), bytes);
    }
  }

  static void collect_contacts(const mjModel* m, mjData* d, int, void* to) {
    mj_forward(m, d);
    auto& found = *static_cast<std::vector<Contact>*>(to);
    for (int c = 0; c < d->ncon; ++c) {
      const mjContact& from = d->contact[c];
      if (from.geom[0] < 0 || from.geom[1] < 0) continue;  // of flexes, which have no geoms
      mjtNum force[3];
      force_in_world(m, d, c, force);
      found.push_back({from.geom[0],
                       from.geom[1],
                       m->geom_bodyid[from.geom[0]],
                       m->geom_bodyid[from.geom[1]],
                       from.dist,
                       {from.pos[0], from.pos[1], from.pos[2]},
                       {from.frame[0], from.frame[1], from.frame[2]},
                       {force[0], force[1], force[2]}});
    }
  }

  /// Reads what the step left, and puts broken environments back to where they were.
  void inspect() {
    mjtNum* state = mjb_state(batch_.get());
    const mjWarningStat* warnings = mjb_warning(batch_.get());
    const int* failed = mjb_status(batch_.get());
    const auto* contacts = static_cast<const int*>(outputs_[static_cast<std::size_t>(Field::kContactCount)].data);
    const Output& niter = outputs_[static_cast<std::size_t>(Field::kSolverIterations)];
    for (int e = 0; e < n_; ++e) {
      const auto i = static_cast<std::size_t>(e);
      const mjWarningStat* w = warnings + i * mjNWARNING;
      const auto keep_state = [&] {
        std::memcpy(state + i * width_, before_.data() + i * width_, width_ * sizeof(mjtNum));
      };
      if (status_[i] != kStatusOk) {  // it stands still until it is reset
        keep_state();
        continue;
      }
      contacts_[i] = contacts[e];
      const auto* islands = static_cast<const int*>(niter.data) + i * static_cast<std::size_t>(niter.size);
      iterations_[i] = *std::max_element(islands, islands + niter.size);
      std::int32_t trouble = kStatusOk;
      if (failed[e]) {
        trouble |= kStatusEngineError;
        errors_[i] = mjb_error(batch_.get(), e);
      }
      if (w[mjWARN_CONTACTFULL].number) trouble |= kStatusContactOverflow;
      if (w[mjWARN_CNSTRFULL].number) trouble |= kStatusConstraintOverflow;
      if (w[mjWARN_BADQPOS].number || w[mjWARN_BADQVEL].number || w[mjWARN_BADQACC].number ||
          w[mjWARN_BADCTRL].number || !finite(state + i * width_)) {
        trouble |= kStatusBadState;
      }
      status_[i] = trouble;
      if (trouble) keep_state();
    }
  }
  bool finite(const mjtNum* row) const {
    for (std::size_t k = 0; k < width_; ++k) {
      if (!std::isfinite(row[k])) return false;
    }
    return true;
  }

  ModelPtr model_;
  ModelInfo info_;
  int n_;
  FieldSet step_leaves_;
  bool leave_present_;
  std::vector<std::uint8_t> fixed_geoms_ = info_.fixed_geoms();
  std::vector<mjtNum> twists_,
      geom_forces_;  ///< (n_envs, values_of), of kLinkTwist and kGeomForce where they are wanted
  std::unique_ptr<mjBatch, BatchDeleter> batch_;
  std::size_t width_ = 0;  ///< values in a state row
  int threads_ = 1;
  ParameterSet expanded_;  ///< the parameters that environments have of their own
  std::array<Output, kFieldCount> outputs_{};
  std::vector<mjtNum> before_;
  std::vector<std::int32_t> status_, contacts_, iterations_;
  std::vector<std::string> errors_;
};

}  // namespace

}  // namespace cohort::sim::mj

namespace cohort::sim {

std::unique_ptr<Engine> make_mujoco_engine(std::span<const std::uint8_t> mjb, int n_envs,
                                           const EngineOptions& options) {
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  // What MuJoCo would print for a broken world stands in its kStatus; the default handler also writes a file into the
  // present folder.
  mj::set_warning_handler([](const char*) {});
  COHORT_THROW_UNLESS(options.threads > 0, "{} threads: at least one is needed", options.threads);
  return std::make_unique<mj::MujocoEngine>(mjb, n_envs, options);
}

MemoryPlan plan_mujoco_engine(std::span<const std::uint8_t> mjb, const EngineOptions& options) {
  const mj::ModelPtr model = mj::load(mjb);
  MemoryPlan plan = mj::plan_of(*model, mj::describe(*model), options.threads, options.parameters, options.step_leaves);
  plan.available_bytes = available_host_memory();
  return plan;
}

ModelInfo describe_mjb(std::span<const std::uint8_t> mjb) {
  return mj::describe(*mj::load(mjb));
}

}  // namespace cohort::sim
