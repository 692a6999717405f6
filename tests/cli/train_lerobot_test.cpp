// `cohort train policy` and `cohort predict` on a LeRobot data set, as a user runs them: numbers and a camera's video.
#include <cmath>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/video_frames.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

constexpr const char* kLeRobotSet = COHORT_SOURCE_DIR "/tests/data/fixtures/lerobot/v3";

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
      const auto json = parse_json(line);
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
  ASSERT_EQ(rows.size(), 1u + 8u);  // the steps of episode 4
  EXPECT_TRUE(rows[1].ends_with(",33.75")) << rows[1];  // the last number of the action recorded in step 33 of the set
}

}  // namespace
}  // namespace cohort::testing
