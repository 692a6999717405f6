#include "sim/mujoco/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include <mujoco/mjbatch.h>

#include "core/error.h"
#include "sim/mujoco/handle.h"

namespace cohort::sim {

namespace {

struct BatchDeleter {
  void operator()(mjBatch* b) const { mjb_deleteBatch(b); }
};

int state_component(Field field) {
  switch (field) {
    case Field::kQpos:
      return mjSTATE_QPOS;
    case Field::kQvel:
      return mjSTATE_QVEL;
    case Field::kAct:
      return mjSTATE_ACT;
    case Field::kWarmstart:
      return mjSTATE_WARMSTART;
    case Field::kTime:
      return mjSTATE_TIME;
    case Field::kCtrl:
      return mjSTATE_CTRL;
    case Field::kQfrcApplied:
      return mjSTATE_QFRC_APPLIED;
    case Field::kXfrcApplied:
      return mjSTATE_XFRC_APPLIED;
    case Field::kMocapPos:
      return mjSTATE_MOCAP_POS;
    case Field::kMocapQuat:
      return mjSTATE_MOCAP_QUAT;
    default:
      return 0;
  }
}

const char* output_name(Field field) {
  switch (field) {
    case Field::kQacc:
      return "qacc";
    case Field::kLinkPos:
      return "xpos";
    case Field::kLinkQuat:
      return "xquat";
    case Field::kSensors:
      return "sensordata";
    case Field::kContactCount:
      return "ncon";
    case Field::kSolverIterations:
      return "solver_niter";
    default:
      return nullptr;
  }
}

const char* model_field(Parameter parameter) {
  constexpr const char* kNames[] = {"body_mass",   "geom_friction",    "dof_armature",
                                    "dof_damping", "actuator_gainprm", "actuator_biasprm"};
  return kNames[static_cast<int>(parameter)];
}

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

class MujocoEngine final : public Engine {
 public:
  MujocoEngine(std::span<const std::uint8_t> mjb, int n_envs, const MujocoEngineOptions& options)
      : model_(mj::load(mjb)), info_(mj::describe(*model_)), n_(n_envs) {
    // A world that breaks keeps its last state and says so; MuJoCo's own answer, to reset it, would hide the trouble.
    model_->opt.disableflags |= mjDSBL_AUTORESET;
    mjBatchConfig config;
    mjb_defaultConfig(&config);
    config.nthread = options.threads;
    char error[1024] = "";
    batch_.reset(mjb_makeBatch(model_.get(), n_envs, &config, error, sizeof error));
    COHORT_THROW_UNLESS(batch_ != nullptr, "MuJoCo makes no batch of {} environments: {}", n_envs, error);
    width_ = static_cast<std::size_t>(mjb_nstate(batch_.get()));
    // Registered once, so that step() allocates nothing and the pointers stay.
    for (int f = static_cast<int>(Field::kQacc); f < kFieldCount; ++f) {
      const char* name = output_name(static_cast<Field>(f));
      if (!name) continue;
      Output& out = outputs_[static_cast<std::size_t>(f)];
      out.data = mjb_output(batch_.get(), name, &out.size, &out.element);
      COHORT_THROW_UNLESS(out.data || field_size(info_, static_cast<Field>(f)) == 0, "MuJoCo has no output `{}`", name);
    }
    before_.resize(width_ * static_cast<std::size_t>(n_));
    status_.assign(static_cast<std::size_t>(n_), kStatusOk);
    contacts_.assign(static_cast<std::size_t>(n_), 0);
    iterations_.assign(static_cast<std::size_t>(n_), 0);
    errors_.resize(static_cast<std::size_t>(n_));
    mjb_reset(batch_.get(), nullptr, n_, nullptr, mjSTAGE_NONE);
  }

  EngineKind kind() const override { return EngineKind::kMujoco; }
  const ModelInfo& info() const override { return info_; }
  int n_envs() const override { return n_; }

  ArrayView view(Field field) override {
    const int size = field_size(info_, field);
    if (field == Field::kStatus) return rows(status_.data(), ElementType::kInt32, n_, 1, 1);
    if (field == Field::kContactCount) return rows(contacts_.data(), ElementType::kInt32, n_, 1, 1);
    if (field == Field::kSolverIterations) return rows(iterations_.data(), ElementType::kInt32, n_, 1, 1);
    if (const int component = state_component(field)) {
      int found = 0;
      mjtNum* first = mjb_stateComponent(batch_.get(), component, &found);
      COHORT_CHECK(size == 0 || found == size, "MuJoCo's {} has {} values, not {}", field_name(field), found, size);
      return rows(first, ElementType::kFloat64, n_, size, static_cast<std::int64_t>(width_));
    }
    const Output& out = outputs_[static_cast<std::size_t>(field)];
    return rows(out.data, ElementType::kFloat64, n_, size, size);
  }

  void step(int steps) override {
    for (int s = 0; s < steps; ++s) {
      std::memcpy(before_.data(), mjb_state(batch_.get()), before_.size() * sizeof(mjtNum));
      mjb_step(batch_.get(), nullptr, n_, 1, mjSTAGE_NONE);
      inspect();
    }
  }

  void forward() override { mjb_forward(batch_.get(), nullptr, n_, mjSTAGE_ACC); }

  void reset(std::span<const std::int32_t> envs) override {
    mjb_reset(batch_.get(), envs.data(), static_cast<int>(envs.size()), nullptr, mjSTAGE_NONE);
    for (std::int32_t e : envs) {
      const auto i = static_cast<std::size_t>(e);
      status_[i] = kStatusOk;
      contacts_[i] = iterations_[i] = 0;
      errors_[i].clear();
    }
  }

  ArrayView parameter(Parameter parameter) override {
    int size = 0, element = 0;
    void* data = mjb_expand(batch_.get(), model_field(parameter), &size, &element);
    COHORT_CHECK(data != nullptr || size == 0, "MuJoCo does not expand {}", model_field(parameter));
    return rows(data, ElementType::kFloat64, n_, size, size);
  }
  void commit_parameters() override {
    const int failed = mjb_setConst(batch_.get(), nullptr, n_);
    if (failed > 0) {
      for (int e = 0; e < n_; ++e) {
        if (mjb_status(batch_.get())[e]) {
          throw Error(format("environment {} has impossible parameters: {}", e, mjb_error(batch_.get(), e)));
        }
      }
    }
  }

  std::vector<std::uint8_t> save_state() override {
    const std::size_t state_bytes = before_.size() * sizeof(mjtNum);
    std::vector<std::uint8_t> bytes(state_bytes + status_.size() * sizeof(std::int32_t));
    std::memcpy(bytes.data(), mjb_state(batch_.get()), state_bytes);
    std::memcpy(bytes.data() + state_bytes, status_.data(), status_.size() * sizeof(std::int32_t));
    return bytes;
  }
  void load_state(std::span<const std::uint8_t> bytes) override {
    const std::size_t state_bytes = before_.size() * sizeof(mjtNum);
    COHORT_THROW_UNLESS(bytes.size() == state_bytes + status_.size() * sizeof(std::int32_t),
                        "a state of {} bytes was saved; {} environments of this model take {}", bytes.size(), n_,
                        state_bytes + status_.size() * sizeof(std::int32_t));
    std::memcpy(mjb_state(batch_.get()), bytes.data(), state_bytes);
    std::memcpy(status_.data(), bytes.data() + state_bytes, status_.size() * sizeof(std::int32_t));
  }

  MemoryPlan memory() const override {
    MemoryPlan plan;
    plan.parts = {{"state", static_cast<double>(width_ * 2 * sizeof(mjtNum))},
                  {"outputs", static_cast<double>(
                                  (info_.nv + 7 * info_.links.size() + static_cast<std::size_t>(info_.nsensordata)) *
                                      sizeof(mjtNum) +
                                  4 * sizeof(std::int32_t))},
                  {"warnings", static_cast<double>(mjNWARNING * sizeof(mjWarningStat) + sizeof(std::string))}};
    plan.fixed_bytes =
        static_cast<double>(model_->nbuffer) + static_cast<double>(model_->narena) * mjb_nthread(batch_.get());
    return plan;
  }

  std::string error_text(int env) const override { return errors_.at(static_cast<std::size_t>(env)); }

 private:
  struct Output {
    void* data = nullptr;
    int size = 0, element = 0;
  };

  /// Reads what the step left, and puts broken environments back to where they were.
  void inspect() {
    mjtNum* state = mjb_state(batch_.get());
    mjWarningStat* warnings = mjb_warning(batch_.get());
    const int* failed = mjb_status(batch_.get());
    const auto* contacts = static_cast<const int*>(outputs_[static_cast<std::size_t>(Field::kContactCount)].data);
    const Output& niter = outputs_[static_cast<std::size_t>(Field::kSolverIterations)];
    for (int e = 0; e < n_; ++e) {
      const auto i = static_cast<std::size_t>(e);
      mjWarningStat* w = warnings + i * mjNWARNING;
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
          !finite(state + i * width_)) {
        trouble |= kStatusBadState;
      }
      for (int k = 0; k < mjNWARNING; ++k) w[k] = {0, 0};
      if (trouble) {
        status_[i] |= trouble;
        std::memcpy(state + i * width_, before_.data() + i * width_, width_ * sizeof(mjtNum));
      }
    }
  }
  bool finite(const mjtNum* row) const {
    for (std::size_t k = 0; k < width_; ++k) {
      if (!std::isfinite(row[k])) return false;
    }
    return true;
  }

  mj::ModelPtr model_;
  ModelInfo info_;
  int n_;
  std::unique_ptr<mjBatch, BatchDeleter> batch_;
  std::size_t width_ = 0;  ///< values in a state row
  std::array<Output, kFieldCount> outputs_{};
  std::vector<mjtNum> before_;
  std::vector<std::int32_t> status_, contacts_, iterations_;
  std::vector<std::string> errors_;
};

}  // namespace

std::unique_ptr<Engine> make_mujoco_engine(std::span<const std::uint8_t> mjb, int n_envs,
                                           const MujocoEngineOptions& options) {
  COHORT_THROW_UNLESS(n_envs > 0, "{} environments: at least one is needed", n_envs);
  // What MuJoCo would print for a broken world stands in its kStatus; the default handler also writes a file into the
  // present folder.
  mju_user_warning = [](const char*) {};
  COHORT_THROW_UNLESS(options.threads > 0, "{} threads: at least one is needed", options.threads);
  return std::make_unique<MujocoEngine>(mjb, n_envs, options);
}

ModelInfo describe_mjb(std::span<const std::uint8_t> mjb) {
  return mj::describe(*mj::load(mjb));
}

}  // namespace cohort::sim
