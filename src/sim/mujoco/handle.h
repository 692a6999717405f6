/// Ownership of MuJoCo's objects, and their description as plain data. Included by the files of mujoco/ only.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include <mujoco/mujoco.h>

#include "sim/model_info.h"

namespace cohort::sim::mj {

struct ModelDeleter {
  void operator()(mjModel* m) const { mj_deleteModel(m); }
};
struct DataDeleter {
  void operator()(mjData* d) const { mj_deleteData(d); }
};
using ModelPtr = std::unique_ptr<mjModel, ModelDeleter>;
using DataPtr = std::unique_ptr<mjData, DataDeleter>;

/// Registers MuJoCo's own plugins, which lie in the folder `plugin` beside its library; does nothing where there is
/// none.
void load_plugins();

/// Reads a binary model; throws Error.
ModelPtr load(std::span<const std::uint8_t> mjb);

/// Names, addresses and defaults.
ModelInfo describe(const mjModel& m);
/// Name of a sensor's type in the XML.
const char* sensor_type(int type);

}  // namespace cohort::sim::mj
