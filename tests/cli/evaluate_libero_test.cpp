// `cohort evaluate --benchmark`, `collect` and `tasks` in LIBERO's scenes, as a user runs them.
#include <algorithm>
#include <filesystem>

#include "cli/task_program.h"
#include "core/format.h"
#include "support/command.h"

namespace cohort::testing {
namespace {

class EvaluateLibero : public TaskProgram {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("COHORT_SHARED");
    scenes_ = std::string(shared ? shared : COHORT_SOURCE_DIR "/../shared") + "/data/libero";
    if (!std::filesystem::exists(scenes_)) GTEST_SKIP() << "COHORT_SHARED names no folder with data/libero";
  }
  std::vector<std::string> benchmark(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"evaluate", "--benchmark", "libero_90", "--libero", scenes_};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string scenes_;
};

TEST_F(EvaluateLibero, ASuitesTasksAreOneTableWhateverTheRanks) {
  const std::vector<std::string> what{"--num_tasks", "2",           "--policy", "random",    "--episodes",
                                      "3",           "--max_steps", "4",        "--threads", "1"};
  std::vector<std::string> alone = benchmark(what), ranks{"launch", "--nproc_per_node=2"};
  alone.insert(alone.end(), {"--json", path("one.json"), "--csv", path("one.csv")});
  const Outcome one = cohort(alone);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_NE(one.out.find("libero_90: 2 of its 90 tasks (3 are in"), std::string::npos) << one.out;
  EXPECT_NE(one.out.find("KITCHEN_SCENE10_put_the_black_bowl_in_the_top_drawer_of_the_cabinet"), std::string::npos);
  EXPECT_NE(one.out.find("libero_90, 2 of 90 tasks"), std::string::npos) << one.out;
  const auto json = parse_json<nlohmann::json>(read_file(path("one.json")));
  EXPECT_EQ(json.at("policies").at(0).at("episodes"), 6);
  EXPECT_EQ(json.at("tasks").at(0).at("instruction"), "close the top drawer of the cabinet");
  EXPECT_EQ(json.at("tasks").at(0).at("settings").at("engine"), "mujoco");
  EXPECT_EQ(lines_of(read_file(path("one.csv"))).size(), 7u);
  const std::vector<std::string> same = benchmark(what);
  ranks.insert(ranks.end(), same.begin(), same.end());
  ranks.insert(ranks.end(), {"--csv", path("two.csv")});
  const Outcome two = cohort(ranks);
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_EQ(read_file(path("two.csv")), read_file(path("one.csv")));
}

TEST_F(EvaluateLibero, AStopKeepsTheTasksThatWereFinished) {
  const std::string json = path("part.json");
  std::string command = cohort_path();
  for (const std::string& word : benchmark({"--policy", "random", "--episodes", "2", "--n-envs", "2", "--json", json}))
    command += " " + word;
  const test::CommandOutcome r =
      test::run_command(command + " 2>&1 & p=$!; for i in $(seq 2400); do [ -e " + json +
                        " ] && break; kill -0 $p || break; sleep 0.05; done; kill -INT $p; wait $p; exit $?");
  EXPECT_EQ(r.code, 130) << r.output;
  EXPECT_NE(r.output.find("the table has the 1 of 3 tasks before it"), std::string::npos) << r.output;
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(json)).at("tasks").size(), 1u);
}

TEST_F(EvaluateLibero, AStopOfAllRanksKeepsTheTasksThatAllHadFinished) {
  const std::string json = path("part.json"), said = path("said.txt");
  std::string command = cohort_path() + " launch --nproc_per_node=2";
  for (const std::string& word :
       benchmark({"--policy", "random", "--episodes", "2", "--max_steps", "200", "--threads", "1", "--json", json}))
    command += " " + word;
  const test::CommandOutcome r = test::run_command(
      command + " >" + said + " 2>&1 & p=$!; for i in $(seq 2400); do grep -q '2 of 3 tasks' " + said +
      " && break; kill -0 $p || break; sleep 0.05; done; kill -TERM $p; wait $p; e=$?; cat " + said + "; exit $e");
  EXPECT_EQ(r.code, 143) << r.output;
  ASSERT_TRUE(std::filesystem::exists(json)) << r.output;
  // A rank may be a task behind the other.
  const auto tasks = parse_json<nlohmann::json>(read_file(json)).at("tasks");
  EXPECT_GE(tasks.size(), 1u);
  EXPECT_LE(tasks.size(), 2u);
  for (const auto& task : tasks) EXPECT_EQ(task.at("policies").at(0).at("episodes"), 2);
  EXPECT_NE(r.output.find(format("the table has the {} of 3 tasks before it", tasks.size())), std::string::npos)
      << r.output;
}

TEST_F(EvaluateLibero, TheExpertSucceedsAndItsDemonstrationsAreRecorded) {
  const Outcome outcome = cohort(
      benchmark({"--num-tasks", "1", "--policy", "expert", "--episodes", "2", "--max_steps", "100", "--threads", "1"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 of 2"), std::string::npos) << outcome.out;
  const Outcome collected =
      cohort({"collect", "KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet", "--libero", scenes_, "start=perturbed",
              "--episodes", "1", "--out", path("data"), "--threads", "1", "--n-envs", "1"});
  ASSERT_EQ(collected.code, 0) << collected.err;
  EXPECT_NE(collected.out.find("1 episodes"), std::string::npos) << collected.out;
}

// The guide's command, with the flags of RDT's eval_rdt_libero.py.
TEST_F(EvaluateLibero, ACheckpointIsNamedByItsWeightsAndItsEpisodesAreFilmed) {
  collect({"KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet", "--libero", scenes_, "start=perturbed", "--episodes",
           "1", "--out", path("data"), "--n-envs", "1"});
  const Outcome trained = train(
      "push_t", "data/kitchen_scene10_close_the_top_drawer_of_the_cabinet",
      {"name=small", "model.diffusion.unet.down_dims=[16,32]", "model.diffusion.sampler.num_inference_timesteps=4",
       "data.proprio=[observation/robot0_eef_pos]", "data.actions=[action]", "data.constant_elements=zero"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string weights = path("runs/small/latest/checkpoints/last/ema/model.safetensors");
  ASSERT_TRUE(std::filesystem::exists(weights));
  const Outcome outcome = cohort(benchmark({"--config",
                                            "configs/base.yaml",
                                            "--pretrained",
                                            weights,
                                            "--text_encoder",
                                            "google/t5-v1_1-xxl",
                                            "--vision_encoder",
                                            "google/siglip-so400m-patch14-384",
                                            "--num_tasks",
                                            "2",
                                            "--max_steps",
                                            "6",
                                            "--exec_horizon",
                                            "4",
                                            "--record_video",
                                            "--video_output_dir",
                                            path("videos"),
                                            "--episodes",
                                            "1",
                                            "--threads",
                                            "1",
                                            "--renderer",
                                            "raycast",
                                            "--size",
                                            "32"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* flag : {"--config configs/base.yaml is not read", "--text_encoder google/t5-v1_1-xxl is not read",
                           "--vision_encoder google/siglip-so400m-patch14-384 is not read"})
    EXPECT_NE((outcome.out + outcome.err).find(flag), std::string::npos) << flag;
  int videos = 0;
  for (const auto& [name, bytes] : content("videos")) videos += name.ends_with(".mp4") && bytes.size() > 1000;
  EXPECT_EQ(videos, 2);
}

TEST_F(EvaluateLibero, WhatCannotBeDoneIsSaid) {
  expect_refused(cohort({"evaluate", "--benchmark", "libero_9", "--policy", "expert", "--libero", scenes_}), 1,
                 "did you mean 'libero_90'");
  expect_refused(cohort({"evaluate", "--benchmark", "libero_90", "--policy", "expert"}), 1, "COHORT_LIBERO");
  expect_refused(cohort({"evaluate", "--benchmark", "libero_90", "--policy", "expert", "--libero", path("none")}), 1,
                 "is no folder");
  expect_refused(cohort(benchmark({"--num_tasks", "4", "--policy", "expert"})), 1, "holds 3 of the 90 tasks");
  expect_refused(cohort(benchmark({"--policy", "expert"})), 1, "has no expert");
  expect_refused(cohort(benchmark({"--policy", "random", "--task", "reach"})), 2,
                 "--task and --benchmark: one of them");
  expect_refused(cohort({"evaluate", "--task", "reach", "--policy", "random", "--num_tasks", "1"}), 2,
                 "goes with --benchmark");
  expect_refused(cohort(benchmark({"--num_tasks", "1", "--policy", "random", "--max_steps", "700"})), 1,
                 "ends its episodes after 600 steps");
  write_file_atomically(path("model.safetensors"), "weights of somebody's");
  expect_refused(cohort(benchmark({"--pretrained", path("model.safetensors")})), 1,
                 "no weights of a checkpoint of `cohort train`");
  expect_refused(cohort({"tasks", "KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinett", "--libero", scenes_}), 1,
                 "did you mean 'KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet'");
}

TEST_F(EvaluateLibero, TasksShowsAScene) {
  const Outcome shown = cohort({"tasks", "KITCHEN_SCENE3_turn_on_the_stove", "--libero", scenes_});
  ASSERT_EQ(shown.code, 0) << shown.err;
  for (const char* text : {"robot0_eef_pos", "moka_pot_1_pos", "agentview, robot0_eye_in_hand", "agentview_rgb",
                           "20 Hz, at most 600 steps", "\"engine\":\"mujoco\"", "protocol"})
    EXPECT_NE(shown.out.find(text), std::string::npos) << text << "\n" << shown.out;
}

}  // namespace
}  // namespace cohort::testing
