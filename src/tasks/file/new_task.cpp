#include "tasks/file/new_task.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "tasks/file/robot_survey.h"
#include "tasks/file/task_file.h"

namespace cohort::tasks {

namespace fs = std::filesystem;

namespace {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> kAll{"velocity", "reach", "lift", "balance"};
  return kAll;
}

/// A name as a regular expression.
std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view(".+*?()[]{}|^$\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

/// A pattern that matches these names and no others of all.
std::string pattern_of(const std::vector<std::string>& names, const std::vector<std::string>& all) {
  const std::set<std::string> wanted(names.begin(), names.end());
  const auto is_exact = [&](const std::string& pattern) {
    const std::regex regex(pattern);
    return std::ranges::all_of(
        all, [&](const std::string& name) { return std::regex_match(name, regex) == wanted.contains(name); });
  };
  if (names.size() > 1) {
    if (is_exact(".*")) return ".*";
    std::string prefix = names.front(), suffix = names.front();
    for (const std::string& name : names) {
      std::size_t same = 0;
      while (same < std::min(prefix.size(), name.size()) && prefix[same] == name[same]) ++same;
      prefix.resize(same);
      same = 0;
      while (same < std::min(suffix.size(), name.size()) &&
             suffix[suffix.size() - 1 - same] == name[name.size() - 1 - same])
        ++same;
      suffix = suffix.substr(suffix.size() - same);
    }
    if (suffix.size() > 1 && is_exact(".*" + escaped(suffix))) return ".*" + escaped(suffix);
    if (prefix.size() > 1 && is_exact(escaped(prefix) + ".*")) return escaped(prefix) + ".*";
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + escaped(name);
  return text;
}

/// A text as YAML has it between apostrophes.
std::string yaml_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::string number(double x) {
  return format("{:.4g}", std::abs(x) < 1e-12 ? 0.0 : x);
}

class Writer {
 public:
  Writer(const NewTaskSettings& settings, RobotSurvey robot, std::string like, bool guessed)
      : settings_(settings), robot_(std::move(robot)), like_(std::move(like)), guessed_(guessed) {
    for (const SurveyedJoint& j : robot_.joints) all_.push_back(j.name);
    // Which joints the policy moves.
    for (const SurveyedJoint& j : robot_.joints) {
      if (robot_.own_actuators ? !j.actuated
                               : like_ == "balance" && !robot_.free_base && &j != &robot_.joints.front()) {
        passive_.push_back(j.name);
        continue;
      }
      if (like_ == "reach" && is_finger(j)) continue;
      moved_.push_back(&j);
    }
    COHORT_THROW_UNLESS(!moved_.empty() || !robot_.other_actuators.empty(),
                        "{}: no joint has an actuator of its own that a task could move", settings.robot.string());
    if (like_ != "lift" || !robot_.other_actuators.empty()) return;
    COHORT_THROW_UNLESS(!std::ranges::all_of(moved_, [&](const SurveyedJoint* j) { return is_finger(*j); }),
                        "{}: only its fingers have actuators, and nothing that a task could move brings them to a box; "
                        "where a mocap body draws the hand by a weld, its joints need actuators of their own, "
                        "<position joint=\"{}\" kp=\"...\"/> and so on",
                        settings.robot.string(), passive_.empty() ? robot_.hand : passive_.front());
  }

  NewTask write() {
    const std::string what = like_ == "velocity" ? "follows commanded velocities"
                             : like_ == "reach"  ? "brings its hand where it is told"
                             : like_ == "lift"   ? "lifts a box"
                                                 : "keeps upright";
    const std::string name = settings_.robot.stem().string();
    line("# {} {}. Written by `cohort tasks new` from the robot's file: change what you like.", name, what);
    line("#   cohort tasks {} --check        # whether it keeps what training relies on",
         settings_.file.filename().string());
    line("#   cohort train ppo task={}       # learns it", settings_.file.filename().string());
    line("summary: {}", yaml_text(name + " " + what));
    line("instruction: {}", like_ == "velocity" ? "walk as you are told"
                            : like_ == "reach"  ? "reach the goal"
                            : like_ == "lift"   ? "lift the box"
                                                : "stay upright");
    scene();
    simulation();
    actions();
    if (like_ == "velocity") velocity();
    if (like_ == "reach") reach();
    if (like_ == "lift") lift();
    if (like_ == "balance") balance();
    remark();
    return {text_, like_, remarks_};
  }

 private:
  bool is_finger(const SurveyedJoint& joint) const {
    return std::ranges::find(robot_.fingers, joint.name) != robot_.fingers.end();
  }
  template <class... Values>
  void line(fmt::format_string<Values...> text, Values&&... values) {
    text_ += cohort::format(text, std::forward<Values>(values)...) + "\n";
  }
  std::vector<std::string> names_of(const std::vector<const SurveyedJoint*>& joints) const {
    std::vector<std::string> names;
    for (const SurveyedJoint* j : joints) names.push_back(j->name);
    return names;
  }
  std::string pattern(const std::vector<const SurveyedJoint*>& joints) const {
    return pattern_of(names_of(joints), all_);
  }
  /// Joints of the robot that a policy's action is about, as an argument within a formula: ("...").
  std::string joints_argument(const std::vector<std::string>& names) const {
    return names.size() == all_.size() ? "" : cohort::format("(\"{}\")", pattern_of(names, all_));
  }

  void scene() {
    std::error_code problem;
    const fs::path folder = fs::absolute(settings_.file).parent_path();
    const fs::path relative = fs::relative(fs::absolute(settings_.robot), folder, problem);
    const std::string path =
        problem || relative.empty() ? fs::absolute(settings_.robot).string() : relative.generic_string();
    line("scene:");
    line("  robot:");
    line("    {}: {}", robot_.urdf ? "urdf" : "mjcf", yaml_text(path));
    if (robot_.urdf)
      line("    fixed: {}                 # whether the base is part of the world",
           robot_.free_base ? "false" : "true");
    if (robot_.repair_inertia)
      line("    repair_inertia: true       # no body can have some of its links' inertias: they become their mean");
    if (!robot_.own_actuators) {
      if (like_ == "balance" && !robot_.free_base) {
        line("    actuators:                 # the file has none: a motor at the joint next to the world, N m or N");
        const SurveyedJoint& j = *moved_.front();
        line("      motor: {{type: motor, joints: {}, effort_limit: {}}}", yaml_text(escaped(j.name)),
             number(j.effort));
      } else {
        line("    # The file has no actuators. stiffness: the joint sags by {} under what it carries;",
             robot_.free_base ? "0.5 rad" : "0.05 rad (slides 5 mm)");
        line(
            "    # armature and damping: 10 Hz, twice critically damped, as mjlab's robots; effort_limit: three times "
            "what it carries, or the joint's own where that is less.");
        line("    actuators:");
        std::map<std::array<double, 4>, std::vector<const SurveyedJoint*>> groups;
        std::vector<std::array<double, 4>> order;
        for (const SurveyedJoint& j : robot_.joints) {
          const std::array<double, 4> key{j.stiffness, j.damping, j.effort, j.armature};
          if (!groups.contains(key)) order.push_back(key);
          groups[key].push_back(&j);
        }
        int number_of = 0;
        for (const auto& key : order)
          line("      servos_{}: {{joints: {}, stiffness: {}, damping: {}, effort_limit: {}{}}}", ++number_of,
               yaml_text(pattern(groups[key])), number(key[0]), number(key[1]), number(key[2]),
               key[3] > 0 ? cohort::format(", armature: {}", number(key[3])) : "");
      }
    }
    if (!robot_.keyframe.empty()) {
      line("    keyframe: {}              # where episodes begin", yaml_text(robot_.keyframe));
    } else {
      if (robot_.free_base)
        line("    base_pos: [{}, {}, {}]     # m: the lowest point touches the ground", number(robot_.base_pos[0]),
             number(robot_.base_pos[1]), number(robot_.base_pos[2]));
      std::map<double, std::vector<const SurveyedJoint*>> groups;
      for (const SurveyedJoint& j : robot_.joints)
        if (std::abs(j.position) > 1e-9) groups[std::round(1000 * j.position) / 1000].push_back(&j);
      if (!groups.empty()) {
        line("    joint_pos:                 # rad, m, where episodes begin; 0 for the others");
        for (const auto& [position, joints] : groups)
          line("      {}: {}", yaml_text(pattern(joints)), number(position));
      }
    }
    if (robot_.free_base && !robot_.own_ground) line("  ground: plane");
    if (like_ == "lift") {
      for (std::size_t i = 0; i < 2; ++i) table_[i] = 0.5 * (robot_.reach[i][0] + robot_.reach[i][1]);
      // Where the hand gets to with something to spare.
      table_top_ = std::max(0.02, std::round(100 * robot_.reach[2][0]) / 100);
      line("  table: {{box: [0.5, 0.5, 0.02], pos: [{}, {}, {}], fixed: true}}", number(table_[0]), number(table_[1]),
           number(table_top_ - 0.01));
      line("  box: {{box: [0.04, 0.04, 0.04], mass: 0.1, pos: [{}, {}, {}], rgba: [0.8, 0.2, 0.2, 1]}}",
           number(table_[0]), number(table_[1]), number(table_top_ + 0.021));
    }
  }

  void simulation() {
    const double timestep = robot_.own_actuators ? robot_.timestep : 0.005;
    const int decimation = std::max(1, static_cast<int>(std::lround(0.02 / timestep)));
    const double episode = like_ == "velocity" ? 20 : like_ == "lift" ? 5 : like_ == "reach" ? 6 : 10;
    line("simulation: {{timestep: {}, decimation: {}, episode_length_s: {}}}   # s, timesteps of a control step, s",
         number(timestep), decimation, number(episode));
  }

  double scale_of(const SurveyedJoint& j) const {
    if (j.slide) return j.limited ? number_rounded(0.5 * (j.range[1] - j.range[0])) : 0.5;
    if (!robot_.free_base) return 0.5;
    // mjlab's: a quarter of what the servo's strength is enough for.
    return robot_.own_actuators ? 0.3 : number_rounded(0.25 * j.effort / j.stiffness);
  }
  static double number_rounded(double x) { return x > 0 ? std::round(x * 1000) / 1000 : 1; }

  void actions() {
    using Kind = sim::ActuatorInfo::Kind;
    line("actions:");
    for (const Kind kind : {Kind::kPosition, Kind::kVelocity, Kind::kMotor}) {
      std::vector<const SurveyedJoint*> joints;
      std::map<double, std::vector<const SurveyedJoint*>> scales;
      for (const SurveyedJoint* j : moved_) {
        const Kind own = robot_.own_actuators                      ? j->kind
                         : like_ == "balance" && !robot_.free_base ? Kind::kMotor
                                                                   : Kind::kPosition;
        if (own != kind) continue;
        joints.push_back(j);
        double scale = scale_of(*j);
        if (kind != Kind::kPosition) {
          scale = j->largest_control > 0 ? j->largest_control : kind == Kind::kMotor ? j->effort : 1;
          if (!robot_.own_actuators) scale = j->effort;
        }
        scales[scale].push_back(j);
      }
      if (joints.empty()) continue;
      std::string scale;
      if (scales.size() == 1) {
        scale = number(scales.begin()->first);
      } else {
        for (const auto& [value, of] : scales)
          scale += cohort::format("{}{}: {}", scale.empty() ? "" : ", ", yaml_text(pattern(of)), number(value));
        scale = "{" + scale + "}";
      }
      const bool all = joints.size() == robot_.joints.size();
      // A step needs more than the scale, which is what a joint does easily.
      const bool wide = like_ == "velocity" && kind == Kind::kPosition;
      line("  {}: {{{}scale: {}{}}}{}",
           kind == Kind::kPosition   ? "joint_position"
           : kind == Kind::kVelocity ? "joint_velocity"
                                     : "joint_effort",
           all ? "" : cohort::format("joints: {}, ", yaml_text(pattern(joints))), scale, wide ? ", clip: [-2, 2]" : "",
           kind == Kind::kPosition ? "   # rad, m, from where episodes begin"
           : kind == Kind::kMotor  ? "   # of the actuators' controls"
                                   : "   # rad/s, m/s");
    }
    if (!robot_.other_actuators.empty())
      line("  actuator: {{actuators: {}}}   # tendons, muscles: from one end of their controls' range to the other",
           yaml_text(pattern_of(robot_.other_actuators, robot_.actuators)));
  }

  /// Observations of joints, without those that only say how far it has come.
  void joint_observations() {
    line("    joint_pos_rel: {{noise: 0.01}}");
    line("    joint_vel_rel: {{noise: {}, scale: 0.2}}", like_ == "velocity" ? "1.0" : "0.05");
  }

  void velocity() {
    const double speed = std::clamp(std::round(6 * std::sqrt(9.81 * robot_.leg_length)) / 10, 0.2, 1.0);
    const std::string feet = yaml_text(pattern_of(robot_.feet, robot_.all_feet_names));
    double strength = 0;
    for (const SurveyedJoint* j : moved_) strength += j->effort * j->effort;
    line("commands:");
    line("  twist:                       # m/s, rad/s");
    line("    resampling_time_range: [5, 5]");
    line("    ranges: {{lin_vel_x: [-{0}, {0}], lin_vel_y: [-{1}, {1}], ang_vel_z: [-1, 1]}}", number(speed),
         number(speed / 2));
    line("observations:");
    line("  policy:");
    line("    base_lin_vel: {{noise: 0.1}}");
    line("    base_ang_vel: {{noise: 0.2}}");
    line("    projected_gravity: {{noise: 0.05}}");
    line("    command: {{term: generated_commands, command_name: twist}}");
    joint_observations();
    line("    last_action: {{}}");
    line("  critic:                      # what only the critic sees");
    line("    foot_contact: {{feet: {}}}", feet);
    line("    foot_air_time: {{feet: {}}}", feet);
    line("rewards:                       # each a second");
    line("  track_lin_vel_xy_exp: {{std: 0.5, weight: 1.5}}");
    line("  track_ang_vel_z_exp: {{std: 0.5, weight: 1.0}}");
    line("  lin_vel_z_l2: -2.0");
    line("  ang_vel_xy_l2: -0.05");
    line("  flat_orientation_l2: -1.0");
    line("  pose: {{formula: \"norm2(joint_pos_rel)\", weight: -0.1}}");
    line("  joint_torques_l2: {:.1e}      # from what the joints can do", -1.6 / std::max(strength, 1e-6));
    line("  joint_acc_l2: -1.0e-7");
    line("  action_rate_l2: -0.02");
    line("  feet_air_time_positive: {{feet: {}, threshold: 0.2, weight: 0.5}}", feet);
    line("  floor: {{formula: \"max(0, -reward)\", per_second: false}}   # nothing is gained by falling early");
    line("terminations:");
    line("  fell_over: {{term: bad_orientation, limit_angle: 1.2}}");
    line("  low: {{term: root_height_below_minimum, minimum_height: {}}}",
         number(std::round(50 * robot_.base_pos[2]) / 100));
    line("success: >-");
    line(
        "  last_step and not terminated and total(exp(-norm2(command.twist[:2] - base.linear_velocity[:2]) / 0.25)) > "
        "0.8 * step");
    line("  and total(exp(-square(command.twist[2] - base.angular_velocity[2]) / 0.25)) > 0.8 * step");
    line("events:");
    line(
        "  place: {{type: reset_root_state_uniform, pose_range: {{x: [-0.5, 0.5], y: [-0.5, 0.5], z: [0.01, 0.03], "
        "yaw: [-3.14, 3.14]}},");
    line("          velocity_range: {{x: [-0.3, 0.3], y: [-0.3, 0.3], z: [-0.3, 0.3], yaw: [-0.3, 0.3]}}}}");
    line("  joints: {{type: reset_joints_by_offset, position_range: [-0.05, 0.05]}}");
    line(
        "  push: {{type: push_by_setting_velocity, interval_range_s: [8, 8], velocity_range: {{x: [-0.5, 0.5], y: "
        "[-0.5, 0.5]}}}}");
    line("  base_mass: {{type: body_mass, links: {}, operation: scale, ranges: [0.9, 1.15]}}",
         yaml_text(escaped(robot_.base)));
    line("play:");
    line("  events: {{push: null}}");
    ppo(2048, 24, robot_.feet.size() > 2 ? 600 : 1500, "128, 128, 128", 1, 0.005);
    line("  init_at_random_ep_len: true");
  }

  std::string hand() const {
    return robot_.hand_site.empty() ? cohort::format("link_position(\"{}\")", escaped(robot_.hand))
                                    : cohort::format("site_position(\"{}\")", escaped(robot_.hand_site));
  }

  void reach() {
    line("commands:");
    line("  goal:                        # m, in the world: the middle half of where the hand comes to");
    line("    type: uniform_pose");
    line("    resampling_time_range: [3, 3]");
    line("    ranges: {{pos_x: [{}, {}], pos_y: [{}, {}], pos_z: [{}, {}]}}", number(robot_.reach[0][0]),
         number(robot_.reach[0][1]), number(robot_.reach[1][0]), number(robot_.reach[1][1]), number(robot_.reach[2][0]),
         number(robot_.reach[2][1]));
    line("define:");
    line("  hand: '{}'", hand());
    line("  distance: norm(hand[:3] - command.goal)   # m");
    line("observations:");
    line("  policy:");
    joint_observations();
    line("    goal: command.goal");
    line("    to_goal: flat(command.goal - hand)");
    line("    last_action: {{}}");
    line("rewards:                       # each a second");
    line("  near: {{formula: distance, weight: -2.0}}");
    line("  nearer: {{formula: 1 - tanh(distance / 0.1), weight: 2.0}}");
    line("  action_rate_l2: -0.01");
    line("  joint_vel_l2: -1.0e-3");
    line("success: held(distance < 0.05) > 0.5   # s");
    line("events:");
    line("  joints: {{type: reset_joints_by_offset, position_range: [-0.1, 0.1]}}");
    ppo(1024, 24, 300, "64, 64", 0.5, 0.003);
  }

  void lift() {
    line("define:");
    line("  hand: '{}'", hand());
    line("  distance: norm(hand[:3] - box.position)          # m");
    line("  height: box.position[2] - {}                   # m over where it lies", number(table_top_ + 0.02));
    line("observations:");
    line("  policy:");
    joint_observations();
    line("    box: box.position");
    line("    to_box: flat(box.position - hand)");
    line("    box_velocity: box.linear_velocity_world");
    line("    last_action: {{}}");
    line("rewards:                       # each a second");
    line("  near: {{formula: 1 - tanh(distance / 0.1), weight: 1.0}}");
    line("  lifted: {{formula: 'clip(height / 0.15, 0, 1)', weight: 15.0}}");
    line("  action_rate_l2: -0.005");
    line("  joint_vel_l2: -1.0e-3");
    line("terminations:");
    line("  lost: height < -0.1");
    line("success: held(height > 0.12) > 0.3   # s");
    line("events:");
    line("  joints: {{type: reset_joints_by_offset, position_range: [-0.05, 0.05]}}");
    line(
        "  box: {{type: reset_root_state_uniform, entity: box, pose_range: {{x: [-0.05, 0.05], y: [-0.05, 0.05], yaw: "
        "[-3.14, 3.14]}}}}");
    ppo(1024, 24, 800, "128, 128", 0.5, 0.003);
  }

  void balance() {
    // What keeps upright: joints that no motor moves, but not how far it has come along the way.
    std::vector<std::string> upright;
    for (const SurveyedJoint& j : robot_.joints)
      if (std::ranges::find(passive_, j.name) != passive_.end() && !(j.slide && !j.limited)) upright.push_back(j.name);
    if (upright.empty() && !robot_.free_base) upright = all_;
    line("observations:");
    line("  policy:");
    if (robot_.free_base) {
      line("    base_pos_z: {{}}");
      line("    projected_gravity: {{}}");
      line("    base_lin_vel: {{}}");
      line("    base_ang_vel: {{}}");
    }
    if (!robot_.joints.empty()) joint_observations();
    line("    last_action: {{}}");
    line("rewards:                       # each a second");
    line("  is_alive: 1.0");
    if (robot_.free_base) {
      line("  upright: {{std: 0.3, weight: 2.0}}");
      line("  base_height_l2: {{target_height: {}, weight: -1.0}}", number(robot_.base_pos[2]));
    } else {
      line("  upright: {{formula: 'exp(-norm2(joint_pos_rel{}) / 0.05)', weight: 2.0}}", joints_argument(upright));
    }
    if (!robot_.free_base && robot_.joints.front().slide)
      line("  middle: {{formula: 'norm2(joint_pos_rel(\"{}\"))', weight: -0.2}}", escaped(robot_.joints.front().name));
    if (!robot_.joints.empty()) line("  joint_vel_l2: -1.0e-3");
    line("  action_rate_l2: -0.01");
    line("terminations:");
    if (robot_.free_base) {
      line("  fell_over: {{term: bad_orientation, limit_angle: 0.8}}");
      line("  low: {{term: root_height_below_minimum, minimum_height: {}}}",
           number(std::round(60 * robot_.base_pos[2]) / 100));
    } else {
      line("  fallen: 'any(abs(joint_pos_rel{}) > 0.5)'   # rad, m", joints_argument(upright));
    }
    line("events:");
    if (robot_.free_base)
      line(
          "  place: {{type: reset_root_state_uniform, pose_range: {{yaw: [-3.14, 3.14]}}, velocity_range: {{x: [-0.2, "
          "0.2], y: [-0.2, 0.2]}}}}");
    if (!robot_.joints.empty())
      line("  joints: {{type: reset_joints_by_offset, position_range: [-0.05, 0.05], velocity_range: [-0.05, 0.05]}}");
    ppo(512, 32, 200, "64, 64", 0.5, 0.003);
  }

  void ppo(int envs, int steps, int iterations, const std::string& widths, double noise, double entropy) {
    line("ppo:");
    line("  n_envs: {}", envs);
    line("  num_steps_per_env: {}", steps);
    line("  max_iterations: {}", iterations);
    line("  save_interval: 100");
    line("  policy: {{actor_hidden_dims: [{0}], critic_hidden_dims: [{0}], init_noise_std: {1}}}", widths,
         number(noise));
    line("  algorithm: {{entropy_coef: {}}}", number(entropy));
  }

  void remark() {
    const char* why = like_ == "velocity" ? "its base is free and it stands on feet"
                      : like_ == "reach"  ? "its base is fixed and its joints have motors"
                      : robot_.free_base  ? "its base is free and it stands on no feet"
                                          : "its base is fixed and few of its joints have motors";
    remarks_.push_back(
        cohort::format("a task like {}{}", like_, guessed_ ? cohort::format(": {} (--like says otherwise)", why) : ""));
    remarks_.push_back(cohort::format(
        "{} joints, of which the policy moves {}{}", robot_.joints.size(), moved_.size(),
        robot_.other_actuators.empty() ? "" : ", and the actuators " + join(robot_.other_actuators, ", ")));
    if (!robot_.feet.empty()) remarks_.push_back(cohort::format("feet: {}", join(robot_.feet, ", ")));
    if (like_ == "reach" || like_ == "lift")
      remarks_.push_back(
          cohort::format("hand: {}{}", robot_.hand_site.empty() ? robot_.hand : "the site " + robot_.hand_site,
                         robot_.fingers.empty() ? "" : ", with the fingers " + join(robot_.fingers, ", ")));
    if (robot_.repair_inertia)
      remarks_.push_back(
          "some of its links have an inertia that no body can have: repair_inertia says what becomes of it");
    if (!robot_.own_actuators) remarks_.push_back("the file has no actuators: their gains follow from the masses");
    if (like_ == "balance")
      remarks_.push_back(
          "upright is where the file has it: look at the first picture, `cohort tasks FILE --picture p.png`");
  }

  const NewTaskSettings& settings_;
  RobotSurvey robot_;
  std::string like_, text_;
  bool guessed_;
  std::vector<std::string> all_, passive_, remarks_;
  std::vector<const SurveyedJoint*> moved_;
  double table_[2] = {0, 0}, table_top_ = 0;
};

std::string guess(const RobotSurvey& robot) {
  if (robot.free_base) return robot.feet.size() >= 2 ? "velocity" : "balance";
  if (!robot.own_actuators) return robot.joints.size() >= 2 ? "reach" : "balance";
  // Drawers and doors beside it are no part of a robot: only what hangs together with something that is driven counts.
  std::set<int> driven_trees;
  for (const SurveyedJoint& j : robot.joints)
    if (j.driven) driven_trees.insert(j.tree);
  std::vector<const SurveyedJoint*> own;
  for (const SurveyedJoint& j : robot.joints)
    if (driven_trees.contains(j.tree)) own.push_back(&j);
  const auto driven = std::ranges::count_if(own, [](const SurveyedJoint* j) { return j->driven; });
  // The first joint of an arm has a motor; a half cheetah's has none, a cart-pole's is the only one.
  const bool arm = !own.empty() && own.front()->driven && driven >= 2 && 2 * driven >= std::ssize(own);
  return arm ? "reach" : "balance";
}

}  // namespace

NewTask new_task(const NewTaskSettings& settings) {
  if (!settings.like.empty() && std::ranges::find(kinds(), settings.like) == kinds().end()) {
    const std::string near = config::nearest(settings.like, kinds());
    throw Error(format("--like {}: there are {}{}", settings.like, join(kinds(), ", "),
                       near.empty() ? "" : format(", is {} meant?", near)));
  }
  const bool arm = settings.like == "reach" || settings.like == "lift";
  RobotSurvey robot = survey_robot(settings.robot, arm);
  const std::string like = settings.like.empty() ? guess(robot) : settings.like;
  const std::string name = settings.robot.string();
  COHORT_THROW_UNLESS(
      like != "velocity" || robot.free_base,
      "{}: a task like velocity needs a base that moves freely, and this one's is fixed to the world{}", name,
      robot.urdf ? ": it stands on no two feet" : ": give the file a <freejoint/>, or take --like balance");
  COHORT_THROW_UNLESS(
      like != "velocity" || robot.feet.size() >= 2,
      "{}: a task like velocity needs feet, and {} touches the ground where it stands: give the file a keyframe "
      "`home` in which it stands, or take --like balance",
      name, robot.feet.empty() ? "no link at the end of a leg" : "only " + robot.feet.front());
  COHORT_THROW_UNLESS(
      !arm || !robot.free_base,
      "{}: a task like {} needs a base that is fixed, and this one's has a free joint: take --like velocity or balance",
      name, like);
  COHORT_THROW_UNLESS(!arm || !robot.hand.empty(), "{}: no link hangs on a joint", name);
  return Writer(settings, std::move(robot), like, settings.like.empty()).write();
}

NewTask write_new_task(const NewTaskSettings& settings) {
  COHORT_THROW_UNLESS(is_task_file(settings.file.string()) && settings.file.extension() != ".json",
                      "{}: a task's file that is written anew ends in .yaml", settings.file.string());
  COHORT_THROW_UNLESS(!fs::exists(settings.file), "{} is there already, and stays as it is: choose another name",
                      settings.file.string());
  NewTask task = new_task(settings);
  write_file_atomically(settings.file, task.text);
  try {
    task_of_file(settings.file.string());
  } catch (const Error&) {
    fs::remove(settings.file);
    throw;
  }
  return task;
}

}  // namespace cohort::tasks
