/// Random MJCF models: small trees of every kind of joint, geom, constraint, actuator and sensor, as a function of a
/// seed, the same text on every machine.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "xml_tree.h"

namespace cohort::sim::test {

/// What a model may have beside bodies, joints and geoms.
struct Choice {
  bool contacts = true;    ///< geoms touch; explicit pairs and exclusions
  bool searched = true;    ///< shapes without a closed form: ellipsoids, cylinders, meshes, height fields
  bool equalities = true;  ///< connect, weld, joint, tendon
  bool tendons = true;
  bool actuators = true;
  bool sensors = true;
  bool flags = true;  ///< flags of the whole model
  bool fluid = true;  ///< density, viscosity, wind
};

/// The member of this name; throws Error for another one, naming those there are.
bool& member(Choice& choice, std::string_view name);

/// The root element `mujoco`. Most models are valid; a few have no dof or are refused by MuJoCo.
Element random_model(std::uint64_t seed, const Choice& choice = {});

}  // namespace cohort::sim::test
