/// A compiled model beside what fixtures/make_edits_fixture.py wrote of mjlab's.
#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/host/import/handle.h"
#include "sim/host/scene.h"

namespace cohort::sim {

/// Joints, geoms and coordinates in the same order; actuators by their names: mjlab has them in the order of its
/// settings.
inline void expect_mjlabs_model(const Scene& scene, const std::string& keyframe, const nlohmann::json& expected) {
  const mj::ModelPtr model = mj::load(scene.binary_model());
  const mjModel& m = *model;
  const ModelInfo& info = scene.info();
  const auto near = [](const auto* ours, const nlohmann::json& theirs, const std::string& what) {
    for (std::size_t i = 0; i < theirs.size(); ++i)
      EXPECT_NEAR(static_cast<double>(ours[i]), theirs[i].get<double>(), 1e-12) << what << " " << i;
  };
  const KeyframeInfo& key = info.keyframes.at(static_cast<std::size_t>(info.keyframe(keyframe)));
  ASSERT_EQ(info.nq, static_cast<int>(expected.at("qpos").size()));
  near(key.qpos.data(), expected.at("qpos"), "qpos");

  ASSERT_EQ(info.joints.size(), expected.at("joints").size());
  for (std::size_t i = 0; i < info.joints.size(); ++i) {
    const nlohmann::json& theirs = expected.at("joints")[i];
    const int dof = info.joints[i].dof;
    EXPECT_EQ(info.joints[i].name, theirs.at("name"));
    near(m.jnt_range + 2 * i, theirs.at("range"), info.joints[i].name + " range");
    EXPECT_NEAR(m.dof_armature[dof], theirs.at("armature").get<double>(), 1e-12) << info.joints[i].name;
    EXPECT_NEAR(m.dof_damping[dof], theirs.at("damping").get<double>(), 1e-12) << info.joints[i].name;
    EXPECT_NEAR(m.dof_frictionloss[dof], theirs.at("friction_loss").get<double>(), 1e-12) << info.joints[i].name;
  }

  ASSERT_EQ(info.geoms.size(), expected.at("geoms").size());
  for (std::size_t i = 0; i < info.geoms.size(); ++i) {
    const nlohmann::json& theirs = expected.at("geoms")[i];
    const std::string& name = info.geoms[i].name;
    EXPECT_EQ(name, theirs.at("name"));
    const int contact[] = {m.geom_contype[i], m.geom_conaffinity[i], m.geom_condim[i], m.geom_priority[i]};
    near(contact, theirs.at("contact"), name + " contact");
    near(m.geom_friction + 3 * i, theirs.at("friction"), name + " friction");
    near(m.geom_solref + mjNREF * i, theirs.at("solref"), name + " solref");
    near(m.geom_solimp + mjNIMP * i, theirs.at("solimp"), name + " solimp");
    EXPECT_NEAR(m.geom_margin[i], theirs.at("margin").get<double>(), 1e-12) << name;
  }

  ASSERT_EQ(info.actuators.size(), expected.at("actuators").size());
  int previous = -1;
  for (std::size_t i = 0; i < info.actuators.size(); ++i) {
    const std::string& name = info.actuators[i].name;
    const int joint = m.actuator_trnid[2 * i];
    EXPECT_LT(previous, joint) << name;  // in the order of the joints
    previous = joint;
    std::size_t at = 0;
    while (at < expected.at("actuators").size() && expected.at("actuators")[at].at("name") != name) ++at;
    ASSERT_LT(at, expected.at("actuators").size()) << name;
    const nlohmann::json& theirs = expected.at("actuators")[at];
    EXPECT_EQ(info.joints[static_cast<std::size_t>(joint)].name, theirs.at("joint"));
    near(m.actuator_gainprm + mjNGAIN * i, theirs.at("gain"), name + " gain");
    near(m.actuator_biasprm + mjNBIAS * i, theirs.at("bias"), name + " bias");
    near(m.actuator_gear + 6 * i, theirs.at("gear"), name + " gear");
    EXPECT_EQ(m.actuator_forcelimited[i], theirs.at("force_limited").get<int>()) << name;
    near(m.actuator_forcerange + 2 * i, theirs.at("force_range"), name + " force range");
    EXPECT_EQ(m.actuator_ctrllimited[i], theirs.at("ctrl_limited").get<int>()) << name;
    near(m.actuator_ctrlrange + 2 * i, theirs.at("ctrl_range"), name + " ctrl range");
    // mjlab puts the joint's position there for every kind of actuator, which is a motor's force and a servo's speed.
    const bool position = theirs.at("bias")[1].get<double>() != 0;
    EXPECT_NEAR(key.ctrl.at(i), position ? expected.at("ctrl")[at].get<double>() : 0, 1e-12) << name;
  }
}

}  // namespace cohort::sim
