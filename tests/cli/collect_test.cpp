// `cohort collect` as a user runs it.
#include <fstream>

#include "cli/task_program.h"

namespace cohort::testing {
namespace {

class Collect : public TaskProgram {};

/// With noise no two episodes are alike, so that a mistake shows.
std::vector<std::string> reaching(const std::string& out, const std::string& n_envs = "4") {
  return {"collect", "reach", "--episodes", "40", "--noise", "0.3", "--n-envs", n_envs, "--out", out};
}

TEST_F(Collect, RanksAndEnvironmentsDoNotShowInTheBytes) {
  const Outcome one = cohort(reaching(path("one")));
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("40 episodes"), std::string::npos) << one.out;
  ASSERT_EQ(cohort(reaching(path("many"), "13")).code, 0);
  std::vector<std::string> words = reaching(path("ranks"), "2");  // 1 rank with 4, 2 ranks with 2
  words.insert(words.begin(), {"launch", "--nproc_per_node=2", "--cpu"});
  const Outcome ranks = cohort(words);
  ASSERT_EQ(ranks.code, 0) << ranks.err;
  EXPECT_EQ(content("many"), content("one"));
  EXPECT_EQ(content("ranks"), content("one"));
}

TEST_F(Collect, AKilledRecordingGoesOnToTheSameBytes) {
  const auto slow = [&](const std::string& out) {
    return std::vector<std::string>{cohort_path(), "collect",          "push-t", "--episodes", "8", "--out",
                                    out,           "--n-envs",         "2",      "--threads",  "1", "beam=3",
                                    "spacing=16",  "--shard-episodes", "2"};
  };
  ASSERT_EQ(run(slow(path("whole"))).code, 0);
  {
    Process process(slow(path("killed")));
    const fs::path work = fs::path(path("killed")) / "push_t" / "1.0.0.recording";
    ASSERT_TRUE(eventually([&] { return fs::exists(work / "episodes-00000000-00000001.json"); }));
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().code, 128 + SIGKILL);
  }
  EXPECT_FALSE(fs::exists(path("killed/push_t/1.0.0")));
  const Outcome again = run(slow(path("killed")));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("were there from an interrupted recording"), std::string::npos) << again.out;
  EXPECT_EQ(content("killed"), content("whole"));
}

TEST_F(Collect, AnInterruptedRecordingGoesOnWithTheSameActorOnly) {
  collect({"reach", "--episodes", "3", "--out", path("data")});
  std::vector<std::string> words{
      cohort_path(), "collect",     "reach",      "--policy",  "replay:" + path("data/reach"),
      "--keep",      "all",         "--episodes", "4000",      "--shard-episodes",
      "2",           "--n-envs",    "1",          "--threads", "1",
      "--out",       path("killed")};
  {
    Process process(words);
    const fs::path work = fs::path(path("killed")) / "reach" / "1.0.0.recording";
    ASSERT_TRUE(eventually([&] { return fs::exists(work / "episodes-00000000-00000001.json"); }, 60));
    process.send(SIGKILL);
    EXPECT_EQ(process.wait().code, 128 + SIGKILL);
  }
  words.insert(words.end(), {"--replay-horizon", "3"});
  expect_refused(run(words, {}, 110), 1, "holds an unfinished recording that is not this one: its policy is");
}

TEST_F(Collect, ProgressCountsTriesOfAPolicyThatNeverSucceeds) {
  const Outcome outcome =
      cohort({"collect", "reach", "--policy", "random", "--max-steps", "2", "--episodes", "3", "--out", path("data")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("collect 0/3 (0 %), kept 0 of 12 tried, "), std::string::npos) << outcome.err;
  const Outcome kept = cohort({"collect", "reach", "--episodes", "3", "--out", path("data")});
  EXPECT_NE(kept.err.find(", kept 3 of 3 tried, "), std::string::npos) << kept.err;
}

TEST_F(Collect, RobomimicsLoaderAndH5pyReadWhatItWrites) {
  const std::string python = python_path();
  if (run({python, "-c", "import robomimic, h5py"}).code != 0) GTEST_SKIP() << "no Python with robomimic and h5py";
  collect({"reach", "--episodes", "5", "--format", "hdf5", "--out", path("data")});
  collect({"reach", "--episodes", "5", "--format", "rlds", "--out", path("data")});
  const Outcome read = run({python, COHORT_SOURCE_DIR "/tests/cli/read_robomimic.py", path("data/reach.hdf5")});
  ASSERT_EQ(read.code, 0) << read.out << read.err;
  EXPECT_NE(read.out.find("5 demos"), std::string::npos) << read.out;
}

TEST_F(Collect, TensorflowDatasetsReadsWhatItWrites) {
  const char* python = std::getenv("COHORT_TFDS_PYTHON");
  if (!python) GTEST_SKIP() << "COHORT_TFDS_PYTHON names no Python; tests/cli/tfds_venv FOLDER makes one";
  collect({"reach", "--episodes", "5", "--cameras", "front", "--size", "32", "--out", path("data")});
  const Outcome read =
      run({python, COHORT_SOURCE_DIR "/tests/cli/read_tensorflow_datasets.py", path("data/reach/1.0.0")});
  ASSERT_EQ(read.code, 0) << read.out << read.err;
  EXPECT_NE(read.out.find("5 episodes"), std::string::npos) << read.out;
}

TEST_F(Collect, DashAndUnderscoreFormsMeanTheSame) {
  collect({"reach", "--episodes", "3", "--out", path("a"), "--n-envs", "2", "--first-seed", "9", "--noise-seed", "4",
           "--noise", "0.1", "--max-steps", "40", "--shard-episodes", "2"});
  collect({"reach", "--episodes", "3", "--out", path("b"), "--n_envs", "2", "--first_seed", "9", "--noise_seed", "4",
           "--noise", "0.1", "--max_steps", "40", "--shard_episodes", "2"});
  EXPECT_EQ(content("a"), content("b"));
}

TEST_F(Collect, WhatCannotBeRecordedIsRefusedAndLeavesNothing) {
  const std::string out = path("out");
  expect_refused(cohort({"collect", "reech", "--out", out}), 1, "there is no task 'reech', did you mean 'reach'?");
  expect_refused(cohort({"collect", "reach", "--out", out, "--episodes", "0"}), 1,
                 "--episodes 0: at least 1 is needed");
  expect_refused(cohort({"collect", "reach", "--out", out, "--cameras", "fronte"}), 1, "did you mean 'front'?");
  expect_refused(cohort({"collect", "reach", "--out", out, "--policy", "exprt"}), 1, "did you mean 'expert'?");
  expect_refused(cohort({"collect", "reach", "--out", out, "horizn=9"}), 1, "horizn");
  expect_refused(cohort({"collect", "reach", "--out", out, "--max-steps", "100000"}), 1, "ends its episodes after");
  expect_refused(cohort({"collect", "reach", "word", "--out", out}), 2, "'word' is neither");
  EXPECT_FALSE(fs::exists(out));
  std::ofstream(path("file")) << "no folder";
  expect_refused(cohort({"collect", "reach", "--out", path("file")}), 1, "cannot create");
  fs::create_directories(path("there/reach/1.0.0"));
  expect_refused(cohort({"collect", "reach", "--out", path("there")}), 1, "exists already");
}

}  // namespace
}  // namespace cohort::testing
