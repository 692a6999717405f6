/// Arms of actuators that pull at a body's contacts (MuJoCo's documentation, "adhesion").
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/constraint/groups.h"

namespace cohort::sim {

/// The mean of the Jacobians of all contacts of the actuator's link, along their normals and towards each other; 0
/// where there is none. Contacts within the gap count.
/// Reads the groups; writes w.arm of such actuators' wraps.
template <class L>
COHORT_KERNEL void adhesion_arms(const ModelView& m, Workspace<L>& w, Constraints<L>& c) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f);
  for (int i = 0; i < m.nact; ++i) {
    const ActuatorRecord& a = m.actuator[i];
    if (a.transmission != kTransmissionContacts) continue;
    for (int d = 0; d < m.nv; ++d) w.arm[a.first_wrap + d] = zero;
    V count = zero;
    for (int k = 0; k < c.count; ++k) {
      const Group& g = c.group[k];
      if (g.pair < 0) continue;
      const PairRecord& pair = m.pair[g.pair];
      if (m.geom[pair.geom1].link != a.target && m.geom[pair.geom2].link != a.target) continue;
      const auto piece = c.pool + g.at;
      const V share = select(piece[layout_of(g).size + KeptContact::kDist] < V(kFarApart), one, zero);
      count += share;
      for (int j = 0; j < g.dofs; ++j) {
        const int at = a.first_wrap + m.row_dof[g.first_dof + j];
        w.arm[at] = fma(-share, piece[j], w.arm[at]);
      }
    }
    const V part = one / max(count, one);
    for (int d = 0; d < m.nv; ++d) w.arm[a.first_wrap + d] *= part;
  }
}

}  // namespace cohort::sim
