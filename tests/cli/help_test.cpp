// What the program says before and behind the work: --help that fits a screen, and next commands that can be pasted.
#include <set>

#include <gtest/gtest.h>

#include "cli/training.h"

namespace cohort::testing {
namespace {

Outcome help(const std::vector<std::string>& words) {
  std::vector<std::string> command{cohort_path(), "train"};
  command.insert(command.end(), words.begin(), words.end());
  return run(command);
}

TEST(SettingsHelp, ShowsTheBasicSettingsAndNamesTheGroupsOfTheOthers) {
  for (const char* job : {"informer", "regressor", "policy", "rdt", "act", "ppo"}) {
    const Outcome plain = help({job, "--help"});
    ASSERT_EQ(plain.code, 0) << plain.err;
    const std::size_t lines = lines_of(plain.out).size(), all = lines_of(help({job, "--help", "all"}).out).size();
    EXPECT_LT(lines, 100u) << job << " of " << all;
    EXPECT_GT(all, lines) << job;
    EXPECT_TRUE(contains(plain.out, "output_dir = ")) << plain.out;
    std::multiset<std::string> shown;
    for (const std::string& line : lines_of(plain.out))
      if (line.starts_with("  ") && contains(line, " = ")) shown.insert(line.substr(0, line.find(" = ")));
    for (const std::string& setting : shown) EXPECT_EQ(shown.count(setting), 1u) << job << setting;
  }
  const Outcome informer = help({"informer", "--help"});
  EXPECT_TRUE(contains(informer.out, "model.d_model=128")) << "for a computer without a GPU\n" << informer.out;
  EXPECT_FALSE(contains(informer.out, "train.scaler.growth_interval")) << informer.out;
  EXPECT_TRUE(contains(informer.out, "\n  train ")) << "the group that it is in\n" << informer.out;
}

TEST(SettingsHelp, ExplainsASettingAGroupOrAPartOfNames) {
  const Outcome one = help({"informer", "--help", "model.d_model"});
  EXPECT_EQ(lines_of(one.out).size(), 2u) << one.out;
  const Outcome group = help({"policy", "--help", "rollout"});
  EXPECT_TRUE(contains(group.out, "rollout.first_seed = 50000")) << group.out;
  EXPECT_FALSE(contains(group.out, "train.lr")) << group.out;
  const Outcome part = help({"policy", "--help", "warmstart"});
  EXPECT_TRUE(contains(part.out, "rollout.warmstart = 0")) << part.out;
  EXPECT_EQ(run({cohort_path(), "help", "train", "informer", "model.d_model"}).out, one.out);
  const Outcome none = help({"informer", "--help", "modle.d_model"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.err, "did you mean 'model.d_model'?")) << none.err;
  const Outcome ppo = help({"ppo", "--help", "algorithm"});
  EXPECT_TRUE(contains(ppo.out, "algorithm.lam = ")) << ppo.out;
  const Outcome of_scaling = run({cohort_path(), "scaling", "train", "informer", "--help"});
  EXPECT_EQ(of_scaling.code, 0) << of_scaling.err;
  EXPECT_EQ(of_scaling.out, help({"informer", "--help"}).out);
}

TEST(TrainingWords, ASettingOfAnyGroupWithoutAValueIsToldToBeOne) {
  for (const char* job : {"policy", "ppo"}) {
    const Outcome plain = help({job, "--help"});
    std::vector<std::string> words{job == std::string("policy") ? "devices" : "n_envs"};
    bool of_groups = false;
    for (const std::string& line : lines_of(plain.out)) {
      if (of_groups && line.starts_with("  ") && !contains(line, ":"))
        words.push_back(line.substr(2, line.find(' ', 2) - 2) + ".anything");
      of_groups = of_groups ? !line.empty() : line == "groups of the others:";
    }
    EXPECT_GE(words.size(), 4u) << plain.out;
    for (const std::string& word : words) {
      const Outcome outcome = help({job, word});
      EXPECT_EQ(outcome.code, 2) << job << " " << word;
      EXPECT_TRUE(contains(outcome.err, "'" + word + "' is a setting without a value: write " + word + "=VALUE"))
          << outcome.err;
    }
  }
}

TEST(TorchPrograms, AreOneFileThatActsAsTheProgramWhoseNameItIsCalledBy) {
  const std::filesystem::path folder = std::filesystem::path(cohort_path()).parent_path();
  const TemporaryFolder elsewhere;
  for (const char* const name : {"cohort-train", "cohort-predict"}) {
    const std::filesystem::path program = folder / name;
    EXPECT_LT(std::filesystem::file_size(program), 100'000u) << program;
    const Outcome direct = run({program.string(), "--help"});
    EXPECT_EQ(direct.code, 0) << direct.err;
    EXPECT_EQ(direct.out, run({cohort_path(), std::string(name).substr(7), "--help"}).out);
    // A link to it elsewhere, whatever it is called.
    const std::filesystem::path link = elsewhere.path() / "learn";
    std::filesystem::create_symlink(program, link);
    EXPECT_EQ(run({link.string(), "--help"}).out, direct.out);
    std::filesystem::remove(link);
  }
  const Outcome together = run({(folder / "cohort-torch").string(), "--help"});
  EXPECT_EQ(together.code, 2);
  EXPECT_TRUE(contains(together.err, "\n  cohort-predict\n")) << together.err;
  std::filesystem::copy_file(folder / "cohort-train", elsewhere.path() / "cohort-train");
  const Outcome alone = run({(elsewhere.path() / "cohort-train").string()});
  EXPECT_EQ(alone.code, 1);
  EXPECT_TRUE(
      contains(alone.err, "cohort-train: cannot execute " + (elsewhere.path() / "cohort-torch").string() + ": "))
      << alone.err;
}

/// The line below "next, ...:", or behind that label in the log.
std::string command_behind(const std::string& text, const std::string& label) {
  const std::size_t at = text.rfind(label);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.find_first_not_of(" \n", at + label.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(NextCommand, OfATrainingOnATablePredictsWithIt) {
  const Training training;
  const Outcome outcome = run(training.after({cohort_path()}, "my run", {"train.steps=4"}), Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string command = command_behind(outcome.err, " info predict ");
  ASSERT_TRUE(contains(command, "my run")) << outcome.err;
  const Outcome again = run({"/bin/sh", "-c", command}, Training::variables());
  EXPECT_EQ(again.code, 0) << command << "\n" << again.err;
  EXPECT_TRUE(fs::exists(training.outputs() / "my run" / "latest" / "predictions.csv")) << again.out;
}

TEST(NextCommand, LeadsFromARecordingToATrainingAndFromAnEvaluationToItsVideos) {
  const TemporaryFolder folder;
  const auto trained = [&](const std::string& command) {
    Outcome outcome = run(
        {"/bin/sh", "-c",
         command + " train.steps=1 train.batch_size=4 model.diffusion.unet.down_dims=32,64 charts=false output_dir=" +
             (folder.path() / "runs").string()},
        Training::variables());
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    return outcome;
  };
  for (const char* format : {"rlds", "hdf5"}) {
    const Outcome collected = run({cohort_path(), "collect", "reach", "--episodes", "2", "--name", "arm", "--keep",
                                   "all", "--format", format, "--out", (folder.path() / format).string()});
    if (contains(collected.err, "there is no subcommand")) GTEST_SKIP() << "this build has no tasks";
    ASSERT_EQ(collected.code, 0) << collected.err;
    const std::string command = command_behind(collected.out, "next, a policy that learns from them:\n");
    ASSERT_TRUE(contains(command, " train policy data.paths=")) << collected.out;
    trained(command);
  }
  // A LeRobot set's state is without what no robot measures, where the cube lies: without cameras it must be seen.
  const Outcome collected = run({cohort_path(), "collect", "pick-and-place", "--episodes", "1", "--keep", "all",
                                 "--max-steps", "20", "--format", "lerobot", "--out", (folder.path() / "l").string()});
  if (collected.code == 0) {
    const std::string command = command_behind(collected.out, "next, a policy that learns from them:\n");
    const Outcome learnt = trained(command);
    EXPECT_TRUE(contains(learnt.err, "data.proprio=[observation.state, ") &&
                contains(learnt.err, "observation.cube_pos"))
        << learnt.err;
  } else {
    EXPECT_TRUE(contains(collected.err, "this build")) << collected.err;  // without Parquet
  }
  const Outcome evaluated = run({cohort_path(), "evaluate", "--task", "reach", "--policy", "random", "--episodes", "1",
                                 "--max-steps", "3", "--out", (folder.path() / "an evaluation").string()});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const std::string command = command_behind(evaluated.out, "next, videos of it:\n");
  EXPECT_TRUE(command.ends_with(" --record-video") && contains(command, "'")) << evaluated.out;
  const Outcome again = run({"/bin/sh", "-c", command});
  EXPECT_EQ(again.code, 0) << command << "\n" << again.err;
}

}  // namespace
}  // namespace cohort::testing
