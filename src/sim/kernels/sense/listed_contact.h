/// A contact as contact_list.h writes it: what those need who do not compile the kernels.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

/// In the world; the force is on the second geom.
struct ListedContact {
  int geom1, geom2;  ///< ids of GeomRecord
  float dist, pos[3], normal[3], force[3];
};

/// list_contacts (contact_list.h) of one environment, one float at a time. workspace: 64-byte aligned, of as many bytes
/// as scalar_block_runner() says. Defined beside that runner.
int list_scalar_contacts(const ModelView& m, const DataView& d, int env, void* workspace, ListedContact* out, int most);

}  // namespace cohort::sim
