/// The contacts of one environment of the batched engine, whatever its lanes: computed anew, one float at a time.
#pragma once
#include <vector>

#include "sim/engine.h"
#include "sim/host/model.h"
#include "sim/kernels/lane/data_view.h"

namespace cohort::sim {

/// view: of the model, with what varies; data: memory of the host.
std::vector<Contact> list_contacts(const Model& model, ModelView view, DataView data, int env);

}  // namespace cohort::sim
