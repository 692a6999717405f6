// One more policy, task, format and subcommand, which no file of src names, by the programs as users run them.
#include <csignal>
#include <cstdlib>
#include <regex>

#include "cli/task_program.h"

namespace cohort::testing {
namespace {

/// A library of this build's tests or examples.
std::string library(const std::string& name) {
  return COHORT_BINARY_DIR "/" + name + ".so";
}

/// `cohort NAME ...` with the policy of one_more/policy.cpp: by cohort-torch under that program's name, as `cohort` comes to it.
class OneMorePolicy : public TaskProgram {
 protected:
  std::vector<std::string> command(const std::string& name, const std::vector<std::string>& more) const {
    // What is loaded before it is of LibTorch: the program itself, not the file that becomes it (cli/torch_program.h).
    const std::string program = path("cohort-" + name);
    if (!fs::exists(program)) fs::create_symlink(cohort_path() + "-torch", program);
    std::vector<std::string> words{program};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::map<std::string, std::string> variables() {
    return {{"OMP_NUM_THREADS", "1"}, {"LD_PRELOAD", library("tests/one_more_policy")}};
  }
  Outcome with_policy(const std::string& name, const std::vector<std::string>& more) const {
    return run(command(name, more), variables());
  }
  std::vector<std::string> training(const std::string& name, const std::string& steps) const {
    return {"linear",
            path("reach"),
            "data.proprio=[observation/eef_pos]",
            "data.statistics_cache=never",
            "output_dir=" + path("runs"),
            "name=" + name,
            "devices=cpu",
            "train.batch_size=16",
            "train.schedule=constant",
            "train.steps=" + steps,
            "charts=false"};
  }
  std::string weights(const std::string& name) const {
    return text_of(path("runs/" + name + "/latest/checkpoints/last/model.safetensors"));
  }
};

TEST_F(OneMorePolicy, IsTrainedContinuedEstimatedEvaluatedAndServedByTheOrdinaryCommands) {
  expect_refused(cohort({"train", "linear"}), 1, "there is nothing called 'linear' to train");
  collect({"reach", "--episodes", "2", "--out", path("reach")});
  const Outcome listed = with_policy("train", {"--help"});
  EXPECT_TRUE(contains(listed.out, "a linear policy")) << listed.out;
  for (const char* name : {"half", "whole"}) {
    const Outcome trained = with_policy("train", training(name, name == std::string("half") ? "2" : "4"));
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  const Outcome again = with_policy("train", {"resume=" + path("runs/half/latest"), "train.steps=4"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_FALSE(weights("whole").empty());
  EXPECT_EQ(weights("half"), weights("whole")) << "two steps and two more are four";

  const Outcome estimated = with_policy("estimate", training("estimated", "4"));
  EXPECT_EQ(estimated.code, 0) << estimated.err;
  EXPECT_TRUE(contains(estimated.out, "linear")) << estimated.out;
  EXPECT_FALSE(fs::exists(path("runs/estimated")));

  const std::string run_folder = path("runs/whole/latest");
  const auto evaluate = [&](const std::string& policy, const std::string& csv) {
    const Outcome outcome = with_policy("evaluate", {"--task", "reach", "--policy", policy, "--episodes", "2",
                                                     "--max-steps", "10", "--threads", "1", "--csv", path(csv)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> rows = lines_of(text_of(path(csv)));
    for (std::string& row : rows) row = row.substr(row.find(',') + 1);  // without the policy's name
    return rows;
  };
  const std::vector<std::string> alone = evaluate(run_folder, "alone.csv");
  EXPECT_EQ(alone.size(), 3u);
  if (!fs::exists(cohort_path() + "-serve"))
    GTEST_SKIP() << "this build has no `cohort serve` (Boost.Beast is missing)";
  Process server(command("serve", {run_folder, "--port", "0", "--threads", "1", "--exact-bits"}), variables());
  std::smatch found;
  std::string out;
  ASSERT_TRUE(eventually([&] {
    out = server.out();
    return std::regex_search(out, found, std::regex(R"(serving on (ws://127\.0\.0\.1:\d+)\n)")) || !alive(server.pid());
  }));
  ASSERT_FALSE(found.empty()) << out << server.err();
  EXPECT_EQ(evaluate(found[1].str(), "served.csv"), alone);
  server.send(SIGTERM);
  EXPECT_EQ(server.wait().code, 0);
}

TEST(OneMoreTask, LearnsByPpoGoesOnAndIsReplayed) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> with{{"OMP_NUM_THREADS", "1"},
                                                {"COHORT_TASKS", library("examples/my_task")}};
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  const auto train = [&](const std::string& name, const std::string& iterations) {
    const Outcome trained = run({cohort_path(), "train", "ppo", "task=ball-on-tray", "largest_tilt=0.1", "name=" + name,
                                 "output_dir=" + path("runs"), "n_envs=8", "num_steps_per_env=8",
                                 "max_iterations=" + iterations, "algorithm.schedule=fixed", "charts=false"},
                                with);
    EXPECT_EQ(trained.code, 0) << trained.err;
  };
  train("half", "2");
  train("whole", "4");
  // The run says which library has its task.
  const Outcome again = run({cohort_path(), "train", "resume=" + path("runs/half/latest"), "max_iterations=4"},
                            {{"OMP_NUM_THREADS", "1"}, {"COHORT_TASKS", ""}});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto weights = [&](const std::string& name) {
    return text_of(path("runs/" + name + "/latest/checkpoints/last/model.safetensors"));
  };
  EXPECT_FALSE(weights("whole").empty());
  EXPECT_EQ(weights("half"), weights("whole")) << "two iterations and two more are four";

  const Outcome recorded =
      run({cohort_path(), "collect", "ball-on-tray", "--policy", path("runs/whole/latest"), "--episodes", "2",
           "--first-seed", "0", "--keep", "all", "--threads", "1", "--out", path("played")},
          with);
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const auto returns = [&](const std::string& policy, const std::string& csv) {
    const Outcome outcome = run({cohort_path(), "evaluate", "--task", "ball-on-tray", "--policy", policy, "--episodes",
                                 "2", "--threads", "1", "--csv", path(csv)},
                                with);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> rows = lines_of(text_of(path(csv)));
    for (std::string& row : rows) row = row.substr(row.find(',') + 1);
    return rows;
  };
  const auto replayed = returns("replay:" + path("played"), "replayed.csv");
  EXPECT_EQ(replayed.size(), 3u);
  EXPECT_EQ(replayed, returns(path("runs/whole/latest"), "learnt.csv"));
}

TEST(OneMoreFormat, IsRecordedInspectedConvertedAndTrainedFromByTheOrdinaryCommands) {
  const TemporaryFolder folder;
  const std::map<std::string, std::string> with{{"OMP_NUM_THREADS", "1"},
                                                {"LD_PRELOAD", library("tests/one_more_format")}};
  const auto path = [&](const std::string& name) { return (folder.path() / name).string(); };
  // `program` under the name that `cohort` becomes it by, so that the library is loaded into it alone.
  const auto command = [&](const std::string& program, std::vector<std::string> words) {
    const std::string file = path("cohort-" + program);
    if (!fs::exists(file)) fs::create_symlink(cohort_path() + (program == "data" ? "-data" : "-torch"), file);
    words.insert(words.begin(), file);
    return run(words, with);
  };
  const Outcome recorded =
      command("collect", {"reach", "--policy", "random", "--keep", "all", "--episodes", "2", "--max-steps", "10",
                          "--threads", "1", "--format", "lines", "--out", path("played")});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  const std::string lines = path("played/reach.lines");
  EXPECT_EQ(lines_of(text_of(lines)).size(), 3u) << "the width, and a line for each episode";

  const Outcome inspected = command("data", {"inspect", lines});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  EXPECT_TRUE(contains(inspected.out, "2 episodes, 20 steps") && contains(inspected.out, "move")) << inspected.out;

  const Outcome converted = command("data", {"convert", lines, path("set.hdf5")});
  EXPECT_EQ(converted.code, 0) << converted.err;
  const Outcome back = command("data", {"convert", path("set.hdf5"), path("back.lines")});
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_EQ(text_of(path("back.lines")), text_of(lines)) << "by the suffix of a format that is registered";
  const Outcome refused = command("data", {"inspect", lines, "--format", "csv"});
  EXPECT_TRUE(contains(refused.err, "auto, rlds, hdf5, lerobot or lines, not 'csv'")) << refused.err;

  const Outcome trained =
      command("train", {"policy", "model.algorithm=bc", "data.paths=[" + lines + "]", "data.actions=[move]",
                        "data.proprio=[move]", "data.statistics_cache=never", "validation.splits=[]",
                        "output_dir=" + path("runs"), "devices=cpu", "train.batch_size=4", "train.steps=2",
                        "rollout.enabled=false", "charts=false"});
  EXPECT_EQ(trained.code, 0) << trained.err;
}

TEST(OneMoreSubcommand, IsListedRunAndProposed) {
  const std::map<std::string, std::string> with{{"LD_PRELOAD", library("tests/one_more_command")}};
  const Outcome listed = run({cohort_path(), "--help"}, with);
  EXPECT_TRUE(contains(listed.out, "  repeat           the words behind it, one a line\n")) << listed.out;
  const Outcome repeated = run({cohort_path(), "repeat", "a b", "c"}, with);
  EXPECT_EQ(repeated.code, 3) << repeated.err;
  EXPECT_EQ(repeated.out, "a b\nc\n");
  EXPECT_EQ(run({cohort_path(), "repeat"}, with).code, 2);
  EXPECT_TRUE(contains(run({cohort_path(), "repeet"}, with).err, "did you mean 'repeat'?"));
  EXPECT_FALSE(contains(run({cohort_path(), "--help"}).out, "repeat "));
}

}  // namespace
}  // namespace cohort::testing
