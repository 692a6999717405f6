// `cohort train policy` and `cohort predict` on a LeRobot data set, as a user runs them: numbers and a camera's video.
#include <cmath>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/video_frames.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

constexpr const char* kLeRobotSet = COHORT_SOURCE_DIR "/tests/data/fixtures/lerobot/v3";

/// Losses of a short training on a set whose fields are called so.
std::vector<double> losses_on(const std::string& set, const std::string& action, const std::string& state,
                              const std::string& image, const fs::path& out) {
  const Outcome trained = run({cohort_path(),
                               "train",
                               "policy",
                               "data.paths=[" + set + "]",
                               "data.actions=[" + action + "]",
                               "data.proprio=[" + state + "]",
                               "data.images=[" + image + "]",
                               "data.image_transforms=[\"resize(16, 16)\"]",
                               "data.statistics_cache=never",
                               "validation.splits=[]",
                               "model.algorithm=bc",
                               "model.images.core.backbone_class=ShallowConv",
                               "model.images.core.pool_class=SpatialSoftmax",
                               "model.images.core.feature_dimension=4",
                               "model.bc.actor_layer_dims=[16]",
                               "model.bc.gmm.enabled=false",
                               "train.batch_size=8",
                               "train.steps=3",
                               "train.log_every=1",
                               "charts=false",
                               "loader.workers=1",
                               "output_dir=" + out.string(),
                               "name=run"},
                              {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(trained.code, 0) << trained.output();
  std::vector<double> losses;
  if (trained.code != 0) return losses;
  for (const std::string& line : lines_of(read_file(fs::canonical(out / "run" / "latest") / "metrics.jsonl"))) {
    const auto json = parse_json<nlohmann::json>(line);
    if (json.contains("train/loss")) losses.push_back(json.at("train/loss").get<double>());
  }
  return losses;
}

TEST(TrainLeRobot, AConvertedSetTrainsAsItsSourceDoes) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  TemporaryFolder folder;
  const std::string source = (folder.path() / "reach.hdf5").string(), set = (folder.path() / "set").string();
  const auto cohort = [](std::vector<std::string> words) {
    words.insert(words.begin(), cohort_path());
    const Outcome outcome = run(words, {{"OMP_NUM_THREADS", "1"}});
    EXPECT_EQ(outcome.code, 0) << outcome.output();
    return outcome.output();
  };
  cohort({"collect", "reach", "--episodes", "2", "--cameras", "front", "--size", "16", "--format", "hdf5", "--out",
          folder.path().string()});
  const std::string said = cohort({"data", "convert", source, "--to", "lerobot", "--images", "image", "--out", set});
  EXPECT_NE(said.find("fps: "), std::string::npos) << said;
  EXPECT_EQ(said.find("assumed"), std::string::npos) << said;
  const auto losses = losses_on(source, "actions", "obs/eef_pos", "obs/front_image", folder.path() / "a");
  EXPECT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses_on(set, "action", "observation.eef_pos", "observation.images.front", folder.path() / "b"), losses);
}

TEST(TrainLeRobot, APolicyLearnsFromStatesAndVideoAndAnswersForTheOtherSplit) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  if (const std::string why = data::video_frames_unavailable(); !why.empty()) GTEST_SKIP() << why;
  TemporaryFolder folder;
  const auto cohort = [&](std::vector<std::string> words) {
    words.insert(words.begin(), cohort_path());
    return run(words, {{"OMP_NUM_THREADS", "1"}});
  };
  std::vector<std::vector<double>> losses;
  for (const char* workers : {"1", "3"}) {
    const fs::path out = folder.path() / workers;
    const Outcome trained = cohort({"train",
                                    "policy",
                                    std::string("data.paths=[") + kLeRobotSet + "]",
                                    "data.actions=[action]",
                                    "data.proprio=[observation.state]",
                                    "data.images=[observation.images.front]",
                                    "data.image_transforms=[\"resize(32, 32)\"]",
                                    "data.statistics_cache=never",
                                    "validation.splits=[val]",
                                    "model.algorithm=bc",
                                    "model.images.core.backbone_class=ShallowConv",
                                    "model.images.core.pool_class=SpatialSoftmax",
                                    "model.images.core.feature_dimension=8",
                                    "model.bc.actor_layer_dims=[32]",
                                    "model.bc.gmm.enabled=false",
                                    "train.batch_size=8",
                                    "train.steps=6",
                                    "train.log_every=1",
                                    "charts=false",
                                    std::string("loader.workers=") + workers,
                                    "output_dir=" + out.string(),
                                    "name=lerobot"});
    ASSERT_EQ(trained.code, 0) << trained.output();
    losses.emplace_back();
    for (const std::string& line : lines_of(read_file(fs::canonical(out / "lerobot" / "latest") / "metrics.jsonl"))) {
      const auto json = parse_json<nlohmann::json>(line);
      if (json.contains("train/loss")) losses.back().push_back(json.at("train/loss").get<double>());
    }
    ASSERT_EQ(losses.back().size(), 6u) << trained.output();
    for (const double loss : losses.back()) EXPECT_TRUE(std::isfinite(loss));
  }
  // The same frames in the same places of the batches, whoever decodes them.
  EXPECT_EQ(losses[0], losses[1]);
  const fs::path answers = folder.path() / "actions.csv";
  const Outcome answered = cohort({"predict", (folder.path() / "1" / "lerobot" / "latest").string(), kLeRobotSet,
                                   "data.splits=val", "--out", answers.string()});
  ASSERT_EQ(answered.code, 0) << answered.output();
  const std::vector<std::string> rows = lines_of(read_file(answers));
  ASSERT_EQ(rows.size(), 1u + 8u);                      // the steps of episode 4
  EXPECT_TRUE(rows[1].ends_with(",33.75")) << rows[1];  // the last number of the action recorded in step 33 of the set
}

}  // namespace
}  // namespace cohort::testing
