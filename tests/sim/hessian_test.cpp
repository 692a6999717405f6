// Newton's second derivatives against sums over dense rows, at the start and after steps of the line search.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "constraint_rows.h"

namespace cohort::sim {
namespace {

/// Sums of some tens of terms in single precision, relative to the diagonal.
constexpr double kHessianTolerance = 2e-5;

/// M + J' D J with the weights of the rows that count where the solver starts; J by multiplication with unit vectors.
std::vector<double> dense_hessian(const ModelView& m, BlockSpace<ScalarLane>& b) {
  const auto at = [&](int i, int j) { return static_cast<std::size_t>(i * m.nv + j); };
  std::vector<double> sum(static_cast<std::size_t>(m.nv * m.nv));
  for (int i = 0; i < m.nv; ++i) {
    for (int k = m.pattern_start[i]; k < m.pattern_start[i + 1]; ++k) {
      sum[at(i, m.pattern[k])] = b.w.mass[triangle(i, m.pattern[k])];
    }
  }
  const std::vector<test::Row> rows = test::our_rows(m, b.c);
  std::size_t row = 0;
  for (int k = 0; k < b.c.count; ++k) {
    const Group& g = b.c.group[k];
    for (int e = 0; e < g.edges; ++e) {
      if (b.c.pool[g.at + g.layout.weight + (weights_of(g.kind, g.dim) > 1 ? e : 0)] == 0) continue;
      const test::Row& r = rows[row++];
      if (g.kind != kGroupEquality && b.c.pool[g.at + g.layout.jar + e] >= 0) continue;
      for (int i = 0; i < m.nv; ++i) {
        for (int j = 0; j <= i; ++j) {
          sum[at(i, j)] += r.weight * r.jacobian[static_cast<std::size_t>(i)] * r.jacobian[static_cast<std::size_t>(j)];
        }
      }
    }
  }
  return sum;
}

/// Every entry below the diagonal, zero where the pattern has none.
void expect_hessian(const ModelView& m, const SolverSpace<ScalarLane>& s, Pattern<ScalarLane> p,
                    const std::vector<double>& dense) {
  const auto entry = [&](int i, int j) { return dense[static_cast<std::size_t>(i * m.nv + j)]; };
  for (int i = 0; i < m.nv; ++i) {
    int k = p.start[i];
    for (int j = 0; j <= i; ++j) {
      const bool present = p.cols[k] == j;
      const double bound = kHessianTolerance * std::sqrt(entry(i, i) * entry(j, j));
      ASSERT_NEAR(present ? s.hessian[triangle(i, j)] : 0.0, entry(i, j), bound) << "row " << i << ", column " << j;
      if (present && j < i) ++k;
    }
    ASSERT_EQ(k, p.start[i + 1] - 1);
  }
}

/// The solver's start in random states of a model whose rows are one-sided or equalities.
void compare(const std::vector<std::uint8_t>& mjb) {
  test::Pair pair(mjb, 0);
  const ModelView& m = pair.view;
  test::Block block(m);
  BlockSpace<ScalarLane>& b = block.space;
  int across = 0, changed = 0;
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    SCOPED_TRACE("sample " + std::to_string(sample));
    pair.randomize(sample, 0.1, 0.5);
    mj_forward(pair.mj.get(), pair.data.get());
    block.load(m, *pair.data);
    test::smooth_dynamics(m, b.w);
    test::make_rows(m, b);
    start_solver<ScalarLane>(m, b.w, b.c, b.s);
    std::vector<double> dense = dense_hessian(m, b);
    const Pattern<ScalarLane> p = hessian_pattern<ScalarLane>(m, b.c, b.s, 1);
    across += p.cols != m.pattern;
    assemble_hessian<ScalarLane>(m, b.w, b.c, b.s, p, true, true);
    expect_hessian(m, b.s, p, dense);
    // Away from the start and back: rows begin and cease to count.
    for (float step : {10.0f, 100.0f, -110.0f}) {
      // What follows in place leaves the constant part alone.
      factor_hessian<ScalarLane>(m.nv, p, b.s.hessian, b.w.factor);
      for (int d = 0; d < m.nv; ++d) b.s.search[d] = (d % 3 == 1 ? -1.0f : 1.0f) * (1.0f + std::abs(b.w.acc_smooth[d]));
      const SearchLine<ScalarLane> line = begin_line<ScalarLane>(m, b.c, b.s.search, 1, 0.0f, 0.0f);
      move_along<ScalarLane>(b.c, line, true, step);
      assemble_hessian<ScalarLane>(m, b.w, b.c, b.s, p, true, false);
      const std::vector<double> before = dense;
      dense = dense_hessian(m, b);
      changed += dense != before;
      expect_hessian(m, b.s, p, dense);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(across, 0);
  EXPECT_GT(changed, 40);
}

TEST(Hessian, IsTheSumOfInertiaEqualitiesAndContacts) {
  compare(test::compile_file(COHORT_SOURCE_DIR "/tests/sim/models/mixed.xml"));
}

TEST(Hessian, OfContactsAcrossTreesWithoutEqualitiesIsTheSumToo) {
  compare(
      test::compile_xml("<mujoco><worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 0.1'><freejoint/><geom "
                        "type='box' size='.2 .2 .1'/></body><body pos='0 0 0.29'><freejoint/><geom type='box' "
                        "size='.2 .2 .1'/><body pos='.2 0 .1'><joint axis='0 1 0'/><geom size='0.05'/></body></body>"
                        "</worldbody></mujoco>"));
}

}  // namespace
}  // namespace cohort::sim
