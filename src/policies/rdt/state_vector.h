/// The vector of 128 numbers in which RDT writes the states and actions of every robot, and which of its slots a data
/// field belongs to. The table is configs/state_vec.py of thu-ml/RoboticsDiffusionTransformer; a robot with one arm is
/// a right arm.
///
///   slots_of("observation/eef_pos", 3, {})                            -> {30, 31, 32}
///   slots_of("action", 5, {"action: eef_vel_x, eef_vel_y, eef_vel_z, eef_angular_vel_yaw, gripper_open"})
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace cohort::models {

inline constexpr int kStateSlots = 128;

/// The slot of a name of the table, e.g. "right_eef_pos_x" or "eef_pos_x".
std::optional<int> slot_named(const std::string& name);
/// The name of a slot; of several, the right arm's; "" for a reserved one.
std::string slot_name(int slot);

/// The slots of a component's numbers. `assigned`: lines "COMPONENT: SLOT, SLOT, ...", where a slot is a name, a
/// number, or a range "30-32"; a component without a line is known by the last part of its field's name (eef_pos,
/// robot0_joint_pos, gripper_opening, ...). Throws Error naming a component that maps nowhere and how to map it, an
/// unknown slot with the nearest name, and a line of another length.
std::vector<int> slots_of(const std::string& component, int width, const std::vector<std::string>& assigned);

/// Throws Error naming two numbers that share a slot, and a line of `assigned` that belongs to none of the components.
void check_slots(const std::vector<std::string>& components, const std::vector<std::vector<int>>& slots,
                 const std::string& what);
void check_assigned(const std::vector<std::string>& components, const std::vector<std::string>& assigned);

}  // namespace cohort::models
