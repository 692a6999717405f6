// `cohort serve` and policies behind ws:// in `cohort evaluate`, as users run them: openpi-client's own client asks ours, ours asks
// a Python server, and a trained policy behind a port plays the episodes that it plays without one.
#include <csignal>
#include <map>
#include <regex>

#include "cli/task_program.h"
#include "data/lerobot/parquet_file.h"
#include "support/python.h"

namespace cohort::testing {
namespace {

/// The lines of an evaluation's CSV without the policy's name.
std::vector<std::string> episodes_of(const std::string& csv) {
  std::vector<std::string> rows = lines_of(read_file(csv));
  for (std::string& row : rows) row = row.substr(row.find(','));
  return rows;
}

class Serve : public TaskProgram {
 protected:
  /// `cohort serve` on a port that is free; the URL once it serves.
  std::string start(const std::vector<std::string>& words) {
    std::vector<std::string> command{cohort_path(), "serve", "--port", "0", "--threads", "1"};
    command.insert(command.end(), words.begin(), words.end());
    server_ = std::make_unique<Process>(command);
    std::smatch found;
    std::string out;
    EXPECT_TRUE(eventually([&] {
      out = server_->out();
      return std::regex_search(out, found, std::regex(R"(serving on ((?:ws|vla-eval)://127\.0\.0\.1:\d+)\n)")) ||
             !alive(server_->pid());
    }));
    EXPECT_FALSE(found.empty()) << out << server_->err();
    return found.empty() ? "" : found[1].str();
  }
  /// Its end after the signal.
  Outcome end(int signal) {
    server_->send(signal);
    return server_->wait();
  }
  std::vector<std::string> episodes(const std::string& policy, const std::string& csv,
                                    std::vector<std::string> task) const {
    task.insert(task.begin(), {"evaluate", "--policy", policy, "--threads", "1", "--csv", path(csv), "--task"});
    const Outcome outcome = cohort(task);
    EXPECT_EQ(outcome.code, 0) << outcome.err << (server_ ? server_->err() : "");
    return episodes_of(path(csv));
  }

  std::unique_ptr<Process> server_;
};

// A diffusion policy that sees pictures and numbers, looks at two moments and gives five actions.
TEST_F(Serve, APolicyBehindAPortPlaysItsOwnEpisodesAndAnswersOpenpisClient) {
  collect({"reach", "--episodes", "2", "--cameras", "front", "--size", "20", "--out", path("reach")});
  const Outcome trained =
      train("pick_and_place_image", "reach",
            {"name=seeing", "data.proprio=[observation/eef_pos]", "data.images=[observation/front_image]",
             "data.image_transforms=[\"resize(24, 24)\"]", "model.algorithm=diffusion_policy",
             "model.diffusion.unet.down_dims=[16,32]", "model.diffusion.sampler.num_inference_timesteps=4",
             "model.diffusion.horizon.observation_horizon=2", "model.diffusion.horizon.prediction_horizon=16",
             "model.diffusion.horizon.action_horizon=5"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string run = path("runs/seeing/latest"), url = start({run, "--max-connections", "8", "--exact-bits"});
  ASSERT_FALSE(url.empty());
  EXPECT_TRUE(std::regex_search(
      server_->out(), std::regex("gives: 5 actions of \\d+ numbers at a time\nrounding: .*\nlooks at 2 moments")))
      << server_->out();
  const std::vector<std::string> task{"reach", "--episodes", "3", "--max-steps", "12"};
  std::vector<std::string> in_turn = task;
  in_turn.insert(in_turn.end(), {"--n-envs", "2"});
  EXPECT_EQ(episodes(url, "remote.csv", in_turn), episodes(run, "alone.csv", task));

  const std::string port = url.substr(url.rfind(':') + 1);
  if (!test::python().empty()) {
    const test::CommandOutcome client = test::run_python("cli/serve_client.py", {port});
    ASSERT_EQ(client.code, 0) << client.output << server_->err();
    for (const char* line : {"chunk of 5 of ", "two clients\n", "refused: the observation 'observation/eef_pos'"})
      EXPECT_TRUE(contains(client.output, line)) << client.output;
  }
  expect_refused(cohort({"serve", run, "--port", port}), 1,
                 "another program uses the port; choose another with --port");
  const Outcome ended = end(SIGTERM);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(contains(ended.err, "has connected; 1 now")) << ended.err;
  EXPECT_TRUE(std::regex_search(ended.err, std::regex(R"(at last \d+ connections, [\d.]+ requests/s, [\d.]+ ms)")))
      << ended.err;

  // By vla-eval's protocol, which shows it every control step and takes an action for each.
  const std::string other = start({run, "--protocol", "vla-eval", "--exact-bits"});
  ASSERT_TRUE(other.starts_with("vla-eval://")) << other;
  in_turn.insert(in_turn.end(), {"--size", "20"});
  EXPECT_EQ(episodes(other, "vla_eval.csv", in_turn), episodes_of(path("alone.csv")));
}

// The way of LeRobot's users: the set's own fields, observation.state of several observations of the task.
TEST_F(Serve, APolicyIsNamedAsForTheOtherCommandsToo) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"nowhere"}, {"--policy", "nowhere"}}) {
    std::vector<std::string> command{cohort_path(), "serve"};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, "nowhere: there is no such run or checkpoint")) << outcome.err;
  }
}

TEST_F(Serve, WhatWasCollectedForLeRobotIsLearntEvaluatedAndServed) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  collect({"pick-and-place", "--episodes", "2", "--cameras", "front", "--size", "20", "--format", "lerobot", "--images",
           "image", "--out", path("data")});
  const Outcome trained = cohort({"train",
                                  "policy",
                                  path("data/pick_and_place"),
                                  "name=arm",
                                  "output_dir=" + path("runs"),
                                  "devices=cpu",
                                  "data.image_transforms=[\"resize(24, 24)\"]",
                                  "data.statistics_cache=never",
                                  "data.constant_elements=zero",
                                  "validation.splits=[]",
                                  "model.algorithm=bc",
                                  "model.bc.actor_layer_dims=[16]",
                                  "model.images.core.backbone_class=ShallowConv",
                                  "model.images.core.pool_class=SpatialSoftmax",
                                  "model.images.core.feature_dimension=4",
                                  "train.batch_size=16",
                                  "train.steps=3",
                                  "charts=false",
                                  "train.validate_every=3",
                                  "rollout.enabled=true",
                                  "rollout.task=pick-and-place",
                                  "rollout.n=2",
                                  "rollout.horizon=5"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.output(),
                       "data.actions=[action] data.proprio=[observation.state] "
                       "data.images=[observation.images.front]"))
      << trained.output();
  EXPECT_TRUE(contains(trained.output(), "of 2 rollouts succeed")) << trained.output();
  EXPECT_TRUE(contains(trained.output(), "no robot measures them: observation.cube_pos")) << trained.output();
  const std::string run = path("runs/arm/latest"), url = start({run, "--exact-bits"});
  const std::vector<std::string> task{"pick-and-place", "--episodes", "2", "--max-steps", "6"};
  EXPECT_EQ(episodes(url, "remote.csv", task), episodes(run, "alone.csv", task));
  EXPECT_EQ(end(SIGTERM).code, 0);
  const std::string quick = start({run});
  EXPECT_TRUE(contains(server_->out(), "one robot costs one robot")) << server_->out();
  EXPECT_EQ(episodes(quick, "quick.csv", task).size(), episodes(run, "alone.csv", task).size());
}

TEST_F(Serve, APolicyOfReinforcementLearningWithMemoryPlaysItsOwnEpisodes) {
  const Outcome trained =
      cohort({"train", "ppo", "task=cartpole-balance", "name=pole", "output_dir=" + path("out"), "n_envs=16",
              "num_steps_per_env=8", "charts=false", "max_iterations=1", "policy.class_name=ActorCriticRecurrent",
              "policy.rnn_hidden_dim=8", "policy.critic_only=[cart_vel,pole_vel]"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string run = path("out/pole/latest"), url = start({run});
  EXPECT_FALSE(contains(server_->out(), "cart_vel")) << "which only the critic sees";
  const std::vector<std::string> task{"cartpole-balance", "--episodes", "2", "--max-steps", "20"};
  EXPECT_EQ(episodes(url, "remote.csv", task), episodes(run, "alone.csv", task));
  EXPECT_EQ(end(SIGINT).code, 0);
}

TEST_F(Serve, APythonServersPolicyPlaysHere) {
  COHORT_NEEDS_PYTHON();
  const std::string port = std::to_string(free_port()), url = "ws://127.0.0.1:" + port;
  // It comes up while it is waited for.
  Process waiting({cohort_path(), "evaluate", "--task", "push-t", "action=offset", "--episodes", "2", "--threads", "1",
                   "--max-steps", "12", "--policy", url, "--exec-horizon", "5", "--csv", path("a.csv"), "--size",
                   "32"});
  ASSERT_TRUE(eventually([&] { return contains(waiting.err(), "nobody is there yet") || !alive(waiting.pid()); }));
  Process server({python_path(), COHORT_SOURCE_DIR "/tests/cli/serve_server.py", port,
                  R"({"width": 2, "state": ["float32", [5]], "agent_pos": ["float32", [2]], )"
                  R"("environment_state": ["float32", [16]]})"});
  const Outcome outcome = waiting.wait();
  ASSERT_EQ(outcome.code, 0) << outcome.err << server.err();
  EXPECT_EQ(episodes_of(path("a.csv")).size(), 3u);
  std::map<std::string, int> said;
  for (const std::string& line : lines_of(server.out())) ++said[line];
  EXPECT_EQ(said["episode"], 2) << "one connection of each environment; the first one has heard what is served";
  EXPECT_EQ(said["asked: push the T-shaped block onto the T-shaped goal"], 6) << "twelve steps, five at a time, twice";
}

}  // namespace
}  // namespace cohort::testing
