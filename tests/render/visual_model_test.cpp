// What is seen of a model, and the part of a compiled file that holds it.
#include "sim/host/visual_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/message_of.h"
#include "scenes.h"
#include "sim/host/model.h"

namespace cohort::render {
namespace {

using test::built_scene;
using test::model_file;

TEST(VisualModel, ACompiledModelIsDrawnAsItsFile) {
  const TemporaryFolder folder("cohort-visual");
  const auto file = folder.path() / "shapes.cohort";
  const auto from_text = built_scene(model_file("shapes.xml"), 1, sim::EngineKind::kBatched);
  from_text->save_model(file);
  sim::Scene from_file;
  const int own = from_file.add_camera({.name = "own", .pos = {2, 2, 2}, .lookat = {0, 0, 0}});
  EXPECT_EQ(own, 0);
  from_file.build_from_file(file, 1);
  const auto a = make_renderer(*from_text), b = make_renderer(from_file);
  const std::vector<std::int32_t> envs{0};
  const Wanted all{.rgb = true, .depth = true, .segmentation = true, .normal = true};
  for (const char* camera : {"front", "side", "flat"}) {
    const Frames f = a->render(a->camera(camera), envs, 80, 60, all),
                 g = b->render(b->camera(camera), envs, 80, 60, all);
    EXPECT_EQ(f.rgb, g.rgb) << camera;
    EXPECT_EQ(f.depth, g.depth) << camera;
    EXPECT_EQ(f.segmentation, g.segmentation) << camera;
  }
  EXPECT_EQ(b->cameras()[static_cast<std::size_t>(b->camera("own"))].name, "own");
}

TEST(VisualModel, AFileOfPhysicsOnlySaysThatItHoldsNoPictures) {
  const TemporaryFolder folder("cohort-visual");
  const auto file = folder.path() / "physics.cohort";
  const auto scene = built_scene(model_file("shapes.xml"), 1, sim::EngineKind::kBatched);
  sim::save_model(sim::import_model(scene->binary_model()), file);
  sim::Scene physics;
  physics.build_from_file(file, 1);
  physics.step();
  EXPECT_NE(message_of([&] { make_renderer(physics); }).find("holds physics only, no pictures"), std::string::npos);
}

TEST(VisualModel, DamageToTheSeenPartIsFoundWhenTheModelIsLoaded) {
  const TemporaryFolder folder("cohort-visual");
  const auto file = folder.path() / "shapes.cohort";
  const auto scene = built_scene(model_file("shapes.xml"), 1, sim::EngineKind::kBatched);
  sim::save_model(sim::import_model(scene->binary_model()), file);
  const std::size_t physics = read_file(file).size();
  scene->save_model(file);
  const std::string whole = read_file(file);
  ASSERT_GT(whole.size(), physics + 1000);
  for (const std::size_t at : {physics + 2, physics + 20, physics + 500, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file_atomically(file, damaged);
    EXPECT_NE(message_of([&] { sim::load_model(file); }).find("damaged"), std::string::npos) << at;
  }
  for (const std::size_t length : {physics + 1, physics + 30, whole.size() - 1}) {
    write_file_atomically(file, whole.substr(0, length));
    EXPECT_NE(message_of([&] { sim::load_model(file); }).find("damaged"), std::string::npos) << length;
  }
  write_file_atomically(file, whole);
  sim::load_model(file);
  EXPECT_EQ(sim::load_visual_model(file)->geoms.size(), scene->visual_model()->geoms.size());
}

TEST(VisualModel, ACompiledModelKeepsItsMeshesTreesAndATreeThatLeadsNowhereIsFound) {
  const TemporaryFolder folder("cohort-visual");
  const auto file = folder.path() / "mapped.cohort";
  const auto scene = built_scene(model_file("mapped.xml"), 1, sim::EngineKind::kBatched);
  scene->save_model(file);
  sim::VisualModel kept = *sim::load_visual_model(file);
  ASSERT_GT(kept.meshes.size(), 0u);
  for (const sim::VisualMesh& mesh : kept.meshes) {
    EXPECT_FALSE(mesh.tree.empty());
    std::vector<int> seen(mesh.face.size() / 3, 0);
    for (const std::int32_t t : mesh.tree.triangle) {
      if (t >= 0) ++seen.at(static_cast<std::size_t>(t));
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size()));
  }
  // The same pictures as by trees that are built for them.
  sim::Scene from_file;
  from_file.build_from_file(file, 1);
  const std::vector<std::int32_t> envs{0};
  EXPECT_EQ(make_renderer(*scene)->render(0, envs, 90, 60).rgb, make_renderer(from_file)->render(0, envs, 90, 60).rgb);
  // With the right checksums of what is wrong.
  const sim::Model physics = sim::import_model(scene->binary_model());
  const auto refused = [&](auto damage) {
    sim::VisualModel damaged = kept;
    damage(damaged.meshes[0].tree);
    sim::save_model(physics, file, &damaged);
    return message_of([&] { sim::load_visual_model(file); });
  };
  EXPECT_EQ(refused([](sim::MeshTree&) {}), "");
  EXPECT_NE(refused([](sim::MeshTree& t) { t.triangle[0] = 1 << 30; }).find("points nowhere"), std::string::npos);
  EXPECT_NE(refused([](sim::MeshTree& t) { t.node[0].child[0] = 0; }).find("points nowhere"), std::string::npos);
  EXPECT_NE(refused([](sim::MeshTree& t) { t.node[0].child[0] = ~(1 << 30); }).find("points nowhere"),
            std::string::npos);
  EXPECT_NE(refused([](sim::MeshTree& t) { t.triangle.push_back(-1); }).find("points nowhere"), std::string::npos);
}

TEST(VisualModel, HoldsGeomsOfWeldedLinksWhereTheyStand) {
  sim::Scene scene;
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(
    <mujoco><worldbody><camera name="c" pos="0 -4 0" xyaxes="1 0 0 0 0 1" fovy="40"/>
      <body name="a" pos="0 0 0"><joint axis="0 1 0"/><geom name="ga" size=".2" mass="1"/>
        <body name="b" pos="1 0 0" euler="0 0 90"><body name="c" pos="0 0 .5"><geom name="gc" size=".1" mass="1"/></body>
      </body></body></worldbody></mujoco>)"});
  scene.build(1);
  const auto renderer = make_renderer(scene);
  const std::vector<std::int32_t> envs{0};
  const Frames f = renderer->render(0, envs, 201, 201, {.rgb = false, .segmentation = true});
  const int gc = scene.info().geom("gc");
  double x = 0, y = 0, n = 0;
  for (int i = 0; i < 201 * 201; ++i) {
    if (f.segmentation[static_cast<std::size_t>(i)] == gc) x += i % 201, y += i / 201, n += 1;
  }
  ASSERT_GT(n, 20);
  // (1, 0, 0.5) at 4 m through tan(20 degrees).
  EXPECT_NEAR(x / n, 100 + 1 / (4 * 0.36397) * 100.5, 1);
  EXPECT_NEAR(y / n, 100 - 0.5 / (4 * 0.36397) * 100.5, 1);
}

TEST(VisualModel, ASceneThatNoFileLightsHasSkyLightWithShadowsAndSquaresOnItsPlane) {
  const auto seen = [](const std::vector<sim::Morph>& entities) {
    sim::Scene scene;
    for (const sim::Morph& morph : entities) scene.add_entity(morph);
    scene.build(1);
    return *scene.visual_model();
  };
  const auto has_sky = [](const sim::VisualModel& m) {
    return std::any_of(m.textures.begin(), m.textures.end(),
                       [](const auto& t) { return t.kind == sim::VisualTexture::Kind::kSkybox; });
  };
  const sim::VisualModel shapes = seen({sim::Plane{}, sim::Box{.size = {0.2, 0.2, 0.2}}});
  EXPECT_TRUE(has_sky(shapes));
  ASSERT_FALSE(shapes.lights.empty());
  EXPECT_TRUE(std::any_of(shapes.lights.begin(), shapes.lights.end(), [](const sim::VisualLight& l) {
    return l.kind == sim::VisualLight::Kind::kDirectional && l.casts_shadow && l.dir[2] < 0;
  }));
  const auto is_plane = [](const sim::VisualGeom& g) { return g.shape == sim::VisualShape::kPlane; };
  const auto textured = [&](const sim::VisualModel& m) {
    const auto plane = std::find_if(m.geoms.begin(), m.geoms.end(), is_plane);
    return plane != m.geoms.end() && plane->material >= 0 &&
           m.materials[static_cast<std::size_t>(plane->material)].texture >= 0;
  };
  EXPECT_TRUE(textured(shapes));
  EXPECT_FALSE(textured(seen({sim::Plane{.rgba = {0.2f, 0.6f, 0.2f, 1}}}))) << "a colour that was chosen stays";
  // An MJCF file says itself what it looks like; the plane below it has its squares all the same.
  const std::string bare = "<mujoco><worldbody><geom type='sphere' size='.1'/></worldbody></mujoco>";
  const sim::VisualModel file = seen({sim::Mjcf{.xml = bare}}),
                         with_plane = seen({sim::Mjcf{.xml = bare}, sim::Plane{}});
  EXPECT_FALSE(has_sky(file));
  EXPECT_EQ(file.lights.size(), with_plane.lights.size());
  EXPECT_FALSE(has_sky(with_plane));
  EXPECT_TRUE(textured(with_plane));
}

}  // namespace
}  // namespace cohort::render
