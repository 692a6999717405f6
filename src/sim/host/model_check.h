/// Whether a model may be run: one that was read from a file may hold anything.
#pragma once
#include "sim/host/model.h"

namespace cohort::sim {

/// Throws Error naming the record whose index or size does not fit the arrays of the model.
void check_model(const Model& model);

}  // namespace cohort::sim
