/// Ownership of MuJoCo's objects, and their description as plain data.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "sim/model_info.h"
#include "sim/mujoco/library.h"

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
/// Name of a sensor's type in the XML.
const char* sensor_type(int type);

}  // namespace cohort::sim::mj
