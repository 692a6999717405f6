/// The contacts of an environment as a list, for those who ask: one environment at a time, one float per value.
#pragma once
#include "sim/kernels/sense/contact_sensors.h"
#include "sim/kernels/sense/listed_contact.h"
#include "sim/kernels/step.h"

namespace cohort::sim {

/// Computes environment `env` (m.keep_contacts is set) and writes its first `most` contacts; returns how many there
/// are. The state stays.
template <class L>
COHORT_KERNEL int list_contacts(const ModelView& m, const DataView& d, int env, BlockSpace<L>& b, ListedContact* out,
                                int most) {
  static_assert(L::kWidth == 1);
  using V = typename L::V;
  load_block<L>(m, d, {env, nullptr}, b);
  evaluate<L>(m, b);
  int count = 0;
  for (int k = 0; k < b.c.count; ++k) {
    const Group& g = b.c.group[k];
    if (g.pair < 0) continue;
    const auto piece = b.c.pool + g.at;
    const auto kept = piece + layout_of(g).size;
    const PairRecord& pair = m.pair[g.pair];
    if (count < most) {
      ListedContact& to = out[count];
      to.geom1 = m.geom[pair.geom1].id, to.geom2 = m.geom[pair.geom2].id;
      V force[3], torque[3], from[3];
      contact_force<L>(g, piece, force, torque);
      reference_point<L>(m, b.w, m.geom[pair.geom2].body, from);
      to.dist = kept[KeptContact::kDist];
      for (int i = 0; i < 3; ++i) {
        to.pos[i] = kept[KeptContact::kPos + i] + from[i];
        to.normal[i] = kept[KeptContact::kFrame + i];
        to.force[i] = force[i];
      }
    }
    ++count;
  }
  return count;
}

}  // namespace cohort::sim
