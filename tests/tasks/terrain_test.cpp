// Generated ground: beside mjlab's generators and MuJoCo's rays (fixtures/make_terrain.py), and by what settings promise.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "sim/backends/cpu/engine.h"
#include "sim/host/scene.h"
#include "support/process.h"
#include "tasks/registry.h"
#include "tasks/terrain/generated_terrain.h"
#include "tasks/terrain/scan_pattern.h"
#include "tasks/terrain/terrain_level.h"
#include "terrain_lanes.h"

namespace cohort::tasks {
namespace {

using config::Json;

const Json& fixture() {
  static const Json all = parse_json<Json>(read_file(COHORT_SOURCE_DIR "/tests/tasks/fixtures/terrain.json"));
  return all;
}

/// One patch, whose first height stands at (-4, -4).
GeneratedTerrain one_patch(const SubTerrain& type, double difficulty, std::uint64_t seed = 0) {
  return generate_terrain({.num_rows = 1,
                           .num_cols = 1,
                           .border_width = 0,
                           .difficulty_range = {difficulty, difficulty},
                           .seed = seed,
                           .sub_terrains = {type}});
}

std::vector<std::string> complaints(const char* text) {
  std::vector<std::string> refused;
  read_terrain(parse_json<Json>(text), "terrain", refused);
  return refused;
}

TEST(Terrain, StairsHaveTheHeightsOfMjlabsBoxes) {
  constexpr float kTolerance = 1e-4f;  // m; a height is the sum of six steps
  for (const Json& stairs : fixture().at("stairs")) {
    const GeneratedTerrain ground = one_patch(terrain_type(stairs.at("type")), fixture().at("difficulty"));
    const sim::TerrainView view = ground.view();
    for (const Json& point : stairs.at("points")) {
      const float x = point[0], y = point[1];
      EXPECT_NEAR(sim::terrain_height(view, x - 4, y - 4), point[2].get<float>(), kTolerance)
          << stairs.at("type") << " at " << x << ", " << y;
    }
    EXPECT_NEAR(ground.spawn(0, 0)[2], stairs.at("spawn")[2].get<float>(), kTolerance);
    EXPECT_FLOAT_EQ(ground.spawn(0, 0)[0], 0);
    EXPECT_FLOAT_EQ(ground.spawn(0, 0)[1], 0);
  }
}

TEST(Terrain, SlopesAndWavesHaveTheHeightsOfMjlabsFields) {
  constexpr float kTolerance = 1e-4f;  // m
  for (const Json& field : fixture().at("fields")) {
    const std::string type = field.at("type");
    const GeneratedTerrain ground = one_patch(terrain_type(type), fixture().at("difficulty"));
    for (const Json& point : field.at("heights")) {
      const auto at = static_cast<std::size_t>(point[0].get<int>() * ground.cols + point[1].get<int>());
      EXPECT_NEAR(ground.heights[at], point[2].get<float>(), kTolerance) << type << " " << json_text(point);
    }
    if (type != "waves") {
      EXPECT_NEAR(ground.spawn(0, 0)[2], field.at("spawn_height").get<float>(), kTolerance);
    }
  }
}

TEST(Terrain, HeightBelowAPointIsThatOfMujocosRay) {
  constexpr float kTolerance = 1e-5f;  // m; float32 places of some metres
  const Json& rays = fixture().at("rays");
  const auto heights = rays.at("heights").get<std::vector<float>>();
  const sim::TerrainView view{.heights = heights.data(),
                              .rows = rays.at("rows"),
                              .cols = rays.at("cols"),
                              .x = rays.at("x"),
                              .y = rays.at("y"),
                              .dx = rays.at("dx"),
                              .dy = rays.at("dy"),
                              .scale = rays.at("scale"),
                              .z = rays.at("z")};
  for (const Json& point : rays.at("points")) {
    const float x = point[0], y = point[1];
    EXPECT_NEAR(sim::terrain_height(view, x, y), point[2].get<float>(), kTolerance) << x << ", " << y;
    // The normal is that of the height's slope, where both neighbours lie on the same triangle.
    const auto at = sim::terrain_point(view, x, y);
    EXPECT_EQ(at.height, sim::terrain_height(view, x, y));
    EXPECT_NEAR(at.normal[0] * at.normal[0] + at.normal[1] * at.normal[1] + at.normal[2] * at.normal[2], 1, 1e-5);
    constexpr float kStep = 1e-3f;
    const auto beside_x = sim::terrain_point(view, x + kStep, y), beside_y = sim::terrain_point(view, x, y + kStep);
    if (beside_x.normal[0] == at.normal[0] && beside_x.normal[1] == at.normal[1]) {
      EXPECT_NEAR((beside_x.height - at.height) / kStep, -at.normal[0] / at.normal[2], 2e-3) << x << ", " << y;
    }
    if (beside_y.normal[0] == at.normal[0] && beside_y.normal[1] == at.normal[1]) {
      EXPECT_NEAR((beside_y.height - at.height) / kStep, -at.normal[1] / at.normal[2], 2e-3) << x << ", " << y;
    }
  }
}

TEST(Terrain, BeyondItsEdgeTheEdgesHeightGoesOnLevel) {
  const std::vector<float> heights{0, 1, 2, 3, 4, 5};
  const sim::TerrainView view{.heights = heights.data(), .rows = 2, .cols = 3, .dx = 1, .dy = 1};
  EXPECT_EQ(sim::terrain_height(view, -7.0f, 0.5f), 1.5f);
  EXPECT_EQ(sim::terrain_height(view, 90.0f, 0.0f), 2.0f);
  EXPECT_EQ(sim::terrain_height(view, 2.0f, 1.0f), 5.0f);
  const auto outside = sim::terrain_point(view, 90.0f, 90.0f);
  EXPECT_EQ(outside.height, 5.0f);
  EXPECT_EQ(outside.normal[2], 1.0f);
  const float far[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN(), 3e38f};
  for (const float x : far)
    for (const float y : far) EXPECT_TRUE(std::isfinite(sim::terrain_height(view, x, y))) << x << ", " << y;
}

TEST(Terrain, LanesOfEveryWidthGiveTheSameBits) {
  const GeneratedTerrain ground = one_patch(terrain_type("random_uniform"), 0.5, 3);
  constexpr int kPoints = 512;
  alignas(64) static float x[kPoints], y[kPoints], expected[4 * kPoints], got[4 * kPoints];
  const RandomStream random(5, RandomPurpose::kTest, 0, 0);
  for (int i = 0; i < kPoints; ++i) {  // some beyond the edge
    x[i] = 9 * random.uniform(static_cast<std::uint64_t>(2 * i)) - 4.5f;
    y[i] = 9 * random.uniform(static_cast<std::uint64_t>(2 * i + 1)) - 4.5f;
  }
  test::scalar_points()(ground.view(), x, y, kPoints, expected);
  for (int i = 0; i < kPoints; ++i) EXPECT_EQ(expected[i], sim::terrain_height(ground.view(), x[i], y[i]));
  for (const sim::LaneWidth width : {sim::LaneWidth::kAvx2, sim::LaneWidth::kAvx512}) {
    if (!sim::runs_lanes(width)) continue;
    std::fill(std::begin(got), std::end(got), std::numeric_limits<float>::quiet_NaN());
    sim::of_lanes(width, test::scalar_points(), test::avx2_points(), test::avx512_points())(ground.view(), x, y,
                                                                                            kPoints, got);
    EXPECT_TRUE(std::equal(std::begin(got), std::end(got), expected)) << to_string(width);
  }
}

TEST(Terrain, EveryTypeIsAFunctionOfItsSeedAndGrowsWithDifficulty) {
  const std::set<std::string> drawn{"random_uniform", "random_grid", "discrete_obstacles", "stepping_stones"};
  for (const std::string& name : terrain_types()) {
    const SubTerrain type = terrain_type(name);
    const GeneratedTerrain hard = one_patch(type, 1), again = one_patch(type, 1), other = one_patch(type, 1, 1);
    EXPECT_EQ(hard.heights, again.heights) << name;
    EXPECT_EQ(hard.heights != other.heights, drawn.contains(name)) << name;
    EXPECT_EQ(hard.is_flat(), name == "flat");
    const auto extent = [](const GeneratedTerrain& ground) {
      const auto [least, most] = std::ranges::minmax(ground.heights);
      return most - least;
    };
    // Its noise does not, unless it is asked to; stones shrink and stay as high.
    if (name != "flat" && name != "random_uniform" && name != "stepping_stones") {
      EXPECT_GT(extent(hard), extent(one_patch(type, 0.25))) << name;
    }
  }
  SubTerrain noise = terrain_type("random_uniform");
  noise.scale_with_difficulty = true, noise.noise_range = {-0.1, 0.1};
  EXPECT_TRUE(one_patch(noise, 0).is_flat());
  EXPECT_FALSE(one_patch(noise, 1).is_flat());
}

TEST(Terrain, DrawnHeightsKeepToTheirRangesAndThePlatformIsLevel) {
  const auto ends = [](const GeneratedTerrain& ground) { return std::ranges::minmax(ground.heights); };
  const auto noise = ends(one_patch(terrain_type("random_uniform"), 0.5));
  EXPECT_FLOAT_EQ(noise.max, 0.1f);
  EXPECT_FLOAT_EQ(noise.min, 0.0f);  // the border
  const auto grid = ends(one_patch(terrain_type("random_grid"), 1));
  EXPECT_LE(grid.max, 0.3f);
  EXPECT_GT(grid.max, 0.25f);
  EXPECT_GE(grid.min, -0.3f);
  const GeneratedTerrain stones = one_patch(terrain_type("stepping_stones"), 1);
  EXPECT_FLOAT_EQ(ends(stones).min, -2.0f);
  EXPECT_LE(ends(stones).max, 0.3f);
  const auto deep = [](const GeneratedTerrain& ground) {
    return std::ranges::count_if(ground.heights, [](float h) { return h < -1; });
  };
  EXPECT_GT(2 * deep(stones), 3 * deep(one_patch(terrain_type("stepping_stones"), 0)));  // wider gaps
  for (const char* name : {"random_grid", "discrete_obstacles", "stepping_stones", "pyramid_stairs"}) {
    const GeneratedTerrain ground = one_patch(terrain_type(name), 1);
    for (float x = -0.5f; x <= 0.5f; x += 0.1f)
      for (float y = -0.5f; y <= 0.5f; y += 0.1f)
        EXPECT_NEAR(sim::terrain_height(ground.view(), x, y), ground.spawn(0, 0)[2], 1e-5) << name;
  }
}

TEST(Terrain, RowsRiseInDifficultyAndColumnsAreSharedByProportion) {
  TerrainSettings settings{.num_rows = 5, .num_cols = 10, .border_width = 2};
  settings.sub_terrains = {terrain_type("flat"), terrain_type("pyramid_stairs"), terrain_type("waves")};
  settings.sub_terrains[0].proportion = 0.3, settings.sub_terrains[1].proportion = 0.5;
  settings.sub_terrains[2].proportion = 0.2;
  const GeneratedTerrain ground = generate_terrain(settings);
  EXPECT_EQ(ground.cols, 5 * 80 + 40 + 1);
  EXPECT_EQ(ground.rows, 10 * 80 + 40 + 1);
  int columns[3] = {};
  for (int column = 0; column < 10; ++column) {
    ++columns[ground.kinds[static_cast<std::size_t>(column)]];
    for (int level = 0; level < 5; ++level) {
      const auto patch = static_cast<std::size_t>(level * 10 + column);
      EXPECT_EQ(ground.kinds[patch], ground.kinds[static_cast<std::size_t>(column)]);
      EXPECT_GE(ground.difficulty[patch], level / 5.0);
      EXPECT_LT(ground.difficulty[patch], (level + 1) / 5.0);
      const auto& spawn = ground.spawn(level, column);
      EXPECT_FLOAT_EQ(spawn[0], static_cast<float>(8 * level - 16));
      EXPECT_FLOAT_EQ(spawn[1], static_cast<float>(8 * column - 36));
      EXPECT_GE(spawn[2], sim::terrain_height(ground.view(), spawn[0], spawn[1]) - 1e-5f);
    }
  }
  EXPECT_EQ(columns[0], 3);
  EXPECT_EQ(columns[1], 5);
  EXPECT_EQ(columns[2], 2);
  EXPECT_EQ(sim::terrain_height(ground.view(), -21.0f, 0.0f), 0);  // the border

  settings.curriculum = false;
  const GeneratedTerrain mixed = generate_terrain(settings);
  EXPECT_TRUE(std::ranges::any_of(std::vector<int>{0, 1, 2, 3, 4}, [&](int level) {
    return mixed.kinds[static_cast<std::size_t>(level * 10)] != mixed.kinds[0] || mixed.difficulty[0] > 0.2;
  }));
}

TEST(Terrain, BallsComeToRestOnItsHeightsInBothEngines) {
  TerrainSettings settings{.size = {4, 4}, .num_rows = 2, .num_cols = 1, .border_width = 1};
  settings.sub_terrains = {terrain_type("pyramid_stairs")};
  settings.sub_terrains[0].border_width = 0.5, settings.sub_terrains[0].platform_width = 1.4;
  const GeneratedTerrain ground = generate_terrain(settings);
  // On the middle of a platform, on a step and on the border.
  const float middle = ground.spawn(1, 0)[0];
  const std::array<std::array<float, 2>, 3> places{{{middle, 0.04f}, {middle + 1.12f, 0.04f}, {-4.4f, 0.04f}}};
  constexpr float kRadius = 0.05f, kTolerance = 2e-3f;  // m; contacts are soft
  std::set<float> heights;
  for (const auto engine : {sim::EngineKind::kBatched, sim::EngineKind::kMujoco}) {
    sim::SceneOptions options;
    options.engine = engine;
    sim::Scene scene(options);
    scene.add_entity(ground.entity(), "ground");
    for (std::size_t i = 0; i < places.size(); ++i) {
      sim::Sphere ball;
      ball.radius = kRadius;
      const float z = sim::terrain_height(ground.view(), places[i][0], places[i][1]);
      heights.insert(z);
      ball.shape.pose.pos = {places[i][0], places[i][1], z + kRadius + 0.02f};
      scene.add_entity(ball, format("ball{}", i));
    }
    scene.build(1);
    for (int i = 0; i < 400; ++i) scene.step();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::vector<float> at = scene.entity(format("ball{}", i)).get_pos();
      EXPECT_NEAR(at[0], places[i][0], kTolerance) << i;
      EXPECT_NEAR(at[2] - kRadius, sim::terrain_height(ground.view(), at[0], at[1]), kTolerance) << i;
    }
  }
  EXPECT_EQ(heights.size(), 3u);
}

constexpr const char* kCrate = R"(<mujoco model="crate">
  <worldbody><body name="crate" pos="0 0 0.2"><freejoint name="root"/>
    <geom type="box" size="0.1 0.1 0.1" mass="1"/>
    <body name="lid" pos="0 0 0.12"><joint name="hinge" axis="0 1 0" range="-0.5 0.5" limited="true" damping="1"/>
      <geom type="box" size="0.1 0.1 0.02" mass="0.1"/></body></body></worldbody>
  <actuator><motor name="hinge" joint="hinge" ctrlrange="-1 1" ctrllimited="true"/></actuator>
</mujoco>)";

constexpr const char* kOnTerrain = R"(scene:
  robot: {mjcf: crate.xml}
  ground:
    friction: 0.9
    terrain:
      size: [4, 4]
      num_rows: 4
      num_cols: 3
      border_width: 1
      sub_terrains:
        - {type: pyramid_stairs, border_width: 0.5, platform_width: 1.4}
        - {type: pyramid_stairs_inverted, border_width: 0.5, platform_width: 1.4}
        - {type: flat}
simulation: {timestep: 0.005, decimation: 2, episode_length_s: 1}
actions:
  lid: {type: joint_effort, joints: hinge}
observations:
  policy: {place: base.position}
rewards:
  alive: {formula: "1", weight: 1}
)";

TEST(Terrain, EpisodesOfATaskFileBeginOnThePatchThatTheirSeedChooses) {
  const testing::TemporaryFolder folder;
  write_file_atomically((folder.path() / "crate.xml").string(), kCrate);
  write_file_atomically((folder.path() / "task.yaml").string(), kOnTerrain);
  const auto task = make_task((folder.path() / "task.yaml").string(), {.n_envs = 64});
  std::vector<std::int32_t> envs(64);
  std::vector<std::uint64_t> seeds(64);
  for (std::size_t i = 0; i < 64; ++i) envs[i] = static_cast<std::int32_t>(i), seeds[i] = 100 + i / 2;
  task->reset(envs, seeds);
  const auto places = task->observation(0).span<float>();
  std::set<std::array<float, 2>> patches;
  std::set<float> heights;
  for (std::size_t i = 0; i < 64; ++i) {
    const float* at = &places[3 * i];
    patches.insert({at[0], at[1]}), heights.insert(at[2]);
    EXPECT_EQ(std::fmod(at[0] + 6, 4.0f), 0) << at[0];
    EXPECT_EQ(std::fmod(at[1] + 4, 4.0f), 0) << at[1];
    EXPECT_EQ(places[3 * i], places[3 * (i - i % 2)]) << "of the same seed";
  }
  EXPECT_GT(patches.size(), 6u);
  EXPECT_LT(*heights.begin(), 0.1f);   // in a pit
  EXPECT_GT(*heights.rbegin(), 0.3f);  // on a pyramid

  write_file_atomically((folder.path() / "task.yaml").string(),
                        std::regex_replace(std::string(kOnTerrain), std::regex("num_cols"), "num_columns"));
  const std::string message = message_of([&] { make_task((folder.path() / "task.yaml").string(), {.n_envs = 1}); });
  EXPECT_NE(message.find("scene.ground.terrain.num_columns = 3 is unknown here"), std::string::npos) << message;
}

TEST(Terrain, SettingsAreReadByIsaacLabsNamesAndFaultsAreNamed) {
  std::vector<std::string> refused;
  const TerrainSettings read =
      read_terrain(parse_json<Json>(R"({"size": [4, 6], "num_rows": 3, "seed": 7, "sub_terrains": [
      {"type": "pyramid_stairs", "proportion": 0.5, "step_height_range": [0.02, 0.1], "step_width": 0.4},
      {"type": "random_uniform", "noise_range": [0, 0.06]}]})"),
                   "terrain", refused);
  EXPECT_TRUE(refused.empty()) << refused.front();
  EXPECT_EQ(read.size[1], 6);
  EXPECT_EQ(read.num_rows, 3);
  EXPECT_EQ(read.seed, 7u);
  ASSERT_EQ(read.sub_terrains.size(), 2u);
  EXPECT_EQ(read.sub_terrains[0].step_height_range, (SubTerrain::Range{0.02, 0.1}));
  EXPECT_EQ(read.sub_terrains[0].platform_width, 3);  // the type's own
  EXPECT_EQ(read.sub_terrains[1].noise_range, (SubTerrain::Range{0, 0.06}));

  auto faults = complaints(R"({"sub_terrains": [{"type": "pyramid_stair"}]})");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find(
                "terrain.sub_terrains[0].type = \"pyramid_stair\" is no type of terrain (is pyramid_stairs meant?)"),
            std::string::npos)
      << faults[0];
  faults = complaints(R"({"num_row": 3, "sub_terrains": [{"type": "flat", "step_width": 1}]})");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_NE(faults[0].find("terrain.sub_terrains[0].step_width"), std::string::npos) << faults[0];
  EXPECT_NE(faults[1].find("terrain.num_row = 3 is unknown here (is num_rows meant?)"), std::string::npos) << faults[1];
  faults = complaints(R"({"sub_terrains": [{"type": "waves", "amplitude_range": [1]}]})");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find("two numbers"), std::string::npos) << faults[0];
  EXPECT_EQ(complaints("{}").size(), 1u);
}

TEST(Terrain, SettingsThatMakeNoGroundAreRefusedWithARemedy) {
  const auto message = [](const TerrainSettings& settings) { return message_of([&] { generate_terrain(settings); }); };
  TerrainSettings huge{.num_rows = 200, .num_cols = 200};
  const std::string large = message(huge);
  const std::string remedy = "take horizontal_scale = ";
  ASSERT_NE(large.find(remedy), std::string::npos) << large;
  huge.horizontal_scale = std::stod(large.substr(large.find(remedy) + remedy.size()));
  check_terrain(huge);  // the remedy works
  EXPECT_NE(message({.size = {8.03, 8}}).find("8 m is"), std::string::npos);
  TerrainSettings narrow{.size = {3, 3}, .sub_terrains = {terrain_type("pyramid_stairs")}};
  EXPECT_NE(message(narrow).find("do not fit a patch of 3 m"), std::string::npos) << message(narrow);
  narrow.sub_terrains[0].border_width = 0, narrow.sub_terrains[0].step_width = 0.05;
  EXPECT_NE(message(narrow).find("step_width = 0.05 m"), std::string::npos) << message(narrow);
  narrow.sub_terrains[0] = terrain_type("flat"), narrow.sub_terrains[0].proportion = 0;
  EXPECT_NE(message(narrow).find("add up to 0"), std::string::npos) << message(narrow);
}

TEST(Terrain, AScanHasThePointsAndOrderOfIsaacLabsGrid) {
  const auto grid = scan_points({.size = {1.6, 1.0}, .resolution = 0.1});
  ASSERT_EQ(grid.size(), 187u);  // 17 x 11, as Isaac Lab's rough locomotion
  EXPECT_FLOAT_EQ(grid[0][0], -0.8f);
  EXPECT_FLOAT_EQ(grid[0][1], -0.5f);
  EXPECT_FLOAT_EQ(grid[1][0], -0.7f);
  EXPECT_FLOAT_EQ(grid[1][1], -0.5f);  // x first
  EXPECT_FLOAT_EQ(grid[186][0], 0.8f);
  EXPECT_FLOAT_EQ(grid[186][1], 0.5f);
  EXPECT_NE(message_of([] { scan_points({.resolution = 0}); }).find("resolution above 0"), std::string::npos);
  EXPECT_NE(message_of([] { scan_points({.size = {100, 100}}); }).find("10000"), std::string::npos);
}

TEST(Terrain, TheNextLevelFollowsTheDistanceWalked) {
  EXPECT_EQ(next_terrain_level({.level = 3, .distance = 4.1, .commanded_distance = 20}, 10, 8, 0.5),
            4);  // up before down
  EXPECT_EQ(next_terrain_level({.level = 3, .distance = 3.9, .commanded_distance = 20}, 10, 8, 0.5), 2);
  EXPECT_EQ(next_terrain_level({.level = 3, .distance = 3.9, .commanded_distance = 7}, 10, 8, 0.5), 3);
  EXPECT_EQ(next_terrain_level({.level = 0, .distance = 0, .commanded_distance = 7}, 10, 8, 0.5), 0);
  EXPECT_EQ(next_terrain_level({.level = 9, .distance = 5, .commanded_distance = 7}, 10, 8, 0.35), 3);
  EXPECT_EQ(next_terrain_level({.level = 9, .distance = 5, .commanded_distance = 7}, 10, 8, 0.9999999), 9);
}

}  // namespace
}  // namespace cohort::tasks
