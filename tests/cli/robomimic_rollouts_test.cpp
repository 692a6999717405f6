// robomimic's experiment.rollout, in the template of behaviour cloning that the package itself brings.
#include <algorithm>
#include <cstdlib>

#include "cli/task_program.h"
#include "core/json_text.h"

namespace cohort::testing {
namespace {

/// exps/templates/bc.json of the Python that the tests were given; empty where it has no robomimic.
fs::path bc_template() {
  const char* python = std::getenv("COHORT_PYTHON");
  if (!python) return {};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(fs::path(python).parent_path().parent_path() / "lib", none)) {
    const fs::path file = entry.path() / "site-packages" / "robomimic" / "exps" / "templates" / "bc.json";
    if (fs::exists(file)) return file;
  }
  return {};
}

class RobomimicRollouts : public TaskProgram {
 protected:
  /// Six epochs of four steps on recorded episodes of reach.
  Outcome train_template(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"train",
                                   "load_from=" + bc_template().string(),
                                   "train.data=" + path("data/reach.hdf5"),
                                   "train.output_dir=" + path("runs"),
                                   "train.cuda=false",
                                   "train.num_epochs=6",
                                   "train.batch_size=8",
                                   "experiment.name=" + name,
                                   "experiment.epoch_every_n_steps=4",
                                   "experiment.rollout.n=3",
                                   "experiment.rollout.rate=2",
                                   "observation.modalities.obs.low_dim=[eef_pos,goal_to_eef]",
                                   "charts=false"};
    words.insert(words.end(), more.begin(), more.end());
    return cohort(words);
  }
  /// Steps at which rollouts were played.
  std::vector<std::int64_t> rollouts(const std::string& name) const {
    std::vector<std::int64_t> steps;
    for (const std::string& line : lines_of(read_file(path("runs/" + name + "/latest/metrics.jsonl"))))
      if (line.find("\"rollout/success\"") != std::string::npos)
        steps.push_back(parse_json<nlohmann::json>(line).at("step"));
    return steps;
  }
};

TEST_F(RobomimicRollouts, AreThoseOfTheTemplateInTheTaskOfTheDatasEnvironment) {
  if (bc_template().empty()) GTEST_SKIP() << "COHORT_PYTHON names no Python with robomimic";
  collect({"reach", "--episodes", "6", "--format", "hdf5", "--out", path("data")});

  const Outcome short_ones =
      train_template("short", {"experiment.rollout.horizon=20", "experiment.rollout.warmstart=2"});
  ASSERT_EQ(short_ones.code, 0) << short_ones.err;
  EXPECT_EQ(rollouts("short"), (std::vector<std::int64_t>{16, 24})) << "every second epoch, after the second";
  auto s = parse_json<nlohmann::json>(read_file(path("runs/short/latest/config.json"))).at("rollout");
  EXPECT_EQ(s.at("n"), 3);
  EXPECT_EQ(s.at("horizon"), 20);
  EXPECT_EQ(s.at("terminate_on_success"), true);

  // The template's 400 steps are more than the task's.
  const Outcome whole =
      train_template("whole", {"experiment.rollout.terminate_on_success=false", "experiment.rollout.n=1"});
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(rollouts("whole"), (std::vector<std::int64_t>{8, 16, 24}));
  s = parse_json<nlohmann::json>(read_file(path("runs/whole/latest/config.json"))).at("rollout");
  EXPECT_EQ(s.at("n"), 1) << "the last word counts";
  EXPECT_EQ(s.at("horizon"), 400);
  EXPECT_EQ(s.at("terminate_on_success"), false);
  EXPECT_EQ(json_text(s.at("task_settings")), R"(["horizon=400","end_on_success=false"])");
  EXPECT_NE(read_file(path("runs/whole/latest/metrics.jsonl")).find("\"rollout/steps\":400"), std::string::npos)
      << "no success ends an episode";
}

TEST_F(RobomimicRollouts, AnotherEnvironmentIsSaidAndATaskCanBeNamed) {
  if (bc_template().empty()) GTEST_SKIP() << "COHORT_PYTHON names no Python with robomimic";
  collect({"reach", "--episodes", "6", "--format", "hdf5", "--out", path("data")});
  const Outcome lift = train_template("lift", {"experiment.env=Lift"});
  ASSERT_EQ(lift.code, 0) << lift.err;
  EXPECT_NE(lift.err.find("there are no rollouts, since no task is called 'Lift'"), std::string::npos) << lift.err;
  EXPECT_TRUE(rollouts("lift").empty());
  const Outcome named = train_template("named", {"experiment.env=Lift", "rollout.task=reach", "train.num_epochs=2"});
  ASSERT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(rollouts("named"), (std::vector<std::int64_t>{8}));
  const Outcome off = train_template("off", {"experiment.rollout.enabled=false", "train.num_epochs=2"});
  ASSERT_EQ(off.code, 0) << off.err;
  EXPECT_TRUE(rollouts("off").empty());
  expect_refused(train_template("zero", {"experiment.rollout.n=0"}), 1, "experiment.rollout.n = 0 must be at least 1");
}

}  // namespace
}  // namespace cohort::testing
