// The solver in the row space: its bits, trees that are solved one by one, for which models it is chosen.
#include <algorithm>
#include <cmath>
#include <tuple>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "sim/engine_plan.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/simulate.h"

namespace cohort::sim {
namespace {

/// 8 rows: environments of one block are solved in both ways.
TEST(RowSpace, HasTheSameBitsForEveryLaneWidthAndLessThanRoundingApart) {
  for (const char* file : {"walker.xml", "crowd.xml", "biped.xml", "troop.xml"}) {
    for (int row_space : {8, 64}) {
      SCOPED_TRACE(format("{}, {} rows", file, row_space));
      Job run{.file = file, .n = 20, .steps = 60, .lanes = LaneWidth::kScalar, .row_space = row_space};
      const std::vector<float> truth = simulate(run);
      for (float x : truth) ASSERT_TRUE(std::isfinite(x));
      for (LaneWidth width : widths()) {
        run.lanes = width;
        EXPECT_TRUE(same_bits(simulate(run), truth)) << to_string(width);
      }
      // A few steps: no chaos yet.
      run.steps = 10;
      const std::vector<float> here = simulate(run);
      run.row_space = 0;
      const std::vector<float> there = simulate(run);
      EXPECT_FALSE(same_bits(here, there)) << "the row space is not used";
      double apart = 0;
      for (std::size_t i = 0; i < here.size(); ++i) {
        apart = std::max(apart, std::abs(double{here[i]} - there[i]) / (1 + std::abs(double{there[i]})));
      }
      EXPECT_LT(apart, 1e-2);
    }
  }
}

/// Any of three robots touch each other, others in every lane.
TEST(RowSpace, CoupledRobotsHaveTheSameBitsForEveryLaneWidth) {
  Job run{.file = "trio.xml", .n = 64, .steps = 200, .lanes = LaneWidth::kScalar};
  const std::vector<float> truth = simulate(run);
  for (LaneWidth width : widths()) {
    run.lanes = width;
    EXPECT_TRUE(same_bits(simulate(run), truth)) << to_string(width);
  }
}

/// Two boxes of one kind are two problems of an environment. One rests, the other tumbles and wants more iterations
/// than there are: the forces on the first one are as if it were alone. Environments of both kinds lie beside each
/// other.
TEST(RowSpace, ATreeThatHasEndedKeepsItsForcesWhereAnotherLacksIterations) {
  const auto box = [](double x) {
    return format("<body pos='{} 0 0.0999'><joint type='free' damping='.01'/><geom type='box' size='.1 .1 .1'/></body>",
                  x);
  };
  const auto heights = [&](const std::string& bodies, int nq, float speed, std::vector<std::int32_t>& most) {
    SceneOptions o;
    o.row_space = 64;
    o.iterations = 2;
    Scene scene(o);
    scene.add_entity(
        Mjcf{.file = "",
             .xml = format("<mujoco><option timestep='0.002'/><worldbody><geom type='plane' size='99 99 1'/>{}"
                           "</worldbody></mujoco>",
                           bodies)});
    scene.build(20);
    const auto nv = static_cast<std::size_t>(scene.info().nv);
    most.assign(20, 0);
    std::vector<float> trace;
    for (int s = 0; s < 400; ++s) {
      // Time to come to rest, then a push on the last box of every second environment.
      if (s == 200 && speed != 0) {
        std::vector<float> v(nv, 0.0f);
        v[nv - 6] = speed, v[nv - 4] = -speed / 4, v[nv - 3] = 3 * speed, v[nv - 2] = 2 * speed;
        for (int e = 0; e < 20; e += 2) scene.set_qvel(v, {e});
      }
      scene.step();
      if (s < 200) continue;
      const auto iterations = scene.view(Field::kSolverIterations).span<std::int32_t>();
      for (std::size_t i = 0; i < 20; ++i) most[i] = std::max(most[i], iterations[i]);
      const ArrayView q = scene.view(Field::kQpos);
      for (int e = 0; e < 20; ++e) trace.push_back(static_cast<float*>(q.data)[e * q.strides[0] + 2 * q.strides[1]]);
    }
    EXPECT_EQ(nq, scene.info().nq);
    return trace;
  };
  std::vector<std::int32_t> alone, beside;
  const std::vector<float> truth = heights(box(0), 7, 0, alone), seen = heights(box(0) + box(3), 14, 3, beside);
  for (std::size_t e = 0; e < 20; ++e) {
    EXPECT_LT(alone[e], 2);
    EXPECT_EQ(beside[e], e % 2 == 0 ? 2 : alone[e]) << e;
  }
  for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(seen[i], truth[i], 1e-6) << i;
}

/// What two bodies do that lie on each other is nothing to a third: to the last bit, whether its neighbours in the
/// block are alike or not.
TEST(RowSpace, TreesThatNoRowCouplesAreSolvedAsIfAlone) {
  const auto box = [](double x, double z) {
    return format("<body pos='{} 0 {}'><freejoint/><geom type='box' size='.1 .1 .1'/></body>", x, z);
  };
  const auto first = [](const std::string& bodies) {
    SceneOptions o;
    o.row_space = 64;
    Scene scene(o);
    scene.add_entity(Mjcf{.file = "",
                          .xml = format("<mujoco><option timestep='0.002' tolerance='0'/><worldbody>"
                                        "<geom type='plane' size='99 99 1'/>{}</worldbody></mujoco>",
                                        bodies)});
    scene.build(20);
    std::vector<float> trace;
    for (int e = 0; e < 20; ++e) {
      std::vector<float> v(static_cast<std::size_t>(scene.info().nv), 0.0f);
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = 0.1f * static_cast<float>((e + 3 * static_cast<int>(i)) % 7 - 3);
      scene.set_qvel(v, {e});
    }
    for (int s = 0; s < 200; ++s) {
      scene.step();
      const ArrayView q = scene.view(Field::kQpos);
      for (int e = 0; e < 20; ++e) {
        for (int i = 0; i < 7; ++i) trace.push_back(static_cast<float*>(q.data)[e * q.strides[0] + i * q.strides[1]]);
      }
    }
    return trace;
  };
  const std::vector<float> alone = first(box(0, 0.12));
  EXPECT_TRUE(same_bits(alone, first(box(0, 0.12) + box(3, 0.0999) + box(3, 0.2997))));
}

/// docs/design/decisions/row-space.md
TEST(RowSpace, IsChosenForLargeTreesAndForSmallOnesWithManyPairsOfGeoms) {
  const auto chosen = [](const Mjcf& file, SceneOptions options = {}, DeviceKind device = DeviceKind::kCpu) {
    const EntityDeclaration e{"model", file};
    return choose_row_space(import_model(compile_scene(std::span(&e, 1), {}, options).mjb), options.row_space, device);
  };
  const auto walker = [&](SceneOptions options) { return chosen(Mjcf{kModels + "walker.xml"}, options); };
  EXPECT_EQ(chosen(Mjcf{kModels + "biped.xml"}), 64);
  // A device takes fewer by itself, and as many as it is told.
  EXPECT_EQ(chosen(Mjcf{kModels + "biped.xml"}, {}, DeviceKind::kCuda), 24);
  SceneOptions given;
  given.row_space = 64;
  EXPECT_EQ(chosen(Mjcf{kModels + "biped.xml"}, given, DeviceKind::kCuda), 64);
  EXPECT_EQ(chosen(Mjcf{kModels + "pile.xml"}, {}, DeviceKind::kCuda), 0);
  EXPECT_EQ(walker({}), 24);
  EXPECT_GT(chosen(Mjcf{kModels + "troop.xml"}), 0);
  for (const char* free : {"pile.xml", "mixed.xml", "crowd.xml", "terrain.xml", "arm_plain.xml", "tendons.xml"}) {
    EXPECT_EQ(chosen(Mjcf{kModels + free}), 0) << free;
  }
  // Many free bodies are not a large tree.
  std::string bodies;
  for (int i = 0; i < 20; ++i) bodies += format("<body pos='{} 0 1'><freejoint/><geom size='.1'/></body>", i);
  EXPECT_EQ(chosen(Mjcf{.file = "", .xml = format("<mujoco><worldbody>{}</worldbody></mujoco>", bodies)}), 0);
  SceneOptions other;
  other.iterations = 2;
  EXPECT_EQ(walker(other), 0);
  other = {};
  other.solver = "CG";
  EXPECT_EQ(walker(other), 0);
  other = {};
  other.cone = "elliptic";
  EXPECT_EQ(walker(other), 0);
  // Four legs of two hinges each: feet that touch the floor are four pairs, everything that touches it is nine.
  const auto quadruped = [&](int contype) {
    const std::string bits = format("contype='{}' conaffinity='0'", contype);
    std::string legs;
    for (const char* place : {"1 1 0", "1 -1 0", "-1 1 0", "-1 -1 0"}) {
      legs += format(
          "<body pos='{}'><joint axis='1 0 0'/><geom size='.1' {}/><body pos='0 0 -1'><joint axis='0 1 0'/>"
          "<geom size='.1' contype='1' conaffinity='0'/></body></body>",
          place, bits);
    }
    return chosen(
        Mjcf{.file = "",
             .xml = format("<mujoco><worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 2'><freejoint/>"
                           "<geom size='.3' {}/>{}</body></worldbody></mujoco>",
                           bits, legs)});
  };
  EXPECT_EQ(quadruped(0), 0);
  EXPECT_EQ(quadruped(1), 24);
}

TEST(RowSpace, WhereItHasNoEffectAWarningSaysWhy) {
  for (const auto& [name, value, reason] :
       {std::tuple{"solver", "CG", "not Newton's"}, std::tuple{"cone", "elliptic", "elliptic cones"}}) {
    SceneOptions o;
    o.row_space = 24;
    (name == std::string("solver") ? o.solver : o.cone) = value;
    Scene scene(o);
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(1);
    ASSERT_EQ(scene.warnings().size(), 1u);
    EXPECT_NE(scene.warnings()[0].find("row_space 24 has no effect: "), std::string::npos);
    EXPECT_NE(scene.warnings()[0].find(reason), std::string::npos) << scene.warnings()[0];
  }
}

TEST(RowSpace, OfMoreRowsThanThereAreIsRefused) {
  SceneOptions o;
  o.row_space = 65;
  Scene scene(o);
  scene.add_entity(Mjcf{kModels + "walker.xml"});
  EXPECT_NE(message_of([&] { scene.build(1); }).find("64 is the most"), std::string::npos);
}

}  // namespace
}  // namespace cohort::sim
