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
#include "core/json_text.h"
#include "core/real_at.h"
#include "render/renderer.h"
#include "sim/host/looks.h"
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
      browser, (folder / "profile").string(), (folder / "harness.html").string(), escaped(json_text(what)));
  return test::run_command(command).output;
}

struct Pictured {
  std::vector<int> ids;
};

/// What the harness has said behind a word, line by line.
std::vector<std::string> said(const std::string& output, const std::string& word) {
  std::vector<std::string> out;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find(word + " ");
    if (begin == std::string::npos || line.find_first_of("-0123456789", begin) > begin + word.size() + 1)
      continue;  // the script's own
    out.push_back(line.substr(begin + word.size() + 1));
  }
  return out;
}

std::vector<Pictured> pictures_in(const std::string& output) {
  std::vector<Pictured> out;
  for (const std::string& line : said(output, "seen")) {
    std::istringstream words(line);
    Pictured& picture = out.emplace_back();
    for (int id = 0, count = 0; words >> id >> count;)
      picture.ids.insert(picture.ids.end(), static_cast<std::size_t>(count), id);
  }
  return out;
}

/// Of a geom on a picture: how many pixels it has, and their mean colour (0 to 255).
struct Mean {
  int pixels = 0;
  std::array<double, 3> rgb{};
};

std::map<int, Mean> mean_colours(const std::vector<std::int32_t>& ids, const std::vector<std::uint8_t>& rgb) {
  std::map<int, Mean> out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Mean& mean = out[ids[i]];
    ++mean.pixels;
    for (std::size_t k = 0; k < 3; ++k) mean.rgb[k] += rgb[3 * i + k];
  }
  for (auto& [id, mean] : out)
    for (double& x : mean.rgb) x /= mean.pixels;
  return out;
}

std::vector<std::map<int, Mean>> colours_in(const std::string& output) {
  std::vector<std::map<int, Mean>> out;
  for (const std::string& line : said(output, "colours")) {
    std::istringstream words(line);
    std::map<int, Mean>& picture = out.emplace_back();
    Mean mean;
    for (int id = 0; words >> id >> mean.pixels >> mean.rgb[0] >> mean.rgb[1] >> mean.rgb[2];) picture[id] = mean;
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
  std::int32_t env = 0;
  bool shadows = false;
};

/// Five cameras each, drawn from a seed: silhouettes of all that has an end overlap, every geom that is large on one picture
/// is on the other, and has about the same colour there. Gives the ray caster's mean colours of every picture.
std::vector<std::map<int, Mean>> compare_pictures(const std::string& browser, const std::vector<Shown>& scenes) {
  const TemporaryFolder folder("cohort-view");
  constexpr double kLeastOverlap = 0.97;
  constexpr int kLargeEnough = 50;  // px: what is smaller may hide behind a tessellated neighbour's edge
  // Of 255, in the mean of a geom's pixels: large meshes are thinned, and textures are filtered a little differently.
  constexpr double kMostColour = 10;
  nlohmann::json wanted = nlohmann::json::array();
  std::vector<std::vector<int>> traced;
  std::vector<std::map<int, Mean>> coloured;
  std::vector<std::vector<bool>> has_end;
  std::mt19937 random(48);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t m = 0; m < scenes.size(); ++m) {
    sim::Scene& scene = *scenes[m].scene;
    const std::string file = format("page{}.html", m);
    const std::vector<std::int32_t> envs{scenes[m].env};
    PoseTrack track(scene, envs, 30);
    const std::string document = scene_document(scene, envs);
    track.add(0);
    write_page(folder.path() / file, {.title = "page", .scene = document, .episodes = {{"", track.bytes()}}});
    render::RendererSettings settings;
    settings.site_groups.fill(false);
    settings.shadows = scenes[m].shadows;
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
      const render::Frames drawn =
          renderer->render(renderer->add_camera(options), envs, kSize, kSize, {.rgb = true, .segmentation = true});
      traced.push_back(drawn.segmentation);
      coloured.push_back(mean_colours(drawn.segmentation, drawn.rgb));
      cameras.push_back({{"pos", options.pos}, {"lookat", options.lookat}, {"fovy", options.fov}});
      std::vector<bool>& ends = has_end.emplace_back(scene.info().geoms.size(), true);
      for (const sim::VisualGeom& g : visual->geoms)
        if (g.id >= 0 && g.shape == sim::VisualShape::kPlane) ends[static_cast<std::size_t>(g.id)] = false;
    }
    wanted.push_back({{"page", file}, {"cameras", cameras}, {"size", kSize}, {"shadows", scenes[m].shadows}});
  }
  const std::string output = seen_by_browser(browser, folder.path(), wanted);
  EXPECT_NE(output.find("\ndone"), std::string::npos)
      << output.substr(output.size() - std::min<std::size_t>(output.size(), 3000));
  EXPECT_EQ(output.find("CONSOLE"), std::string::npos) << output.substr(output.find("CONSOLE"), 500);
  const std::vector<Pictured> shown = pictures_in(output);
  EXPECT_EQ(shown.size(), traced.size());
  const std::vector<std::map<int, Mean>> colours = colours_in(output);
  EXPECT_EQ(colours.size(), traced.size());
  if (shown.size() != traced.size() || colours.size() != traced.size()) return coloured;
  double least = 1, most = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::string which = format("{} by camera {}", scenes[i / kCameras].name, i % kCameras);
    EXPECT_EQ(shown[i].ids.size(), traced[i].size()) << which;
    if (shown[i].ids.size() != traced[i].size()) continue;
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
    for (const auto& [id, mean] : coloured[i]) {
      const auto found = colours[i].find(id);
      if (id < 0 || mean.pixels < kLargeEnough || found == colours[i].end()) continue;
      for (std::size_t k = 0; k < 3; ++k) {
        const double off = std::abs(mean.rgb[k] - found->second.rgb[k]);
        most = std::max(most, off);
        EXPECT_LE(off, kMostColour) << "geom " << id << " of " << which << ", " << mean.pixels
                                    << " px: " << std::array{"red", "green", "blue"}[k] << " " << mean.rgb[k]
                                    << ", on the page " << found->second.rgb[k];
      }
    }
  }
  testing::Test::RecordProperty("least_overlap", std::to_string(least));
  testing::Test::RecordProperty("most_colour", std::to_string(most));
  std::printf("least overlap %.4f, colours of a geom differ by at most %.1f of 255\n", least, most);
  return coloured;
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
  compare_pictures(browser, shown);
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
  compare_pictures(browser, {{"kitchen", tasks::scene_of(*task)}});
}

TEST(ViewBrowser, TheG1HasTheRayCastersSilhouettes) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const char* file = std::getenv("COHORT_G1");
  if (file == nullptr) GTEST_SKIP() << "COHORT_G1 names no MJCF file of Unitree's G1, such as mjlab's g1.xml";
  sim::Scene scene({.engine = sim::EngineKind::kMujoco});
  scene.add_entity(sim::Mjcf{file});
  scene.build(1);
  compare_pictures(browser, {{"g1", &scene}});
}

TEST(ViewBrowser, AnEnvironmentHasItsOwnColoursSizesPlacesAndLights) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  sim::Scene scene({.engine = sim::EngineKind::kMujoco});
  scene.add_entity(sim::Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/arm.xml"});
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><worldbody><light pos="0 0 4" dir="0 0 -1"/>
    <geom type="box" pos="0.6 0 0.2" size="0.2 0.2 0.2" rgba="0.9 0.1 0.1 1"/>
    <geom type="sphere" pos="-0.6 0 0.2" size="0.2" rgba="0.1 0.1 0.9 1"/></worldbody></mujoco>)"});
  scene.build(2);
  const ArrayView rgba = scene.looks().values(sim::Look::kGeomRgba),
                  diffuse = scene.looks().values(sim::Look::kLightDiffuse),
                  dir = scene.looks().values(sim::Look::kLightDir);
  for (std::int64_t i = 0; i < scene.looks().size(sim::Look::kGeomRgba); ++i)
    if (i % 4 < 3) set_real_at(rgba, 1, i, 0.2 + 0.6 * static_cast<double>((i * 7) % 11) / 10);
  for (std::int64_t i = 0; i < scene.looks().size(sim::Look::kLightDiffuse); ++i)
    set_real_at(diffuse, 1, i, i % 3 == 0 ? 0.9 : 0.2), set_real_at(dir, 1, i, i % 3 == 2 ? -1 : 0.5);
  // The box: longer, elsewhere, turned by 45 degrees about x.
  const auto box = std::ssize(scene.info().geoms) - 2;
  const ArrayView size = scene.looks().values(sim::Look::kGeomSize), pos = scene.looks().values(sim::Look::kGeomPos),
                  quat = scene.looks().values(sim::Look::kGeomQuat);
  set_real_at(size, 1, 3 * box, 0.35), set_real_at(pos, 1, 3 * box + 1, 0.3);
  set_real_at(quat, 1, 4 * box, 0.92388), set_real_at(quat, 1, 4 * box + 1, 0.382683);
  compare_pictures(browser, {{"the model's own", &scene, 0}, {"its own", &scene, 1}});
}

TEST(ViewBrowser, ShadowsAreTheRayCasters) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  sim::Scene scene({.engine = sim::EngineKind::kMujoco});
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><visual><headlight active="0"/></visual><worldbody>
    <light directional="true" pos="0 0 3" dir="0.4 0.2 -1" diffuse="0.6 0.6 0.5"/>
    <light pos="1 -1 2" dir="-1 1 -2" diffuse="0.4 0.3 0.3" cutoff="60" castshadow="true"/>
    <geom name="floor" type="box" size="0.8 0.8 0.05" pos="0 0 -0.05" rgba="0.8 0.8 0.8 1"/>
    <body pos="0 0 0.55"><freejoint/><geom type="box" size="0.3 0.3 0.05" mass="1" rgba="0.9 0.4 0.3 1"/></body>
    <geom type="sphere" size="0.15" pos="-0.4 0.4 0.15" rgba="0.3 0.4 0.9 1"/></worldbody></mujoco>)"});
  scene.build(1);
  const auto with = compare_pictures(browser, {{"shadows", &scene, 0, true}}),
             without = compare_pictures(browser, {{"no shadows", &scene, 0, false}});
  double darker = 0;
  for (std::size_t i = 0; i < with.size(); ++i)
    darker = std::max(darker, without[i].at(0).rgb[0] - with[i].at(0).rgb[0]);
  EXPECT_GT(darker, 25) << "the floor is in shadow, so that this says something";
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
  explicit Served(LiveSession& session, const LiveServerSettings& settings = {}) : server(session, settings) {
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

TEST(ViewBrowser, ABodyIsDraggedWhilePausedAndStays) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  const TemporaryFolder folder("cohort-view");
  sim::Scene scene;
  // A hinge across the view, a slide behind it, and a body that floats.
  scene.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><worldbody>
    <body name="arm" pos="0 0 1"><joint name="elbow" type="hinge" axis="1 0 0" range="-170 170" limited="true"/>
      <geom type="capsule" size="0.06" fromto="0 0 0 0 0.6 0" mass="1.25"/></body>
    <body name="sledge" pos="0 0 0"><joint name="rail" type="slide" axis="0 1 0" range="-1 1" limited="true"/>
      <geom type="box" size="0.15 0.15 0.1" mass="2"/></body>
    <body name="ball" pos="0 -0.8 1"><freejoint/><geom type="sphere" size="0.12" mass="0.5"/></body>
    </worldbody></mujoco>)"});
  scene.build(2);
  set_real_at(scene.looks().values(sim::Look::kGeomRgba), 1, 1, 0.875);
  ModelSession session(scene, "zero", -1);
  const Served served(session, {.playing = false});
  test::Browser page(browser, folder.path());
  page.open(served.server.address());
  page.run(
      "(async () => { while (!window.cohort || !cohort.ready || !cohort.live.joints) await new Promise((r) => "
      "setTimeout(r, 20)); })()");
  // From the front: y goes to the right of the picture, z up. Of both environments the second is dragged.
  page.run(
      "(() => { cohort.free.turn = 0; cohort.free.rise = 0; cohort.free.target = "
      "[...cohort.place(1), 0.5]; cohort.free.distance = 4; cohort.changed = true; })()");
  const auto spot = [&](const std::string& link_point) {
    const auto at = page.run(
        format("(() => {{ const w = cohort.canvas.clientWidth, h = cohort.canvas.clientHeight, v = cohort.view(w, h), "
               "p = subtract(add({}, [...cohort.place(1), 0]), v.pos), d = -dot(p, v.back); return "
               "[w * (dot(p, v.right) / d - v.lens.left) / (v.lens.right - v.lens.left), "
               "h * (v.lens.top - dot(p, v.up) / d) / (v.lens.top - v.lens.bottom)]; }})()",
               link_point));
    return std::array{at[0].get<double>(), at[1].get<double>()};
  };
  const auto click = [&](const std::array<double, 2>& at) {
    page.mouse("mousePressed", at[0], at[1]);
    page.mouse("mouseReleased", at[0], at[1]);
  };
  const auto drag = [&](const std::array<double, 2>& from, const std::array<double, 2>& to) {
    page.mouse("mousePressed", from[0], from[1]);
    for (int i = 1; i <= 10; ++i)
      page.mouse("mouseMoved", from[0] + (to[0] - from[0]) * i / 10, from[1] + (to[1] - from[1]) * i / 10);
    page.mouse("mouseReleased", to[0], to[1]);
  };
  // Waits until it is so on the page, and gives whether it came true.
  const auto comes_true = [&](const std::string& claim) {
    return page
        .run("(async () => { for (let i = 0; i < 400; ++i) { if (" + claim +
             ") return true; await new Promise((r) => setTimeout(r, 25)); } return false; })()")
        .get<bool>();
  };
  const auto link = [&](const std::string& name) {
    return "cohort.scene.links.findIndex((l) => l.name.endsWith('" + name + "'))";
  };
  const std::string middle_of_arm = "add([0, 0, 1], [0, 0.3, 0])";
  click(spot(middle_of_arm));
  EXPECT_TRUE(comes_true("!cohort.pickedPanel.hidden"));
  const auto panel = page.run("cohort.pickedPanel.textContent").get<std::string>();
  for (const char* part : {"arm", "0.000 0.000 1.000", "1.000 0.000 0.000 0.000", "1.250"})
    EXPECT_NE(panel.find(part), std::string::npos) << part << " in " << panel;
  // The arm's middle goes from beside its hinge to above it: a quarter of a turn.
  drag(spot(middle_of_arm), spot("[0, 0, 1.3]"));
  EXPECT_TRUE(comes_true("Math.abs(turned(cohort.scene.quat(1, " + link("arm") + "), [0, 1, 0])[2] - 1) < 1e-2"));
  EXPECT_TRUE(comes_true("Math.abs(turned(cohort.scene.quat(0, " + link("arm") + "), [0, 1, 0])[1] - 1) < 1e-3"))
      << "the other environment's stays";
  click(spot("[0, 0, 0]"));
  drag(spot("[0, 0, 0]"), spot("[0, 0.4, 0]"));
  EXPECT_TRUE(comes_true("Math.abs(cohort.scene.pos(1, " + link("sledge") + ")[1] - 0.4) < 2e-2"));
  click(spot("[0, -0.8, 1]"));
  drag(spot("[0, -0.8, 1]"), spot("[0, -0.5, 1.4]"));
  EXPECT_TRUE(comes_true("lengthOf(subtract(cohort.scene.pos(1, " + link("ball") + "), [0, -0.5, 1.4])) < 2e-2"));
  EXPECT_TRUE(comes_true("cohort.scene.geomOf(1, 0).rgba[1] === 0.875 && cohort.scene.geomOf(0, 0).rgba[1] === 0.5"))
      << "an environment's own colour";
  // It stays: a while later all are where they were put, as the program has them too.
  page.run("new Promise((r) => setTimeout(r, 300))");
  EXPECT_TRUE(comes_true("Math.abs(cohort.scene.pos(1, " + link("sledge") + ")[1] - 0.4) < 2e-2"));
  EXPECT_TRUE(page.console().empty()) << page.console().front();
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
