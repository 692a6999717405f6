#include "constraint_rows.h"

#include <algorithm>
#include <cmath>

namespace cohort::sim::test {

std::vector<Row> our_rows(const ModelView& m, Constraints<ScalarLane>& c) {
  std::vector<Row> rows;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    const float* piece = c.pool + g.at;
    const GroupLayout l = layout_of(g);
    for (int e = 0; e < g.edges; ++e) {
      Row row{std::vector<double>(static_cast<std::size_t>(m.nv)), piece[l.aref + e],
              piece[l.weight + (weights_of(g.kind, g.dim) > 1 ? e : 0)]};
      if (row.weight == 0) continue;
      for (int d = 0; d < m.nv; ++d) {
        std::vector<float> unit(static_cast<std::size_t>(m.nv), 0);
        unit[static_cast<std::size_t>(d)] = 1;
        float edges[kMaxEdges];
        edges_of<ScalarLane>(m, g, c.pool + g.at, unit.data(), edges);
        row.jacobian[static_cast<std::size_t>(d)] = edges[e];
      }
      rows.push_back(row);
    }
  }
  return rows;
}

Row mujoco_row(const mjModel* m, const mjData* d, int i) {
  return {take(d->efc_J + i * m->nv, m->nv), d->efc_aref[i], d->efc_D[i]};
}

double row_difference(const Row& ours, const Row& theirs) {
  double scale = 1;
  for (double x : theirs.jacobian) scale = std::max(scale, std::abs(x));
  double most = std::abs(ours.aref - theirs.aref) / (100 + std::abs(theirs.aref));
  for (std::size_t d = 0; d < theirs.jacobian.size(); ++d) {
    most = std::max(most, std::abs(ours.jacobian[d] - theirs.jacobian[d]) / scale);
  }
  return most;
}

double cost_of(const mjModel* m, mjData* d, const std::vector<double>& qacc) {
  const int nv = static_cast<int>(m->nv), nefc = d->nefc;
  std::vector<double> jar(static_cast<std::size_t>(nefc) + 1), Ma(static_cast<std::size_t>(nv));
  double cost = 0;
  if (nefc > 0) {
    mj_mulJacVec(m, d, jar.data(), qacc.data());
    for (int i = 0; i < nefc; ++i) jar[static_cast<std::size_t>(i)] -= d->efc_aref[i];
    mj_constraintUpdate(m, d, jar.data(), &cost, 0);
  }
  mj_mulM(m, d, Ma.data(), qacc.data());
  for (int i = 0; i < nv; ++i) {
    const std::size_t k = static_cast<std::size_t>(i);
    cost += 0.5 * (Ma[k] - d->qfrc_smooth[i]) * (qacc[k] - d->qacc_smooth[i]);
  }
  return cost;
}

}  // namespace cohort::sim::test
