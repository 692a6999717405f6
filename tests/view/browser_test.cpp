// Pages in a real browser: what they show is what the ray caster draws, clicks do what they say, the console is silent.
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "render/renderer.h"
#include "support/command.h"
#include "view/page.h"
#include "view/pose_track.h"
#include "view/scene_document.h"

namespace cohort::view {
namespace {

namespace fs = std::filesystem;

constexpr int kSize = 512;  // px
constexpr int kCameras = 5;

std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (test::run_command(std::string("command -v ") + name).code == 0) return name;
  return "";
}

std::string seen_by_browser(const std::string& browser, const fs::path& folder, const nlohmann::json& what) {
  fs::copy_file(fs::path(COHORT_SOURCE_DIR) / "tests" / "view" / "harness.html", folder / "harness.html",
                fs::copy_options::overwrite_existing);
  std::string hash;
  for (const char c : what.dump()) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    hash += std::isalnum(byte) != 0 ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  // SwiftShader: OpenGL on the processor, the same on every machine.
  const std::string command = format(
      "timeout 900 {} --headless=new --no-sandbox --use-angle=swiftshader --enable-unsafe-swiftshader "
      "--allow-file-access-from-files --enable-logging=stderr --virtual-time-budget=100000 --user-data-dir='{}' "
      "--dump-dom 'file://{}#{}'",
      browser, (folder / "profile").string(), (folder / "harness.html").string(), hash);
  return test::run_command(command).output;
}

struct Pictured {
  std::vector<int> ids;
};

std::vector<Pictured> pictures_in(const std::string& output) {
  std::vector<Pictured> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find("seen ");
    if (begin == std::string::npos || line.find_first_of("0123456789", begin) > begin + 6)
      continue;  // the script's own
    std::istringstream words(line.substr(begin + 5));
    Pictured& picture = out.emplace_back();
    for (int id = 0, count = 0; words >> id >> count;)
      picture.ids.insert(picture.ids.end(), static_cast<std::size_t>(count), id);
  }
  return out;
}

/// Of all that has an end: floors fill a picture, and say nothing of a shape.
double overlap(const std::vector<int>& a, const std::vector<int>& b, const std::vector<bool>& has_end) {
  const auto counts = [&](int id) { return id >= 0 && has_end[static_cast<std::size_t>(id)]; };
  double both = 0, either = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += counts(a[i]) && counts(b[i]);
    either += counts(a[i]) || counts(b[i]);
  }
  return either > 0 ? both / either : 1;
}

std::map<int, int> pixels_of(const std::vector<int>& ids) {
  std::map<int, int> out;
  for (const int id : ids) ++out[id];
  return out;
}

TEST(ViewBrowser, FiveModelsHaveTheRayCastersSilhouettes) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  constexpr double kLeastOverlap = 0.97;
  constexpr int kLargeEnough = 50;  // px: what is smaller may hide behind a tessellated neighbour's edge
  const std::vector<std::string> models{"render/models/shapes.xml", "render/models/mapped.xml", "sim/models/arm.xml",
                                        "sim/models/biped.xml", "sim/models/hills.xml"};
  nlohmann::json wanted = nlohmann::json::array();
  std::vector<std::vector<int>> traced;
  std::vector<std::vector<bool>> has_end;
  std::mt19937 random(48);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t m = 0; m < models.size(); ++m) {
    sim::Scene scene({.engine = sim::EngineKind::kMujoco});
    scene.add_entity(sim::Mjcf{COHORT_SOURCE_DIR "/tests/" + models[m]});
    scene.build(1);
    for (int i = 0; i < 100; ++i) scene.step();
    const std::string file = format("page{}.html", m);
    const std::vector<std::int32_t> envs{0};
    PoseTrack track(scene, envs, 30);
    const std::string document = scene_document(scene, envs);
    track.add(0);
    write_page(folder.path() / file, {.title = "page", .scene = document, .episodes = {{"", track.bytes()}}});
    render::RendererSettings settings;
    settings.site_groups.fill(false);
    const auto renderer = render::make_renderer(scene, settings);
    const std::shared_ptr<const sim::VisualModel> visual = scene.visual_model();
    nlohmann::json cameras = nlohmann::json::array();
    for (int c = 0; c < kCameras; ++c) {
      const double turn = 6.283 * uniform(random), rise = 0.15 + 0.9 * uniform(random);
      const double distance = visual->extent * (1.2 + uniform(random));
      sim::CameraOptions options;
      options.lookat = visual->centre;
      options.pos = {visual->centre[0] + distance * std::cos(rise) * std::cos(turn),
                     visual->centre[1] + distance * std::cos(rise) * std::sin(turn),
                     visual->centre[2] + distance * std::sin(rise)};
      options.fov = 45;
      traced.push_back(
          renderer->render(renderer->add_camera(options), envs, kSize, kSize, {.rgb = false, .segmentation = true})
              .segmentation);
      cameras.push_back({{"pos", options.pos}, {"lookat", options.lookat}, {"fovy", options.fov}});
      std::vector<bool>& ends = has_end.emplace_back(scene.info().geoms.size(), true);
      for (const sim::VisualGeom& g : visual->geoms)
        if (g.id >= 0 && g.shape == sim::VisualShape::kPlane) ends[static_cast<std::size_t>(g.id)] = false;
    }
    wanted.push_back({{"page", file}, {"cameras", cameras}, {"size", kSize}});
  }
  const std::string output = seen_by_browser(browser, folder.path(), wanted);
  ASSERT_NE(output.find("\ndone"), std::string::npos)
      << output.substr(output.size() - std::min<std::size_t>(output.size(), 3000));
  EXPECT_EQ(output.find("CONSOLE"), std::string::npos) << output.substr(output.find("CONSOLE"), 500);
  const std::vector<Pictured> shown = pictures_in(output);
  ASSERT_EQ(shown.size(), traced.size());
  double least = 1;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::string which = format("{} by camera {}", models[i / kCameras], i % kCameras);
    ASSERT_EQ(shown[i].ids.size(), traced[i].size()) << which;
    const double part = overlap(shown[i].ids, traced[i], has_end[i]);
    least = std::min(least, part);
    EXPECT_GE(part, kLeastOverlap) << which;
    std::map<int, int> here = pixels_of(shown[i].ids), there = pixels_of(traced[i]);
    for (const auto& [id, pixels] : there) {
      if (pixels >= kLargeEnough) EXPECT_GT(here[id], 0) << "geom " << id << " of " << which;
    }
    for (const auto& [id, pixels] : here) {
      if (pixels >= kLargeEnough) EXPECT_GT(there[id], 0) << "geom " << id << " of " << which;
    }
  }
  RecordProperty("least_overlap", std::to_string(least));
  std::printf("least overlap %.4f\n", least);
}

TEST(ViewBrowser, ClicksDoWhatTheySay) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  sim::Scene scene;
  scene.add_entity(sim::Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/walker.xml"});
  scene.build(1);
  PoseTrack track(scene, {0}, 30);
  const std::vector<std::int32_t> envs{0};
  const std::string document = scene_document(scene, envs);
  for (int i = 0; i <= 400; ++i) track.add(scene.info().timestep * i), scene.step();
  write_page(folder.path() / "page.html", {.title = "walker", .scene = document, .episodes = {{"", track.bytes()}}});
  const std::string output = seen_by_browser(
      browser, folder.path(),
      nlohmann::json::array(
          {{{"page", "page.html"}, {"cameras", nlohmann::json::array()}, {"size", 64}, {"click", true}}}));
  for (const char* claim : {"played", "paused", "at the end", "turned", "nearer", "picked", "hidden"})
    EXPECT_NE(output.find(std::string(claim) + " true"), std::string::npos) << claim << "\n" << output;
  EXPECT_EQ(output.find("CONSOLE"), std::string::npos) << output;
}

}  // namespace
}  // namespace cohort::view
