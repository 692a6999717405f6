// The ray caster on a CUDA device beside the processor's. The source is one, without contraction, of operations that
// IEEE 754 rounds in one way: nothing but the same bytes is right. In render_host_cuda_test the device is made of the
// host's memory (tests/sim/host_cuda): the same source but for nvcc and what it makes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "sim/backends/cuda/engine.h"
#include "sim/backends/cuda/runner.h"
#include "ten_scenes.h"

namespace cohort::render {
namespace {

using test::model_file;

const Wanted kAll{.rgb = true, .depth = true, .segmentation = true, .normal = true};
const DeviceId kFirst{DeviceKind::kCuda, 0};

/// Where two pictures differ first; "" for the same bytes.
std::string difference(const Frames& a, const Frames& b) {
  const auto first = [](const auto& x, const auto& y) {
    std::size_t i = 0;
    while (i < x.size() && std::memcmp(&x[i], &y[i], sizeof x[i]) == 0) ++i;
    return i;
  };
  const auto text = [&](const char* what, const auto& x, const auto& y) -> std::string {
    if (x.empty() || x.size() != y.size()) return format("{}: {} and {} numbers", what, x.size(), y.size());
    const std::size_t i = first(x, y);
    return i == x.size() ? "" : format("{}: number {} is {} and {}", what, i, +x[i], +y[i]);
  };
  std::string all;
  for (const std::string& one :
       {text("rgb", a.rgb, b.rgb), text("depth", a.depth, b.depth),
        text("segmentation", a.segmentation, b.segmentation), text("normal", a.normal, b.normal)}) {
    if (!one.empty()) all += one + "; ";
  }
  return all;
}

std::vector<unsigned char> download(const ArrayView& view) {
  std::vector<unsigned char> bytes(view.bytes());
  const char* why = sim::cuda::download(view.device.index, view.stream, bytes.data(), view.data, bytes.size());
  EXPECT_EQ(why, nullptr) << why;
  return bytes;
}

template <class T>
bool holds(const std::vector<unsigned char>& bytes, const std::vector<T>& values) {
  return bytes.size() == values.size() * sizeof(T) && std::memcmp(bytes.data(), values.data(), bytes.size()) == 0;
}

class RaycastOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!sim::cuda::available()) GTEST_SKIP() << "this build has no CUDA kernels";
    if (sim::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

class PicturesOnGpu : public RaycastOnGpu, public ::testing::WithParamInterface<test::SceneCase> {};

// The engine mujoco's poses are doubles in host memory.
TEST_P(PicturesOnGpu, AreTheProcessorsBytes) {
  const test::SceneCase& c = GetParam();
  const std::filesystem::path file = c.path();
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no " << file;
  const auto scene = test::built_scene(file.string(), 1, sim::EngineKind::kMujoco);
  for (int i = 0; i < c.steps; ++i) scene->step();
  const std::vector<std::int32_t> envs{0};
  for (const bool shadows : {false, true}) {
    RendererSettings settings;
    settings.shadows = shadows;
    if (c.visual_groups_only) settings.geom_groups[0] = false;
    const auto processor = make_renderer(*scene, settings);
    settings.device = kFirst;
    const auto device = make_renderer(*scene, settings);
    const int width = shadows ? c.width / 2 : c.width, height = shadows ? c.height / 2 : c.height;
    for (Renderer* r : {processor.get(), device.get()}) r->add_camera_that_sees_all(width, height);
    for (int camera = 0; camera < static_cast<int>(device->cameras().size()); ++camera) {
      EXPECT_EQ(difference(processor->render(camera, envs, width, height, kAll),
                           device->render(camera, envs, width, height, kAll)),
                "")
          << "camera " << camera << (shadows ? " with shadows" : "");
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Scenes, PicturesOnGpu, ::testing::ValuesIn(test::ten_scenes()),
                         [](const auto& of) { return std::string(of.param.name); });

/// Of environments that stand differently, on the first device.
std::unique_ptr<sim::Scene> scene_on_device(int n_envs, std::array<double, 2> spacing = {0, 0}) {
  sim::SceneOptions options;
  options.device = kFirst;
  auto scene = std::make_unique<sim::Scene>(options);
  scene->add_entity(sim::Mjcf{model_file("shapes.xml")});
  scene->build(n_envs, spacing);
  std::vector<float> qvel(static_cast<std::size_t>(n_envs * scene->info().nv));
  for (std::size_t i = 0; i < qvel.size(); ++i) qvel[i] = 0.4f * std::sin(static_cast<float>(i));
  scene->set_qvel(qvel);
  for (int i = 0; i < 60; ++i) scene->step();
  return scene;
}

TEST_F(RaycastOnGpu, ASceneOfADeviceIsDrawnThereFromItsOwnPoses) {
  const auto scene = scene_on_device(6);
  const auto processor = make_renderer(*scene, {.device = DeviceId{}});
  const auto device = make_renderer(*scene);
  EXPECT_EQ(processor->device(), DeviceId{});
  EXPECT_EQ(device->device(), kFirst);
  EXPECT_EQ(device->stream(), scene->view(sim::Field::kLinkPos).stream);
  const std::vector<std::int32_t> envs{4, 1, 5, 0};
  for (int i = 0; i < 3; ++i) {
    for (const int camera : {processor->camera("front"), processor->camera("flat")}) {
      const Frames truth = processor->render(camera, envs, 90, 70, kAll);
      EXPECT_EQ(difference(truth, device->render(camera, envs, 90, 70, kAll)), "") << "after step " << i;
      const std::size_t one = truth.rgb.size() / envs.size();
      EXPECT_NE(std::memcmp(truth.rgb.data(), truth.rgb.data() + one, one), 0) << "the environments stand alike";
    }
    scene->step();
  }
}

TEST_F(RaycastOnGpu, PicturesInPlaceStayOnTheDeviceAndFollowTheState) {
  const auto scene = scene_on_device(5);
  const auto processor = make_renderer(*scene, {.device = DeviceId{}});
  const auto device = make_renderer(*scene);
  const int camera = device->camera("side");
  const std::vector<std::int32_t> envs{0, 1, 2, 3, 4};
  std::vector<unsigned char> before;
  for (int i = 0; i < 2; ++i) {
    for (int s = 0; s < 40; ++s) scene->step();
    // Nothing is waited for between the steps and the pictures: the stream is one.
    const Pictures p = device->render_in_place(camera, envs, 64, 48, kAll);
    for (const ArrayView* view : {&p.rgb, &p.depth, &p.segmentation, &p.normal}) {
      EXPECT_EQ(view->device, kFirst);
      EXPECT_EQ(view->stream, device->stream());
      EXPECT_EQ(view->shape[0], 5);
      EXPECT_TRUE(view->contiguous());
    }
    EXPECT_EQ(p.rgb.rank, 4);
    EXPECT_EQ(p.depth.rank, 3);
    const std::vector<unsigned char> rgb = download(p.rgb);
    const Frames truth = processor->render(camera, envs, 64, 48, kAll);
    EXPECT_TRUE(holds(rgb, truth.rgb));
    EXPECT_TRUE(holds(download(p.depth), truth.depth));
    EXPECT_TRUE(holds(download(p.segmentation), truth.segmentation));
    EXPECT_TRUE(holds(download(p.normal), truth.normal));
    EXPECT_NE(rgb, before) << "nothing moves";
    before = rgb;
    // Only what is asked for, and smaller, in the same memory.
    const Pictures less = device->render_in_place(camera, std::span(envs).first(2), 64, 48);
    EXPECT_EQ(less.depth.data, nullptr);
    EXPECT_EQ(less.rgb.data, p.rgb.data);
    EXPECT_TRUE(std::equal(truth.rgb.begin(), truth.rgb.begin() + 2 * 64 * 48 * 3, download(less.rgb).begin()));
    // Another camera's have memory of their own.
    const Pictures other = device->render_in_place(device->camera("flat"), envs, 64, 48);
    EXPECT_NE(other.rgb.data, less.rgb.data);
    EXPECT_TRUE(std::equal(truth.rgb.begin(), truth.rgb.begin() + 2 * 64 * 48 * 3, download(less.rgb).begin()));
  }
}

TEST_F(RaycastOnGpu, SomeAtATimeAndUnculledAreTheSameBytes) {
  const auto scene = scene_on_device(7);
  const auto all = make_renderer(*scene), some = make_renderer(*scene, {.device_workspace = 1}),
             unculled = make_renderer(*scene, {.culling = false});
  const std::vector<std::int32_t> envs{6, 5, 4, 3, 2, 1, 0};
  for (int camera = 0; camera < static_cast<int>(all->cameras().size()); ++camera) {
    const Frames truth = all->render(camera, envs, 53, 37, kAll);
    EXPECT_EQ(difference(truth, some->render(camera, envs, 53, 37, kAll)), "");
    EXPECT_EQ(difference(truth, unculled->render(camera, envs, 53, 37, kAll)), "");
    const Pictures in_place = some->render_in_place(camera, envs, 53, 37, kAll);
    EXPECT_TRUE(holds(download(in_place.rgb), truth.rgb));
    EXPECT_TRUE(holds(download(in_place.normal), truth.normal));
  }
}

TEST_F(RaycastOnGpu, EnvironmentsTogetherAreTheProcessorsBytes) {
  const auto scene = scene_on_device(9, {2.5, 2.0});
  const auto processor = make_renderer(*scene, {.device = DeviceId{}, .shadows = true});
  const auto device = make_renderer(*scene, {.shadows = true});
  const std::vector<std::int32_t> envs{0, 1, 2, 3, 5, 7, 8};
  for (Renderer* r : {processor.get(), device.get()}) r->add_camera_that_sees_all(150, 110, envs);
  for (int camera = 0; camera < static_cast<int>(device->cameras().size()); ++camera) {
    Frames frames[2];
    for (int i = 0; i < 2; ++i) {
      Frames& f = frames[i];
      f.rgb.resize(150 * 110 * 3), f.depth.resize(150 * 110), f.segmentation.resize(150 * 110);
      f.normal.resize(150 * 110 * 3);
      (i == 0 ? processor : device)
          ->render_together(camera, envs,
                            {.rgb = make_view(f.rgb.data(), {1, 110, 150, 3}),
                             .depth = make_view(f.depth.data(), {1, 110, 150}),
                             .segmentation = make_view(f.segmentation.data(), {1, 110, 150}),
                             .normal = make_view(f.normal.data(), {1, 110, 150, 3})});
    }
    EXPECT_EQ(difference(frames[0], frames[1]), "") << "camera " << camera;
  }
}

TEST_F(RaycastOnGpu, AnEnvironmentThatBrokeLeavesItsNeighboursPicturesAlone) {
  const auto scene = scene_on_device(3);
  const auto device = make_renderer(*scene);
  const std::vector<std::int32_t> envs{0, 1, 2}, others{0, 2};
  const int camera = device->camera("front");
  std::vector<float> qpos(static_cast<std::size_t>(scene->info().nq), std::nanf(""));
  scene->set_qpos(qpos, {1});
  scene->forward();
  const Frames all = device->render(camera, envs, 40, 30, kAll), two = device->render(camera, others, 40, 30, kAll);
  const std::size_t one = two.rgb.size() / 2;
  EXPECT_EQ(std::memcmp(all.rgb.data(), two.rgb.data(), one), 0);
  EXPECT_EQ(std::memcmp(all.rgb.data() + 2 * one, two.rgb.data() + one, one), 0);
}

TEST_F(RaycastOnGpu, WhatItCannotDoIsRefusedByName) {
  const auto scene = test::built_scene(model_file("shapes.xml"));
  EXPECT_NE(message_of([&] {
              make_renderer(*scene, {.device = DeviceId{DeviceKind::kCuda, 99}});
            }).find("cannot draw on cuda:99: this process sees"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              make_renderer(*scene, {.device = kFirst, .lanes = sim::LaneWidth::kScalar});
            }).find("no scalar lanes on cuda:0"),
            std::string::npos);
  const auto device = make_renderer(*scene, {.device = kFirst});
  const std::vector<std::int32_t> envs{0};
  const Pictures here = device->render_in_place(0, envs, 16, 16);
  const auto processor = make_renderer(*scene);
  EXPECT_NE(message_of([&] { processor->render(0, envs, here); }).find("not a contiguous one in host memory"),
            std::string::npos);
  Pictures elsewhere = here;
  elsewhere.rgb.device.index = 7;
  EXPECT_NE(message_of([&] { device->render(0, envs, elsewhere); }).find("in host memory or on cuda:0"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::render
