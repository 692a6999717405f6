#include <algorithm>

#include "tasks/scene_task.h"
#include "tasks/task_contract.h"

namespace cohort::tasks {

TaskContract SceneTask::contract() {
  const sim::ModelInfo& info = scene_.info();
  TaskContract contract;
  contract.clips_actions = setup_.clip_actions;
  const std::vector<int> joints = info.joint_of_dof();
  const std::vector<float> bias = scene_.engine().model_values(sim::Parameter::kActuatorBias);
  const std::size_t each = info.actuators.empty() ? 0 : bias.size() / info.actuators.size();
  const std::vector<double>& pose =
      keyframe_ < 0 ? info.qpos0 : info.keyframes[static_cast<std::size_t>(keyframe_)].qpos;
  bool servos = false;
  for (std::size_t i = 0; i < info.actuators.size(); ++i) {
    const sim::ActuatorInfo& actuator = info.actuators[i];
    if (actuator.dof < 0) continue;
    const sim::JointInfo& joint = info.joints[static_cast<std::size_t>(joints[static_cast<std::size_t>(actuator.dof)])];
    const auto known = std::find(contract.joint_names.begin(), contract.joint_names.end(), joint.name);
    const auto place = static_cast<std::size_t>(known - contract.joint_names.begin());
    if (known == contract.joint_names.end()) {
      contract.joint_names.push_back(joint.name);
      contract.joint_stiffness.push_back(0);
      contract.joint_damping.push_back(0);
      contract.default_joint_pos.push_back(pose[static_cast<std::size_t>(joint.qpos)]);
    }
    // MuJoCo's affine bias: force = ... + biasprm[1] length + biasprm[2] velocity, both of the joint times the gear.
    if (actuator.kind == sim::ActuatorInfo::Kind::kPosition || actuator.kind == sim::ActuatorInfo::Kind::kVelocity) {
      const double gear = actuator.gear * actuator.gear;
      contract.joint_stiffness[place] -= gear * static_cast<double>(bias[each * i + 1]);
      contract.joint_damping[place] -= gear * static_cast<double>(bias[each * i + 2]);
      servos = true;
    }
  }
  // Motors have no gains, and their actions count from no pose.
  if (!servos) contract.joint_stiffness = contract.joint_damping = contract.default_joint_pos = {};
  return contract;
}

}  // namespace cohort::tasks
