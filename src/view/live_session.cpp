#include "view/live_session.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/real_at.h"
#include "sim/index.h"
#include "tasks/actor.h"
#include "tasks/scene_task.h"
#include "tasks/shown_scene.h"
#include "tasks/task.h"

namespace cohort::view {

namespace {

using sim::at;

constexpr std::size_t kMostCurves = 24;

}  // namespace

const sim::JointInfo& LiveSession::joint_of(std::int32_t env, std::size_t joint) {
  const sim::ModelInfo& info = scene().info();
  COHORT_THROW_UNLESS(joint < info.joints.size() && env >= 0 && env < scene().n_envs(),
                      "there is no joint {} of environment {}", joint, env);
  return info.joints[joint];
}

float LiveSession::joint_value(std::int32_t env, std::size_t joint) {
  const sim::JointInfo& j = joint_of(env, joint);
  COHORT_THROW_UNLESS(j.type == sim::JointType::kHinge || j.type == sim::JointType::kSlide,
                      "joint `{}` has no single coordinate: only hinges and slides are set so", j.name);
  return scene().get_qpos(sim::Indices{env})[at(j.qpos)];
}

void LiveSession::set_joint(std::int32_t env, std::size_t joint, float value) {
  joint_value(env, joint);  // refuses others
  const sim::JointInfo& j = joint_of(env, joint);
  COHORT_THROW_UNLESS(std::isfinite(value), "joint `{}` cannot be set to a value that is no number", j.name);
  std::vector<float> qpos = scene().get_qpos(sim::Indices{env});
  qpos[at(j.qpos)] =
      j.limited ? std::clamp(value, static_cast<float>(j.range[0]), static_cast<float>(j.range[1])) : value;
  scene().set_qpos(qpos, sim::Indices{env});
  std::vector<float> qvel = scene().get_qvel(sim::Indices{env});
  qvel[at(j.dof)] = 0;
  scene().set_qvel(qvel, sim::Indices{env});
  moved_by_hand();
}

void LiveSession::set_place(std::int32_t env, std::size_t joint, const std::array<float, 3>& pos) {
  const sim::JointInfo& j = joint_of(env, joint);
  COHORT_THROW_UNLESS(j.type == sim::JointType::kFree,
                      "joint `{}` does not float: only the body of a free joint is put to a place", j.name);
  std::vector<float> qpos = scene().get_qpos(sim::Indices{env}), qvel = scene().get_qvel(sim::Indices{env});
  for (std::size_t k = 0; k < 3; ++k) {
    COHORT_THROW_UNLESS(std::isfinite(pos[k]), "joint `{}` cannot be put where a coordinate is no number", j.name);
    qpos[at(j.qpos) + k] = pos[k];
  }
  std::fill_n(qvel.begin() + j.dof, 6, 0.0f);
  scene().set_qpos(qpos, sim::Indices{env});
  scene().set_qvel(qvel, sim::Indices{env});
  moved_by_hand();
}

void LiveSession::moved_by_hand() {
  scene().forward();
}

void LiveSession::set_control(std::int32_t env, std::size_t control, float value) {
  COHORT_THROW_UNLESS(takes_controls(), "controls are set by hand where `hand` acts: choose it first");
  COHORT_THROW_UNLESS(control < at(scene().info().nu) && env >= 0 && env < scene().n_envs() && std::isfinite(value),
                      "there is no control {} of environment {}, or {} is no number", control, env, value);
  std::vector<float> ctrl = scene().get_ctrl(sim::Indices{env});
  ctrl[control] = value;
  scene().set_ctrl(ctrl, sim::Indices{env});
}

void LiveSession::set_command(const std::vector<std::int32_t>&, std::size_t, float) {
  throw Error("there is no command here that could be given by hand");
}

ModelSession::ModelSession(sim::Scene& scene, const std::string& control, int keyframe)
    : scene_(scene), keyframe_(keyframe) {
  const std::vector<std::string> known = actors();
  const auto found = std::find(known.begin(), known.end(), control);
  COHORT_THROW_UNLESS(found != known.end(), "control `{}`: random, zero, hold or hand", control);
  for (const sim::JointInfo& j : scene.info().joints) {
    if (j.type != sim::JointType::kHinge && j.type != sim::JointType::kSlide) continue;
    if (shown_.size() == kMostCurves) break;
    names_.push_back(
        format("{} ({})", j.name.empty() ? "joint" : j.name, j.type == sim::JointType::kHinge ? "rad" : "m"));
    shown_.push_back(at(j.qpos));
  }
  reset(0);
  choose_actor(static_cast<std::size_t>(found - known.begin()));
}

double ModelSession::period() const {
  return scene_.info().timestep * scene_.options().substeps;
}

void ModelSession::step() {
  if (control_ == 0 && scene_.info().nu > 0)
    scene_.set_random_ctrl(steps_ + static_cast<std::int64_t>(seed_ % 1'000'003));
  scene_.step();
  scene_.engine().wait();
  ++steps_;
}

void ModelSession::reset(std::uint64_t seed) {
  seed_ = seed;
  steps_ = 0;
  if (keyframe_ >= 0)
    scene_.reset_to_keyframe(keyframe_);
  else
    scene_.reset();
  choose_actor(control_);
}

void ModelSession::choose_actor(std::size_t which) {
  COHORT_THROW_UNLESS(which < actors().size(), "there is no control {}", which);
  control_ = which;
  if (which == 1 && scene_.info().nu > 0) scene_.set_ctrl(std::vector<float>(at(scene_.info().nu), 0.0f));
  if (which == 2) scene_.hold();
}

std::vector<float> ModelSession::curve_values(std::int32_t env) {
  const ArrayView qpos = scene_.host_view(sim::Field::kQpos);
  std::vector<float> out;
  for (const std::size_t i : shown_)
    out.push_back(static_cast<float>(real_at(qpos, env, static_cast<std::int64_t>(i))));
  return out;
}

std::string ModelSession::status() const {
  return "";
}

namespace {

sim::Scene& need_scene(tasks::Task& task) {
  sim::Scene* scene = tasks::scene_of(task);
  COHORT_THROW_UNLESS(scene != nullptr,
                      "{} has no scene in three dimensions to view; `cohort evaluate --record-video` films it",
                      task.spec().name);
  return *scene;
}

}  // namespace

TaskSession::TaskSession(tasks::Task& task, std::vector<Named> actors, std::uint64_t seed, Look look)
    : task_(task),
      scene_(need_scene(task)),
      commanded_(dynamic_cast<tasks::TakesCommands*>(&task)),
      actors_(std::move(actors)),
      look_(std::move(look)) {
  COHORT_CHECK(!actors_.empty(), "nobody acts in {}", task.spec().name);
  const std::size_t n = at(task.n_envs());
  steps_.resize(n), succeeded_.resize(n), held_.resize(n), return_.resize(n);
  actions_.resize(n * at(task.spec().action.width()));
  all_.resize(n);
  std::iota(all_.begin(), all_.end(), 0);
  names_ = {"reward", "return", "success"};
  for (const std::string& term : task.spec().reward_terms) names_.push_back("reward " + term);
  std::size_t left = kMostCurves;
  for (std::size_t f = 0; f < task.spec().observations.size(); ++f) {
    const tasks::FieldSpec& field = task.spec().observations[f];
    const std::int64_t elements = field.elements();
    if (at(elements) > left) continue;
    left -= at(elements);
    fields_.emplace_back(f, elements);
    for (std::int64_t i = 0; i < elements; ++i)
      names_.push_back(elements == 1 ? field.name : format("{} {}", field.name, i));
  }
  reset(seed);
}

std::string TaskSession::title() const {
  return task_.spec().name;
}
double TaskSession::period() const {
  return task_.spec().control_period;
}

void TaskSession::begin(const std::vector<std::int32_t>& envs) {
  std::vector<std::uint64_t> seeds;
  for (const std::int32_t env : envs) {
    seeds.push_back(next_seed_++);
    steps_[at(env)] = 0, succeeded_[at(env)] = 0, return_[at(env)] = 0;
  }
  task_.reset(envs, seeds);
  actors_[acting_].actor->begin(envs, seeds, task_.spec().instruction);
}

void TaskSession::reset(std::uint64_t seed) {
  next_seed_ = seed;
  episodes_ = successes_ = 0, returns_ = 0;
  begin(all_);
}

void TaskSession::step() {
  const ArrayView actions = make_view(actions_.data(), {task_.n_envs(), task_.spec().action.width()});
  actors_[acting_].actor->act(task_, all_, actions);
  task_.step(actions);
  const auto reward = task_.reward().span<float>();
  const auto success = task_.success().span<std::uint8_t>(), terminated = task_.terminated().span<std::uint8_t>(),
             truncated = task_.truncated().span<std::uint8_t>();
  std::vector<std::int32_t> ended;
  for (std::size_t e = 0; e < all_.size(); ++e) {
    ++steps_[e];
    return_[e] += static_cast<double>(reward[e]);
    succeeded_[e] = succeeded_[e] != 0 || success[e] != 0;
    if (terminated[e] == 0 && truncated[e] == 0) continue;
    ++episodes_, successes_ += succeeded_[e], returns_ += return_[e];
    ended.push_back(static_cast<std::int32_t>(e));
  }
  if (!ended.empty()) begin(ended);
}

std::vector<std::string> TaskSession::actors() const {
  std::vector<std::string> out;
  for (const Named& a : actors_) out.push_back(a.name);
  return out;
}

void TaskSession::choose_actor(std::size_t which) {
  COHORT_THROW_UNLESS(which < actors_.size(), "there is no policy {}", which);
  acting_ = which;
  // Whoever comes has not seen how the episodes began, so they begin again.
  reset(next_seed_ - std::min<std::uint64_t>(next_seed_, all_.size()));
}

bool TaskSession::look_again() {
  std::optional<std::vector<Named>> now = look_ ? look_() : std::nullopt;
  if (!now) return false;
  const Named acting = actors_[acting_];
  actors_ = std::move(*now);
  const auto same = std::ranges::find(actors_, acting.name, &Named::name);
  acting_ = static_cast<std::size_t>(same - actors_.begin());
  if (same == actors_.end()) {
    actors_.push_back(acting);  // its file has gone; it goes on acting
  } else if (same->actor != acting.actor) {
    choose_actor(acting_);  // the newest is another now
  }
  return true;
}

std::vector<tasks::CommandShape> TaskSession::commands() const {
  if (commanded_ == nullptr) return {};
  const std::span<const tasks::CommandShape> all = commanded_->commands();
  return {all.begin(), all.end()};
}

std::vector<float> TaskSession::command_values(std::int32_t env) const {
  std::vector<float> out;
  if (commanded_ == nullptr) return out;
  for (std::size_t c = 0; c < commanded_->commands().size(); ++c)
    for (const float x : commanded_->command(env, c)) out.push_back(x);
  return out;
}

void TaskSession::set_command(const std::vector<std::int32_t>& envs, std::size_t number, float value) {
  std::size_t command = 0, part = number;
  const std::vector<tasks::CommandShape> all = commands();
  while (command < all.size() && part >= all[command].parts.size()) part -= all[command++].parts.size();
  COHORT_THROW_UNLESS(command < all.size() && std::isfinite(value), "there is no number {} of a command", number);
  for (const std::int32_t env : envs) {
    std::vector<float> told = commanded_->command(env, command);
    told[part] = std::clamp(value, all[command].low[part], all[command].high[part]);
    commanded_->hold_command(env, command, told);
    held_[at(env)] = 1;
  }
}

void TaskSession::release_commands(const std::vector<std::int32_t>& envs) {
  const std::size_t all = commands().size();
  for (const std::int32_t env : envs) {
    for (std::size_t c = 0; c < all; ++c) commanded_->release_command(env, c);
    held_[at(env)] = 0;
  }
}

std::vector<float> TaskSession::curve_values(std::int32_t env) {
  const std::size_t e = at(env), terms = task_.spec().reward_terms.size();
  std::vector<float> out{task_.reward().span<float>()[e], static_cast<float>(return_[e]),
                         static_cast<float>(task_.success().span<std::uint8_t>()[e])};
  if (terms > 0) {
    const auto rows = task_.reward_terms().span<float>();
    for (std::size_t i = 0; i < terms; ++i) out.push_back(rows[e * terms + i]);
  }
  for (const auto& [field, elements] : fields_) {
    const auto rows = task_.observation(field).span<float>();
    for (std::size_t i = 0; i < at(elements); ++i) out.push_back(rows[e * at(elements) + i]);
  }
  return out;
}

std::string TaskSession::status() const {
  if (episodes_ == 0) return "no episode has ended";
  return format("{} of {} episodes succeeded ({:.0f} %), mean return {:.3g}", successes_, episodes_,
                100.0 * static_cast<double>(successes_) / static_cast<double>(episodes_),
                returns_ / static_cast<double>(episodes_));
}

void TaskSession::moved_by_hand() {
  LiveSession::moved_by_hand();
  // So that whoever acts sees the robot where it was put.
  if (auto* scene_task = dynamic_cast<tasks::SceneTask*>(&task_)) scene_task->read_state();
}

}  // namespace cohort::view
