#include "tasks/libero/simulation.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "core/real_at.h"
#include "tasks/libero/scene_text.h"
#include "tasks/scene_state.h"

namespace cohort::tasks::libero {
namespace {

using sim::Access;
using sim::Field;

void write_values(const ArrayView& v, int row, std::span<const double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) set_real_at(v, row, static_cast<std::int64_t>(i), values[i]);
}

sim::SceneOptions options_of(const SimulationSettings& settings) {
  sim::SceneOptions options;
  options.engine = settings.engine;
  options.threads = settings.threads;
  return options;
}

sim::Mjcf entity_of(const SceneFolder& folder) {
  if (folder.agentview) return {.file = "", .xml = scene_text(folder)};
  return {.file = (folder.path / "scene.xml").string()};
}

sim::Scene& built(sim::Scene& scene, const SceneFolder& folder, int n_envs) {
  scene.add_entity(entity_of(folder), "libero");
  scene.build(n_envs);
  return scene;
}

constexpr Field kStateFields[] = {Field::kQpos, Field::kQvel, Field::kAct, Field::kWarmstart, Field::kTime};

}  // namespace

Simulation::Simulation(const SceneFolder& folder, const SimulationSettings& settings)
    : folder_(folder),
      settings_(settings),
      n_(settings.n_envs),
      scene_(options_of(settings)),
      frames_(built(scene_, folder, settings.n_envs)),
      robot_(folder, scene_),
      predicates_(folder, frames_, scene_.info()),
      team_(std::min(settings.threads, settings.n_envs)) {
  const sim::ModelInfo& model = scene_.info();
  nq_ = model.nq, nv_ = model.nv, nu_ = model.nu;
  COHORT_THROW_UNLESS(
      folder.state_width == as_size(1 + nq_ + nv_),
      "{}: its initial states have {} numbers, and the scene's states {} (time, {} of qpos, {} of qvel)",
      (folder.path / "init_states.npy").string(), folder.state_width, 1 + nq_ + nv_, nq_, nv_);
  COHORT_THROW_UNLESS(std::abs(model.timestep - folder.timestep) < 1e-12,
                      "{}: the scene's timestep is {} s, task.json's {} s", folder.path.string(), model.timestep,
                      folder.timestep);
  for (const PredicateWords& words : folder.goal) predicates_.add(words);
  goals_ = predicates_.size();
  if (settings.judge_watched)
    for (const PredicateWords& words : folder.watched) predicates_.add(words);
  judged_ = predicates_.size();
  const std::size_t n = as_size(n_);
  memories_.assign(n, robot_.at_reset());
  poses_.assign(n, frames_.poses());
  qpos_.resize(n * as_size(nq_)), qvel_.resize(n * as_size(nv_)), ctrl_.resize(n * as_size(nu_));
  controls_.resize(n * as_size(folder.substeps) * as_size(nu_));
  late_qpos_.resize(qpos_.size()), late_qvel_.resize(qvel_.size()), late_poses_.resize(qpos_.size());
  touching_.resize(n * judged_), truths_.resize(n * judged_), broken_.resize(n);
  // The scene computes what it derives from the state anew whenever it is asked: we change the state behind its back.
  scene_.view(Field::kQpos);
  team_work_ = [this](int t) {
    const int size = team_.size();
    const int first = static_cast<int>(std::int64_t{n_} * t / size);
    const int last = static_cast<int>(std::int64_t{n_} * (t + 1) / size);
    for (int env = first; env < last; ++env) (*body_)(env);
  };
  control_work_ = [this](int env) { control_env(env); };
  for (int env = 0; env < n_; ++env) reset(env, folder.initial_state(0));
}

void Simulation::for_each_env(const std::function<void(int)>& body) {
  body_ = &body;
  team_.run(team_work_);
}

void Simulation::gather() {
  sim::Engine& engine = scene_.engine();
  view_qpos_ = engine.host_view(Field::kQpos, Access::kRead);
  view_qvel_ = engine.host_view(Field::kQvel, Access::kRead);
}

void Simulation::gather_env(int env) {
  double* qpos = qpos_.data() + as_size(env) * as_size(nq_);
  double* qvel = qvel_.data() + as_size(env) * as_size(nv_);
  for (int i = 0; i < nq_; ++i) qpos[i] = real_at(view_qpos_, env, i);
  for (int i = 0; i < nv_; ++i) qvel[i] = real_at(view_qvel_, env, i);
}

void Simulation::reset(int env, std::span<const double> state) {
  COHORT_CHECK(state.size() == folder_.state_width, "a state of {} numbers, not {}", state.size(), folder_.state_width);
  sim::Engine& engine = scene_.engine();
  const std::int32_t envs[] = {env};
  engine.reset(envs);
  const std::span<const double> qpos = state.subspan(1, as_size(nq_)), qvel = state.subspan(1 + as_size(nq_));
  write_values(engine.host_view(Field::kTime, Access::kWrite), env, state.first(1));
  write_values(engine.host_view(Field::kQpos, Access::kWrite), env, qpos);
  write_values(engine.host_view(Field::kQvel, Access::kWrite), env, qvel);
  memories_[as_size(env)] = robot_.at_reset();
  broken_[as_size(env)] = 0;
  gather();
  gather_env(env);
  const auto copy_row = [&](const std::vector<double>& from, std::vector<double>& to, int width) {
    const auto at = static_cast<std::ptrdiff_t>(as_size(env) * as_size(width));
    std::copy_n(from.begin() + at, width, to.begin() + at);
  };
  copy_row(qpos_, late_qpos_, nq_);
  copy_row(qvel_, late_qvel_, nv_);
  copy_row(qpos_, late_poses_, nq_);
  for (std::size_t i = 0; i < judged_; ++i) truths_[as_size(env) * judged_ + i] = judge_now(env, i);
}

void Simulation::control_env(int env) {
  const std::size_t e = as_size(env), nq = as_size(nq_), nv = as_size(nv_), nu = as_size(nu_);
  gather_env(env);
  if (broken_[e]) return;
  const std::span<double> ctrl(ctrl_.data() + e * nu, nu);
  robot_.substep(substep_, qpos(env), qvel(env), actions_.subspan(e * kActions, kActions), memories_[e], ctrl);
  write_values(view_ctrl_, env, ctrl);
  std::copy(ctrl.begin(), ctrl.end(),
            controls_.begin() + static_cast<std::ptrdiff_t>((e * as_size(folder_.substeps) + as_size(substep_)) * nu));
  if (substep_ == folder_.substeps - 2)
    std::copy_n(qpos(env).begin(), nq, late_poses_.begin() + static_cast<std::ptrdiff_t>(e * nq));
  if (substep_ == folder_.substeps - 1) {
    std::copy_n(qpos(env).begin(), nq, late_qpos_.begin() + static_cast<std::ptrdiff_t>(e * nq));
    std::copy_n(qvel(env).begin(), nv, late_qvel_.begin() + static_cast<std::ptrdiff_t>(e * nv));
    frames_.place(qpos(env), poses_[e]);
  }
}

void Simulation::step(std::span<const double> actions) {
  COHORT_CHECK(actions.size() == as_size(n_) * kActions, "{} numbers of actions, not {}", actions.size(),
               as_size(n_) * kActions);
  actions_ = actions;
  sim::Engine& engine = scene_.engine();
  for (substep_ = 0; substep_ < folder_.substeps; ++substep_) {
    gather();
    view_ctrl_ = engine.host_view(Field::kCtrl, Access::kWrite);
    for_each_env(control_work_);
    if (substep_ == folder_.substeps - 1) {
      // The contacts that success will see: those of the state before the last timestep. They are computed only where
      // a predicate depends on them.
      for (int env = 0; env < n_; ++env) {
        const std::size_t e = as_size(env);
        std::vector<sim::Contact> contacts;
        bool known = false;
        for (std::size_t i = 0; i < judged_; ++i) {
          std::uint8_t& touching = touching_[e * judged_ + i] = 0;
          if (broken_[e] || predicates_.judge(i, poses_[e], qpos(env)) != Predicates::Verdict::kIfTouching) continue;
          if (!known) contacts = engine.contacts(env), known = true;
          touching = predicates_.touching(i, contacts);
        }
      }
    }
    engine.step(1);
  }
  gather();
  const ArrayView status = engine.host_view(Field::kStatus, Access::kRead);
  for (int env = 0; env < n_; ++env) {
    const std::size_t e = as_size(env);
    gather_env(env);
    if (static_cast<const std::int32_t*>(status.data)[env * status.strides[0]] != sim::kStatusOk) broken_[e] = 1;
    for (std::size_t i = 0; i < judged_; ++i) {
      const Predicates::Verdict verdict = predicates_.judge(i, poses_[e], qpos(env));
      truths_[e * judged_ + i] =
          !broken_[e] && (verdict == Predicates::Verdict::kYes ||
                          (verdict == Predicates::Verdict::kIfTouching && touching_[e * judged_ + i] != 0));
    }
  }
}

Simulation::Seen Simulation::seen(int env) const {
  return {row(late_qpos_, env, nq_), row(late_qvel_, env, nv_), row(late_poses_, env, nq_)};
}

bool Simulation::success(int env) const {
  for (std::size_t i = 0; i < goals_; ++i)
    if (!holds(env, i)) return false;
  return true;
}

bool Simulation::judge_now(int env, std::size_t predicate) {
  Frames::Poses& poses = poses_[as_size(env)];
  frames_.place(qpos(env), poses);
  const Predicates::Verdict verdict = predicates_.judge(predicate, poses, qpos(env));
  if (verdict != Predicates::Verdict::kIfTouching) return verdict == Predicates::Verdict::kYes;
  return predicates_.touching(predicate, scene_.engine().contacts(env));
}

Simulation::AsSeen::AsSeen(Simulation& simulation) : simulation_(simulation) {
  const ArrayView qpos = simulation.scene_.engine().host_view(Field::kQpos, Access::kWrite);
  for (int env = 0; env < simulation.n_; ++env) write_values(qpos, env, simulation.seen(env).poses_qpos);
}

Simulation::AsSeen::~AsSeen() {
  const ArrayView qpos = simulation_.scene_.engine().host_view(Field::kQpos, Access::kWrite);
  for (int env = 0; env < simulation_.n_; ++env) write_values(qpos, env, simulation_.qpos(env));
}

void Simulation::visit_state(StateVisitor& state) {
  visit_engine(state, scene_.engine());
  if (state.loads()) {
    gather();
    for (int env = 0; env < n_; ++env) gather_env(env);
  }
  state.add("late.qpos", late_qpos_);
  state.add("late.qvel", late_qvel_);
  state.add("late.poses", late_poses_);
  using Memory = RobotControl::Memory;
  state.add(
      "arm.goal_pos", memories_, [](Memory & m) -> auto& { return m.arm.goal_pos; });
  state.add(
      "arm.goal_rot", memories_, [](Memory & m) -> auto& { return m.arm.goal_rot; });
  state.add(
      "arm.posture", memories_, [](Memory & m) -> auto& { return m.arm.posture; });
  state.add(
      "reading.pos", memories_, [](Memory & m) -> auto& { return m.reading.pos; });
  state.add(
      "reading.rot", memories_, [](Memory & m) -> auto& { return m.reading.rot; });
  state.add(
      "reading.jacobian", memories_, [](Memory & m) -> auto& { return m.reading.jacobian; });
  state.add(
      "reading.mass", memories_, [](Memory & m) -> auto& { return m.reading.mass; });
  state.add(
      "reading.position", memories_, [](Memory & m) -> auto& { return m.reading.position; });
  state.add(
      "reading.velocity", memories_, [](Memory & m) -> auto& { return m.reading.velocity; });
  state.add("grip", memories_, &Memory::grip);
  state.add("reads", memories_, &Memory::reads);
  state.add("predicates", truths_);
  state.add("simulation.broken", broken_);
}

Simulation::Snapshot Simulation::take(int env) {
  const std::size_t e = as_size(env);
  Snapshot snapshot;
  for (const Field field : kStateFields) {
    const ArrayView view = scene_.engine().host_view(field, Access::kRead);
    for (std::int64_t i = 0; i < view.shape[1]; ++i) snapshot.state.push_back(real_at(view, env, i));
  }
  for (const auto& values : {seen(env).qpos, seen(env).qvel, seen(env).poses_qpos})
    snapshot.late.insert(snapshot.late.end(), values.begin(), values.end());
  snapshot.memory = memories_[e];
  const auto first = truths_.begin() + static_cast<std::ptrdiff_t>(e * judged_);
  snapshot.truths.assign(first, first + static_cast<std::ptrdiff_t>(judged_));
  snapshot.broken = broken_[e];
  return snapshot;
}

void Simulation::put(int env, const Snapshot& snapshot) {
  const std::size_t e = as_size(env);
  const std::int32_t envs[] = {env};
  scene_.engine().reset(envs);
  std::span<const double> rest(snapshot.state);
  for (const Field field : kStateFields) {
    const ArrayView view = scene_.engine().host_view(field, Access::kWrite);
    const std::size_t width = as_size(view.shape[1]);
    write_values(view, env, rest.first(width));
    rest = rest.subspan(width);
  }
  gather();
  gather_env(env);
  const auto* late = snapshot.late.data();
  std::copy_n(late, nq_, late_qpos_.begin() + static_cast<std::ptrdiff_t>(e) * nq_);
  std::copy_n(late + nq_, nv_, late_qvel_.begin() + static_cast<std::ptrdiff_t>(e) * nv_);
  std::copy_n(late + nq_ + nv_, nq_, late_poses_.begin() + static_cast<std::ptrdiff_t>(e) * nq_);
  memories_[e] = snapshot.memory;
  std::copy(snapshot.truths.begin(), snapshot.truths.end(), truths_.begin() + static_cast<std::ptrdiff_t>(e * judged_));
  broken_[e] = snapshot.broken;
}

}  // namespace cohort::tasks::libero
