// quadruped-velocity: a robot dog follows commanded velocities: forward, sideways, turning. Commands, noise and rewards
// are those of the published recipe for learning to walk on the simulator's side (Rudin, Hoeller, Reist, Hutter,
// "Learning to walk in minutes using massively parallel deep reinforcement learning", CoRL 2021, table of rewards),
// with weights for this robot. An episode is a function of its seed: commands, noise, friction, mass, pushes.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/format.h"
#include "core/real_at.h"
#include "tasks/built_in_tasks.h"
#include "tasks/quadruped/quadruped_model.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"
#include "tasks/task_contract.h"

namespace cohort::tasks {
namespace {

constexpr double kWalkPeriod = 0.02;               // s
constexpr std::int64_t kCommandSteps = 250;        // control steps between commands
constexpr std::int64_t kPushSteps = 400;           // and between pushes
constexpr double kCommandLimits[3] = {1, 0.5, 1};  // m/s, m/s, rad/s
constexpr double kPushSpeed = 0.5;                 // m/s, in x and y, at most
constexpr double kActionReach = 0.8;               // rad: what an action of 1 turns a joint's target by
constexpr double kTrackingVariance = 0.25;         // of exp(-error² / variance)
// The curriculum: commands' ranges are (level + 1) / kLevels of the limits. A command that was followed, by means of
// both tracking terms, takes the episode a level up; one that was not, a level down. Likewise an episode is a success
// if the dog is upright at its end and both means over all its steps are kFollowed: as legged_gym's curriculum counts
// an episode as followed (update_command_curriculum, Rudin et al. 2021). It is an error of 0.24 m/s and 0.24 rad/s on
// average; a dog that stands still has 0.33 and 0.44.
constexpr int kLevels = 4;
constexpr double kFollowed = 0.8, kMissed = 0.5;
constexpr double kLowestTrunk = 0.16;                                  // m: an episode ends below
constexpr double kLeastUpright = 0.5;                                  // cosine of the tilt: an episode ends below
constexpr double kFriction[2] = {0.5, 1.25}, kAddedMass[2] = {-1, 2};  // kg
// Half widths of the uniform noise of what is observed.
constexpr double kNoise[] = {0.1, 0.2, 0.05, 0, 0.01, 1.5, 0};

enum Term { kLinear, kAngular, kVertical, kRolling, kUpright, kPosture, kTorque, kSmooth, kSwing, kCollision, kFloor };
struct TermInfo {
  const char* name;
  double weight;  // a second
};
constexpr TermInfo kTerms[] = {{"linear", 1.0},   {"angular", 0.6},     {"vertical", -2.0}, {"rolling", -0.03},
                               {"upright", -1.0}, {"posture", -0.2},    {"torque", -2e-4},  {"smooth", -0.08},
                               {"swing", 1.0},    {"collision", -0.25}, {"floor", 1.0}};

constexpr const char* kWalkSummary = "a robot dog follows commanded velocities";

struct WalkSettings : SceneTaskSettings {
  WalkSettings() {
    horizon = 1000;
    end_on_success = false;
  }
  std::string terrain = "flat";
  bool noise = true, randomize = true, pushes = true, privileged = false, curriculum = false;
};

void describe(config::Fields& fields, WalkSettings& s) {
  describe(fields, static_cast<SceneTaskSettings&>(s));
  fields.add_choice("terrain", s.terrain, {"flat", "rough"}, "flat, or a height field of bumps of up to 6 cm");
  fields.add("noise", s.noise, "of what is observed");
  fields.add("randomize", s.randomize, "friction and the trunk's mass differ between episodes");
  fields.add("pushes", s.pushes, "the trunk is pushed now and then");
  fields.add("curriculum", s.curriculum,
             "an episode begins with small commands, and on rough ground where it is flat: commands that are followed "
             "make later ones larger");
  fields.add("privileged", s.privileged, "also observe, without noise, what only a simulator knows");
}

SceneTaskSetup walk_setup(const TaskSettings& settings, WalkSettings& own) {
  SceneTaskSetup setup = read_settings(settings, own);
  TaskSpec& spec = setup.spec;
  spec.name = "quadruped-velocity";
  spec.summary = kWalkSummary;
  spec.instruction = "walk as you are told";
  spec.observations = {{"base_lin_vel", {3}, "m/s", "of the trunk, in its frame"},
                       {"base_ang_vel", {3}, "rad/s", "likewise"},
                       {"gravity", {3}, "1", "direction of gravity in the trunk's frame"},
                       {"command", {3}, "m/s, rad/s", "forward, to the left, turning to the left"},
                       {"joint_pos", {12}, "rad", "from the stance"},
                       {"joint_vel", {12}, "rad/s", ""},
                       {"last_action", {12}, "1", ""}};
  if (own.privileged)
    spec.observations.push_back({"privileged",
                                 {12},
                                 "1",
                                 "without noise: velocity in the trunk's frame, friction, added mass, height over the "
                                 "ground, which feet touch it, pushed since the last step",
                                 true});
  spec.cameras = {"track"};
  for (const char* leg : kQuadrupedLegNames)
    for (const char* joint : {"abduction", "hip", "knee"}) spec.action.names.push_back(format("{}_{}", leg, joint));
  spec.action.low.assign(kQuadrupedJoints, -1);
  spec.action.high.assign(kQuadrupedJoints, 1);
  spec.action.unit = format("{:g} rad of a joint's target from the stance", kActionReach);
  spec.control_period = kWalkPeriod;
  for (const TermInfo& term : kTerms) {
    spec.reward_terms.emplace_back(term.name);
    const bool tracks = &term - kTerms <= kAngular;
    spec.reward_best.push_back(tracks ? static_cast<float>(term.weight * kWalkPeriod) : 0);
  }
  setup.mjcf = quadruped_mjcf(QuadrupedGround(own.terrain == "rough", own.curriculum));
  return setup;
}

class QuadrupedVelocity final : public SceneTask {
 public:
  explicit QuadrupedVelocity(const TaskSettings& settings) : QuadrupedVelocity(settings, WalkSettings()) {}

  TaskContract contract() override {
    TaskContract contract = SceneTask::contract();
    contract.default_joint_pos.assign(kQuadrupedStance.begin(), kQuadrupedStance.end());
    contract.action_scale.assign(kQuadrupedJoints, kActionReach);
    contract.command_names = {"command"};
    return contract;
  }

 private:
  using Joints = std::array<double, kQuadrupedJoints>;

  /// What is remembered of an environment.
  struct Walk {
    std::uint64_t key = 0;  // of its episode's random numbers
    std::int64_t push_phase = 0;
    bool pushed = false;  // before this step
    double friction = 0.8, added_mass = 0;
    int level = kLevels - 1;
    std::array<double, 3> told{}, told_before{};  // the command, and that of the step that is over
    double followed[2] = {0, 0};                  // sums of both tracking terms since the command
    double followed_in_all[2] = {0, 0};           // and since the episode began
    Joints action{}, action_before{};
    // Of the present state.
    Vec3 linear{}, angular{}, gravity{};  // in the trunk's frame
    double height = 0;                    // over the ground
    std::array<bool, kQuadrupedLegs> touches{}, knee_touches{};
    std::array<double, kQuadrupedLegs> in_air{}, landed_after{};  // s; landed_after: 0 unless it has just landed
  };

  QuadrupedVelocity(const TaskSettings& settings, WalkSettings own)
      : SceneTask(settings, walk_setup(settings, own)),
        own_(own),
        ground_(own.terrain == "rough", own.curriculum),
        walks_(static_cast<std::size_t>(n_envs())) {
    trunk_ = scene().info().link("trunk");
    trunk_mass_ = static_cast<float>(scene().info().links[static_cast<std::size_t>(trunk_)].mass);
    for (std::size_t g = 0; g < scene().info().geoms.size(); ++g)
      if (scene().info().geoms[g].link != 0) geoms_.push_back(static_cast<std::int64_t>(g));
    if (!own_.randomize) return;
    scene().engine().parameter(sim::Parameter::kLinkMass);
    scene().engine().parameter(sim::Parameter::kGeomFriction);
  }

  Walk& walk(int env) { return walks_[static_cast<std::size_t>(env)]; }
  static double between(const double (&range)[2], float share) {
    return range[0] + (range[1] - range[0]) * static_cast<double>(share);
  }

  void start(int env, const RandomStream& random, Start& start) override {
    Walk& w = walk(env) = Walk();
    w.key = (std::uint64_t{random.bits(0)} << 32) | random.bits(1);
    std::uint64_t next = 4;
    const auto within = [&](double size) { return size * (2.0 * static_cast<double>(random.uniform(next++)) - 1.0); };
    w.push_phase = random.below(2, static_cast<std::uint32_t>(kPushSteps));
    if (own_.randomize) {
      w.friction = between(kFriction, random.uniform(next++));
      w.added_mass = between(kAddedMass, random.uniform(next++));
    }
    if (own_.curriculum) w.level = 0;
    w.told = command(w, 0);
    const double place = ground_.rough() && !own_.curriculum ? 6 : 1;
    const double heading = within(3.14159265358979323846);
    start.qpos[0] = within(place);
    start.qpos[1] = within(place);
    start.qpos[3] = std::cos(0.5 * heading), start.qpos[4] = start.qpos[5] = 0, start.qpos[6] = std::sin(0.5 * heading);
    for (std::size_t i = 0; i < kQuadrupedJoints; ++i) {
      start.qpos[7 + i] = kQuadrupedStance[i] + within(0.15);
      start.ctrl[i] = kQuadrupedStance[i];
    }
    for (std::size_t i = 0; i < 6; ++i) start.qvel[i] = within(0.3);
    // As high as the lowest foot asks for.
    double lift = 0;
    const Mat3 turn = rotation({start.qpos[3], start.qpos[4], start.qpos[5], start.qpos[6]});
    for (std::size_t leg = 0; leg < kQuadrupedLegs; ++leg) {
      const LegPoints points = leg_points(leg, joints_of(leg, start.qpos));
      const Vec3 foot = turn * points.foot;
      lift =
          std::max(lift, ground_.height(start.qpos[0] + foot[0], start.qpos[1] + foot[1]) + kQuadrupedFoot - foot[2]);
    }
    start.qpos[2] = lift + 0.005;
  }

  /// Friction and masses of the environments whose episodes begin.
  void after_start(std::span<const std::int32_t> envs) override {
    if (!own_.randomize) return;
    sim::Engine& engine = scene().engine();
    const ArrayView mass = engine.parameter(sim::Parameter::kLinkMass),
                    friction = engine.parameter(sim::Parameter::kGeomFriction);
    for (const std::int32_t env : envs) {
      set_real_at(mass, env, trunk_, static_cast<double>(trunk_mass_ + static_cast<float>(walk(env).added_mass)));
      for (const std::int64_t geom : geoms_) set_real_at(friction, env, 3 * geom, walk(env).friction);
    }
    engine.commit_parameters(envs);
  }

  /// Pushes: a velocity of the trunk from one moment to the next.
  void before_step() override {
    if (!own_.pushes) return;
    sim::Engine& engine = scene().engine();
    ArrayView qvel{};
    for (int env = 0; env < n_envs(); ++env) {
      Walk& w = walk(env);
      const std::int64_t step = state(env).step;
      w.pushed = step > 0 && (step + w.push_phase) % kPushSteps == 0;
      if (!w.pushed) continue;
      if (qvel.data == nullptr) qvel = engine.host_view(sim::Field::kQvel, sim::Access::kWrite);
      const RandomStream random(w.key, RandomPurpose::kEnvironment, 3, static_cast<std::uint64_t>(step));
      for (std::int64_t i = 0; i < 2; ++i) {
        const double push =
            kPushSpeed * (2.0 * static_cast<double>(random.uniform(static_cast<std::uint64_t>(i))) - 1.0);
        set_real_at(qvel, env, i, real_at(qvel, env, i) + static_cast<double>(static_cast<float>(push)));
      }
    }
  }

  /// From `step` on, at the walk's level.
  static std::array<double, 3> command(const Walk& w, std::int64_t step) {
    const RandomStream random(w.key, RandomPurpose::kEnvironment, 2, static_cast<std::uint64_t>(step / kCommandSteps));
    std::array<double, 3> result{};
    const double range = static_cast<double>(w.level + 1) / kLevels;
    for (std::size_t i = 0; i < 3; ++i)
      result[i] = range * kCommandLimits[i] * (2.0 * static_cast<double>(random.uniform(i)) - 1.0);
    return result;
  }
  /// Both tracking terms of the step that is over, at most 1.
  static std::array<double, 2> followed(const Walk& w) {
    const double missed = squared(w.told_before[0] - w.linear[0]) + squared(w.told_before[1] - w.linear[1]);
    return {std::exp(-missed / kTrackingVariance),
            std::exp(-squared(w.told_before[2] - w.angular[2]) / kTrackingVariance)};
  }
  /// After a step: at its end the next command, of the level that the last one led to.
  void next_command(Walk& w, std::int64_t step) const {
    w.told_before = w.told;
    const std::array<double, 2> now = followed(w);
    for (std::size_t i = 0; i < 2; ++i) w.followed[i] += now[i], w.followed_in_all[i] += now[i];
    if (step % kCommandSteps != 0) return;
    if (own_.curriculum) {
      const double least = std::min(w.followed[0], w.followed[1]) / static_cast<double>(kCommandSteps);
      if (least >= kFollowed) w.level = std::min(w.level + 1, kLevels - 1);
      if (least < kMissed) w.level = std::max(w.level - 1, 0);
      w.followed[0] = w.followed[1] = 0;
    }
    w.told = command(w, step);
  }
  static std::array<double, 3> joints_of(std::size_t leg, std::span<const double> qpos) {
    return {qpos[7 + 3 * leg], qpos[8 + 3 * leg], qpos[9 + 3 * leg]};
  }

  void visit_variables(StateVisitor& state) override {
    state.add("key", walks_, &Walk::key);
    state.add("push_phase", walks_, &Walk::push_phase);
    state.add("pushed", walks_, &Walk::pushed);
    state.add("friction", walks_, &Walk::friction);
    state.add("added_mass", walks_, &Walk::added_mass);
    state.add("level", walks_, &Walk::level);
    state.add("told", walks_, &Walk::told);
    state.add("told_before", walks_, &Walk::told_before);
    state.add("followed", walks_, &Walk::followed);
    state.add("followed_in_all", walks_, &Walk::followed_in_all);
    state.add("action", walks_, &Walk::action);
    state.add("action_before", walks_, &Walk::action_before);
    state.add("linear", walks_, &Walk::linear);
    state.add("angular", walks_, &Walk::angular);
    state.add("gravity", walks_, &Walk::gravity);
    state.add("height", walks_, &Walk::height);
    state.add("touches", walks_, &Walk::touches);
    state.add("knee_touches", walks_, &Walk::knee_touches);
    state.add("in_air", walks_, &Walk::in_air);
    state.add("landed_after", walks_, &Walk::landed_after);
  }

  void control(int env, const EnvState&, std::span<const float> action, std::span<double> ctrl) override {
    Walk& w = walk(env);
    w.action_before = w.action;
    for (std::size_t i = 0; i < kQuadrupedJoints; ++i) {
      w.action[i] = static_cast<double>(action[i]);
      ctrl[i] = kQuadrupedStance[i] + kActionReach * w.action[i];
    }
  }

  void refresh(int env, const EnvState& now) override {
    Walk& w = walk(env);
    const Mat3 turn = rotation(normalized({now.qpos[3], now.qpos[4], now.qpos[5], now.qpos[6]}));
    const Mat3 back = transpose(turn);
    w.linear = back * Vec3{now.qvel[0], now.qvel[1], now.qvel[2]};
    w.angular = {now.qvel[3], now.qvel[4], now.qvel[5]};
    w.gravity = back * Vec3{0, 0, -1};
    w.height = now.qpos[2] - ground_.height(now.qpos[0], now.qpos[1]);
    if (now.step > 0) next_command(w, now.step);
    for (std::size_t leg = 0; leg < kQuadrupedLegs; ++leg) {
      const LegPoints points = leg_points(leg, joints_of(leg, now.qpos));
      w.touches[leg] = touching(now, turn * points.foot, kQuadrupedFoot);
      w.knee_touches[leg] = touching(now, turn * points.knee, kQuadrupedKnee);
      w.landed_after[leg] = 0;
      if (now.step == 0) continue;
      if (w.touches[leg]) {
        w.landed_after[leg] = w.in_air[leg];
        w.in_air[leg] = 0;
      } else {
        w.in_air[leg] += kWalkPeriod;
      }
    }
  }
  /// Whether a sphere lies on the ground, within 2 mm.
  bool touching(const EnvState& now, const Vec3& offset, double radius) const {
    const double x = now.qpos[0] + offset[0], y = now.qpos[1] + offset[1], z = now.qpos[2] + offset[2];
    return z - ground_.height(x, y) < radius + 0.002;
  }

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const Walk& w = walk(env);
    for (std::size_t i = 0; i < 3; ++i) {
      out[0][i] = static_cast<float>(w.linear[i]);
      out[1][i] = static_cast<float>(w.angular[i]);
      out[2][i] = static_cast<float>(w.gravity[i]);
      out[3][i] = static_cast<float>(w.told[i]);
    }
    for (std::size_t i = 0; i < kQuadrupedJoints; ++i) {
      out[4][i] = static_cast<float>(now.qpos[7 + i] - kQuadrupedStance[i]);
      out[5][i] = static_cast<float>(now.qvel[6 + i]);
      out[6][i] = static_cast<float>(w.action[i]);
    }
    if (own_.noise) disturb(w, now, out);
    if (!own_.privileged) return;
    const auto touch = [&w](std::size_t leg) { return w.touches[leg] ? 1.0 : 0.0; };
    out.put("privileged", {w.linear[0], w.linear[1], w.linear[2], w.friction, w.added_mass, w.height, touch(0),
                           touch(1), touch(2), touch(3), w.pushed ? 1.0 : 0.0, w.gravity[2]});
  }

  static void disturb(const Walk& w, const EnvState& now, ObservationRows& out) {
    const RandomStream random(w.key, RandomPurpose::kEnvironment, 1, static_cast<std::uint64_t>(now.step));
    Philox4 four{};
    std::uint64_t drawn = 0;
    for (std::size_t field = 0; field < std::size(kNoise); ++field) {
      if (kNoise[field] == 0) continue;
      for (float& x : out[field]) {
        if (drawn % 4 == 0) four = random.at(drawn / 4);
        const double share = static_cast<double>(four.v[drawn % 4] >> 8) / 16777216.0;
        x += static_cast<float>(kNoise[field] * (2 * share - 1));
        ++drawn;
      }
    }
  }

  static double squared(double x) { return x * x; }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const Walk& w = walk(env);
    const bool fallen = w.height < kLowestTrunk || -w.gravity[2] < kLeastUpright;
    const double least = std::min(w.followed_in_all[0], w.followed_in_all[1]);
    const bool followed_well = least >= kFollowed * static_cast<double>(now.step);
    const Judgement judgement{.success = now.step >= spec().horizon && !fallen && followed_well, .terminated = fallen};
    if (terms.empty()) return judgement;
    const std::array<double, 3>& told = w.told_before;
    const std::array<double, 2> tracks = followed(w);
    std::array<double, std::size(kTerms)> value{};
    value[kLinear] = tracks[0];
    value[kAngular] = tracks[1];
    value[kVertical] = squared(w.linear[2]);
    value[kRolling] = squared(w.angular[0]) + squared(w.angular[1]);
    value[kUpright] = squared(w.gravity[0]) + squared(w.gravity[1]);
    for (std::size_t i = 0; i < kQuadrupedJoints; ++i) {
      const double bent = now.qpos[7 + i] - kQuadrupedStance[i];
      value[kPosture] += (i % 3 == 0 ? 1.0 : 0.2) * squared(bent);
      const double force =
          kQuadrupedStiffness * (kActionReach * w.action[i] - bent) - kQuadrupedDamping * now.qvel[6 + i];
      value[kTorque] += squared(std::clamp(force, -kQuadrupedTorque, kQuadrupedTorque));
      value[kSmooth] += squared(w.action[i] - w.action_before[i]);
    }
    const bool walks = squared(told[0]) + squared(told[1]) > 0.01;
    for (std::size_t leg = 0; leg < kQuadrupedLegs; ++leg) {
      if (walks && w.landed_after[leg] > 0) value[kSwing] += std::min(w.landed_after[leg], 0.4) - 0.2;
      value[kCollision] += w.knee_touches[leg] ? 1 : 0;
    }
    double sum = 0;
    for (std::size_t i = 0; i < kFloor; ++i) {
      const double part = kTerms[i].weight * value[i] * kWalkPeriod;
      sum += part * static_cast<double>(term_scale(i));
      terms[i] = static_cast<float>(part);
    }
    // Nothing is gained by falling early: no step costs more than it brings.
    terms[kFloor] = static_cast<float>(std::max(0.0, -sum));
    return judgement;
  }

  WalkSettings own_;
  QuadrupedGround ground_;
  std::vector<Walk> walks_;
  int trunk_ = 0;
  float trunk_mass_ = 0;
  std::vector<std::int64_t> geoms_;  // the robot's
};

}  // namespace

void register_quadruped() {
  register_task({.name = "quadruped-velocity",
                 .summary = kWalkSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<QuadrupedVelocity>(s); },
                 .settings = [] { return fields_of(WalkSettings()); },
                 // Seeds 1 to 3 with 560 iterations: 0.96 of both tracking terms' maximum, 3 to 5 of 256 episodes fall
                 // (docs/evidence.md, 2026-11-26). An action of 1 turns a joint by 0.8 rad: hence the small noise.
                 .ppo = {"n_envs=2048", "num_steps_per_env=24", "max_iterations=750", "init_at_random_ep_len=true",
                         "policy.actor_hidden_dims=[128,128,128]", "policy.critic_hidden_dims=[128,128,128]",
                         "policy.init_noise_std=0.2", "algorithm.entropy_coef=0.003", "save_interval=100"}});
}

}  // namespace cohort::tasks
