#include "sim/model_info.h"

#include "core/config.h"
#include "core/error.h"

namespace cohort::sim {

namespace {

template <class T>
int find_named(const std::vector<T>& items, const std::string& wanted, const char* what) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].name == wanted) return static_cast<int>(i);
    if (!items[i].name.empty()) names.push_back(items[i].name);
  }
  const std::string near = config::nearest(wanted, names);
  throw Error(
      format("the model has no {} named `{}`{}", what, wanted,
             near.empty() ? format(" (it has {} named ones)", names.size()) : format("; is `{}` meant?", near)));
}

}  // namespace

int ModelInfo::link(const std::string& wanted) const {
  return find_named(links, wanted, "link");
}
int ModelInfo::joint(const std::string& wanted) const {
  return find_named(joints, wanted, "joint");
}
int ModelInfo::actuator(const std::string& wanted) const {
  return find_named(actuators, wanted, "actuator");
}
int ModelInfo::sensor(const std::string& wanted) const {
  return find_named(sensors, wanted, "sensor");
}
int ModelInfo::geom(const std::string& wanted) const {
  return find_named(geoms, wanted, "geom");
}
int ModelInfo::keyframe(const std::string& wanted) const {
  return find_named(keyframes, wanted, "keyframe");
}

std::vector<int> ModelInfo::joint_of_dof() const {
  std::vector<int> owner(static_cast<std::size_t>(nv), -1);
  for (std::size_t j = 0; j < joints.size(); ++j) {
    for (int k = 0; k < kJointDofs[static_cast<int>(joints[j].type)]; ++k) {
      owner[static_cast<std::size_t>(joints[j].dof + k)] = static_cast<int>(j);
    }
  }
  return owner;
}

}  // namespace cohort::sim
