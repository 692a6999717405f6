// A scene's state as LibTorch's tensors: the same memory, seen from both sides.
#include <cmath>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/message_of.h"
#include "sim/host/scene.h"
#include "tensors/convert.h"
#include "tensors/stream_order.h"

namespace cohort::tensors {
namespace {

const std::string kArm = COHORT_SOURCE_DIR "/tests/sim/models/arm.xml";

class SceneTensor : public ::testing::TestWithParam<sim::EngineKind> {
 protected:
  static std::shared_ptr<sim::Scene> make(int n_envs) {
    sim::SceneOptions o;
    o.engine = GetParam();
    auto scene = std::make_shared<sim::Scene>(o);
    scene->add_entity(sim::Mjcf{kArm}, "arm");
    scene->build(n_envs);
    return scene;
  }
};

TEST_P(SceneTensor, EveryFieldHasItsShapeTypeAndDevice) {
  const auto scene = make(5);
  for (int f = 0; f < sim::kFieldCount; ++f) {
    const auto field = static_cast<sim::Field>(f);
    if (!scene->engine().has(field)) continue;
    const ArrayView view = scene->view(field);
    const at::Tensor tensor = to_tensor(view);
    EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{5, sim::field_size(scene->info(), field)}))
        << sim::field_name(field);
    const bool whole = field >= sim::Field::kStatus;
    EXPECT_EQ(tensor.scalar_type(), whole                                    ? c10::kInt
                                    : GetParam() == sim::EngineKind::kMujoco ? c10::kDouble
                                                                             : c10::kFloat)
        << sim::field_name(field);
    EXPECT_TRUE(tensor.device().is_cpu());
    if (tensor.numel() > 0) EXPECT_EQ(tensor.data_ptr(), view.data) << sim::field_name(field) << " was copied";
  }
}

TEST_P(SceneTensor, WhatIsWrittenThroughATensorMovesTheScene) {
  const auto scene = make(3);
  at::Tensor qpos = to_tensor(scene->view(sim::Field::kQpos)), ctrl = to_tensor(scene->view(sim::Field::kCtrl));
  // A getter in between must not keep the scene from noticing what comes next.
  EXPECT_NEAR(scene->get_sensor("tip_pos", {1})[2], 1, 1e-6);
  qpos.index_put_({1, 0}, 0.5);
  EXPECT_FLOAT_EQ(scene->get_dofs_position({0}, {1})[0], 0.5f);
  EXPECT_EQ(scene->get_dofs_position({0}, {0})[0], 0);
  EXPECT_NEAR(scene->get_sensor("tip_pos", {1})[2], 1 - 0.7 * std::sin(0.5), 1e-6);
  EXPECT_NEAR(scene->get_sensor("tip_pos", {2})[2], 1, 1e-6);

  const auto other = make(3);
  other->set_qpos(scene->get_qpos());
  const std::vector<float> action{0.3f, -0.2f, 0.7f};
  ctrl.select(1, 0).copy_(torch::tensor(action));
  std::vector<float> whole;
  for (float a : action) {
    whole.push_back(a);
    whole.resize(whole.size() + static_cast<std::size_t>(other->info().nu) - 1, 0.0f);
  }
  other->set_ctrl(whole);
  for (int i = 0; i < 20; ++i) {
    scene->step();
    other->step();
  }
  EXPECT_EQ(scene->get_dofs_velocity(), other->get_dofs_velocity());
  EXPECT_NE(scene->get_dofs_velocity({0}, {0}), scene->get_dofs_velocity({0}, {2}));
}

TEST_P(SceneTensor, WhatTheSceneDoesIsSeenInATensorHeldFromBefore) {
  const auto scene = make(4);
  const at::Tensor qpos = to_tensor(scene->view(sim::Field::kQpos)), time = to_tensor(scene->view(sim::Field::kTime)),
                   sensors = to_tensor(scene->view(sim::Field::kSensors));
  scene->set_dofs_position(std::vector<float>{0.25f}, {1}, {2});
  EXPECT_FLOAT_EQ(qpos[2][1].item<float>(), 0.25f);
  for (int i = 0; i < 10; ++i) scene->step();
  EXPECT_NEAR(time.min().item<double>(), 10 * scene->info().timestep, 1e-6);
  const std::vector<float> now = scene->get_dofs_position();
  EXPECT_TRUE(torch::equal(qpos.to(c10::kFloat).contiguous().view({-1}), torch::tensor(now)));
  // Derived fields are those of the present state once the scene is told to compute them.
  scene->forward();
  const sim::SensorInfo& angle =
      scene->info().sensors[static_cast<std::size_t>(scene->info().sensor("shoulder_angle"))];
  EXPECT_TRUE(torch::allclose(sensors.select(1, angle.address), qpos.select(1, 0)));
}

TEST_P(SceneTensor, ATensorCanKeepItsSceneAlive) {
  auto scene = make(2);
  const std::weak_ptr<sim::Scene> watch = scene;
  at::Tensor qvel = to_tensor(scene->view(sim::Field::kQvel), [keep = scene] {});
  scene.reset();
  ASSERT_FALSE(watch.expired());
  qvel.fill_(0.5);
  EXPECT_FLOAT_EQ(watch.lock()->get_dofs_velocity({1}, {1})[0], 0.5f);
  qvel.reset();
  EXPECT_TRUE(watch.expired());
}

TEST_P(SceneTensor, OnACpuThereIsNothingToWaitFor) {
  const auto scene = make(1);
  EXPECT_NO_THROW(read_after(scene->view(sim::Field::kQpos)));
  EXPECT_NO_THROW(write_before(scene->view(sim::Field::kCtrl)));
}

TEST_P(SceneTensor, WrongUseIsAClearError) {
  sim::Scene unbuilt;
  EXPECT_NE(message_of([&] { unbuilt.view(sim::Field::kQpos); }).find("build()"), std::string::npos);
  const auto scene = make(2);
  EXPECT_NE(message_of([&] { scene->view(static_cast<sim::Field>(99)); }).find("field 99"), std::string::npos);
  ArrayView nowhere = scene->view(sim::Field::kQpos);
  nowhere.data = nullptr;
  EXPECT_NE(message_of([&] { to_tensor(nowhere); }).find("without memory"), std::string::npos);
  ArrayView flat = scene->view(sim::Field::kQpos);
  flat.rank = kMaxRank + 1;
  EXPECT_NE(message_of([&] { to_tensor(flat); }).find("9 dimensions"), std::string::npos);
  ArrayView metal = scene->view(sim::Field::kQpos);
  metal.device = {DeviceKind::kMetal, 0};
  if (!at::hasMPS()) EXPECT_NE(message_of([&] { to_tensor(metal); }).find("mps"), std::string::npos);
  // A policy's output as the values of a setter: the wrong type and a transposed one are named, not read.
  const at::Tensor whole = torch::zeros({2}, c10::kLong), turned = torch::zeros({3, 2}).t();
  EXPECT_NE(message_of([&] { scene->set_ctrl(to_view(whole).span<float>()); }).find("int64"), std::string::npos);
  EXPECT_NE(message_of([&] { scene->set_ctrl(to_view(turned).span<float>()); }).find("contiguous"), std::string::npos);
  const at::Tensor wide = torch::zeros({2, 9});
  EXPECT_NE(message_of([&] { scene->set_ctrl(to_view(wide).span<float>()); }).find("18 values"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Engines, SceneTensor, ::testing::Values(sim::EngineKind::kBatched, sim::EngineKind::kMujoco),
                         [](const auto& each) { return sim::to_string(each.param); });

}  // namespace
}  // namespace cohort::tensors
