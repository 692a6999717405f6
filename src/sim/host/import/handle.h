/// Ownership of MuJoCo's objects, and their description as plain data.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "sim/host/import/library.h"
#include "sim/host/model_info.h"

namespace cohort::sim::mj {

struct ModelDeleter {
  void operator()(mjModel* m) const { mj_deleteModel(m); }
};
struct DataDeleter {
  void operator()(mjData* d) const { mj_deleteData(d); }
};
using ModelPtr = std::unique_ptr<mjModel, ModelDeleter>;
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

/// Reads a binary model; throws Error.
ModelPtr load(std::span<const std::uint8_t> mjb);

/// Names, addresses and defaults.
ModelInfo describe(const mjModel& m);

/// Of an actuator, in a state.
struct ServoHold {
  bool servo = false;    ///< its force follows its length: the others say nothing
  bool at_once = false;  ///< the control holds from the first step; false where an activation has to get there
  double control = 0;    ///< with which its force becomes zero at rest
};
/// length: of its transmission; activation: its last one, 0 without.
ServoHold servo_hold(const mjModel& m, int actuator, double length, double activation);
/// Of every actuator where the model stands so; changes d.
std::vector<ServoHold> servo_holds(const mjModel& m, mjData& d, std::span<const double> qpos,
                                   std::span<const double> act);
/// Name of a sensor's type in the XML.
const char* sensor_type(int type);

}  // namespace cohort::sim::mj
