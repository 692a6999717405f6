#include "block.h"

#include <algorithm>
#include <limits>

namespace cohort::sim::test {

Block::Block(const ModelView& m) {
  const ConstraintCapacity most = constraint_capacity(m, 1);
  const IntegerSizes n = integer_sizes(m, most);
  values_.assign(static_cast<std::size_t>(lay_out<ScalarLane>(m, most, nullptr, space)),
                 std::numeric_limits<float>::infinity());
  lay_out<ScalarLane>(m, most, values_.data(), space);
  groups_.resize(static_cast<std::size_t>(n.groups) + 1);
  cols_.resize(static_cast<std::size_t>(n.cols) + 1);
  start_.resize(static_cast<std::size_t>(n.start));
  bits_.resize(static_cast<std::size_t>(n.bits) + 1);
  space.c.group = groups_.data();
  space.s.cols = cols_.data();
  space.s.start = start_.data();
  space.s.bits = bits_.data();
}

void Block::load(const ModelView& m, const mjData& d) {
  std::fill(values_.begin(), values_.end(), std::numeric_limits<float>::infinity());
  const auto copy = [](float* to, const double* from, int n) {
    for (int i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
  };
  copy(space.w.q, d.qpos, m.nq);
  copy(space.w.v, d.qvel, m.nv);
  copy(space.w.act, d.act, m.na);
  copy(space.w.ctrl, d.ctrl, m.nu);
  copy(space.w.applied, d.qfrc_applied, m.nv);
  copy(space.w.link_force, d.xfrc_applied, 6 * m.nlink);
  copy(space.w.mocap_pos, d.mocap_pos, 3 * m.nmocap);
  copy(space.w.mocap_quat, d.mocap_quat, 4 * m.nmocap);
  copy(space.w.warm, d.qacc_warmstart, m.nv);
}

void kinematics(const ModelView& m, Workspace<ScalarLane>& w) {
  sim::kinematics<ScalarLane>(m, w);
}
void velocities(const ModelView& m, Workspace<ScalarLane>& w) {
  sim::velocities<ScalarLane>(m, w);
}
void tendons(const ModelView& m, Workspace<ScalarLane>& w) {
  sim::tendons<ScalarLane>(m, w);
}
void smooth_dynamics(const ModelView& m, Workspace<ScalarLane>& w) {
  sim::smooth_dynamics<ScalarLane>(m, w);
}
void make_rows(const ModelView& m, BlockSpace<ScalarLane>& b) {
  sim::make_rows<ScalarLane>(m, b.w, b.c);
}
float solve_constraints(const ModelView& m, BlockSpace<ScalarLane>& b) {
  return sim::solve_constraints<ScalarLane>(m, b);
}
std::vector<float> second_derivatives(const ModelView& m, BlockSpace<ScalarLane>& b) {
  start_solver<ScalarLane>(m, b.w, b.c, b.s);
  const Pattern<ScalarLane> pattern = hessian_pattern<ScalarLane>(m, b.c, b.s, 1u);
  assemble_hessian<ScalarLane>(m, b.w, b.c, b.s, pattern, true, true);
  std::vector<float> dense(static_cast<std::size_t>(m.nv * m.nv), 0.0f);
  for (int i = 0; i < m.nv; ++i) {
    for (int k = pattern.start[i]; k < pattern.start[i + 1]; ++k) {
      const int j = pattern.cols[k];
      dense[static_cast<std::size_t>(i * m.nv + j)] = dense[static_cast<std::size_t>(j * m.nv + i)] =
          b.s.hessian[triangle(i, j)];
    }
  }
  return dense;
}
void evaluate(const ModelView& m, BlockSpace<ScalarLane>& b) {
  sim::evaluate<ScalarLane>(m, b);
}
void sensors(const ModelView& m, BlockSpace<ScalarLane>& b, float time) {
  sim::sensors<ScalarLane>(m, b.w, b.c, time);
}
void evaluate_and_step(const ModelView& m, BlockSpace<ScalarLane>& b) {
  step_states<ScalarLane>(m, DataView{}, BlockEnvs{0, nullptr}, b, 0.0f);
}

}  // namespace cohort::sim::test
