// Trajectory transforms against the DROID pipeline's own code: octo as droid_policy_learning pins it, dlimp, and that
// package's transform (fixtures/make_trajectory_fixture.py).
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "data/fixture_folder.h"
#include "data/images/image_pipeline.h"
#include "data/rlds/rlds_episodes.h"
#include "data/robot_windows.h"
#include "data/sample_memory.h"
#include "data/toy_set.h"
#include "data/transforms/filter.h"

namespace cohort::data {
namespace {
using Json = nlohmann::json;

// Ours are rounded to float32 at the end, the reference's are float64 from float32 statistics.
constexpr double kFloatTolerance = 2e-6;
constexpr int kImageTolerance = 1;  // a value at .5 may round the other way

std::vector<float> floats(const Json& json) {
  return json.get<std::vector<float>>();
}

class TrajectoryParity : public ::testing::Test {
 protected:
  TrajectoryParity() {
    for (const Json& t : expected_["trajectories"])
      episodes_.push_back({.fields = {{"action", floats(t["action"])},
                                      {"pose", floats(t["pose"])},
                                      {"gripper", floats(t["gripper"])},
                                      {"state", floats(t["state"])}}});
    home_ = write_toy_set(folder_.path(), episodes_, {{"action", 4}, {"pose", 6}, {"gripper", 1}, {"state", 3}});
  }

  std::int64_t steps(std::size_t e) const {
    return static_cast<std::int64_t>(episodes_[e].fields.at("gripper").size());
  }

  RobotDataSettings windows() const {
    RobotDataSettings settings;
    settings.paths = {home_.string()};
    settings.actions = {"action"};
    settings.action_normalization = {"none"};
    settings.proprio = {"state"};
    settings.statistics_cache = "never";
    settings.threads = 1;
    // octo's window of 2 with 15 future actions begins with the action of the step before.
    settings.observation_steps = 2;
    settings.action_steps = 17;
    settings.action_begin = -1;
    return settings;
  }

  /// The actions of every window, in order, are the reference's.
  void expect_actions(const RobotDataSettings& settings, const char* name) {
    const RobotWindows windows(settings);
    std::int64_t index = 0;
    for (std::size_t e = 0; e < episodes_.size(); ++e) {
      const std::vector<float> wanted = floats(expected_["chunks"][e][name]);
      for (std::int64_t t = 0; t < steps(e); ++t, ++index) {
        const Sample sample(windows, index, 0);
        const auto found = sample.floats("action");
        ASSERT_TRUE(std::equal(found.begin(), found.end(), wanted.begin() + t * 17 * 4)) << e << " " << t;
      }
    }
    EXPECT_EQ(index, windows.size());
  }

  const Json expected_ = fixture_json("trajectory_expected.json");
  OwnFolder folder_;
  std::vector<ToyEpisode> episodes_;
  std::filesystem::path home_;
};

TEST_F(TrajectoryParity, WindowsOfAbsoluteActionsAreThoseOfChunkActObs) {
  expect_actions(windows(), "absolute");
}

TEST_F(TrajectoryParity, WindowsOfRelativeActionsAreThoseOfChunkActObs) {
  RobotDataSettings settings = windows();
  settings.pad_after = "zero";
  expect_actions(settings, "relative");
}

TEST_F(TrajectoryParity, ActionsBehindAGoalAreThoseOfChunkActObs) {
  RobotDataSettings settings = windows();
  settings.goal = "steps(3)";
  expect_actions(settings, "goal_three_ahead");
}

TEST_F(TrajectoryParity, ObservationsAndTheirMaskAreThoseOfChunkActObs) {
  const RobotWindows all(windows());
  std::int64_t index = 0;
  for (std::size_t e = 0; e < episodes_.size(); ++e) {
    const std::vector<float> wanted = floats(expected_["chunks"][e]["proprio"]);
    const auto mask = expected_["chunks"][e]["pad_mask"].get<std::vector<int>>();
    for (std::int64_t t = 0; t < steps(e); ++t, ++index) {
      const Sample sample(all, index, 0);
      const auto found = sample.floats("proprio");
      EXPECT_TRUE(std::equal(found.begin(), found.end(), wanted.begin() + t * 2 * 3));
      for (std::size_t k = 0; k < 2; ++k)
        EXPECT_EQ(sample.mask("observation_mask")[k], mask[static_cast<std::size_t>(t) * 2 + k] != 0);
    }
  }
}

TEST_F(TrajectoryParity, UniformGoalsAreDrawnFromTheReferencesSteps) {
  const std::int64_t length = expected_["goals"]["steps"];
  ToyEpisode episode;
  for (std::int64_t t = 0; t < length; ++t) {
    episode.fields["action"].push_back(0.5f * static_cast<float>(t));
    episode.fields["state"].push_back(static_cast<float>(t));
  }
  OwnFolder folder;
  RobotDataSettings settings = windows();
  settings.paths = {write_toy_set(folder.path(), {episode}, {{"action", 1}, {"state", 1}}).string()};
  settings.goal = "uniform";
  const RobotWindows all(settings);
  for (std::int64_t t = 0; t < length; ++t) {
    std::set<int> seen;
    for (std::uint64_t epoch = 0; epoch < 400; ++epoch)
      seen.insert(static_cast<int>(Sample(all, t, epoch).floats("goal_proprio")[0]));
    EXPECT_EQ(std::vector<int>(seen.begin(), seen.end()),
              expected_["goals"]["seen"][static_cast<std::size_t>(t)].get<std::vector<int>>())
        << t;
  }
}

TEST_F(TrajectoryParity, StatisticsAreThoseOfGetDatasetStatistics) {
  const RldsEpisodes source(home_);
  const ComponentVector action({"action"}, source, "actions"), proprio({"state"}, source, "proprio");
  const RobotStatistics found = compute_statistics(source, {0, 1, 2, 3}, action, proprio, home_, {.cache = "never"});
  const RobotStatistics wanted = statistics_from_json(
      parse_json<nlohmann::ordered_json>(json_text(expected_["quantile_statistics"])), "octo's statistics");
  EXPECT_EQ(found.transitions, wanted.transitions);
  EXPECT_EQ(found.trajectories, wanted.trajectories);
  for (const auto& [ours, theirs] : {std::pair{found.action, wanted.action}, std::pair{found.proprio, wanted.proprio}})
    for (std::size_t d = 0; d < theirs.width(); ++d) {
      EXPECT_NEAR(ours.mean[d], theirs.mean[d], kFloatTolerance);
      EXPECT_NEAR(ours.std[d], theirs.std[d], kFloatTolerance);
      EXPECT_NEAR(ours.min[d], theirs.min[d], kFloatTolerance);
      EXPECT_NEAR(ours.max[d], theirs.max[d], kFloatTolerance);
      EXPECT_NEAR(ours.q01.at(d), theirs.q01.at(d), kFloatTolerance);
      EXPECT_NEAR(ours.q99.at(d), theirs.q99.at(d), kFloatTolerance);
    }
}

TEST_F(TrajectoryParity, MaskedNormalisationIsThatOfNormalizeActionAndProprio) {
  const auto mask = expected_["mask"].get<std::vector<bool>>();
  for (const std::string name : {"normal", "bounds", "quantiles"}) {
    const RobotStatistics statistics =
        statistics_from_json(parse_json<nlohmann::ordered_json>(
                                 json_text(expected_[name == "quantiles" ? "quantile_statistics" : "statistics"])),
                             name);
    std::vector<std::string> kinds;
    for (const bool normalised : mask) kinds.push_back(normalised ? name : "none");
    const std::vector<std::int64_t> ones(mask.size(), 1), whole{3};
    const Normalizer action(kinds, ones, statistics.action, "error", "action"),
        proprio({name}, whole, statistics.proprio, "error", "proprio");
    for (std::size_t e = 0; e < episodes_.size(); ++e)
      for (const auto& [normalizer, field, key] :
           {std::tuple(&action, "action", "action"), std::tuple(&proprio, "state", "proprio")}) {
        std::vector<float> values = episodes_[e].fields.at(field);
        normalizer->normalize(values);
        const std::vector<float> wanted = floats(expected_[name][e][key]);
        ASSERT_EQ(values.size(), wanted.size());
        for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], wanted[i], kFloatTolerance) << name;
      }
  }
}

TEST_F(TrajectoryParity, GripperRulesAreTheReferences) {
  const auto compute = [](const Json& values, const std::string& rule) {
    OwnFolder folder;
    ToyEpisode episode;
    episode.fields["gripper"] = floats(values);
    const RldsEpisodes source(write_toy_set(folder.path(), {episode}, {{"gripper", 1}}));
    std::vector<float> found(episode.fields["gripper"].size());
    Component("gripper | " + rule, source).read(*source.open(0), 0, source.steps(0), found.data(), 1);
    return found;
  };
  for (const Json& series : expected_["grippers"]["absolute"]) {
    EXPECT_EQ(compute(series["values"], "binarize"), floats(series["binarized"])) << series["values"];
    const std::vector<float> inverted = compute(series["values"], "invert"), wanted = floats(series["inverted"]);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(inverted[i], wanted[i], kFloatTolerance);
  }
  for (const Json& series : expected_["grippers"]["relative"])
    EXPECT_EQ(compute(series["values"], "relative_to_absolute"), floats(series["absolute"])) << series["values"];
}

TEST_F(TrajectoryParity, RelabelledActionsAreTheMovementsReached) {
  const RldsEpisodes source(home_);
  const ComponentVector relabelled({"pose | delta", "gripper"}, source, "actions");
  for (std::size_t e = 0; e < episodes_.size(); ++e) {
    // The reference drops the last step, which reaches nothing; ours is 0 there.
    const std::vector<float> wanted = floats(expected_["relabelled"][e]);
    std::vector<float> found(static_cast<std::size_t>(steps(e)) * 7);
    relabelled.read(*source.open(static_cast<std::int64_t>(e)), 0, steps(e), found);
    ASSERT_EQ(wanted.size(), found.size() - 7);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], kFloatTolerance);
    for (std::size_t d = 0; d < 6; ++d) EXPECT_EQ(found[found.size() - 7 + d], 0.0f);
  }
}

TEST_F(TrajectoryParity, ActionsAreComposedAsDroidDatasetTransformDoes) {
  const RldsEpisodes source(home_);
  const ComponentVector composed({"pose[0:3]", "pose[3:6] | euler_xyz->rotation_6d", "gripper"}, source, "actions");
  for (std::size_t e = 0; e < episodes_.size(); ++e) {
    const std::vector<float> wanted = floats(expected_["droid_actions"][e]);
    std::vector<float> found(static_cast<std::size_t>(steps(e)) * 10);
    composed.read(*source.open(static_cast<std::int64_t>(e)), 0, steps(e), found);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], kFloatTolerance) << e << " " << i;
  }
}

TEST_F(TrajectoryParity, SuccessesAreThoseOfFilterSuccess) {
  std::vector<ToyEpisode> episodes;
  std::vector<std::int64_t> wanted;
  for (const Json& row : expected_["success"]) {
    if (row[1].get<bool>()) wanted.push_back(static_cast<std::int64_t>(episodes.size()));
    episodes.push_back({.fields = {{"action", {0, 1}}}, .file_path = row[0]});
  }
  OwnFolder folder;
  const RldsEpisodes source(write_toy_set(folder.path(), episodes, {{"action", 1}}));
  EXPECT_EQ(filter_episodes(source, {"metadata_contains(episode_metadata/file_path, /success/)"}, 1), wanted);
}

TEST_F(TrajectoryParity, FramesAreResizedAndTheirColoursChangedAsDlimpDoes) {
  const Json& images = expected_["images"];
  const auto run = [&](const char* from, std::int64_t height, std::int64_t width, const std::vector<std::string>& steps,
                       const char* to) {
    Image frame;
    frame.resize(height, width, 3);
    const auto pixels = images[from].get<std::vector<int>>(), wanted = images[to].get<std::vector<int>>();
    std::copy(pixels.begin(), pixels.end(), frame.pixels.begin());
    std::vector<std::uint8_t> found(wanted.size(), 170);
    ImagePipeline(steps).run(frame, true, {0, RandomPurpose::kTest, 0, 0}, 0, found.data());
    int largest = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(wanted[i] - found[i]));
    EXPECT_LE(largest, kImageTolerance) << to;
  };
  run("frame", images["height"], images["width"], {"resize(12, 12)"}, "resized");
  run("resized", 12, 12, {"resize(12, 12)", "contrast(1.6, 1.6)", "saturation(0.4, 0.4)", "contrast(1.6, 1.6)"},
      "changed");
}

}  // namespace
}  // namespace cohort::data
