// What a step leaves behind where a scene asks for it (SceneOptions::step_leaves): beside MuJoCo, which the engine
// `mujoco` is, and without a trace in anything else.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "sim/backends/cpu/engine.h"
#include "sim/host/scene.h"
#include "sim/simulate.h"

namespace cohort::sim {
namespace {

const std::vector<Field> kAllLeft = {
    Field::kLinkPos,   Field::kLinkQuat,     Field::kLinkCom,        Field::kLinkInertia, Field::kLinkVelocity,
    Field::kLinkForce, Field::kQfrcActuator, Field::kQfrcConstraint, Field::kLinkTwist,   Field::kGeomForce};
/// Of these, what follows from positions and velocities.
const std::vector<Field> kMotionLeft = {Field::kLinkPos,     Field::kLinkQuat,     Field::kLinkCom,
                                        Field::kLinkInertia, Field::kLinkVelocity, Field::kLinkTwist};

/// Two trees on a static link, a third alone, contacts between trees and with the floor, a limit, a motor. What the
/// caller applies pushes a link too.
std::string model_with(const std::string& integrator, double timestep) {
  return format(R"(<mujoco><option integrator="{}" timestep="{}"/><worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="frame" pos="0 0 0.6"><geom type="box" size="0.05 0.05 0.05" pos="0 0 0.3" mass="2"/>
      <body name="left" pos="0.2 0 0"><joint name="l" axis="0 1 0" range="-30 30" limited="true"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 -0.2"/>
        <body name="hand" pos="0.3 0 -0.2" euler="20 10 0"><geom type="box" size="0.08 0.05 0.03"/></body></body>
      <body name="right" pos="-0.2 0 0"><joint axis="0 1 0"/><joint axis="1 0 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 -0.3 0 -0.3"/></body></body>
    <body name="block" pos="0.45 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="0.5"/>
      <body name="flap" pos="0.1 0 0.1"><joint type="ball"/><geom size="0.04" pos="0.1 0 0"/></body></body>
    </worldbody><actuator><motor joint="l" gear="3" ctrlrange="-1 1"/></actuator></mujoco>)",
                integrator, timestep);
}

std::unique_ptr<Scene> scene_with(SceneOptions options, const std::string& xml, int n) {
  options.seed = 5;
  auto scene = std::make_unique<Scene>(options);
  scene->add_entity(Mjcf{.file = "", .xml = xml});
  scene->build(n);
  return scene;
}

std::vector<double> row_of(Scene& scene, Field field, int env) {
  const ArrayView v = scene.engine().host_view(field, Access::kRead);
  std::vector<double> row;
  for (std::int64_t i = 0; i < v.shape[1]; ++i) {
    const std::int64_t at = env * v.strides[0] + i * v.strides[1];
    row.push_back(v.type == ElementType::kFloat64 ? static_cast<const double*>(v.data)[at]
                                                  : static_cast<double>(static_cast<const float*>(v.data)[at]));
  }
  return row;
}

void write_row(Scene& scene, Field field, int env, const std::vector<double>& row) {
  const ArrayView v = scene.engine().host_view(field, Access::kWrite);
  for (std::size_t i = 0; i < row.size(); ++i)
    static_cast<float*>(v.data)[env * v.strides[0] + static_cast<std::int64_t>(i) * v.strides[1]] =
        static_cast<float>(row[i]);
}

/// The largest difference over the largest number, at least 1.
double distance(const std::vector<double>& ours, const std::vector<double>& exact) {
  double scale = 1, error = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    scale = std::max(scale, std::abs(exact[i]));
    error = std::max(error, std::abs(ours.at(i) - exact[i]));
  }
  return error / scale;
}

class StepLeaves : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Integrators, StepLeaves, ::testing::Values("Euler", "implicitfast", "RK4"));

/// After several substeps from MuJoCo's state: the last of the forces' evaluations, not the state that it ends in.
TEST_P(StepLeaves, WhatMujocosStepLeavesOnTheBatchedEngine) {
  SceneOptions options{.step_leaves = kAllLeft};
  const std::string xml = model_with(GetParam(), 0.004);
  const auto ours = scene_with(options, xml, 20);
  options.engine = EngineKind::kMujoco;
  const auto exact = scene_with(options, xml, 1);
  std::vector<double> largest(kAllLeft.size()), size(kAllLeft.size());
  const int block = exact->info().link("block");
  std::vector<double> push(6 * exact->info().links.size());
  for (int i = 0; i < 6; ++i) push[static_cast<std::size_t>(6 * block + i)] = 0.3 * (i + 1);
  const auto far = [&](int env, const char* when) {
    for (std::size_t f = 0; f < kAllLeft.size(); ++f) {
      const std::vector<double> a = row_of(*ours, kAllLeft[f], env), b = row_of(*exact, kAllLeft[f], 0);
      for (const double x : b) size[f] = std::max(size[f], std::abs(x));
      // The solver ends at its tolerance, and in single precision.
      const bool solved =
          kAllLeft[f] == Field::kLinkForce || kAllLeft[f] == Field::kQfrcConstraint || kAllLeft[f] == Field::kGeomForce;
      EXPECT_LT(distance(a, b), solved ? 3e-4 : 3e-5) << field_name(kAllLeft[f]) << " " << when;
    }
  };
  for (int s = 0; s < 120; ++s) {
    for (const Field f : {Field::kQpos, Field::kQvel, Field::kWarmstart}) write_row(*ours, f, 13, row_of(*exact, f, 0));
    for (Scene* scene : {ours.get(), exact.get()}) {
      const int env = scene == ours.get() ? 13 : 0;
      const ArrayView ctrl = scene->engine().host_view(Field::kCtrl, Access::kWrite);
      const ArrayView applied = scene->engine().host_view(Field::kXfrcApplied, Access::kWrite);
      for (std::size_t i = 0; i < push.size(); ++i) {
        const std::int64_t at = env * applied.strides[0] + static_cast<std::int64_t>(i) * applied.strides[1];
        const double value = s % 40 > 20 ? push[i] : 0;
        if (applied.type == ElementType::kFloat64) {
          static_cast<double*>(applied.data)[at] = value;
        } else {
          static_cast<float*>(applied.data)[at] = static_cast<float>(value);
        }
      }
      const double turn = std::sin(0.1 * s);
      if (ctrl.type == ElementType::kFloat64) {
        static_cast<double*>(ctrl.data)[env * ctrl.strides[0]] = turn;
      } else {
        static_cast<float*>(ctrl.data)[env * ctrl.strides[0]] = static_cast<float>(turn);
      }
      scene->engine().step(3);
    }
    far(13, format("step {}", s).c_str());
    if (HasFailure()) return;
  }
  // They have all been something.
  for (std::size_t f = 0; f < size.size(); ++f) EXPECT_GT(size[f], 0.1) << field_name(kAllLeft[f]);
  // forward(): of the present state.
  for (const Field f : {Field::kQpos, Field::kQvel, Field::kWarmstart}) write_row(*ours, f, 13, row_of(*exact, f, 0));
  const std::vector<double> warm = row_of(*exact, Field::kWarmstart, 0);
  ours->forward();
  exact->forward();
  far(13, "after forward");
  EXPECT_EQ(row_of(*exact, Field::kWarmstart, 0), warm);
}

/// Against the world and against what moves, as the list of contacts has them.
TEST(StepLeavesGeomForce, IsTheSumOfTheListedContactsOnEachGeom) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const auto scene =
        scene_with({.engine = engine, .step_leaves = {Field::kGeomForce}}, model_with("Euler", 0.004), 3);
    const std::vector<std::uint8_t> fixed = scene->info().fixed_geoms();
    double against_fixed = 0, against_moving = 0;
    for (int s = 0; s < 60; ++s) {
      scene->engine().step(5);
      scene->engine().forward();
      std::vector<double> expected(6 * fixed.size());
      for (const Contact& c : scene->engine().contacts(1)) {
        const auto add = [&](int own, int other, double sign) {
          for (std::size_t i = 0; i < 3; ++i) {
            const std::size_t at = 6 * static_cast<std::size_t>(own) + i;
            expected[at + (fixed[static_cast<std::size_t>(other)] ? 0 : 3)] += sign * c.force[i];
          }
        };
        add(c.geom1, c.geom2, -1);
        add(c.geom2, c.geom1, 1);
        (fixed[static_cast<std::size_t>(c.geom1)] || fixed[static_cast<std::size_t>(c.geom2)] ? against_fixed
                                                                                              : against_moving) +=
            std::abs(c.force[2]);
      }
      // The list begins from no memory of separating directions: in single precision it ends somewhat beside.
      EXPECT_LT(distance(row_of(*scene, Field::kGeomForce, 1), expected), 1e-4) << to_string(engine) << " " << s;
    }
    EXPECT_GT(against_fixed, 1) << to_string(engine);
    EXPECT_GT(against_moving, 1) << to_string(engine);
  }
}

TEST(StepLeavesGeomForce, OfABoxAtRestIsItsWeight) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const auto scene = scene_with({.engine = engine, .step_leaves = {Field::kGeomForce}},
                                  R"(<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
      <body name="shelf" pos="1 0 0"><geom name="shelf" type="box" size="0.1 0.1 0.1"/></body>
      <body mocap="true" name="hand" pos="0 3 0.5"><geom name="hand" size="0.1"/></body>
      <body pos="0 0 0.1"><freejoint/><geom name="low" type="box" size="0.1 0.1 0.1" mass="2"/></body>
      <body pos="0 0 0.25"><freejoint/><geom name="high" type="box" size="0.05 0.05 0.05" mass="1"/></body>
      </worldbody></mujoco>)",
                                  2);
    EXPECT_EQ(scene->info().fixed_geoms(), (std::vector<std::uint8_t>{1, 1, 0, 0, 0}));
    scene->engine().step(1500);
    const std::vector<double> force = row_of(*scene, Field::kGeomForce, 0);
    const auto z = [&](const char* geom, int of) {
      return force[static_cast<std::size_t>(6 * scene->info().geom(geom) + 3 * of + 2)];
    };
    constexpr double kWeight = 9.81, kNear = 1e-2;  // N; the boxes still settle
    EXPECT_NEAR(z("low", 0), 3 * kWeight, kNear) << to_string(engine);
    EXPECT_NEAR(z("low", 1), -kWeight, kNear) << to_string(engine);
    EXPECT_NEAR(z("high", 1), kWeight, kNear) << to_string(engine);
    EXPECT_NEAR(z("floor", 1), -3 * kWeight, kNear) << to_string(engine);
    for (const char* alone : {"shelf", "hand"}) EXPECT_EQ(z(alone, 0), 0) << alone;
    EXPECT_EQ(z("high", 0), 0) << to_string(engine);
  }
}

/// SceneOptions::leave_present: poses and velocities as forward() has them, forces as without it, the motion the same.
TEST_P(StepLeaves, OfThePresentStateIsWhatForwardComputes) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const std::string xml = model_with(GetParam(), 0.004);
    SceneOptions options{.engine = engine, .step_leaves = kAllLeft};
    const auto last = scene_with(options, xml, 20);
    options.leave_present = true;
    const auto present = scene_with(options, xml, 20);
    for (int s = 0; s < 40; ++s) {
      for (Scene* scene : {last.get(), present.get()}) {
        scene->set_random_ctrl(s);
        scene->engine().step(4);
      }
      EXPECT_EQ(row_of(*present, Field::kQpos, 7), row_of(*last, Field::kQpos, 7));
      EXPECT_EQ(row_of(*present, Field::kQvel, 7), row_of(*last, Field::kQvel, 7));
      for (const Field f : kAllLeft) {
        if (std::find(kMotionLeft.begin(), kMotionLeft.end(), f) == kMotionLeft.end())
          EXPECT_EQ(row_of(*present, f, 7), row_of(*last, f, 7)) << field_name(f);
      }
      EXPECT_NE(row_of(*present, Field::kLinkTwist, 7), row_of(*last, Field::kLinkTwist, 7));
      if (s % 10 != 9) continue;
      std::vector<std::vector<double>> left;
      for (const Field f : kMotionLeft) left.push_back(row_of(*present, f, 7));
      for (Scene* scene : {last.get(), present.get()}) scene->forward();
      for (std::size_t f = 0; f < kMotionLeft.size(); ++f)
        EXPECT_EQ(left[f], row_of(*present, kMotionLeft[f], 7)) << field_name(kMotionLeft[f]) << to_string(engine);
    }
  }
}

std::vector<float> all_left(const SceneOptions& options, int n, int steps_at_once) {
  const auto scene = scene_with(options, model_with("Euler", 0.004), n);
  std::vector<float> all;
  for (int s = 0; s < 240; s += steps_at_once) {
    scene->set_random_ctrl(s / 12);
    scene->engine().step(steps_at_once);
  }
  for (int e = 0; e < 7; ++e) {
    for (const Field f : kAllLeft)
      for (const double x : row_of(*scene, f, e)) all.push_back(static_cast<float>(x));
  }
  return all;
}

TEST(StepLeavesBits, AreTheSameForEveryLaneWidthBatchSizeAndThreadCount) {
  SceneOptions options{.lanes = LaneWidth::kScalar, .step_leaves = kAllLeft};
  const std::vector<float> truth = all_left(options, 7, 12);
  for (const LaneWidth width : widths()) {
    options.lanes = width;
    EXPECT_TRUE(same_bits(all_left(options, 7, 12), truth)) << to_string(width);
    EXPECT_TRUE(same_bits(all_left(options, 40, 12), truth)) << to_string(width);
    EXPECT_TRUE(same_bits(all_left(options, 7, 4), truth)) << to_string(width);
  }
  options.lanes = LaneWidth::kScalar;
  options.leave_present = true;
  const std::vector<float> present = all_left(options, 7, 12);
  EXPECT_FALSE(same_bits(present, truth));
  for (const LaneWidth width : widths()) {
    options.lanes = width;
    EXPECT_TRUE(same_bits(all_left(options, 40, 12), present)) << to_string(width);
  }
  options.leave_present = false;
  options.threads = 3;
  EXPECT_TRUE(same_bits(all_left(options, 50, 12), truth));
}

TEST(StepLeavesBits, OfSomeEnvironmentsAreThoseOfAForwardOfAll) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    // The thread sanitizer does not see how MuJoCo's own pool of threads synchronises.
    const int threads = engine == EngineKind::kMujoco ? 1 : 2;
    SceneOptions options{.engine = engine, .threads = threads, .step_leaves = kAllLeft};
    const auto some = scene_with(options, model_with("Euler", 0.004), 70),
               all = scene_with(options, model_with("Euler", 0.004), 70);
    for (Scene* scene : {some.get(), all.get()}) {
      scene->set_random_ctrl(0);
      scene->engine().step(20);
    }
    const std::vector<double> left = row_of(*some, Field::kLinkVelocity, 20);
    const std::int32_t envs[] = {65, 33, 3, 65, 0};
    some->engine().forward_some(envs);
    all->engine().forward();
    for (const Field f : kAllLeft) {
      for (const std::int32_t e : envs) EXPECT_EQ(row_of(*some, f, e), row_of(*all, f, e)) << field_name(f);
    }
    EXPECT_EQ(row_of(*some, Field::kLinkVelocity, 20), left);
    EXPECT_NE(row_of(*all, Field::kLinkVelocity, 20), left);
  }
}

TEST(StepLeavesBits, LeaveThoseOfTheMotionAlone) {
  for (const char* file : {"walker.xml", "biped.xml", "pile.xml"}) {
    std::vector<std::vector<float>> ends;
    for (const bool leaves : {false, true}) {
      SceneOptions options;
      options.seed = 3;
      if (leaves) options.step_leaves = kAllLeft;
      Scene scene(options);
      scene.add_entity(Mjcf{kModels + file});
      scene.build(20);
      for (int s = 0; s < 100; ++s) {
        scene.set_random_ctrl(s);
        scene.step();
      }
      ends.push_back(states(scene));
    }
    EXPECT_TRUE(same_bits(ends[0], ends[1])) << file;
  }
}

TEST(StepLeavesRequests, AreCountedInThePlanAndTakeNothingWhereNobodyAsks) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const auto without = scene_with({.engine = engine}, model_with("Euler", 0.004), 3);
    const auto with = scene_with({.engine = engine, .step_leaves = {Field::kLinkInertia, Field::kLinkPos}},
                                 model_with("Euler", 0.004), 3);
    const double number = engine == EngineKind::kBatched ? 4 : 8;
    EXPECT_EQ(with->memory().bytes_per_environment() - without->memory().bytes_per_environment(),
              number * field_size(with->info(), Field::kLinkInertia));
    EXPECT_EQ(without->engine().view(Field::kLinkInertia).shape[1], 0);
    const std::string text = message_of([&] { without->view(Field::kLinkInertia); });
    EXPECT_NE(text.find("link_inertia"), std::string::npos) << text;
    EXPECT_NE(text.find("SceneOptions::step_leaves"), std::string::npos) << text;
  }
}

TEST(StepLeavesRequests, OfWhatIsNotComputedAreRefusedByName) {
  const auto text_of = [](const SceneOptions& options, const std::string& extra) {
    std::string xml = model_with("Euler", 0.004);
    xml.insert(xml.find("</mujoco>"), extra);
    return message_of([&] { scene_with(options, xml, 2); });
  };
  const std::string weld = R"(<equality><weld body1="block" body2="hand"/></equality>)";
  EXPECT_NE(text_of({.step_leaves = {Field::kLinkForce}}, weld).find("equalities between links"), std::string::npos);
  EXPECT_EQ(text_of({.engine = EngineKind::kMujoco, .step_leaves = {Field::kLinkForce}}, weld), "");
  EXPECT_EQ(text_of({.step_leaves = {Field::kLinkInertia}}, weld), "");
  EXPECT_NE(text_of({.step_leaves = {Field::kQpos}}, "").find("a step leaves no qpos"), std::string::npos);
  EXPECT_NE(text_of({.parameters = {Parameter::kLinkMass}, .step_leaves = {Field::kLinkCom}}, "").find("link_mass"),
            std::string::npos);
  const auto scene = scene_with({.step_leaves = {Field::kLinkCom}}, model_with("Euler", 0.004), 2);
  EXPECT_NE(message_of([&] { scene->engine().parameter(Parameter::kLinkMass); }).find("link_mass"), std::string::npos);
}

TEST(StepLeavesRequests, AnEnvironmentThatBreaksStandsStillAndKeepsWhatItsLastGoodStepLeft) {
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const auto scene = scene_with({.engine = engine, .step_leaves = kAllLeft}, model_with("RK4", 0.004), 3);
    scene->engine().step(5);
    const std::vector<double> before = row_of(*scene, Field::kLinkVelocity, 1);
    const ArrayView qvel = scene->engine().host_view(Field::kQvel, Access::kWrite);
    if (engine == EngineKind::kBatched) {
      static_cast<float*>(qvel.data)[qvel.strides[0]] = 1e12f;
    } else {
      static_cast<double*>(qvel.data)[qvel.strides[0]] = 1e12;
    }
    scene->engine().step(1);
    const auto status = scene->host_view(Field::kStatus).span<std::int32_t>();
    EXPECT_EQ(status[0], kStatusOk) << to_string(engine);
    EXPECT_EQ(status[1], kStatusBadState) << to_string(engine);
    if (engine == EngineKind::kBatched) EXPECT_EQ(row_of(*scene, Field::kLinkVelocity, 1), before);
    EXPECT_NE(row_of(*scene, Field::kLinkVelocity, 0), before);
    scene->reset({1});
    EXPECT_EQ(scene->host_view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
    scene->engine().step(1);
    for (const double x : row_of(*scene, Field::kLinkVelocity, 1)) EXPECT_LT(std::abs(x), 10) << to_string(engine);
  }
}

}  // namespace
}  // namespace cohort::sim
