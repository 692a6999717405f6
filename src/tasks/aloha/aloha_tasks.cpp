#include "tasks/aloha/aloha_tasks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/vec3.h"
#include "sim/host/kinematics.h"
#include "tasks/built_in_tasks.h"
#include "tasks/controllers/differential_ik.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

constexpr double kPeriod = 0.02;        // s
constexpr std::int64_t kHorizon = 300;  // control steps, of gym-aloha's registration
constexpr std::size_t kArmJoints6 = 6, kOfArm = 8, kActionsOfArm = 7, kRobot = 2 * kOfArm;
/// m of the left finger: what a gripper's 0 and 1 are (constants.py, PUPPET_GRIPPER_POSITION_CLOSE and _OPEN).
constexpr double kClosed = 0.01844, kOpened = 0.05800;
/// rad and m: constants.py, START_ARM_POSE, of one arm.
constexpr std::array<double, kOfArm> kStart{0, -0.96, 1.16, 0, -0.3, 0, 0.02239, -0.02239};
constexpr std::array<const char*, 2> kArms{"vx300s_left", "vx300s_right"};

double finger_of(double opening) {
  return kClosed + opening * (kOpened - kClosed);
}

/// What distinguishes the two.
struct AlohaModel {
  const char *name, *file, *summary, *expert;
  std::size_t objects;  ///< free joints behind the robot's coordinates
};
constexpr AlohaModel kTransfer{"AlohaTransferCube-v0", "bimanual_viperx_transfer_cube.xml",
                               "take the red cube with the right arm and hand it to the left",
                               "takes the cube from above, holds it out, and the other hand takes it", 1};
constexpr AlohaModel kInsertion{
    "AlohaInsertion-v0", "bimanual_viperx_insertion.xml",
    "take the peg and the socket and put one into the other in the air",
    "takes both from above, lifts them, and moves the peg into the socket where it sees them", 2};

SceneTaskSettings defaults() {
  SceneTaskSettings settings;
  settings.horizon = kHorizon;
  return settings;
}

SceneTaskSetup setup_of(const TaskSettings& settings, const AlohaModel& model) {
  SceneTaskSettings own = defaults();
  SceneTaskSetup setup = read_settings(settings, own);
  TaskSpec& spec = setup.spec;
  spec.name = model.name;
  spec.summary = format("gym-aloha's: {}", model.summary);
  spec.instruction = model.summary;
  spec.observations = {{"agent_pos", {14}, "rad", "of each arm six joints, and its gripper: 0 closed, 1 open"},
                       {"agent_vel", {14}, "rad/s", "likewise; a gripper's in its opening per second"},
                       {"env_state",
                        {7 * static_cast<std::int64_t>(model.objects)},
                        "m",
                        "of each thing: place and quaternion (w x y z)",
                        true}};
  spec.cameras = {"top", "angle", "front_close"};
  const std::array<const char*, kActionsOfArm> joints{"waist",       "shoulder",     "elbow",  "forearm_roll",
                                                      "wrist_angle", "wrist_rotate", "gripper"};
  // The actuators' ranges, which the engine keeps to.
  const std::array<float, kActionsOfArm> low{-3.14158f, -1.85005f, -1.76278f, -3.14158f, -1.8675f, -3.14158f, 0},
      high{3.14158f, 1.25664f, 1.6057f, 3.14158f, 2.23402f, 3.14158f, 1};
  for (const char* arm : {"left", "right"})
    for (std::size_t i = 0; i < kActionsOfArm; ++i) {
      spec.action.names.push_back(format("{}_{}", arm, joints[i]));
      spec.action.low.push_back(low[i]);
      spec.action.high.push_back(high[i]);
    }
  spec.action.unit = "rad, where a joint is to be; gripper: 0 closed, 1 open";
  spec.control_period = kPeriod;
  spec.reward_terms = {"stage"};
  spec.reward_best = {4};
  spec.has_expert = true;
  spec.expert = model.expert;
  setup.clip_actions = false;
  setup.contacts = true;
  setup.mjcf = aloha_model(model.file).string();
  return setup;
}

Mat3 about(const Vec3& axis, double angle) {
  return rotation(quaternion(axis, angle));
}
/// Part of the way from one orientation to another.
Mat3 between_rotations(const Mat3& from, const Mat3& to, double part) {
  const Vec3 turn = rotation_vector(transpose(from) * to);
  const double angle = norm(turn);
  return angle < 1e-9 ? from : from * about((1 / angle) * turn, part * angle);
}

/// Where a hand is to be at a step, between the fingertips, and how far open.
struct Waypoint {
  std::int64_t step = 0;
  Vec3 pos{};
  Mat3 rot{};
  double open = 1;
};

class AlohaTask : public SceneTask {
 public:
  AlohaTask(const TaskSettings& settings, const AlohaModel& model)
      : SceneTask(settings, setup_of(settings, model)), kinematics_(scene().kinematics()), objects_(model.objects) {
    const sim::ModelInfo& info = scene().info();
    const auto wanted = static_cast<std::int64_t>(kRobot + 7 * objects_);
    COHORT_THROW_UNLESS(info.nq == wanted && info.nu == static_cast<int>(kRobot),
                        "{}: {} is another model than gym-aloha 0.1.3's: nq {}, nu {}", model.name, model.file, info.nq,
                        info.nu);
    starts_.resize(static_cast<std::size_t>(n_envs()));
    std::vector<double> qpos(static_cast<std::size_t>(info.nq), 0.0);
    for (std::size_t i = 0; i < objects_; ++i) qpos[kRobot + 7 * i + 3] = 1;
    for (std::size_t arm = 0; arm < 2; ++arm) {
      std::copy(kStart.begin(), kStart.end(), qpos.begin() + static_cast<std::ptrdiff_t>(kOfArm * arm));
      hands_[arm] = info.link(format("{}/gripper_link", kArms[arm]));
      for (std::size_t i = 0; i < kArmJoints6; ++i) dofs_[arm][i] = static_cast<int>(kOfArm * arm + i);
    }
    const sim::Kinematics::Posture posture = kinematics_.at(qpos);
    for (std::size_t arm = 0; arm < 2; ++arm) {
      const Hand hand = hand_of(posture, arm);
      first_[arm] = {0, hand.pos, hand.rot, (kStart[6] - kClosed) / (kOpened - kClosed)};
    }
  }

 protected:
  static constexpr std::size_t kLeft = 0, kRight = 1;
  using Plan = std::vector<Waypoint>;

  struct Hand {
    Vec3 pos{};
    Mat3 rot{};
  };
  /// Between the fingertips, 12 cm before the link of the gripper.
  Hand hand_of(const sim::Kinematics::Posture& posture, std::size_t arm) const {
    const sim::Kinematics::Pose link = posture.link_pose(hands_[arm]);
    return {link.pos + kReach * column(link.rot, 0), link.rot};
  }

  /// A hand of the right arm looks to negative x, one of the left to positive x; nose down by `pitch`.
  static Mat3 pointing(std::size_t arm, double pitch) {
    const Mat3 forward = arm == kRight ? about({0, 0, 1}, std::numbers::pi) : Mat3{1, 0, 0, 0, 1, 0, 0, 0, 1};
    return forward * about({0, 1, 0}, pitch);
  }

  /// The object's start: x y z.
  Vec3 begun(int env, std::size_t object) const {
    const std::array<double, 6>& all = starts_[static_cast<std::size_t>(env)];
    return {all[3 * object], all[3 * object + 1], all[3 * object + 2]};
  }
  const Waypoint& first(std::size_t arm) const { return first_[arm]; }

  /// Where the plan is after this step.
  Waypoint at(const Plan& plan, std::int64_t step) const {
    std::size_t next = 0;
    while (next < plan.size() && plan[next].step <= step) ++next;
    if (next == plan.size()) return plan.back();
    if (next == 0) return plan.front();
    const Waypoint &a = plan[next - 1], &b = plan[next];
    const double part = static_cast<double>(step + 1 - a.step) / static_cast<double>(b.step - a.step);
    return {step, a.pos + part * (b.pos - a.pos), between_rotations(a.rot, b.rot, part),
            a.open + part * (b.open - a.open)};
  }

  /// The joints that bring a hand there, from where they are, and the gripper.
  void reach(const EnvState& now, std::size_t arm, const Waypoint& wanted, std::span<float> action) const {
    constexpr int kRounds = 10;
    constexpr double kNearEnough = 1e-4;
    std::vector<double> qpos(now.qpos.begin(), now.qpos.end());
    for (int round = 0; round < kRounds; ++round) {
      const sim::Kinematics::Posture posture = kinematics_.at(qpos);
      const Hand hand = hand_of(posture, arm);
      const Vec3 shift = wanted.pos - hand.pos, turn = rotation_vector(wanted.rot * transpose(hand.rot));
      const std::array<double, 6> error{shift[0], shift[1], shift[2], turn[0], turn[1], turn[2]};
      if (norm(shift) < kNearEnough && norm(turn) < kNearEnough) break;
      std::array<double, 36> jacobian{};
      posture.link_jacobian(hands_[arm], dofs_[arm], jacobian);
      const Vec3 lever = kReach * column(hand.rot, 0);
      for (std::size_t j = 0; j < kArmJoints6; ++j) {
        const Vec3 moved = cross({jacobian[18 + j], jacobian[24 + j], jacobian[30 + j]}, lever);
        for (std::size_t i = 0; i < 3; ++i) jacobian[6 * i + j] += moved[i];
      }
      const std::array<double, kArmJoints6> no_posture{};
      std::array<double, kArmJoints6> change{};
      differential_ik({.damping = 0.03, .posture = 0, .most_turn = 0.1}, jacobian, 6, 6, error, no_posture, change);
      for (std::size_t j = 0; j < kArmJoints6; ++j) qpos[kOfArm * arm + j] += change[j];
    }
    for (std::size_t j = 0; j < kArmJoints6; ++j)
      action[kActionsOfArm * arm + j] = static_cast<float>(qpos[kOfArm * arm + j]);
    action[kActionsOfArm * arm + kArmJoints6] = static_cast<float>(wanted.open);
  }
  Hand hand_now(const EnvState& now, std::size_t arm) const { return hand_of(kinematics_.at(now.qpos), arm); }

  /// Puts an object at a place drawn from x in [low, high) and y in [0.4, 0.6), 5 cm above the table.
  void drop(int env, std::size_t object, double low, double high, const RandomStream& random, Start& start) {
    const Vec3 pos{low + (high - low) * static_cast<double>(random.uniform(2 * object)),
                   0.4 + 0.2 * static_cast<double>(random.uniform(2 * object + 1)), 0.05};
    const std::span<double> q = start.qpos.subspan(kRobot + 7 * object, 7);
    std::copy(pos.begin(), pos.end(), q.begin());
    q[3] = 1, q[4] = q[5] = q[6] = 0;
    std::copy(pos.begin(), pos.end(),
              starts_[static_cast<std::size_t>(env)].begin() + static_cast<std::ptrdiff_t>(3 * object));
  }
  void start_arms(Start& start) const {
    for (std::size_t arm = 0; arm < 2; ++arm)
      for (std::size_t i = 0; i < kOfArm; ++i) start.qpos[kOfArm * arm + i] = start.ctrl[kOfArm * arm + i] = kStart[i];
  }

  virtual int stage(const EnvState& now) const = 0;

 private:
  void visit_variables(StateVisitor& state) final { state.add("object_starts", starts_); }

  void control(int, const EnvState&, std::span<const float> action, std::span<double> ctrl) final {
    for (std::size_t arm = 0; arm < 2; ++arm) {
      for (std::size_t i = 0; i < kArmJoints6; ++i)
        ctrl[kOfArm * arm + i] = static_cast<double>(action[kActionsOfArm * arm + i]);
      const double finger = finger_of(static_cast<double>(action[kActionsOfArm * arm + kArmJoints6]));
      ctrl[kOfArm * arm + 6] = finger;
      ctrl[kOfArm * arm + 7] = -finger;
    }
  }

  void observe(int, const EnvState& now, ObservationRows& out) final {
    const auto pos = out[0], vel = out[1], things = out[2];
    for (std::size_t arm = 0; arm < 2; ++arm) {
      for (std::size_t i = 0; i < kArmJoints6; ++i) {
        pos[kActionsOfArm * arm + i] = static_cast<float>(now.qpos[kOfArm * arm + i]);
        vel[kActionsOfArm * arm + i] = static_cast<float>(now.qvel[kOfArm * arm + i]);
      }
      pos[kActionsOfArm * arm + 6] = static_cast<float>((now.qpos[kOfArm * arm + 6] - kClosed) / (kOpened - kClosed));
      vel[kActionsOfArm * arm + 6] = static_cast<float>(now.qvel[kOfArm * arm + 6] / (kOpened - kClosed));
    }
    for (std::size_t i = 0; i < things.size(); ++i) things[i] = static_cast<float>(now.qpos[kRobot + i]);
  }

  Judgement judge(int, const EnvState& now, Terms& terms) final {
    const int reached = stage(now);
    if (!terms.empty()) terms.put("stage", reached);
    return {.success = reached == 4};
  }

  static constexpr double kReach = 0.12;  // m
  const sim::Kinematics& kinematics_;
  std::size_t objects_;
  std::array<int, 2> hands_{};
  std::array<std::array<int, kArmJoints6>, 2> dofs_{};
  std::array<Waypoint, 2> first_{};
  std::vector<std::array<double, 6>> starts_;  ///< of the objects, m
};

constexpr double kNoseDown = std::numbers::pi / 3;

class TransferCube final : public AlohaTask {
 public:
  explicit TransferCube(const TaskSettings& settings)
      : AlohaTask(settings, kTransfer),
        left_(contact_pair("red_box", "vx300s_left/10_left_gripper_finger")),
        right_(contact_pair("red_box", "vx300s_right/10_right_gripper_finger")),
        table_(contact_pair("red_box", "table")) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    start_arms(start);
    drop(env, 0, 0.0, 0.2, random, start);
  }

  /// get_reward of TransferCubeTask: 1 touched, 2 lifted, 3 touched by the other hand, 4 handed over.
  int stage(const EnvState& now) const override {
    const bool left = now.touching(left_), right = now.touching(right_), table = now.touching(table_);
    if (left) return table ? 3 : 4;
    if (right) return table ? 1 : 2;
    return 0;
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    const Vec3 cube = begun(env, 0), grip{cube[0], cube[1], 0.02}, meet{0, 0.5, 0.25}, up{0, 0, 1}, ahead{1, 0, 0};
    const Mat3 down = pointing(kRight, kNoseDown), flat = pointing(kRight, 0),
               rolled = about({1, 0, 0}, std::numbers::pi / 2);
    const Plan right{first(kRight),
                     {60, grip + 0.10 * up, down, 1},
                     {95, grip, down, 1},
                     {120, grip, down, 0},
                     {150, grip + 0.12 * up, down, 0},
                     {190, meet, flat, 0},
                     {235, meet, flat, 0},
                     {245, meet, flat, 1},
                     {275, meet + 0.1 * ahead, flat, 1}};
    const Plan left{first(kLeft),
                    {110, meet - 0.18 * ahead, rolled, 1},
                    {190, meet - 0.12 * ahead, rolled, 1},
                    {215, meet, rolled, 1},
                    {235, meet, rolled, 0},
                    {245, meet, rolled, 0},
                    {275, meet - 0.1 * ahead, rolled, 0}};
    reach(now, kLeft, at(left, now.step), action);
    reach(now, kRight, at(right, now.step), action);
  }

  ContactPair left_, right_, table_;
};

class Insertion final : public AlohaTask {
 public:
  explicit Insertion(const TaskSettings& settings)
      : AlohaTask(settings, kInsertion),
        peg_right_(contact_pair("red_peg", "vx300s_right/10_right_gripper_finger")),
        peg_table_(contact_pair("red_peg", "table")),
        peg_pin_(contact_pair("red_peg", "pin")) {
    for (std::size_t i = 0; i < kWalls; ++i) {
      const std::string wall = format("socket-{}", i + 1);
      walls_[i] = {contact_pair(wall, "vx300s_left/10_left_gripper_finger"), contact_pair(wall, "table"),
                   contact_pair("red_peg", wall)};
    }
  }

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    start_arms(start);
    drop(env, 0, 0.1, 0.2, random, start);
    drop(env, 1, -0.2, -0.1, random, start);
  }

  /// get_reward of InsertionTask: 1 both touched, 2 both lifted, 3 peg and socket touch, 4 the peg touches the pin.
  int stage(const EnvState& now) const override {
    bool left = false, socket_table = false, socket_peg = false;
    for (const Wall& wall : walls_) {
      left = left || now.touching(wall.left);
      socket_table = socket_table || now.touching(wall.table);
      socket_peg = socket_peg || now.touching(wall.peg);
    }
    const bool both = left && now.touching(peg_right_), lifted = !now.touching(peg_table_) && !socket_table;
    if (now.touching(peg_pin_)) return 4;
    if (socket_peg && lifted) return 3;
    return both ? (lifted ? 2 : 1) : 0;
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    const Vec3 peg = begun(env, 0), socket = begun(env, 1), up{0, 0, 1}, ahead{1, 0, 0}, meet{0, 0.5, 0.15};
    // Fingertips that touch the table are held by it and do not close.
    const Vec3 grip_peg{peg[0], peg[1], 0.039}, grip_socket{socket[0], socket[1], 0.045};
    const Mat3 right_down = pointing(kRight, kNoseDown), left_down = pointing(kLeft, kNoseDown);
    const Plan right{first(kRight),
                     {50, grip_peg + 0.1 * up, right_down, 1},
                     {80, grip_peg, right_down, 1},
                     {84, grip_peg, right_down, 0},
                     {110, grip_peg, right_down, 0},
                     {kLifted, meet + 0.15 * ahead, right_down, 0}};
    const Plan left{first(kLeft),
                    {50, grip_socket + 0.1 * up, left_down, 1},
                    {80, grip_socket, left_down, 1},
                    {84, grip_socket, left_down, 0},
                    {110, grip_socket, left_down, 0},
                    {kLifted, meet - 0.1 * ahead, left_down, 0}};
    reach(now, kLeft, at(left, now.step), action);
    Waypoint wanted = at(right, now.step);
    if (now.step >= kLifted) {
      // The peg goes along the socket's axis, from 26 to 6 cm of its middle, wherever the hands hold them.
      const double part = std::clamp(static_cast<double>(now.step - kAligned) / 100, 0.0, 1.0);
      const Hand hand = hand_now(now, kRight);
      for (std::size_t i = 0; i < 3; ++i) {
        const double socket_now = now.qpos[kRobot + 7 + i], peg_now = now.qpos[kRobot + i];
        const double missing = socket_now + (i == 0 ? 0.26 - 0.2 * part : 0.0) - peg_now;
        wanted.pos[i] = hand.pos[i] + std::clamp(missing, -0.03, 0.03);
      }
    }
    reach(now, kRight, wanted, action);
  }

  static constexpr std::int64_t kLifted = 145, kAligned = 155;  // control steps
  static constexpr std::size_t kWalls = 4;
  struct Wall {
    ContactPair left, table, peg;
  };
  ContactPair peg_right_, peg_table_, peg_pin_;
  std::array<Wall, kWalls> walls_{};
};

template <class OneTask>
void register_one(const AlohaModel& model) {
  register_task({.name = model.name,
                 .summary = format("gym-aloha's: {}", model.summary),
                 .make = [](const TaskSettings& s) { return std::make_unique<OneTask>(s); },
                 .settings = [] { return fields_of(defaults()); }});
}

}  // namespace

std::filesystem::path aloha_model(const char* file) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  fs::path folder = COHORT_GYM_ALOHA_ASSETS;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  if (const char* named = std::getenv("COHORT_GYM_ALOHA_ASSETS"); named && *named) {
    folder = named;
  } else if (!unknown) {
    const fs::path installed = program.parent_path().parent_path() / COHORT_GYM_ALOHA_INSTALLED;
    if (fs::is_directory(installed, unknown)) folder = installed;
  }
  COHORT_THROW_UNLESS(
      fs::exists(folder / file, unknown),
      "{}: gym-aloha's models are not there: `scripts/setup` brings them, or set COHORT_GYM_ALOHA_ASSETS "
      "to the folder gym_aloha/assets of the wheel gym-aloha 0.1.3 (pip download --no-deps "
      "gym-aloha==0.1.3, then unzip it)",
      (folder / file).string());
  return folder / file;
}

void register_aloha_tasks() {
  register_one<TransferCube>(kTransfer);
  register_one<Insertion>(kInsertion);
}

}  // namespace cohort::tasks
