// What a page is told of a scene is what the ray caster draws.
#include "view/document.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "core/files.h"
#include "render/traced_scene.h"
#include "view/binary_document.h"
#include "view/page.h"
#include "view/scene_document.h"

namespace cohort::view {
namespace {

using test::ReadDocument;

const std::string kModels = COHORT_SOURCE_DIR "/tests/";

void build(sim::Scene& scene, const std::string& model, int n_envs = 1) {
  scene.add_entity(sim::Mjcf{kModels + model});
  scene.build(n_envs);
}

std::string unbase64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(letters.find(c));
    if (count = count + 6; count >= 8) out += static_cast<char>(bits >> (count -= 8) & 255u);
  }
  return out;
}

TEST(BinaryDocument, BytesOfAnyLengthSurviveBase64AndZlib) {
  for (const std::size_t n : {0u, 1u, 2u, 3u, 1000u}) {
    std::string bytes;
    for (std::size_t i = 0; i < n; ++i) bytes += static_cast<char>(i * 37);
    EXPECT_EQ(unbase64(base64(bytes)), bytes);
    const std::string packed = deflated(bytes);
    std::string again(n, '?');
    uLongf size = n;
    ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(again.data()), &size, reinterpret_cast<const Bytef*>(packed.data()),
                         packed.size()),
              Z_OK);
    EXPECT_EQ(again, bytes);
  }
}

TEST(SceneDocument, GeomsMeshesAndPosesAreThoseThatTheRayCasterDraws) {
  for (const char* model : {"render/models/shapes.xml", "render/models/mapped.xml", "sim/models/hills.xml"}) {
    sim::Scene scene({.engine = sim::EngineKind::kMujoco});
    build(scene, model);
    for (int i = 0; i < 50; ++i) scene.step();
    const std::vector<std::int32_t> envs{0};
    const ReadDocument doc(scene_document(scene, envs));
    render::RendererSettings all;
    all.geom_groups.fill(true), all.site_groups.fill(true);
    const render::TracedScene traced(*scene.visual_model(), all);
    const nlohmann::json& geoms = doc.text.at("geoms");
    ASSERT_EQ(geoms.size(), static_cast<std::size_t>(traced.record().geoms)) << model;
    for (std::size_t i = 0; i < geoms.size(); ++i) {
      const render::GeomRecord& g = traced.record().geom[i];
      EXPECT_EQ(geoms[i].at("id"), g.record.id) << model;
      EXPECT_EQ(geoms[i].at("link"), g.link) << model;
      for (std::size_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(geoms[i].at("pos")[k].get<double>(), g.pos[k], 1e-6) << model;
        EXPECT_EQ(geoms[i].at("size")[k].get<float>(), g.record.size[k]) << model;
      }
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(geoms[i].at("rgba")[k].get<float>(), g.record.rgba[k]) << model;
      if (g.record.mesh == nullptr) continue;
      const auto number = static_cast<std::size_t>(g.record.mesh - traced.mesh_records().data());
      ASSERT_EQ(geoms[i].at("mesh"), number) << model;
      // Few triangles: every corner is there, to a 65,535th of the mesh's box.
      const nlohmann::json& mesh = doc.text.at("meshes").at(number);
      const render::TracedMesh& drawn = *traced.meshes()[number];
      const auto index = doc.array<std::uint32_t>(mesh.at("index"));
      const auto position = doc.array<std::uint16_t>(mesh.at("position"));
      ASSERT_EQ(index.size(), drawn.corner.size() / 3) << model;
      for (std::size_t c = 0; c < drawn.corner.size(); ++c) {
        const double low = mesh.at("low")[c % 3].get<double>(), high = mesh.at("high")[c % 3].get<double>();
        const double x = low + (high - low) * position.at(3 * index[c / 3] + c % 3) / 65535;
        ASSERT_NEAR(x, static_cast<double>(drawn.corner[c]), (high - low) / 65535 + 1e-6) << model;
      }
    }
    const auto poses = doc.array<float>(doc.text.at("poses"));
    const ArrayView pos = scene.host_view(sim::Field::kLinkPos);
    ASSERT_EQ(poses.size(), 7 * scene.info().links.size());
    for (std::size_t link = 0; link < scene.info().links.size(); ++link)
      for (std::size_t k = 0; k < 3; ++k)
        EXPECT_EQ(poses[7 * link + k], static_cast<float>(static_cast<const double*>(pos.data)[3 * link + k])) << model;
  }
}

TEST(SceneDocument, EnvironmentsWithoutASpacingStandApart) {
  sim::Scene scene;
  build(scene, "sim/models/walker.xml", 3);
  const std::vector<std::int32_t> envs{0, 1, 2};
  const ReadDocument doc(scene_document(scene, envs));
  const nlohmann::json& offsets = doc.text.at("offsets");
  ASSERT_EQ(offsets.size(), 3u);
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < a; ++b)
      EXPECT_GT(std::hypot(offsets[a][0].get<double>() - offsets[b][0].get<double>(),
                           offsets[a][1].get<double>() - offsets[b][1].get<double>()),
                1.0);
}

TEST(Page, AnOfflinePageAsksNobodyAndRunsNothingThatATitleSays) {
  const std::string page = offline_page({.title = "<script>alert(1)</script>", .scene = "x", .episodes = {}});
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("connect-src"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

}  // namespace
}  // namespace cohort::view
