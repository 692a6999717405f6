// States of a scene and misuse, on both engines: set, looked at, saved, and what is refused.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/message_of.h"
#include "sim/models.h"
#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

/// Value i of an environment's field.
void write_value(Scene& scene, Field field, std::int64_t env, std::int64_t i, double value) {
  const ArrayView view = scene.engine().host_view(field, Access::kWrite);
  const std::int64_t at = env * view.strides[0] + i * view.strides[1];
  if (view.type == ElementType::kFloat64) {
    static_cast<double*>(view.data)[at] = value;
  } else {
    static_cast<float*>(view.data)[at] = static_cast<float>(value);
  }
}

TEST_P(SceneApi, ANanInTheTimeOrTheWarmStartStopsItsEnvironment) {
  for (const Field field : {Field::kTime, Field::kWarmstart}) {
    SCOPED_TRACE(field_name(field));
    Scene scene(options());
    scene.add_entity(Mjcf{kModels + "walker.xml"});
    scene.build(3);
    scene.step();
    const std::vector<float> before = scene.get_qpos({1});
    write_value(scene, field, 1, 0, NAN);
    scene.step();
    const auto status = scene.host_view(Field::kStatus).span<std::int32_t>();
    EXPECT_EQ(status[1], kStatusBadState);
    EXPECT_EQ(status[0], kStatusOk);
    EXPECT_EQ(status[2], kStatusOk);
    EXPECT_EQ(scene.get_qpos({1}), before);
    scene.reset({1});
    scene.step();
    EXPECT_EQ(scene.host_view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
  }
}

/// What a step would make a number of again is looked at before: quaternions, controls and activations with a range, a
/// mocap body that touches something.
TEST_P(SceneApi, ANanAnywhereInStateOrInputsStopsItsEnvironment) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "", .xml = R"(<mujoco><worldbody>
    <body pos="0 0 1"><freejoint/><geom size="0.1"/>
      <body pos="0.3 0 0"><joint type="ball"/><geom size="0.1"/>
        <body pos="0.3 0 0"><joint name="h"/><geom size="0.1"/></body></body></body>
    <body mocap="true"><geom type="box" size="1 1 0.1"/></body></worldbody>
    <actuator><motor joint="h" ctrlrange="-1 1"/><position joint="h" ctrlrange="-1 1" timeconst="0.1"/>
      <general joint="h" dyntype="integrator" ctrlrange="-1 1" actrange="-2 2" forcerange="-3 3"/>
      <motor joint="h" forcerange="-1 1"/></actuator></mujoco>)"});
  scene.build(2);
  const auto stops = [&](Field field, int i, double value) {
    SCOPED_TRACE(format("{}[{}] = {}", field_name(field), i, value));
    scene.reset();
    write_value(scene, field, 1, i, value);
    const std::vector<float> before = scene.get_qpos({1});
    scene.step();
    scene.step();
    const auto status = scene.host_view(Field::kStatus).span<std::int32_t>();
    EXPECT_EQ(status[0], kStatusOk);
    EXPECT_EQ(status[1], kStatusBadState);
    EXPECT_EQ(std::memcmp(before.data(), scene.get_qpos({1}).data(), before.size() * sizeof(float)), 0);
  };
  int elements = 0;
  for (int f = 0; f <= static_cast<int>(Field::kMocapQuat); ++f) {
    const auto field = static_cast<Field>(f);
    if (field == Field::kWarmstart) continue;  // is not looked at without constraints
    for (int i = 0; i < field_size(scene.info(), field); ++i) {
      const int link = i / 6;
      if (field == Field::kXfrcApplied && (link == 0 || link == 4)) continue;  // the world and the mocap body
      stops(field, i, NAN), ++elements;
      if (field == Field::kQpos) stops(field, i, 2e10), stops(field, i, -1e30);
    }
  }
  stops(Field::kCtrl, 3, 2e10);  // those with a range are clipped
  EXPECT_EQ(elements, 12 + 10 + 2 + 1 + 4 + 10 + 18 + 7);
}

// The batched engine reads forces from the first time on that somebody asked for where they lie.
TEST_P(SceneApi, ForcesThatAreWrittenAfterStepsOrComeWithAStateAct) {
  const auto path = file("pushed.state");
  for (const Field field : {Field::kQfrcApplied, Field::kXfrcApplied}) {
    SCOPED_TRACE(field_name(field));
    Scene scene(options()), loaded(options());
    for (Scene* each : {&scene, &loaded}) {
      each->add_entity(Mjcf{kModels + "arm.xml"});
      each->build(2);
    }
    for (int i = 0; i < 5; ++i) scene.step();
    EXPECT_EQ(scene.get_qpos({1}), scene.get_qpos({0}));
    const int last = field_size(scene.info(), field) - 1;
    write_value(scene, field, 1, field == Field::kXfrcApplied ? last - 3 : last, 5);
    scene.save_state(path);
    for (int i = 0; i < 5; ++i) scene.step();
    EXPECT_GT(std::abs(scene.get_qpos({1}).back() - scene.get_qpos({0}).back()), 1e-5);

    loaded.load_state(path);
    for (int i = 0; i < 5; ++i) loaded.step();
    EXPECT_EQ(loaded.get_qpos(), scene.get_qpos());

    scene.reset();
    scene.step();
    EXPECT_EQ(scene.get_qpos({1}), scene.get_qpos({0}));
  }
  std::filesystem::remove(path);
}

/// Copies the state of an environment, parameters included.
void copy_environment(Engine& from, std::int64_t env, Engine& to, std::int64_t to_env) {
  const auto copy = [&](const ArrayView& source, const ArrayView& target) {
    ASSERT_EQ(source.shape[1], target.shape[1]);
    const std::size_t bytes = element_size(source.type);
    const auto at = [&](const ArrayView& v, std::int64_t e, std::int64_t i) {
      return static_cast<std::uint8_t*>(v.data) + static_cast<std::size_t>(e * v.strides[0] + i * v.strides[1]) * bytes;
    };
    for (std::int64_t i = 0; i < source.shape[1]; ++i) std::memcpy(at(target, to_env, i), at(source, env, i), bytes);
  };
  for (const std::string& name : from.state_names())
    copy(from.state_array(name, Access::kRead), to.state_array(name, Access::kWrite));
  for (int p = 0; p < kParameterCount; ++p)
    if (from.parameters_in_use().test(static_cast<std::size_t>(p)))
      copy(from.parameter(static_cast<Parameter>(p)), to.parameter(static_cast<Parameter>(p)));
  to.state_written();
}

TEST_P(SceneApi, RowsOfAStateGoOnInASceneOfAnotherNumberOfEnvironments) {
  Scene scene(options()), other(options());
  for (const auto& [each, n] : {std::pair{&scene, 3}, std::pair{&other, 2}}) {
    each->add_entity(Mjcf{kModels + "arm.xml"});
    each->build(n);
  }
  const std::vector<float> values = scene.engine().model_values(Parameter::kLinkMass);
  scene.set_parameter(Parameter::kLinkMass, std::vector<float>{2.5f * values.back()}, {2},
                      {static_cast<std::int32_t>(values.size()) - 1});
  const int last = field_size(scene.info(), Field::kQfrcApplied) - 1;
  write_value(scene, Field::kQfrcApplied, 2, last, 5);
  for (int i = 0; i < 5; ++i) scene.step();
  for (int i = 0; i < 9; ++i) other.step();
  copy_environment(scene.engine(), 2, other.engine(), 0);
  copy_environment(scene.engine(), 0, other.engine(), 1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(other.get_qpos({0}), scene.get_qpos({2})) << i;
    ASSERT_EQ(other.get_qpos({1}), scene.get_qpos({0})) << i;
    ASSERT_EQ(other.get_qvel({0}), scene.get_qvel({2})) << i;
    scene.step(), other.step();
  }
  EXPECT_NE(scene.get_qpos({2}), scene.get_qpos({0}));
}

TEST_P(SceneApi, AStateOfAnotherModelOfTheSameSizesIsRefused) {
  const auto path = file("other.state");
  const std::string xml = read_file(kModels + "arm.xml");
  std::string other = xml;
  other.replace(other.find("0.4 0 0\" size"), 3, "0.5");
  Scene one(options()), two(options());
  one.add_entity(Mjcf{.file = "", .xml = xml});
  two.add_entity(Mjcf{.file = "", .xml = other});
  one.build(2);
  two.build(2);
  one.save_state(path);
  EXPECT_NE(message_of([&] { two.load_state(path); }).find("another scene"), std::string::npos);
  one.load_state(path);
  std::filesystem::remove(path);
}

TEST_P(SceneApi, AStateWithAByteChangedIsRefused) {
  const auto path = file("damaged.state");
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(2);
  scene.control_dofs_position(std::vector<float>{0.1f}, {0});
  scene.save_state(path);
  const std::string whole = read_file(path);
  scene.step();
  const std::vector<float> before = scene.get_qpos();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write_file_atomically(path, damaged);
    EXPECT_NE(message_of([&] { scene.load_state(path); }), "") << i;
  }
  EXPECT_EQ(scene.get_qpos(), before);
  write_file_atomically(path, whole);
  scene.load_state(path);
  std::filesystem::remove(path);
}

TEST_P(SceneApi, OptionsThatNoModelHasAreRefused) {
  const auto with = [](const std::function<void(SceneOptions&)>& change) {
    SceneOptions o = options();
    change(o);
    return message_of([&] { Scene scene(o); });
  };
  EXPECT_NE(with([](auto& o) { o.gravity = {0, NAN, 0}; }).find("gravity"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.timestep = INFINITY; }).find("timestep"), std::string::npos);
  for (const double bad : {-1.0, std::nan("")}) {
    EXPECT_NE(with([&](auto& o) { o.tolerance = bad; }).find("tolerance"), std::string::npos);
    EXPECT_NE(with([&](auto& o) { o.compile_seconds = bad; }).find("compile_seconds"), std::string::npos);
    EXPECT_NE(with([&](auto& o) { o.compile_memory = bad; }).find("compile_memory"), std::string::npos);
  }
  EXPECT_NE(with([](auto& o) { o.iterations = -3; }).find("iterations"), std::string::npos);
  EXPECT_NE(with([](auto& o) { o.contact_capacity = -5; }).find("contact_capacity"), std::string::npos);
  const bool refuses = GetParam() == EngineKind::kMujoco;  // what it would not look at
  EXPECT_EQ(with([](auto& o) { o.contact_capacity = 40; }).find("engine batched") != std::string::npos, refuses);
  EXPECT_EQ(with([](auto& o) { o.row_space = 24; }).find("engine batched") != std::string::npos, refuses);
  for (const double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
    Scene spaced(options());
    spaced.add_entity(Plane{});
    EXPECT_NE(message_of([&] { spaced.build(2, {1, bad}); }).find("env_spacing"), std::string::npos);
  }
  {
    SceneOptions o = options();
    o.device = {DeviceKind::kMetal, 0};
    Scene on_metal(o);
    on_metal.add_entity(Mjcf{kModels + "arm.xml"});
    const std::string planned = message_of([&] { on_metal.plan(); });
    EXPECT_NE(planned, "");
    EXPECT_EQ(planned, message_of([&] { on_metal.build(1); }));
  }
  Scene scene(options());
  scene.add_camera({.name = "eye"});
  EXPECT_NE(message_of([&] { scene.add_camera({.name = "eye"}); }).find("`eye`"), std::string::npos);
  for (const double fov : {0.0, -5.0, 180.0, std::nan("")}) {
    EXPECT_NE(message_of([&] { scene.add_camera({.name = "wide", .fov = fov}); }).find("field of view"),
              std::string::npos);
  }
  EXPECT_NE(message_of([&] { scene.add_camera({.pos = {NAN, 0, 0}}); }), "");
}

TEST_P(SceneApi, AStateOfOtherOptionsIsRefused) {
  const auto path = file("options.state");
  const auto make = [&](const std::function<void(SceneOptions&)>& change) {
    SceneOptions o = options();
    change(o);
    auto scene = std::make_unique<Scene>(o);
    scene->add_entity(Mjcf{kModels + "arm.xml"});
    scene->build(2);
    return scene;
  };
  make([](auto&) {})->save_state(path);
  EXPECT_EQ(message_of([&] { make([](auto&) {})->load_state(path); }), "");
  const std::vector<std::function<void(SceneOptions&)>> changes{
      [](auto& o) {
        o.gravity = {0, 0, -1};
      },
      [](auto& o) { o.iterations = 7; }, [](auto& o) { o.tolerance = 1e-3; }, [](auto& o) { o.substeps = 2; }};
  for (const auto& change : changes) {
    EXPECT_NE(message_of([&] { make(change)->load_state(path); }).find("was saved by"), std::string::npos);
  }
  std::filesystem::remove(path);
}

TEST_P(SceneApi, ALookAtABrokenStateDoesNotStopTheNextStep) {
  Scene scene(options());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(2);
  arm.set_dofs_position(std::vector<float>{NAN, 0}, {}, {1});
  arm.get_links_pos();
  scene.get_contacts(1);
  arm.set_dofs_position(std::vector<float>{0, 0}, {}, {1});
  scene.step();
  EXPECT_EQ(scene.host_view(Field::kStatus).span<std::int32_t>()[1], kStatusOk);
}

TEST_P(SceneApi, MisuseIsSaidWithoutPlacesInTheSource) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  const std::string early = message_of([&] { scene.step(); });
  EXPECT_NE(early.find("build()"), std::string::npos);
  EXPECT_EQ(early.find(".cpp"), std::string::npos) << early;
  scene.build(3);
  EXPECT_EQ(message_of([&] { scene.add_entity(Plane{}); }).find(".cpp"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.set_qpos(std::vector<float>(5)); }).find("coordinate: 5 values"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.environment_offset(99); }).find("environment 99"), std::string::npos);
  scene.set_dofs_kp(std::vector<float>{30}, {1}, {0});
  EXPECT_NE(message_of([&] { scene.control_dofs_position(std::vector<float>{0.1f}, {1}); }).find("environment 1"),
            std::string::npos);
}

TEST_P(SceneApi, AStateIsSetAsAWholeOrNotAtAll) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(3);
  for (int i = 0; i < 10; ++i) scene.step();
  const std::vector<float> before = scene.get_qpos();
  const std::vector<float> q{0.1f, 0.2f, 0.3f, 0.4f}, v{1, 2, 3, 4};
  EXPECT_NE(message_of([&] { scene.reset_to_state(q, std::vector<float>{1}, {0, 2}); }), "");
  EXPECT_EQ(scene.get_qpos(), before);
  scene.reset_to_state(q, v, {2, 0});
  EXPECT_EQ(scene.get_qpos({0}), (std::vector<float>{0.3f, 0.4f}));
  EXPECT_EQ(scene.get_qvel({2}), (std::vector<float>{1, 2}));
  EXPECT_EQ(scene.get_qpos({1}), (std::vector<float>{before[2], before[3]}));
  EXPECT_EQ(scene.get_ctrl({0}), (std::vector<float>{0, 0}));
  const std::vector<std::uint8_t> mask{0, 1};
  EXPECT_NE(message_of([&] { scene.reset(Indices::from_mask(mask)); }).find("mask has 2 entries"), std::string::npos);
}

}  // namespace
}  // namespace cohort::sim
