// Colours, cameras and lights that a task's file draws for each episode, in pictures of both renderers.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/format.h"
#include "core/message_of.h"
#include "render/renderer.h"
#include "sim/host/looks.h"
#include "support/process.h"
#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace cohort::tasks {
namespace {

constexpr int kSide = 48;  // px

/// What the model is seen with.
struct Seen {
  std::array<float, 4> rgba{0.8f, 0.2f, 0.2f, 1};
  std::array<float, 3> camera{1.2f, -0.4f, 0.9f}, lamp{0.5f, -0.5f, 1.5f}, dir{-0.2f, 0.3f, -1},
      diffuse{0.6f, 0.6f, 0.5f};
  std::array<double, 4> quat{0.8, 0.45, 0.15, 0.3};
  float fovy = 50;
  std::array<float, 3> block{0, 0, 0}, size{0.2f, 0.1f, 0.15f};
  std::array<float, 4> block_quat{1, 0, 0, 0};
};

template <class Numbers>
std::string text_of(const Numbers& numbers) {
  std::string text;
  for (const auto x : numbers) text += format("{:.17g} ", static_cast<double>(x));
  return text;
}

std::string model_with(const Seen& s) {
  return format(R"(
<mujoco model="still"><compiler angle="radian" autolimits="true"/><visual><headlight active="0"/></visual>
  <asset><material name="wood" rgba="0.7 0.5 0.3 1" specular="0.4"/></asset>
  <worldbody>
    <light name="lamp" pos="{0}" dir="{1}" diffuse="{2}" directional="false" cutoff="60" exponent="4"/>
    <camera name="eye" pos="{3}" quat="{4}" fovy="{5:.17g}"/>
    <geom name="table" type="plane" size="2 2 0.1" material="wood"/>
    <body name="arm" pos="0 0 0.3"><joint name="turn" axis="0 0 1" range="-1 1"/>
      <geom name="block" type="box" size="{7}" pos="{8}" quat="{9}" rgba="{6}" mass="1"/></body>
  </worldbody>
  <actuator><position name="turn" joint="turn" kp="20" kv="5"/></actuator>
</mujoco>)",
                text_of(s.lamp), text_of(s.dir), text_of(s.diffuse), text_of(s.camera), text_of(s.quat),
                static_cast<double>(s.fovy), text_of(s.rgba), text_of(s.size), text_of(s.block), text_of(s.block_quat));
}

constexpr const char* kTask = R"yaml(
scene: {robot: {mjcf: still.xml}, cameras: [eye]}
simulation: {decimation: 5, episode_length_s: 1}
actions: {turn: {type: joint_position}}
observations: {policy: {joint_pos: {}}}
)yaml";

constexpr const char* kAll = R"yaml(
events:
  paint: {type: geom_rgba, geoms: block, ranges: {0: [0.1, 0.9], 1: [0.1, 0.9], 2: [0.1, 0.9]}}
  eye_pos: {type: cam_pos, cameras: eye, operation: add, ranges: [-0.1, 0.1]}
  eye_turn: {type: cam_quat, cameras: eye, roll_range: [-0.1, 0.1], pitch_range: [-0.1, 0.1], yaw_range: [-0.1, 0.1]}
  eye_fovy: {type: cam_fovy, operation: scale, ranges: [0.8, 1.2]}
  lamp_pos: {type: light_pos, lights: lamp, operation: add, ranges: {x: [-0.3, 0.3], z: [-0.3, 0.3]}}
  lamp_dir: {type: light_dir, operation: add, ranges: [-0.2, 0.2]}
  lamp: {type: light_diffuse, ranges: [0.2, 1]}
  grows: {type: geom_size, geoms: block, ranges: {x: [0.7, 1.3], z: [0.7, 1.3]}}
  moves: {type: geom_pos, geoms: block, operation: add, ranges: [-0.05, 0.05]}
  leans: {type: geom_quat, geoms: block, roll_range: [-0.3, 0.3], yaw_range: [-0.3, 0.3]}
)yaml";

class TaskFileLooks : public ::testing::Test {
 protected:
  TaskFileLooks() { std::ofstream(folder_.path() / "still.xml") << model_with({}); }
  std::unique_ptr<Task> make(const std::string& events, int n_envs, const std::string& renderer = "raycast") const {
    std::ofstream(folder_.path() / "task.yaml") << kTask << events;
    return make_task((folder_.path() / "task.yaml").string(),
                     {.n_envs = n_envs, .pictures = {.height = kSide, .width = kSide, .renderer = renderer}});
  }
  static void begin(Task& task, std::uint64_t first_seed) {
    for (int env = 0; env < task.n_envs(); ++env) {
      const std::int32_t envs[] = {env};
      const std::uint64_t seeds[] = {first_seed + static_cast<std::uint64_t>(env)};
      task.reset(envs, seeds);
    }
  }
  static std::vector<std::uint8_t> picture(Task& task, int env) {
    const std::int32_t envs[] = {env};
    const std::span<const std::uint8_t> all = task.picture("eye", envs).span<std::uint8_t>();
    constexpr std::size_t kBytes = 3 * kSide * kSide;
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(kBytes * static_cast<std::size_t>(env));
    return {from, from + kBytes};
  }
  static int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
    int most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(int{a[i]} - int{b[i]}));
    return most;
  }
  /// What the environment is seen with, by what is drawn on top of the model's own.
  static Seen seen_by(Task& task, int env) {
    sim::Looks& looks = dynamic_cast<SceneTask&>(task).scene().looks();
    Seen s;
    std::copy_n(looks.of(sim::Look::kGeomRgba, env) + 4, 4, s.rgba.begin());  // geom 1 of the file
    std::copy_n(looks.of(sim::Look::kGeomSize, env) + 3, 3, s.size.begin());
    std::copy_n(looks.of(sim::Look::kGeomPos, env) + 3, 3, s.block.begin());
    std::copy_n(looks.of(sim::Look::kGeomQuat, env) + 4, 4, s.block_quat.begin());
    std::copy_n(looks.of(sim::Look::kCameraPos, env), 3, s.camera.begin());
    std::copy_n(looks.of(sim::Look::kLightPos, env), 3, s.lamp.begin());
    std::copy_n(looks.of(sim::Look::kLightDir, env), 3, s.dir.begin());
    std::copy_n(looks.of(sim::Look::kLightDiffuse, env), 3, s.diffuse.begin());
    s.fovy = *looks.of(sim::Look::kCameraFovy, env);
    const float* const turn = looks.of(sim::Look::kCameraTurn, env);
    // One turn after the other, about x, y and z of the world.
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double half = static_cast<double>(turn[axis]) / 2;
      std::array<double, 4> by{std::cos(half), 0, 0, 0};
      by[axis + 1] = std::sin(half);
      const std::array<double, 4> q = s.quat;
      s.quat = {by[0] * q[0] - by[1] * q[1] - by[2] * q[2] - by[3] * q[3],
                by[0] * q[1] + by[1] * q[0] + by[2] * q[3] - by[3] * q[2],
                by[0] * q[2] - by[1] * q[3] + by[2] * q[0] + by[3] * q[1],
                by[0] * q[3] + by[1] * q[2] - by[2] * q[1] + by[3] * q[0]};
    }
    return s;
  }
  void expect_as_models_that_say_so(const std::string& renderer);

  testing::TemporaryFolder folder_;
};

/// The picture of each environment is that of a model whose file has the drawn numbers.
void TaskFileLooks::expect_as_models_that_say_so(const std::string& renderer) {
  constexpr int kMany = 5;
  const auto task = make(kAll, kMany, renderer);
  begin(*task, 20);
  std::vector<std::vector<std::uint8_t>> pictures;
  for (int env = 0; env < kMany; ++env) pictures.push_back(picture(*task, env));
  for (int env = 0; env < kMany; ++env) {
    const Seen seen = seen_by(*task, env);
    EXPECT_GE(*std::min_element(seen.rgba.begin(), seen.rgba.begin() + 3), 0.1f);
    EXPECT_EQ(seen.rgba[3], 1.0f);
    EXPECT_NEAR(seen.fovy, 50, 10.001);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(seen.camera[i], Seen{}.camera[i], 0.1001);
    EXPECT_EQ(seen.lamp[1], Seen{}.lamp[1]) << "no range was given for y";
    std::ofstream(folder_.path() / "still.xml") << model_with(seen);
    const auto fixed = make("", 1, renderer);
    begin(*fixed, 0);
    const auto wanted = picture(*fixed, 0), got = pictures[static_cast<std::size_t>(env)];
    // The turn of the camera is rounded otherwise: an edge may move by a hair.
    int beyond = 0;
    for (std::size_t i = 0; i < got.size(); ++i) beyond += std::abs(int{got[i]} - int{wanted[i]}) > 1;
    EXPECT_LE(beyond, 3) << "environment " << env;
    for (int other = 0; other < env; ++other)
      EXPECT_GT(largest_difference(pictures[static_cast<std::size_t>(other)], got), 20);
  }
}

TEST_F(TaskFileLooks, PicturesAreThoseOfModelsThatHaveTheDrawnNumbers) {
  expect_as_models_that_say_so("raycast");
}

#ifndef __SANITIZE_THREAD__  // OpenGL's software renderer has races of its own
TEST_F(TaskFileLooks, MujocosRendererShowsThemToo) {
  const auto task = make("", 1, "mujoco");
  begin(*task, 0);
  const std::string why = message_of([&] { picture(*task, 0); });
  if (!why.empty()) GTEST_SKIP() << why;
  expect_as_models_that_say_so("mujoco");
}
#endif

TEST_F(TaskFileLooks, EachKindChangesThePictureAndASeedGivesTheSameAgainElsewhereAndAfterALoad) {
  for (const char* event :
       {"geom_rgba, geoms: block, ranges: [0.1, 0.9]", "geom_rgba, geoms: table, ranges: {1: [0.1, 0.9]}",
        "cam_pos, operation: add, ranges: [-0.2, 0.2]", "cam_quat, yaw_range: [-0.3, 0.3]",
        "cam_fovy, ranges: [30, 70]", "light_pos, operation: add, ranges: [-0.4, 0.4]",
        "light_dir, operation: add, ranges: [-0.4, 0.4]", "light_ambient, ranges: [0, 0.6]",
        "light_diffuse, ranges: [0.1, 1]", "light_specular, ranges: [0, 1]",
        "geom_size, geoms: block, ranges: [0.6, 1.5]", "geom_pos, geoms: block, operation: add, ranges: [-0.1, 0.1]",
        "geom_quat, geoms: block, yaw_range: [-1, 1]"}) {
    const std::string events = format("events: {{look: {{type: {}}}}}\n", event);
    const auto task = make(events, 3), other = make(events, 5);
    begin(*task, 50);
    begin(*other, 49);
    const std::vector<std::uint8_t> first = picture(*task, 0), second = picture(*task, 1);
    EXPECT_GT(largest_difference(first, second), 2) << event;
    EXPECT_EQ(picture(*other, 1), first) << event;
    EXPECT_EQ(picture(*other, 2), second) << event;
    const auto later = make(events, 3);
    begin(*later, 3);
    later->load(task->save(), "saved");
    EXPECT_EQ(picture(*later, 0), first) << event;
    EXPECT_EQ(picture(*later, 1), second) << event;
  }
}

TEST_F(TaskFileLooks, InIntervalsThePictureChangesWithinAnEpisodeAndBeginsAsTheModelHasIt) {
  const auto task = make(
      "events: {look: {type: light_diffuse, mode: interval, interval_range_s: [0.04, 0.04], ranges: [0, 1]}}\n", 2);
  const auto still = make("", 2);
  begin(*task, 1), begin(*still, 1);
  const std::vector<std::uint8_t> before = picture(*task, 0);
  EXPECT_EQ(before, picture(*still, 0));
  std::vector<float> none(2);
  for (int t = 0; t < 6; ++t) task->step(make_view(none.data(), {2, 1}));
  EXPECT_GT(largest_difference(before, picture(*task, 0)), 10);
  begin(*task, 1);
  EXPECT_EQ(before, picture(*task, 0));
}

TEST_F(TaskFileLooks, SeveralEnvironmentsInOnePictureHaveTheirOwnColours) {
  const auto task =
      make("events: {look: {type: geom_rgba, geoms: block, ranges: {0: [0, 1], 1: [0, 1], 2: [0, 1]}}}\n", 2);
  begin(*task, 7);
  sim::Scene& scene = dynamic_cast<SceneTask&>(*task).scene();
  const auto renderer = render::make_renderer(scene);
  std::vector<std::uint8_t> together(3 * kSide * kSide);
  const std::int32_t both[] = {0, 1}, turned[] = {1, 0};
  const auto draw = [&](std::span<const std::int32_t> envs) {
    renderer->render_together(renderer->camera("eye"), envs, {.rgb = make_view(together.data(), {1, kSide, kSide, 3})});
    return together;
  };
  // Both stand in the same place, and the nearer of equals is the first: each order shows another colour.
  EXPECT_GT(largest_difference(draw(both), draw(turned)), 10);
}

TEST_F(TaskFileLooks, FaultsOfTheirsAreNamedWithARemedy) {
  const struct {
    const char* event;
    const char* says;
  } kCases[] = {
      {"geom_rgba, geoms: blok, ranges: [0, 1]", "no geom matches 'blok', did you mean 'block'?"},
      {"geom_rgba", "ranges is missing: [low, high]"},
      {"geom_rgba, ranges: {4: [0, 1]}", "there is no axis 4: they are 0 to 3"},
      {"cam_pos, cameras: eys, ranges: [0, 1]", "no camera matches 'eys', did you mean 'eye'?"},
      {"geom_size, geoms: table, ranges: [1, 2]", "the geom 'table' is a plane: geom_size is about spheres"},
      {"geom_size, geoms: block, ranges: [0, 2]", "begin at 0: a size is more than zero"},
      {"geom_quat, geoms: block", "geom_quat needs roll_range, pitch_range or yaw_range"},
      {"cam_quat", "cam_quat needs roll_range, pitch_range or yaw_range"},
      {"cam_quat, operation: scale, roll_range: [0, 1]", "cam_quat's operation is none"},
      {"light_pos, lights: lampe, ranges: [0, 1]", "no light matches 'lampe', did you mean 'lamp'?"},
      {"light_colour, ranges: [0, 1]", "there is no event 'light_colour'"},
  };
  for (const auto& [event, says] : kCases) {
    const std::string said = message_of([&, e = event] { make(format("events: {{look: {{type: {}}}}}\n", e), 1); });
    EXPECT_NE(said.find(says), std::string::npos) << event << "\nsays: " << said;
  }
}

}  // namespace
}  // namespace cohort::tasks
