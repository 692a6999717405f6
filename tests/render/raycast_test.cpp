// The ray caster by itself: formulas, the same bytes whatever computes them, and what is refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "scenes.h"

namespace cohort::render {
namespace {

using test::built_scene;
using test::model_file;

const Wanted kAll{.rgb = true, .depth = true, .segmentation = true, .normal = true};

bool same(const Frames& a, const Frames& b) {
  return a.rgb == b.rgb && a.segmentation == b.segmentation &&
         std::memcmp(a.depth.data(), b.depth.data(), a.depth.size() * sizeof(float)) == 0 &&
         std::memcmp(a.normal.data(), b.normal.data(), a.normal.size() * sizeof(float)) == 0;
}

/// A scene whose environments stand differently.
std::unique_ptr<sim::Scene> fallen_scene(int n_envs) {
  auto scene = built_scene(model_file("shapes.xml"), n_envs, sim::EngineKind::kBatched);
  std::vector<float> qvel(static_cast<std::size_t>(n_envs * scene->info().nv));
  for (std::size_t i = 0; i < qvel.size(); ++i) qvel[i] = 0.4f * std::sin(static_cast<float>(i));
  scene->set_qvel(qvel);
  for (int i = 0; i < 120; ++i) scene->step();
  return scene;
}

TEST(Raycast, ASphereHasTheDepthAndNormalsOfItsFormula) {
  sim::Scene scene;
  scene.add_entity(sim::Sphere{.radius = 0.5, .shape = {.fixed = true}}, "ball");
  scene.add_camera({.name = "front", .pos = {3, 0, 0}, .lookat = {0, 0, 0}, .fov = 40});
  scene.build(1);
  const auto renderer = make_renderer(scene);
  constexpr int kSide = 65;
  const std::vector<std::int32_t> envs{0};
  const Frames f = renderer->render(renderer->camera("front"), envs, kSide, kSide, kAll);
  const double reach = std::tan(20 * std::numbers::pi / 180);
  int hits = 0;
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const double y = reach * (2 * (column + 0.5) / kSide - 1), z = reach * (1 - 2 * (row + 0.5) / kSide);
      // From (3, 0, 0) along (-1, y, z); the camera's right is the world's y.
      const double a = 1 + y * y + z * z, rest = 9 - a * (9 - 0.25);
      const std::size_t i = static_cast<std::size_t>(row * kSide + column);
      if (rest < 0) {
        EXPECT_EQ(f.segmentation[i], -1);
        continue;
      }
      ++hits;
      const double t = (3 - std::sqrt(rest)) / a;
      EXPECT_EQ(f.segmentation[i], 0);
      EXPECT_NEAR(f.depth[i], t, 2e-6);
      EXPECT_NEAR(f.normal[3 * i], (3 - t) / 0.5, 1e-5);
      EXPECT_NEAR(f.normal[3 * i + 1], t * y / 0.5, 1e-5);
      EXPECT_NEAR(f.normal[3 * i + 2], t * z / 0.5, 1e-5);
    }
  }
  EXPECT_GT(hits, 500);
}

TEST(Raycast, EveryWidthOfLanesGivesTheSameBytes) {
  for (const char* file : {"shapes.xml", "mapped.xml", "lights.xml"}) {
    const auto scene = built_scene(model_file(file));
    const std::vector<std::int32_t> envs{0};
    RendererSettings settings{.shadows = true, .lanes = sim::LaneWidth::kScalar};
    const auto scalar = make_renderer(*scene, settings);
    for (const sim::LaneWidth lanes : {sim::LaneWidth::kAvx2, sim::LaneWidth::kAvx512}) {
      settings.lanes = lanes;
      std::unique_ptr<Renderer> wide;
      if (!message_of([&] { wide = make_renderer(*scene, settings); }).empty()) continue;  // not this processor
      for (int camera = 0; camera < static_cast<int>(scalar->cameras().size()); ++camera) {
        EXPECT_TRUE(same(scalar->render(camera, envs, 101, 67, kAll), wide->render(camera, envs, 101, 67, kAll)))
            << file << ", camera " << camera << ", " << sim::to_string(lanes);
      }
    }
  }
}

TEST(Raycast, CulledAndUnculledAreTheSameBytes) {
  for (const char* file : {"shapes.xml", "mapped.xml", "lights.xml"}) {
    const auto scene = built_scene(model_file(file));
    const std::vector<std::int32_t> envs{0};
    const auto culled = make_renderer(*scene, {.shadows = true});
    const auto unculled = make_renderer(*scene, {.shadows = true, .culling = false});
    for (int camera = 0; camera < static_cast<int>(culled->cameras().size()); ++camera) {
      EXPECT_TRUE(same(culled->render(camera, envs, 120, 90, kAll), unculled->render(camera, envs, 120, 90, kAll)))
          << file << ", camera " << camera;
    }
  }
}

TEST(Raycast, ManyEnvironmentsAndThreadsGiveTheBytesOfOne) {
  constexpr int kEnvs = 11;
  const auto scene = fallen_scene(kEnvs);
  const auto one = make_renderer(*scene);
  const auto three = make_renderer(*scene, {.threads = 3});
  std::vector<std::int32_t> envs;
  for (int e = kEnvs - 1; e >= 0; --e) envs.push_back(e);
  const int camera = one->camera("front");
  const Frames together = three->render(camera, envs, 50, 40, kAll);
  constexpr std::size_t kPixels = 50 * 40;
  std::vector<std::vector<std::uint8_t>> seen;
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const Frames alone = one->render(camera, std::span(&envs[i], 1), 50, 40, kAll);
    EXPECT_TRUE(std::equal(alone.rgb.begin(), alone.rgb.end(),
                           together.rgb.begin() + static_cast<std::ptrdiff_t>(3 * kPixels * i)));
    EXPECT_TRUE(std::equal(alone.depth.begin(), alone.depth.end(),
                           together.depth.begin() + static_cast<std::ptrdiff_t>(kPixels * i)));
    EXPECT_TRUE(std::equal(alone.segmentation.begin(), alone.segmentation.end(),
                           together.segmentation.begin() + static_cast<std::ptrdiff_t>(kPixels * i)));
    EXPECT_EQ(std::count(seen.begin(), seen.end(), alone.rgb), 0) << "environment " << envs[i] << " stands as another";
    seen.push_back(alone.rgb);
  }
}

TEST(Raycast, PicturesInPlaceAreThoseOfTheCallersMemory) {
  const auto scene = fallen_scene(3);
  const auto renderer = make_renderer(*scene);
  const std::vector<std::int32_t> envs{2, 0};
  EXPECT_EQ(renderer->device(), DeviceId{});
  const Frames truth = renderer->render(1, envs, 31, 23, kAll);
  const Pictures p = renderer->render_in_place(1, envs, 31, 23, {.rgb = true, .depth = true});
  renderer->render_in_place(0, envs, 31, 23);
  EXPECT_TRUE(std::ranges::equal(p.rgb.span<std::uint8_t>(), truth.rgb));
  EXPECT_TRUE(std::ranges::equal(p.depth.span<float>(), truth.depth));
  EXPECT_EQ(p.normal.data, nullptr);
  EXPECT_NE(message_of([&] { renderer->render_in_place(9, envs, 8, 8); }).find("there is no camera 9"),
            std::string::npos);
}

TEST(Raycast, BothEnginesShowTheSameState) {
  const auto batched = built_scene(model_file("shapes.xml"), 1, sim::EngineKind::kBatched);
  const auto mujoco = built_scene(model_file("shapes.xml"), 1, sim::EngineKind::kMujoco);
  std::vector<float> qpos = batched->get_qpos();
  for (std::size_t i = 2; i < qpos.size(); i += 7) qpos[i] += 0.1f;
  batched->set_qpos(qpos), mujoco->set_qpos(qpos);
  const std::vector<std::int32_t> envs{0};
  const Frames a = make_renderer(*batched)->render(0, envs, 160, 120, kAll);
  const Frames b = make_renderer(*mujoco)->render(0, envs, 160, 120, kAll);
  int different = 0;
  for (std::size_t i = 0; i < a.segmentation.size(); ++i) different += a.segmentation[i] != b.segmentation[i];
  EXPECT_LE(different, 20);  // poses rounded to float move an edge by less than a pixel
}

TEST(Raycast, GroupsSitesAndTransparencyDecideWhatIsSeen) {
  const auto scene = built_scene(model_file("shapes.xml"));
  const std::vector<std::int32_t> envs{0};
  RendererSettings settings;
  const auto all = make_renderer(*scene, settings);
  settings.site_groups.fill(false);
  const auto no_sites = make_renderer(*scene, settings);
  settings.geom_groups.fill(false);
  const auto nothing = make_renderer(*scene, settings);
  const int camera = all->camera("front");
  const Frames a = all->render(camera, envs, 200, 150, kAll), b = no_sites->render(camera, envs, 200, 150, kAll),
               c = nothing->render(camera, envs, 200, 150, kAll);
  EXPECT_NE(a.rgb, b.rgb);
  EXPECT_TRUE(std::all_of(c.segmentation.begin(), c.segmentation.end(), [](int id) { return id == -1; }));
  // The glass is in the segmentation; the depth is of what is behind it.
  const int glass = scene->info().geom("glass"), floor = scene->info().geom("floor");
  int through = 0;
  for (std::size_t i = 0; i < a.segmentation.size(); ++i) {
    if (a.segmentation[i] != glass) continue;
    const float* n = &a.normal[3 * i];
    through += n[2] > 0.999f && a.depth[i] > 2.2f;
  }
  EXPECT_GT(through, 100) << "of geom " << floor;
}

TEST(Raycast, WhatDoesNotFitIsRefusedWithItsNumbers) {
  const auto scene = built_scene(model_file("shapes.xml"), 2);
  const auto renderer = make_renderer(*scene);
  EXPECT_NE(message_of([&] { renderer->camera("frond"); }).find("is `front` meant?"), std::string::npos);
  const std::vector<std::int32_t> both{0, 1}, third{2};
  EXPECT_NE(message_of([&] { renderer->render(0, third, 8, 8); }).find("environment 2 does not exist"),
            std::string::npos);
  EXPECT_NE(message_of([&] { renderer->render(9, both, 8, 8); }).find("there is no camera 9"), std::string::npos);
  EXPECT_NE(message_of([&] { renderer->render(0, both, 0, 8); }).find("a width of 0 pixels"), std::string::npos);
  std::vector<std::uint8_t> rgb(3 * 64);
  std::vector<float> depth(64);
  EXPECT_NE(message_of([&] {
              renderer->render(0, both, Pictures{.rgb = make_view(rgb.data(), {1, 8, 8, 3})});
            }).find("holds 1 pictures and 2 environments"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              renderer->render(
                  0, std::span(both).first(1),
                  Pictures{.rgb = make_view(rgb.data(), {1, 8, 8, 3}), .depth = make_view(depth.data(), {1, 4, 16})});
            }).find("another 8 x 8"),
            std::string::npos);
  EXPECT_NE(message_of([&] { make_renderer(*scene, {.kind = "vulkan"}); }).find("raycast or mujoco"),
            std::string::npos);
  EXPECT_NE(message_of([&] { make_renderer(*scene, {.threads = 0}); }).find("threads is 0"), std::string::npos);
}

TEST(Raycast, ACameraThatSeesAllHasEveryThingThatMovesInItsPicture) {
  const auto scene = built_scene(model_file("shapes.xml"));
  const auto renderer = make_renderer(*scene);
  const int camera = renderer->add_camera_that_sees_all(160, 90);
  const std::vector<std::int32_t> envs{0};
  const Frames f = renderer->render(camera, envs, 160, 90, kAll);
  for (std::size_t g = 0; g < scene->info().geoms.size(); ++g) {
    if (scene->info().geoms[g].link == 0) continue;
    EXPECT_GT(std::count(f.segmentation.begin(), f.segmentation.end(), static_cast<int>(g)), 0)
        << scene->info().geoms[g].name;
  }
}

// Three spheres of 0.3 m at the corners of a grid 2 m apart (the fourth place is empty), seen from above without
// perspective: their centres lie where the spacing says.
TEST(Raycast, EnvironmentsTogetherStandWhereTheSpacingPutsThem) {
  sim::Scene scene;
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><statistic extent="4"/><worldbody>
    <camera name="above" pos="0 0 5" projection="orthographic" fovy="8"/><geom type="plane" size="0 0 1"/>
    <body pos="0 0 1"><freejoint/><geom name="ball" size=".3"/></body></worldbody></mujoco>)"});
  scene.build(3, {2.0, 3.0});
  std::vector<float> qpos = scene.get_qpos();
  qpos[2 * 7] += 0.5f;  // the third one's ball
  scene.set_qpos(qpos);
  const auto renderer = make_renderer(scene);
  const std::vector<std::int32_t> envs{0, 1, 2};
  constexpr int kSide = 160;  // 0.05 m a pixel
  std::vector<std::int32_t> seen(kSide * kSide);
  std::vector<std::uint8_t> rgb(3 * kSide * kSide);
  renderer->render_together(
      renderer->camera("above"), envs,
      {.rgb = make_view(rgb.data(), {1, kSide, kSide, 3}), .segmentation = make_view(seen.data(), {1, kSide, kSide})});
  const auto geom_at = [&](double x, double y) {
    const auto column = static_cast<std::size_t>((x + 4) / 0.05), row = static_cast<std::size_t>((4 - y) / 0.05);
    return seen[row * kSide + column];
  };
  EXPECT_EQ(geom_at(-1, -1.5), 1);
  EXPECT_EQ(geom_at(-1, 1.5), 1);
  EXPECT_EQ(geom_at(1.5, -1.5), 1);
  EXPECT_EQ(geom_at(1, 1.5), 0) << "the fourth place is empty";
  EXPECT_EQ(geom_at(0, 0), 0);
  const auto balls = std::count(seen.begin(), seen.end(), 1);
  EXPECT_NEAR(static_cast<double>(balls), 3 * std::numbers::pi * 0.09 / 0.0025, 20);
  // A camera for all has each of them in its picture, and not at an edge.
  const int all = renderer->add_camera_that_sees_all(kSide, kSide, envs);
  for (const std::int32_t env : envs) {
    const std::vector<std::int32_t> one{env};
    renderer->render_together(all, one, {.segmentation = make_view(seen.data(), {1, kSide, kSide})});
    EXPECT_GT(std::count(seen.begin(), seen.end(), 1), 50) << env;
    for (std::size_t i = 0; i < kSide; ++i)
      for (const std::size_t at : {i, kSide * (kSide - 1) + i, kSide * i, kSide * i + kSide - 1})
        EXPECT_NE(seen[at], 1) << env;
  }
  // The same bytes without culling.
  const auto unculled = make_renderer(scene, {.culling = false});
  std::vector<std::uint8_t> again(rgb.size());
  unculled->render_together(unculled->camera("above"), envs, {.rgb = make_view(again.data(), {1, kSide, kSide, 3})});
  EXPECT_EQ(rgb, again);
}

TEST(Raycast, ACameraOfALinkGoesWithTheFirstEnvironmentThatIsShown) {
  sim::Scene scene;
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><worldbody><body pos="0 0 1"><freejoint/>
    <geom name="ball" size=".1"/><camera name="own" pos="0 0 1"/></body></worldbody></mujoco>)"});
  scene.build(4, {50.0, 50.0});
  const auto renderer = make_renderer(scene);
  const std::vector<std::int32_t> two{2, 3}, last{2};
  const Frames alone = renderer->render(renderer->camera("own"), last, 32, 32, {.segmentation = true});
  std::vector<std::int32_t> seen(32 * 32);
  renderer->render_together(renderer->camera("own"), two, {.segmentation = make_view(seen.data(), {1, 32, 32})});
  EXPECT_EQ(seen, alone.segmentation) << "the other one is 50 m away";
}

TEST(Raycast, AFieldOfViewOfTheRequestReplacesTheCameras) {
  const auto scene = built_scene(model_file("shapes.xml"));
  const auto renderer = make_renderer(*scene);
  const std::vector<std::int32_t> envs{0};
  std::vector<std::uint8_t> narrow(3 * 40 * 30), own(narrow.size()), named(narrow.size());
  const int camera = renderer->camera("front");
  renderer->render(camera, envs, Pictures{.rgb = make_view(narrow.data(), {1, 30, 40, 3}), .fovy = 20});
  renderer->render(camera, envs, Pictures{.rgb = make_view(own.data(), {1, 30, 40, 3})});
  renderer->render(camera, envs, Pictures{.rgb = make_view(named.data(), {1, 30, 40, 3}), .fovy = 45});
  EXPECT_NE(narrow, own);
  EXPECT_EQ(named, own);
}

}  // namespace
}  // namespace cohort::render
