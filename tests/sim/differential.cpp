#include "differential.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "constraint_rows.h"
#include "random_state.h"
#include "sim/engine_plan.h"
#include "state_comparison.h"
#include "team_comparison.h"

namespace cohort::sim::test {

namespace {

/// Accelerations without constraints, relative to the largest.
constexpr double kSmoothTolerance = 3e-4;
/// Accelerations with constraints: two solvers that stop at a cost difference of 1e-8 (scaled) agree to its root.
constexpr double kAccelerationTolerance = 1e-2;
/// The demanded bound on the solution's cost, beside rounding.
constexpr double kCostRatio = 0.025, kCostRounding = 1e-6;
/// Accelerations that agree as well as this are taken for equal where others follow from them.
constexpr double kSameAcceleration = 5e-3;
/// Of a step beside what the acceleration's difference makes.
constexpr double kStepTolerance = 1e-4;

/// One model in four never uses the row space, one in four does where it can at all; else the rule decides.
int row_space_of(std::uint64_t seed) {
  const RandomStream random(seed, RandomPurpose::kTest, 1, 0);
  return std::array{-1, -1, 0, kMostRowSpaceRows}[random.below(0, 4)];
}

/// Keeps MuJoCo from printing warnings, which mjData counts as well.
class QuietMujoco {
 public:
  QuietMujoco() {
    mju_user_warning = [](const char*) {};
  }
  ~QuietMujoco() { mju_user_warning = before_; }
  QuietMujoco(const QuietMujoco&) = delete;
  QuietMujoco& operator=(const QuietMujoco&) = delete;

 private:
  void (*before_)(const char*) = mju_user_warning;
};

/// The comparison of one model, state by state.
class Differential {
 public:
  Differential(std::span<const std::uint8_t> mjb, const DifferentialOptions& options)
      : options_(options), mj_(mj::load(mjb)), ours_(import_model(mjb)), findings_(options.on_finding) {
    mj_->opt.jacobian = mjJAC_DENSE;
    if (options.change_ours) options.change_ours(ours_);
    check_model(ours_);
    view_ = planned_view(ours_, row_space_of(options.seed), 0);
    view_.keep_contacts = 1;
  }

  Comparison run() {
    // PGS ends where it has not converged yet; ours goes to its solution, and MuJoCo's Newton with it.
    if (mj_->opt.solver == mjSOL_PGS) mj_->opt.solver = mjSOL_NEWTON;
    Block block(view_);
    for (int state = 0; state < options_.states; ++state) {
      mj::DataPtr start(mj_makeData(mj_.get()));
      random_state(*mj_, options_.seed, state, *start);
      answer_ = reference_answer(*mj_, std::move(start));
      findings_.begin_state(state);
      if (!answer_.useless.empty()) {
        findings_.excuse("state: " + answer_.useless);
        continue;
      }
      ++result_.states;
      result_.contacts += answer_.forward->ncon;
      result_.rows += answer_.forward->nefc;
      if (compare_state(block)) ++result_.whole;
    }
    result_.findings = findings_.worst();
    result_.excused = findings_.excused();
    return std::move(result_);
  }

 private:
  /// True where every stage has been compared.
  bool compare_state(Block& block) {
    block.load(view_, *answer_.state);
    BlockSpace<ScalarLane>& b = block.space;
    smooth_dynamics(view_, b.w);
    const auto compare_smooth = [&] {
      findings_.expect_vectors("acceleration without constraints", take(b.w.acc_smooth, view_.nv),
                               take(answer_.forward->qacc_smooth, view_.nv),
                               kSmoothTolerance + kNoise * answer_.noise.qacc_smooth);
      return findings_.clean();
    };
    // With adhesion, actuators act when the contacts are known.
    if (!view_.adhesion && !compare_smooth()) return false;
    test::make_rows(view_, b);
    if (view_.adhesion && !compare_smooth()) return false;
    const ContactVerdict contacts = compare_contacts(*mj_, answer_, view_, b);
    for (const std::string& reason : contacts.excuses) findings_.excuse(reason);
    for (const Finding& finding : contacts.findings) findings_.find(finding);
    if (const std::string why = team_difference(view_, b, result_.by_teams); !why.empty()) {
      Finding finding;
      finding.what = "solution by a team of threads", finding.where = why, finding.excess = 1e9;
      findings_.find(finding);
    }
    if (!contacts.same) return false;
    ComparedState state{*mj_, answer_, view_, contacts};
    std::string reason = why_unsolvable(state);
    if (reason.empty()) reason = compare_accelerations(state, b);
    if (!findings_.clean()) return false;
    compare_sensors(state, block, reason.empty() ? mjSTAGE_ACC : mjSTAGE_VEL);
    if (reason.empty()) {
      compare_step(block);
    } else {
      findings_.excuse("state: " + reason);
    }
    return reason.empty();
  }

  /// Rows and the solver's answer; why nothing that follows from that is compared, or empty.
  std::string compare_accelerations(ComparedState& state, BlockSpace<ScalarLane>& b) {
    compare_rows(state, b.c, findings_);
    if (!findings_.clean()) return "";
    if (!state.contacts.exact) return "a contact is known to the tolerance of its search only";
    test::solve_constraints(view_, b);
    const std::vector<double> qacc = take(b.w.qacc, view_.nv);
    compare_solution(qacc);
    for (std::size_t d = 0; d < qacc.size(); ++d) {
      state.acceleration_error = std::max(state.acceleration_error, std::abs(qacc[d] - answer_.forward->qacc[d]));
    }
    int at = 0;
    const bool same = relative_difference(qacc, answer_.qacc, at) <= kSameAcceleration;
    return same ? "" : "the solution is not known to half a percent";
  }

  void compare_solution(const std::vector<double>& qacc) {
    mjData* d = answer_.forward.get();
    const std::vector<double> theirs = take(d->qacc, view_.nv);
    int at = 0;
    // How far MuJoCo's own solver ended from the solution.
    const double own = relative_difference(theirs, answer_.qacc, at);
    // Conjugate gradients end where a step gains little: along flat directions that may be far from the solution.
    if (mj_->opt.solver == mjSOL_NEWTON) {
      findings_.expect_vectors("acceleration", qacc, answer_.qacc,
                               kAccelerationTolerance + kNoise * answer_.noise.qacc + 3 * own);
    }
    const double scale = 1 / (mj_->stat.meaninertia * view_.nv);
    const double our_cost = cost_of(mj_.get(), d, qacc) * scale, cost = cost_of(mj_.get(), d, theirs) * scale,
                 least = cost_of(mj_.get(), d, answer_.qacc) * scale;
    // What the difference makes that accelerations without constraints may have.
    std::vector<double> forces(qacc.size());
    mj_mulM(mj_.get(), d, forces.data(), answer_.qacc.data());
    const double inertial = mju_dot(forces.data(), answer_.qacc.data(), view_.nv) * scale;
    findings_.expect("cost", "", our_cost, cost, our_cost - cost,
                     kCostRatio * std::abs(cost) + kCostRounding * (1 + std::abs(least)) +
                         kSmoothTolerance * kSmoothTolerance * inertial);
  }

  void compare_sensors(const ComparedState& state, Block& block, int last) {
    if (mj_->nsensor == 0 || (mj_->opt.disableflags & mjDSBL_SENSOR) != 0) return;
    block.load(view_, *answer_.state);
    test::evaluate(view_, block.space);
    test::sensors(view_, block.space, static_cast<float>(answer_.state->time));
    test::compare_sensors(state, block.space, last, findings_);
  }

  void compare_step(Block& block) {
    const mjData& theirs = *answer_.step;
    if (warned(theirs)) return findings_.excuse("step: MuJoCo warns");
    // With joint damping the velocity comes from what the solver leaves of the gradient, too.
    if (mj_->opt.solver == mjSOL_CG && answer_.forward->nefc > 0 && mj_->opt.integrator != mjINT_RK4) {
      return findings_.excuse("step: conjugate gradients leave some of the gradient");
    }
    block.load(view_, *answer_.state);
    test::evaluate_and_step(view_, block.space);
    double fastest = 1;
    for (double x : answer_.qacc) fastest = std::max(fastest, std::abs(x));
    const double tolerance =
        kStepTolerance + kNoise * answer_.noise.step + mj_->opt.timestep * fastest * kSameAcceleration;
    const Workspace<ScalarLane>& w = block.space.w;
    const std::vector<double> v = take(w.v, view_.nv), q = take(w.q, view_.nq), act = take(w.act, view_.na);
    const std::vector<double> their_v = take(theirs.qvel, view_.nv), their_q = take(theirs.qpos, view_.nq);
    int at = 0;
    const bool same =
        relative_difference(v, their_v, at) <= tolerance && relative_difference(q, their_q, at) <= tolerance;
    if (!same && mj_->opt.integrator == mjINT_RK4 && !same_contacts_on_the_way(block)) {
      return findings_.excuse("step: other contacts in a state on the way of RK4");
    }
    findings_.expect_vectors("velocity after a step", v, their_v, tolerance);
    findings_.expect_vectors("position after a step", q, their_q, tolerance);
    findings_.expect_vectors("activation after a step", act, take(theirs.act, view_.na), kStepTolerance);
  }

  /// Whether both engines have the same contacts, whatever rounding does, in the three states that RK4 looks at beside
  /// the first.
  bool same_contacts_on_the_way(Block& block) const {
    constexpr std::uint64_t kMoves = 20;
    const mjData& start = *answer_.state;
    mj::DataPtr stage(mj_makeData(mj_.get()));
    std::vector<double> velocity = take(start.qvel, mj_->nv), acceleration = take(answer_.forward->qacc, mj_->nv),
                        act_dot = take(answer_.forward->act_dot, mj_->na);
    for (double part : {0.5, 0.5, 1.0}) {
      const double time = part * mj_->opt.timestep;
      mj_copyData(stage.get(), mj_.get(), &start);
      mj_integratePos(mj_.get(), stage->qpos, velocity.data(), time);
      for (int i = 0; i < mj_->nv; ++i) stage->qvel[i] += time * acceleration[static_cast<std::size_t>(i)];
      for (int i = 0; i < mj_->na; ++i) stage->act[i] += time * act_dot[static_cast<std::size_t>(i)];
      for (std::uint64_t sample = 0; sample < kMoves; ++sample) {
        mj::DataPtr moved(mj_makeData(mj_.get()));
        mj_copyData(moved.get(), mj_.get(), stage.get());
        move_by_rounding(*mj_, sample, *moved);
        if (!same_contacts(std::move(moved), block)) return false;
      }
      mj_forward(mj_.get(), stage.get());
      velocity = take(stage->qvel, mj_->nv), acceleration = take(stage->qacc, mj_->nv),
      act_dot = take(stage->act_dot, mj_->na);
    }
    return true;
  }

  bool same_contacts(mj::DataPtr state, Block& block) const {
    block.load(view_, *state);
    smooth_dynamics(view_, block.space.w);
    test::make_rows(view_, block.space);
    mj_forward(mj_.get(), state.get());
    ReferenceAnswer answer;
    answer.noise = quiet(*mj_, *state);
    answer.forward = std::move(state);
    const ContactVerdict verdict = compare_contacts(*mj_, answer, view_, block.space);
    return verdict.same && verdict.exact;
  }

  QuietMujoco quiet_;
  const DifferentialOptions& options_;
  mj::ModelPtr mj_;
  Model ours_;
  ModelView view_;
  Findings findings_;
  ReferenceAnswer answer_;
  Comparison result_;
};

}  // namespace

Comparison compare_with_mujoco(std::span<const std::uint8_t> mjb, const DifferentialOptions& options) {
  Comparison result;
  const std::vector<Unsupported> missing = find_unsupported(mjb);
  result.refused = mj::load(mjb)->nv == 0 ? "the model has no dofs" : to_string(missing);
  return result.refused.empty() ? Differential(mjb, options).run() : result;
}

}  // namespace cohort::sim::test
