// Pages in a real browser: what they show is what the ray caster draws, clicks do what they say, the console is silent.
#include <atomic>
#include <cstdlib>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "core/files.h"
#include "render/renderer.h"
#include "support/command.h"
#include "tasks/actor.h"
#include "tasks/libero/libero_task.h"
#include "tasks/libero_data.h"
#include "tasks/registry.h"
#include "tasks/shown_scene.h"
#include "view/devtools.h"
#include "view/live_server.h"
#include "view/page.h"
#include "view/pose_track.h"
#include "view/scene_document.h"

namespace cohort::view {
namespace {

namespace fs = std::filesystem;

constexpr int kSize = 512;  // px
constexpr int kCameras = 5;

using test::chromium;

/// As a part of an address.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    out += std::isalnum(byte) != 0 ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

std::string seen_by_browser(const std::string& browser, const fs::path& folder, const nlohmann::json& what) {
  fs::copy_file(fs::path(COHORT_SOURCE_DIR) / "tests" / "view" / "harness.html", folder / "harness.html",
                fs::copy_options::overwrite_existing);
  // SwiftShader: OpenGL on the processor, the same on every machine.
  const std::string command = format(
      "timeout 900 {} --headless=new --no-sandbox --use-angle=swiftshader --enable-unsafe-swiftshader "
      "--allow-file-access-from-files --enable-logging=stderr --virtual-time-budget=100000 --user-data-dir='{}' "
      "--dump-dom 'file://{}#{}'",
      browser, (folder / "profile").string(), (folder / "harness.html").string(), escaped(what.dump()));
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

/// A scene whose page is compared with the ray caster's pictures, as it stands.
struct Shown {
  std::string name;
  sim::Scene* scene;
};

/// Five cameras each, drawn from a seed: silhouettes of all that has an end overlap, and every geom that is large on one
/// picture is on the other.
void compare_silhouettes(const std::string& browser, const std::vector<Shown>& scenes) {
  const TemporaryFolder folder("cohort-view");
  constexpr double kLeastOverlap = 0.97;
  constexpr int kLargeEnough = 50;  // px: what is smaller may hide behind a tessellated neighbour's edge
  nlohmann::json wanted = nlohmann::json::array();
  std::vector<std::vector<int>> traced;
  std::vector<std::vector<bool>> has_end;
  std::mt19937 random(48);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t m = 0; m < scenes.size(); ++m) {
    sim::Scene& scene = *scenes[m].scene;
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
    const std::string which = format("{} by camera {}", scenes[i / kCameras].name, i % kCameras);
    ASSERT_EQ(shown[i].ids.size(), traced[i].size()) << which;
    const double part = overlap(shown[i].ids, traced[i], has_end[i]);
    least = std::min(least, part);
    EXPECT_GE(part, kLeastOverlap) << which;
    std::map<int, int> here = pixels_of(shown[i].ids), there = pixels_of(traced[i]);
    for (const auto& [id, pixels] : there) {
      if (pixels >= kLargeEnough) EXPECT_GT(here[id], 0) << "geom " << id << " of " << which << ", " << pixels << " px";
    }
    for (const auto& [id, pixels] : here) {
      if (pixels >= kLargeEnough)
        EXPECT_GT(there[id], 0) << "geom " << id << " of " << which << ", " << pixels << " px";
    }
  }
  testing::Test::RecordProperty("least_overlap", std::to_string(least));
  std::printf("least overlap %.4f\n", least);
}

TEST(ViewBrowser, FiveModelsHaveTheRayCastersSilhouettes) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  std::vector<std::unique_ptr<sim::Scene>> scenes;
  std::vector<Shown> shown;
  for (const char* model : {"render/models/shapes.xml", "render/models/mapped.xml", "sim/models/arm.xml",
                            "sim/models/biped.xml", "sim/models/hills.xml"}) {
    sim::Scene& scene =
        *scenes.emplace_back(std::make_unique<sim::Scene>(sim::SceneOptions{.engine = sim::EngineKind::kMujoco}));
    scene.add_entity(sim::Mjcf{std::string(COHORT_SOURCE_DIR "/tests/") + model});
    scene.build(1);
    for (int i = 0; i < 100; ++i) scene.step();
    shown.push_back({model, &scene});
  }
  compare_silhouettes(browser, shown);
}

TEST(ViewBrowser, ALiberoKitchenHasTheRayCastersSilhouettes) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const fs::path kitchen = test::libero_data() / "scene10_close_top_drawer";
  if (!fs::exists(kitchen / "task.json")) GTEST_SKIP() << "COHORT_SHARED names no folder with data/libero";
  const auto task = tasks::libero::make_libero_task(kitchen, {.overrides = {"warmup_steps=0"}});
  const std::vector<std::int32_t> envs{0};
  const std::vector<std::uint64_t> seeds{0};
  task->reset(envs, seeds);
  compare_silhouettes(browser, {{"kitchen", tasks::scene_of(*task)}});
}

TEST(ViewBrowser, TheG1HasTheRayCastersSilhouettes) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const char* file = std::getenv("COHORT_G1");
  if (file == nullptr) GTEST_SKIP() << "COHORT_G1 names no MJCF file of Unitree's G1, such as mjlab's g1.xml";
  sim::Scene scene({.engine = sim::EngineKind::kMujoco});
  scene.add_entity(sim::Mjcf{file});
  scene.build(1);
  compare_silhouettes(browser, {{"g1", &scene}});
}

TEST(ViewBrowser, PicturesHaveTheRayCastersLightsMirrorAndHaze) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  constexpr int kSmall = 128;
  // Edges are smoothed in one way here and in another there, textures filtered likewise: what is left are single pixels.
  constexpr double kMostMean = 6;
  nlohmann::json wanted = nlohmann::json::array();
  std::vector<std::vector<std::uint8_t>> traced;
  std::vector<std::string> names;
  for (const char* model : {"tests/render/models/shapes.xml", "tests/render/models/lights.xml",
                            "src/tasks/library/quadruped.xml", "src/tasks/library/cartpole.xml"}) {
    sim::Scene scene({.engine = sim::EngineKind::kMujoco});
    scene.add_entity(sim::Mjcf{std::string(COHORT_SOURCE_DIR "/") + model});
    scene.build(1);
    const std::string file = format("page{}.html", traced.size());
    const std::vector<std::int32_t> envs{0};
    write_page(folder.path() / file, {.title = "page", .scene = scene_document(scene, envs)});
    render::RendererSettings settings;
    settings.site_groups.fill(false);
    const auto renderer = render::make_renderer(scene, settings);
    const std::shared_ptr<const sim::VisualModel> visual = scene.visual_model();
    nlohmann::json cameras = nlohmann::json::array();
    for (const double rise : {0.2, 0.7}) {
      sim::CameraOptions options;
      const double distance = 2 * visual->extent;
      options.lookat = visual->centre;
      options.pos = {visual->centre[0] + distance * std::cos(rise), visual->centre[1] + 0.3 * distance,
                     visual->centre[2] + distance * std::sin(rise)};
      options.fov = 45;
      traced.push_back(renderer->render(renderer->add_camera(options), envs, kSmall, kSmall, {}).rgb);
      names.emplace_back(model);
      cameras.push_back({{"pos", options.pos}, {"lookat", options.lookat}, {"fovy", options.fov}});
    }
    wanted.push_back({{"page", file}, {"cameras", nlohmann::json::array()}, {"colours", cameras}, {"size", kSmall}});
  }
  const std::string output = seen_by_browser(browser, folder.path(), wanted);
  std::istringstream lines(output);
  std::size_t picture = 0;
  for (std::string line; std::getline(lines, line);) {
    // The first line stands behind the element's own tag.
    const std::size_t begin = line.find("colours ");
    if (begin == std::string::npos || line.size() - begin < 1000) continue;  // the script's own
    line = line.substr(begin);
    ASSERT_LT(picture, traced.size());
    const std::vector<std::uint8_t>& there = traced[picture];
    ASSERT_EQ(line.size(), 8 + 2 * there.size());
    double sum = 0;
    for (std::size_t i = 0; i < there.size(); ++i)
      sum += std::abs(std::stoi(line.substr(8 + 2 * i, 2), nullptr, 16) - static_cast<int>(there[i]));
    const double mean = sum / static_cast<double>(there.size());
    std::printf("%s: colours differ by %.2f of 255 in the mean\n", names[picture].c_str(), mean);
    EXPECT_LT(mean, kMostMean) << names[picture];
    ++picture;
  }
  EXPECT_EQ(picture, traced.size()) << output.substr(0, 3000);
  EXPECT_EQ(output.find("CONSOLE"), std::string::npos) << output.substr(output.find("CONSOLE"), 500);
}

TEST(ViewBrowser, AnAudienceOfRobotsIsDrawnWithOneCallAMesh) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  const auto task = tasks::make_task("quadruped-velocity", {.n_envs = 60});
  std::vector<std::int32_t> envs(60);
  std::iota(envs.begin(), envs.end(), 0);
  sim::Scene& scene = *tasks::scene_of(*task);
  PoseTrack track(scene, envs, 30);
  track.add(0);
  write_page(folder.path() / "page.html",
             {.title = "dogs", .scene = scene_document(scene, envs), .episodes = {{"", track.bytes()}}});
  const std::string output = seen_by_browser(
      browser, folder.path(),
      nlohmann::json::array(
          {{{"page", "page.html"}, {"cameras", nlohmann::json::array()}, {"size", 64}, {"calls", true}}}));
  EXPECT_NE(output.find("one call a mesh true"), std::string::npos) << output;
  EXPECT_NE(output.find("instances of all environments true"), std::string::npos) << output;
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

/// Does on the page at `address` what tests/view/clicks.js has for it: every claim comes true, nothing stands in the console,
/// nothing is asked of another machine.
void expect_clicks_come_true(const std::string& browser, const fs::path& folder, const std::string& address,
                             const std::string& what) {
  test::Browser page(browser, folder);
  page.open(address);
  const std::string script = read_file(COHORT_SOURCE_DIR "/tests/view/clicks.js");
  const auto said = page.run(script + ";clicked('" + what + "')").get<std::string>();
  std::istringstream lines(said);
  int claims = 0;
  for (std::string line; std::getline(lines, line); ++claims) EXPECT_TRUE(line.ends_with(" true")) << line;
  EXPECT_GE(claims, 5) << said;
  EXPECT_TRUE(page.console().empty()) << page.console().front();
  const std::string own = address.substr(7, address.find('/', 7) - 7);
  int asked = 0;
  for (const std::string& url : page.requests()) {
    const bool inside = url.starts_with("data:") || url.starts_with("blob:") || url == "about:blank";
    if (!inside) ++asked;
    EXPECT_TRUE(inside || url.starts_with("http://" + own + "/") || url.starts_with("ws://" + own + "/")) << url;
  }
  EXPECT_EQ(asked, 2) << "the page and its socket";
}

/// A server with its loop in a thread, until the end of the test.
class Served {
 public:
  explicit Served(LiveSession& session) : server(session, {}) {
    thread_ = std::thread([this] { server.run([this] { return ends_.load(); }); });
  }
  ~Served() {
    ends_ = true;
    thread_.join();
  }
  LiveServer server;

 private:
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST(ViewBrowser, EveryControlOfAServedModelDoesWhatItSays) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  sim::Scene scene;
  scene.add_entity(sim::Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/walker.xml"});
  scene.build(2);
  ModelSession session(scene, "random", -1);
  const Served served(session);
  expect_clicks_come_true(browser, folder.path(), served.server.address(), "model");
}

TEST(ViewBrowser, EveryControlOfAServedTaskDoesWhatItSays) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  const auto task = tasks::make_task("quadruped-velocity", {.n_envs = 2, .overrides = {"commands_by_hand=true"}});
  TaskSession session(*task, {{"random", tasks::make_random_actor(1)}, {"another", tasks::make_random_actor(2)}}, 5);
  const Served served(session);
  expect_clicks_come_true(browser, folder.path(), served.server.address(), "task");
}

TEST(ViewBrowser, EveryControlOfAServedDataSetDoesWhatItSays) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const char* programs = std::getenv("COHORT_BIN");
  ASSERT_NE(programs, nullptr);
  const TemporaryFolder folder("cohort-view");
  const std::string said = (folder.path() / "view.txt").string(), process = (folder.path() / "pid").string();
  test::run_command(
      format("{}/cohort view {}/tests/data/fixtures/lerobot/v3 > {} 2>&1 & echo $! > {}; for i in $(seq 600); "
             "do grep -q Ctrl-C {} && break; sleep 0.05; done",
             programs, COHORT_SOURCE_DIR, said, process, said));
  const test::EndedProcess program{process};
  const std::string text = read_file(said);
  const std::size_t begin = text.find("http://");
  ASSERT_NE(begin, std::string::npos) << text;
  expect_clicks_come_true(browser, folder.path(), text.substr(begin, text.find('\n', begin) - begin), "data");
}

}  // namespace
}  // namespace cohort::view
