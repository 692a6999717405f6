// Runs that are continued, as users continue them: copied, damaged, finished, from one of their checkpoints.
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

class TrainResume : public ::testing::Test {
 protected:
  static std::map<std::string, std::string> one_process() {
    return {{"RANK", ""}, {"WORLD_SIZE", ""}, {"OMP_NUM_THREADS", "1"}};
  }
  /// `rows` rows; other `factor`, other data.
  std::string rows_of(const std::string& name, int rows, int factor) const {
    std::string text = "a,b,c,target\n";
    for (int i = 0; i < rows; ++i)
      text += std::to_string(i % 7) + "," + std::to_string(i % 11) + "," + std::to_string((i * i) % 13) + "," +
              std::to_string((i * factor) % 5) + "\n";
    write_file_atomically(folder_.path() / name, text);
    return (folder_.path() / name).string();
  }
  /// A new run; its folder.
  fs::path trained(const std::vector<std::string>& more) const {
    std::vector<std::string> command{cohort_path(),
                                     "train",
                                     "regressor",
                                     "data.path=" + rows_of("first.csv", 400, 3),
                                     "data.columns.n_targets=1",
                                     "train.batch_size=64",
                                     "loader.workers=1",
                                     "tensorboard=false",
                                     "backend=cpu",
                                     "name=first",
                                     "output_dir=" + (folder_.path() / "out").string()};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = run(command, one_process());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return fs::canonical(folder_.path() / "out" / "first" / "latest");
  }
  Outcome resumed(const fs::path& path, const std::vector<std::string>& more) const {
    std::vector<std::string> command{cohort_path(), "train", "resume=" + path.string()};
    command.insert(command.end(), more.begin(), more.end());
    return run(command, one_process());
  }
  /// Every file of a folder with its bytes, and links by where they lead.
  static std::map<std::string, std::string> bytes_of(const fs::path& folder) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = fs::relative(entry.path(), folder).string();
      if (entry.is_symlink())
        all[name] = "-> " + fs::read_symlink(entry.path()).string();
      else if (entry.is_regular_file())
        all[name] = read_file(entry.path());
    }
    return all;
  }
  static std::int64_t step_of(const fs::path& checkpoint) {
    return parse_json<nlohmann::json>(read_file(checkpoint / "trainer_state.json")).at("step").get<std::int64_t>();
  }

  TemporaryFolder folder_;
};

TEST_F(TrainResume, ACopyInWhichLinksHaveBecomeFoldersTrainsOn) {
  const fs::path run_folder = trained({"train.steps=6", "charts=false"}), copied = folder_.path() / "copied";
  fs::copy(run_folder, copied, fs::copy_options::recursive);
  ASSERT_FALSE(fs::is_symlink(copied / "checkpoints" / "last"));
  ASSERT_EQ(step_of(copied / "checkpoints" / "last"), 6);
  const Outcome outcome = resumed(copied, {"train.steps=16", "train.checkpoint.every=5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(fs::is_symlink(copied / "checkpoints" / "last"));
  EXPECT_EQ(step_of(copied / "checkpoints" / "last"), 16);
  EXPECT_TRUE(contains(outcome.err, "is a link to checkpoint-6 again")) << outcome.err;
}

// A schedule that had come down to its end is stretched when there are more steps: the rate leaps, which is said.
TEST_F(TrainResume, ARateThatLeapsIsNamedWithTheOneBefore) {
  const fs::path run_folder = trained({"train.steps=8", "train.schedule=cosine", "train.lr=1e-3", "charts=false"});
  const Outcome leaps = resumed(run_folder, {"train.steps=16"});
  ASSERT_EQ(leaps.code, 0) << leaps.err;
  for (const char* part : {"the learning rate was 3.81e-05 in step 8 and goes on with 0.0005",
                           "cosine over 8 steps from 0.001", "train.schedule=constant train.lr=3.81e-05"})
    EXPECT_TRUE(contains(leaps.err, part)) << part << "\n" << leaps.err;
  const fs::path steady = trained({"train.steps=8", "train.schedule=constant", "train.lr=1e-3", "charts=false"});
  const Outcome same = resumed(steady, {"train.steps=9"});
  EXPECT_FALSE(contains(same.err, "the learning rate was")) << same.err;
}

TEST_F(TrainResume, ANewRunBeginsWithTheWeightsOfAnother) {
  const fs::path first = trained({"train.steps=4", "charts=false"});
  const auto weights = [](const fs::path& run) {
    return read_file(run / "checkpoints" / "last" / "model.safetensors");
  };
  // With a rate of 0 they stay what they were.
  const fs::path tuned =
      trained({"train.steps=1", "train.lr=0", "train.seed=5", "charts=false", "--init_from=" + first.string()});
  ASSERT_NE(tuned, first);
  const auto tensors = [&](const fs::path& run) {  // behind the header, which names the step
    const std::string bytes = weights(run);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    return bytes.substr(sizeof header + header);
  };
  // All but the moments and the counter of batches, which a step without a rate changes, too.
  const auto share_of_first = [&](const fs::path& run) {
    const std::string own = tensors(run), theirs = tensors(first);
    EXPECT_EQ(own.size(), theirs.size());
    std::size_t same = 0;
    for (std::size_t i = 0; i + 4 <= own.size(); i += 4) same += own.compare(i, 4, theirs, i, 4) == 0;
    return static_cast<double>(same) / static_cast<double>(own.size() / 4);
  };
  EXPECT_GT(share_of_first(tuned), 0.9);
  EXPECT_LT(share_of_first(trained({"train.steps=1", "train.lr=0", "train.seed=5", "charts=false"})), 0.5);
  const Outcome other = run({cohort_path(), "train", "regressor", "data.path=" + rows_of("first.csv", 400, 3),
                             "data.columns.n_targets=1", "model.hidden=[3]", "backend=cpu",
                             "output_dir=" + (folder_.path() / "out").string(), "init_from=" + first.string()},
                            one_process());
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(contains(other.err, "init_from: ") || contains(other.err, "model.hidden")) << other.err;
}

TEST_F(TrainResume, WhatIsTypedIsTakenWithALineOrLeftWithOne) {
  const fs::path run_folder = trained({"train.steps=2", "charts=false"});
  const std::string other = rows_of("other.csv", 300, 2);
  const auto copy = [&] {
    static int number = 0;
    const fs::path path = folder_.path() / ("copy" + std::to_string(++number));
    fs::copy(run_folder, path, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    return path;
  };
  const auto lines = [&](const std::string& word) {
    const Outcome outcome = resumed(copy(), {"train.steps=3", word});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  std::string said = lines("data.path=" + other);
  EXPECT_TRUE(contains(said, "data.path=" + other + " from here on, and not ")) << said;
  EXPECT_TRUE(contains(lines("train.weight_decay=0.5"), "train.weight_decay=0.5 from here on"));
  said = lines("name=another");
  EXPECT_TRUE(contains(said, "name=another does nothing here: the run goes on in its folder")) << said;
  EXPECT_TRUE(contains(lines("output_dir=elsewhere"), "output_dir=elsewhere does nothing here"));
  // Nothing was typed but how far it goes.
  const Outcome more = resumed(copy(), {"train.steps=3"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_FALSE(contains(more.err, "from here on")) << more.err;
  EXPECT_FALSE(contains(more.err, "does nothing here")) << more.err;
}

TEST_F(TrainResume, OneOfTheCheckpointsStandsForItsRun) {
  const fs::path run_folder =
      trained({"train.steps=9", "train.checkpoint.every=3", "train.checkpoint.keep=0", "charts=false"});
  // The newest by the link, an older one by its name, and the folder of all.
  Outcome outcome = resumed(run_folder / "checkpoints" / "last", {"train.steps=10"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "checkpoint-9: step 9,")) << outcome.err;
  EXPECT_EQ(step_of(run_folder / "checkpoints" / "last"), 10);
  outcome = resumed(run_folder / "checkpoints" / "checkpoint-3", {"train.steps=5"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "checkpoint-3: step 3,")) << outcome.err;
  EXPECT_EQ(step_of(run_folder / "checkpoints" / "last"), 5);
  outcome = resumed(run_folder / "checkpoints", {"train.steps=7"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "checkpoint-5: step 5,")) << outcome.err;
  // A checkpoint without its run: what else may be done works.
  fs::copy(run_folder / "checkpoints" / "checkpoint-7", folder_.path() / "alone", fs::copy_options::recursive);
  outcome = resumed(folder_.path() / "alone", {"train.steps=8"});
  EXPECT_NE(outcome.code, 0);
  const std::string remedy = "train.checkpoint.resume=" + (folder_.path() / "alone").string();
  EXPECT_TRUE(contains(outcome.err, remedy)) << outcome.err;
  const fs::path second = trained({"train.steps=9", "charts=false", remedy});
  EXPECT_EQ(step_of(second / "checkpoints" / "last"), 9);
}

TEST_F(TrainResume, WhatIsNoRunIsRefusedWithTheRunThatIsNear) {
  const fs::path run_folder = trained({"train.steps=2", "charts=false"}), of_name = folder_.path() / "out" / "first";
  const std::pair<fs::path, std::string> cases[] = {
      {of_name, "resume=" + (of_name / "latest").string()},
      {run_folder / "config.json", "resume=" + run_folder.string()},
      {folder_.path() / "nowhere", "there is no such folder"},
      {folder_.path(), "is no run: it has no config.json"},
  };
  for (const auto& [path, says] : cases) {
    const Outcome outcome = resumed(path, {});
    EXPECT_EQ(outcome.code, 1) << path;
    EXPECT_TRUE(contains(outcome.err, says)) << says << "\n" << outcome.err;
  }
  const Outcome other =
      run({cohort_path(), "train", "regressor", "data.path=" + (folder_.path() / "first.csv").string(),
           "data.columns.n_targets=1", "backend=cpu", "train.checkpoint.resume=" + of_name.string()},
          one_process());
  EXPECT_TRUE(contains(other.err, "the newest run of this name is " + (of_name / "latest").string())) << other.err;
  const std::string arm = COHORT_SOURCE_DIR "/tests/data/fixtures/arm";
  const Outcome policy = run(
      {cohort_path(), "train", "policy", "data.paths=" + arm, "data.actions=action", "data.proprio=observation/pose",
       "data.statistics_cache=never", "train.batch_size=4", "model.algorithm=bc", "backend=cpu", "charts=false",
       "output_dir=" + (folder_.path() / "out").string(), "train.checkpoint.resume=" + run_folder.string()},
      one_process());
  EXPECT_TRUE(contains(policy.err, " is a checkpoint of regressor, and this is a training of bc: name one of the same"))
      << policy.err;
}

TEST_F(TrainResume, DataThatOnlyTheFolderOfItsBeginningHasAreNamedWithARemedy) {
  rows_of("first.csv", 400, 3);
  const auto in = [&](const std::string& folder, const std::string& words) {
    return run({"sh", "-c", "cd '" + folder + "' && exec '" + cohort_path() + "' train " + words}, one_process());
  };
  const std::string here = folder_.path().string(), elsewhere = (folder_.path() / "else where").string();
  fs::create_directories(elsewhere);
  Outcome outcome = in(here,
                       "regressor data.path=first.csv data.columns.n_targets=1 train.batch_size=64 train.steps=2 "
                       "loader.workers=1 tensorboard=false charts=false backend=cpu name=first");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string again = "resume='" + here + "/outputs/first/latest' train.steps=4";
  outcome = in(elsewhere, again);
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.err, "data.path = first.csv")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "in the folder where the run was begun")) << outcome.err;
  // Both remedies work.
  outcome = in(elsewhere, again + " data.path=../first.csv");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "step 2,")) << outcome.err;
  outcome = in(here, "resume=outputs/first/latest data.path=first.csv train.steps=6");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "step 4,")) << outcome.err;
}

TEST_F(TrainResume, ABitTurnedOverInTheNewestCheckpointLeadsBackToTheOneBefore) {
  const fs::path run_folder = trained({"train.steps=9", "train.checkpoint.every=3", "charts=false"});
  const fs::path weights = run_folder / "checkpoints" / "checkpoint-9" / "model.safetensors";
  std::string bytes = read_file(weights);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 0x40);
  std::ofstream(weights, std::ios::binary) << bytes;
  const Outcome outcome = resumed(run_folder, {"train.steps=14"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "model.safetensors is not what was written")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "checkpoint-6 is used instead")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "checkpoint-6: step 6,")) << outcome.err;
  EXPECT_EQ(step_of(run_folder / "checkpoints" / "last"), 14);
}

TEST_F(TrainResume, AFinishedRunIsLeftAsItWas) {
  const fs::path run_folder = trained({"train.steps=9", "charts=true"});
  ASSERT_TRUE(fs::exists(run_folder / "report.html"));
  ASSERT_TRUE(fs::exists(run_folder / "test_metrics.json"));
  const auto before = bytes_of(run_folder);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"data.path=" + rows_of("other.csv", 300, 2)}}) {
    const Outcome outcome = resumed(run_folder, more);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "this training was finished at step 9; its folder was left as it was"))
        << outcome.err;
    const auto after = bytes_of(run_folder);
    for (const auto& [name, bytes] : before) EXPECT_TRUE(after.contains(name) && after.at(name) == bytes) << name;
    EXPECT_EQ(after.size(), before.size());
  }
  // What was not finished is: the report of a run that was ended before it.
  fs::remove(run_folder / "test_metrics.json");
  ASSERT_EQ(resumed(run_folder, {}).code, 0);
  EXPECT_TRUE(fs::exists(run_folder / "test_metrics.json"));
  // And it trains on when it is told to.
  ASSERT_EQ(resumed(run_folder, {"train.steps=12"}).code, 0);
  EXPECT_EQ(step_of(run_folder / "checkpoints" / "last"), 12);
}

}  // namespace
}  // namespace cohort::testing
