// The constraint solver by a team of threads: whatever their number and order, the bits are the scalar lane's. The
// random models are in differential_test.cpp, whose comparison looks at teams as well.
#include "sim/kernels/lane/team.h"

#include <string>

#include <gtest/gtest.h>

#include "block.h"
#include "oracle.h"
#include "sim/models.h"
#include "team_comparison.h"

namespace cohort::sim::test {
namespace {

TEST(Team, EntriesOfATriangleHaveTheirPlaces) {
  int k = 0;
  for (int row = 0; row < 600; ++row) {
    for (int column = 0; column <= row; ++column, ++k) {
      const TrianglePlace at(k);
      ASSERT_EQ(at.row, row) << k;
      ASSERT_EQ(at.column, column) << k;
    }
  }
}

class SolvedByATeam : public ::testing::TestWithParam<const char*> {};

TEST_P(SolvedByATeam, HasTheScalarLanesBitsInAnyOrder) {
  // Newton's and conjugate gradients' directions, pyramids and elliptic cones.
  int solved = 0;
  for (const char* solver : {"Newton", "CG"}) {
    for (const char* cone : {"pyramidal", "elliptic"}) {
      SceneOptions options;
      options.solver = solver, options.cone = cone;
      Pair pair(compile_file(kModels + GetParam(), options));
      Block block(pair.view);
      for (std::uint64_t sample = 0; sample < 3; ++sample) {
        pair.randomize(sample, 0.1);
        for (int step = 0; step < 40; ++step) mj_step(pair.mj.get(), pair.data.get());
        block.load(pair.view, *pair.data);
        block.space.c.live = true;
        smooth_dynamics(pair.view, block.space.w);
        make_rows(pair.view, block.space);
        ASSERT_EQ(team_difference(pair.view, block.space, solved), "") << solver << ", " << cone << ", " << sample;
      }
    }
  }
  EXPECT_GT(solved, 0) << "no state had a constraint: the comparison says nothing";
}

// crowd.xml has more dofs than a team takes, arm_plain.xml no constraints.
INSTANTIATE_TEST_SUITE_P(Models, SolvedByATeam,
                         ::testing::Values("walker.xml", "pile.xml", "arm.xml", "tendons.xml", "mixed.xml",
                                           "terrain.xml", "rubble.xml", "hills.xml", "grip.xml", "troop.xml",
                                           "trio.xml", "biped.xml"));

}  // namespace
}  // namespace cohort::sim::test
