#include "tasks/file/term_table.h"

#include <cstring>

namespace cohort::tasks {

namespace {

using P = TermParameterEntry;

const P kJoints{P::kNames, "joints", "\".*\"", "patterns of joints"};
const P kCommand{P::kNames, "command_name", "\"twist\"", "the command of velocity"};
const P kFeet{P::kNames, "feet", "", "patterns of the feet's geoms, or of links"};
const P kSites{P::kNames, "sites", "", "patterns of the model's sites, one at each foot, in the feet's order"};
const P kSite{P::kNames, "site", "", "the site"};
const P kLink{P::kNames, "link", "", "the link"};
const P kPoseCommand{P::kNames, "command_name", "", "the command of a pose"};
const P kStd{P::kValue, "std", "", "width of the bell curve, in the error's unit"};
const P kWalks{P::kValue, "command_threshold", "0.05", "m/s + rad/s of the command below which nothing counts"};

/// Whether the command asks for more than a threshold, as mjlab counts it.
#define COHORT_MOVES "(norm(command(command_name)[:2]) + abs(command(command_name)[2]) > command_threshold)"

/// m from a link to the commanded position, in the world.
#define COHORT_TO_COMMAND \
  "(base.position + rotate(base.quaternion, command(command_name)[:3]) - flat(link_position(link)))"

/// m of each foot's site over the ground below it.
#define COHORT_FOOT_HEIGHT "(site_position(sites)[2] - ground_height(site_position(sites)))"

const std::vector<TermEntry>& entries() {
  static const std::vector<TermEntry> kAll{
      // ---- observations
      {"joint_pos", "o", "joint_pos(joints)", "rad, m", "positions of joints", {kJoints}},
      {"joint_vel", "o", "joint_vel(joints)", "rad/s, m/s", "velocities of joints", {kJoints}},
      {"joint_pos_rel", "o", "joint_pos_rel(joints)", "rad, m", "positions from where episodes begin", {kJoints}},
      {"joint_vel_rel", "o", "joint_vel(joints)", "rad/s, m/s", "velocities of joints", {kJoints}},
      {"joint_effort", "o", "joint_torque(joints)", "N m, N", "forces of the actuators on joints", {kJoints}},
      {"base_lin_vel", "o", "base.linear_velocity", "m/s", "of the base, in its frame"},
      {"base_ang_vel", "o", "base.angular_velocity", "rad/s", "of the base, in its frame"},
      {"base_pos_z", "o", "base.position[2]", "m", "height of the base in the world"},
      {"root_pos_w", "o", "base.position", "m", "position of the base in the world"},
      {"root_quat_w", "o", "base.quaternion", "1", "orientation of the base, w x y z"},
      {"root_lin_vel_w", "o", "base.linear_velocity_world", "m/s", "of the base, in the world"},
      {"root_ang_vel_w", "o", "base.angular_velocity_world", "rad/s", "of the base, in the world"},
      {"projected_gravity", "o", "base.projected_gravity", "1", "direction of gravity in the base's frame"},
      {"last_action", "o", "action", "1", "the policy's last action"},
      {"generated_commands",
       "o",
       "command(command_name)",
       "",
       "the command",
       {{P::kNames, "command_name", "", "which"}}},
      {"builtin_sensor",
       "o",
       "sensor(sensor_name)",
       "",
       "a sensor of the model",
       {{P::kNames, "sensor_name", "", "which"}}},
      {"height_scan",
       "o",
       "height_scan(size[0], size[1], resolution) - offset",
       "m",
       "height of the base over the ground at a grid of points, x fastest, turned with the base's heading",
       {{P::kValue, "size", "[1.6, 1.0]", "m, along x and y"},
        {P::kValue, "resolution", "0.1", "m between points"},
        {P::kValue, "offset", "0", "m"}}},
      {"foot_height", "o", COHORT_FOOT_HEIGHT, "m", "of sites over the ground below them", {kSites}},
      {"site_pos_w", "o", "flat(site_position(sites))", "m", "positions of sites in the world", {kSites}},
      {"site_quat_w", "o", "flat(site_quaternion(sites))", "1", "orientations of sites, w x y z", {kSites}},
      {"foot_contact", "o", "contact(feet) * 1", "1", "1 where a foot pushes against what is fixed", {kFeet}},
      {"foot_air_time", "o", "held(not contact(feet))", "s", "for which each foot has been in the air", {kFeet}},
      {"foot_contact_forces",
       "o",
       "flat(sign(contact_force(feet)) * log(1 + abs(contact_force(feet))))",
       "log N",
       "logarithm of the forces on the feet, with their signs",
       {kFeet}},
      // ---- rewards
      {"is_alive", "r", "1", "1", "1 in every step"},
      {"is_terminated", "r", "terminated", "1", "1 in a step that ends the episode, but not by time"},
      {"track_linear_velocity",
       "r",
       "exp(-(norm2(command(command_name)[:2] - base.linear_velocity[:2]) + square(base.linear_velocity[2])) / std^2)",
       "1",
       "forward and sideways as commanded, and not up or down (mjlab)",
       {kCommand, kStd}},
      {"track_angular_velocity",
       "r",
       "exp(-(square(command(command_name)[2] - base.angular_velocity[2]) + norm2(base.angular_velocity[:2])) / std^2)",
       "1",
       "turning as commanded, and not rolling (mjlab)",
       {kCommand, kStd}},
      {"track_lin_vel_xy_exp",
       "r",
       "exp(-norm2(command(command_name)[:2] - base.linear_velocity[:2]) / std^2)",
       "1",
       "forward and sideways as commanded (Isaac Lab)",
       {kCommand, kStd}},
      {"track_ang_vel_z_exp",
       "r",
       "exp(-square(command(command_name)[2] - base.angular_velocity[2]) / std^2)",
       "1",
       "turning as commanded (Isaac Lab)",
       {kCommand, kStd}},
      {"lin_vel_z_l2", "r", "square(base.linear_velocity[2])", "m^2/s^2", "speed up and down"},
      {"ang_vel_xy_l2", "r", "norm2(base.angular_velocity[:2])", "rad^2/s^2", "rolling and pitching"},
      {"body_angular_velocity_penalty", "r", "norm2(base.angular_velocity_world[:2])", "rad^2/s^2",
       "rolling and pitching of the base, in the world"},
      {"flat_orientation_l2", "r", "norm2(base.projected_gravity[:2])", "1", "tilt of the base"},
      {"upright", "r", "exp(-norm2(base.projected_gravity[:2]) / std^2)", "1", "base upright", {kStd}},
      {"base_height_l2",
       "r",
       "square(base.position[2] - target_height)",
       "m^2",
       "height of the base in the world",
       {{P::kValue, "target_height", "", "m"}}},
      {"joint_torques_l2", "r", "norm2(joint_torque(joints))", "N^2 m^2", "forces of the actuators", {kJoints}},
      {"joint_vel_l2", "r", "norm2(joint_vel(joints))", "rad^2/s^2", "speed of joints", {kJoints}},
      {"joint_vel_l1", "r", "norm1(joint_vel(joints))", "rad/s", "speed of joints", {kJoints}},
      {"joint_acc_l2",
       "r",
       "norm2(joint_acc(joints))",
       "rad^2/s^4",
       "acceleration of joints; differences of control steps, where mjlab takes the simulation's",
       {kJoints}},
      {"joint_pos_limits",
       "r",
       "sum(max(joint_lower(joints) - joint_pos(joints), 0) + max(joint_pos(joints) - joint_upper(joints), 0))",
       "rad, m",
       "how far joints are beyond their soft limits",
       {kJoints}},
      {"joint_deviation_l1", "r", "norm1(joint_pos_rel(joints))", "rad, m", "from where episodes begin", {kJoints}},
      {"action_rate_l2", "r", "norm2(action - previous(action))", "1", "change of the action"},
      {"action_acc_l2", "r", "norm2(action - 2 * previous(action) + previous(previous(action)))", "1",
       "change of the action's change"},
      {"action_l2", "r", "norm2(action)", "1", "size of the action"},
      {"electrical_power_cost",
       "r",
       "sum(max(joint_torque(joints) * joint_vel(joints), 0))",
       "W",
       "power that the actuators give; none for what they take back",
       {kJoints}},
      {"posture",
       "r",
       "exp(-mean(square(joint_pos_rel(joints) / std)))",
       "1",
       "near where episodes begin",
       {kJoints, {P::kJointValues, "std", "", "rad, by joint"}}},
      {"variable_posture",
       "r",
       "exp(-mean(square(joint_pos_rel(joints) / where(norm(command(command_name)[:2]) + abs(command(command_name)[2]) "
       "< "
       "walking_threshold, std_standing, where(norm(command(command_name)[:2]) + abs(command(command_name)[2]) < "
       "running_threshold, std_walking, std_running)))))",
       "1",
       "near where episodes begin, the nearer the slower it is told to go",
       {kJoints,
        kCommand,
        {P::kJointValues, "std_standing", "", "rad, by joint"},
        {P::kJointValues, "std_walking", "", "rad, by joint"},
        {P::kJointValues, "std_running", "", "rad, by joint"},
        {P::kValue, "walking_threshold", "0.5", "m/s + rad/s"},
        {P::kValue, "running_threshold", "1.5", "m/s + rad/s"}}},
      {"stand_still",
       "r",
       "norm1(joint_pos_rel(joints)) * where(" COHORT_MOVES ", 0, 1)",
       "rad",
       "from where episodes begin, when told to stand",
       {kJoints, kCommand, kWalks}},
      {"feet_air_time",
       "r",
       "where(" COHORT_MOVES ", sum(where(held(not contact(feet)) > threshold_min and held(not contact(feet)) < "
       "threshold_max, 1, 0)), 0)",
       "1",
       "feet that have been in the air for a time within bounds (mjlab)",
       {kFeet,
        kCommand,
        {P::kValue, "command_threshold", "0.5", "m/s + rad/s of the command below which nothing counts"},
        {P::kValue, "threshold_min", "0.05", "s"},
        {P::kValue, "threshold_max", "0.5", "s"}}},
      {"feet_air_time_positive",
       "r",
       "where(" COHORT_MOVES
       ", sum(where(rising(contact(feet)), previous(held(not contact(feet))) - threshold, 0)), 0)",
       "s",
       "how much longer than a threshold a foot was in the air, when it lands (Isaac Lab's feet_air_time)",
       {kFeet, kCommand, {P::kValue, "command_threshold", "0.1", "m/s + rad/s"}, {P::kValue, "threshold", "0.5", "s"}}},
      {"soft_landing",
       "r",
       "where(" COHORT_MOVES ", sum(where(rising(contact(feet)), norm(contact_force(feet)), 0)), 0)",
       "N",
       "force on feet in the step in which they land (mjlab)",
       {kFeet, kCommand, kWalks}},
      {"feet_clearance",
       "r",
       "where(" COHORT_MOVES ", sum(abs(" COHORT_FOOT_HEIGHT " - target_height) * norm(site_velocity(sites)[:2])), 0)",
       "m^2/s",
       "how far feet that move are from a height over the ground (mjlab)",
       {kSites,
        {P::kValue, "target_height", "", "m"},
        kCommand,
        {P::kValue, "command_threshold", "0.01", "m/s + rad/s"}}},
      {"feet_swing_height",
       "r",
       "where(" COHORT_MOVES
       ", sum(where(rising(contact(feet)), square(peak(where(contact(feet), 0, " COHORT_FOOT_HEIGHT
       "), rising(contact(feet))) / target_height - 1), 0)), 0)",
       "1",
       "how far the highest point of a swing was from a height, when the foot lands (mjlab)",
       {kFeet,
        kSites,
        {P::kValue, "target_height", "", "m"},
        kCommand,
        {P::kValue, "command_threshold", "0.05", "m/s + rad/s"}}},
      {"feet_slip",
       "r",
       "where(" COHORT_MOVES ", sum(where(contact(feet), norm2(site_velocity(sites)[:2]), 0)), 0)",
       "m^2/s^2",
       "speed along the ground of feet that touch it (mjlab)",
       {kFeet, kSites, kCommand, {P::kValue, "command_threshold", "0.01", "m/s + rad/s"}}},
      {"undesired_contacts",
       "r",
       "sum(where(norm(contact_force(bodies)) > threshold, 1, 0))",
       "1",
       "geoms or links that push against what is fixed",
       {{P::kNames, "bodies", "", "patterns of geoms, or of links"}, {P::kValue, "threshold", "1", "N"}}},
      {"self_collision_cost",
       "r",
       "sum(where(norm(other_contact_force(bodies)) > force_threshold, 1, 0))",
       "1",
       "geoms or links that push against what moves; mjlab counts contacts",
       {{P::kNames, "bodies", "\".*\"", "patterns of geoms, or of links"}, {P::kValue, "force_threshold", "10", "N"}}},
      {"track_position",
       "r",
       "exp(-norm2(link_position(link)[:3] - command(command_name)[:3]) / std^2)",
       "1",
       "a link at the commanded position in the world",
       {{P::kNames, "link", "", "the link"}, {P::kNames, "command_name", "", "the command of a position"}, kStd}},
      {"track_site_position",
       "r",
       "exp(-norm2(flat(site_position(site)) - command(command_name)[:3]) / std^2)",
       "1",
       "a site at the commanded position in the world",
       {kSite, {P::kNames, "command_name", "", "the command of a position"}, kStd}},
      {"track_site_orientation",
       "r",
       "exp(-square(quat_error(flat(site_quaternion(site)), command(command_name)[3:7])) / std^2)",
       "1",
       "a site in the commanded orientation; std in rad",
       {kSite, {P::kNames, "command_name", "", "the command of a pose"}, kStd}},
      {"position_command_error",
       "r",
       "norm(" COHORT_TO_COMMAND ")",
       "m",
       "from a link to the commanded position in the base's frame",
       {kLink, kPoseCommand}},
      {"position_command_error_tanh",
       "r",
       "1 - tanh(norm(" COHORT_TO_COMMAND ") / std)",
       "1",
       "the same, 1 where the link is there; std in m",
       {kLink, kPoseCommand, {P::kValue, "std", "", "m"}}},
      {"orientation_command_error",
       "r",
       "quat_error(flat(link_quaternion(link)), quat_multiply(base.quaternion, command(command_name)[3:7]))",
       "rad",
       "from a link's orientation to the commanded one in the base's frame",
       {kLink, kPoseCommand}},
      // ---- terminations
      {"bad_orientation",
       "t",
       "acos(-base.projected_gravity[2]) > limit_angle",
       "",
       "the base is tilted by more than an angle",
       {{P::kValue, "limit_angle", "", "rad"}}},
      {"root_height_below_minimum",
       "t",
       "base.position[2] < minimum_height",
       "",
       "the base is low",
       {{P::kValue, "minimum_height", "", "m"}}},
      {"joint_pos_out_of_limit",
       "t",
       "any(joint_pos(joints) < joint_lower(joints) or joint_pos(joints) > joint_upper(joints))",
       "",
       "a joint is beyond its soft limits",
       {kJoints}},
      {"joint_vel_out_of_limit",
       "t",
       "any(abs(joint_vel(joints)) > max_velocity)",
       "",
       "a joint is fast",
       {kJoints, {P::kValue, "max_velocity", "", "rad/s"}}},
      {"illegal_contact",
       "t",
       "any(norm(contact_force(bodies)) > threshold)",
       "",
       "a geom or link pushes against what is fixed",
       {{P::kNames, "bodies", "", "patterns of geoms, or of links"}, {P::kValue, "threshold", "1", "N"}}},
      {"time_out", "t", "last_step", "", "the episode's time is over: every task has it, as an end that counts on"},
  };
  return kAll;
}

}  // namespace

std::span<const TermEntry> term_entries() {
  return entries();
}

const TermEntry* find_term(const std::string& name, char kind) {
  for (const TermEntry& entry : entries())
    if (name == entry.name && std::strchr(entry.kinds, kind) != nullptr) return &entry;
  return nullptr;
}

std::vector<std::string> term_names(char kind) {
  std::vector<std::string> names;
  for (const TermEntry& entry : entries())
    if (std::strchr(entry.kinds, kind) != nullptr) names.emplace_back(entry.name);
  return names;
}

}  // namespace cohort::tasks
