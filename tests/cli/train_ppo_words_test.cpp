// The words of `cohort train ppo`: what is taken, what is refused, what a preset says.
#include <fstream>

#include <gtest/gtest.h>

#include "cli/train_ppo.h"
#include "cli/training.h"
#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

TEST_F(TrainPpo, TheReturnOfAPresetIsForTheTaskAsItIs) {
  const auto stop_of = [this](const std::string& name) {
    return parse_json<nlohmann::json>(text_of(latest(name) / "config.json")).at("stop_at_return");
  };
  ASSERT_EQ(train("as_it_is", {"max_iterations=1"}).code, 0);
  EXPECT_EQ(stop_of("as_it_is"), 497);
  const Outcome other = train("other", {"max_iterations=1", "task_settings.horizon=1000"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(stop_of("other").is_null());
  EXPECT_TRUE(contains(other.err, "stop_at_return=497 of cartpole-balance's preset is left out")) << other.err;
  ASSERT_EQ(train("typed", {"max_iterations=1", "task_settings.horizon=1000", "stop_at_return=497"}).code, 0);
  EXPECT_EQ(stop_of("typed"), 497);
}

TEST_F(TrainPpo, BadInputIsRefusedBeforeAFolderIsMade) {
  const struct {
    Words more;
    std::string task, says;
  } cases[] = {
      {{}, "cartpole-balanse", "did you mean 'cartpole-balance'?"},
      {{}, "", "say what is to be learnt: task=NAME, one of "},
      {{"n_envs=33", "num_steps_per_env=3"}, "cartpole-balance", "the nearest n_envs that do: 32 and 36"},
      {{"algorithm.gama=0.9"}, "cartpole-balance", "algorithm.gamma"},
      {{"algorithm.gamma=2"}, "cartpole-balance", "algorithm.gamma = 2 must lie in [0, 1]"},
      {{"task_settings=[horizn=3]"},
       "cartpole-balance",
       "did you mean 'horizon'?; `cohort tasks cartpole-balance` lists"},
      {{"policy.class_name=ActorCriticRecurrent", "n_envs=34"},
       "cartpole-balance",
       "a policy with memory learns from whole environments; the nearest n_envs that do: 32 and 36"},
      {{"policy.rnn_type=lstm"}, "cartpole-balance", "gru"},
      {{"task_settings=[reward_scales=[uprigth:2]]"}, "cartpole-balance", "did you mean 'upright'?"},
      {{"task_settings=[reward_scales=upright]"}, "cartpole-balance", "TERM:FACTOR is needed, e.g. upright:2"},
      {{"task_settings=[reward_scales=[upright:2,upright:3]]"}, "cartpole-balance", "names 'upright' twice"},
      {{"task_settings=[reward=sparse,reward_scales=upright:2]"}, "cartpole-balance", "reward=sparse has none"},
      {{"precision=fp16"}, "cartpole-balance", "take precision=bf16"},
      {{"ema.enabled=true", "ema.max_decay=2"}, "cartpole-balance", "max_decay (2) <= 1 must hold"},
      {{"devices=[cuda:0]", "backend=cpu"}, "cartpole-balance", "contradicts backend=cpu"},
      {{"n_envs=4", "num_steps_per_env=1", "devices=[cpu,cpu,cpu]"},
       "cartpole-balance",
       "devices names 3, which share every minibatch, and a minibatch has 1 transitions: raise n_envs"},
  };
  for (const auto& c : cases) {
    const Outcome outcome = train("bad", c.more, c.task);
    EXPECT_EQ(outcome.code, 1) << c.says << outcome.err;
    EXPECT_TRUE(contains(outcome.err, c.says)) << c.says << "\n" << outcome.err;
  }
  EXPECT_FALSE(fs::exists(out()));
}

// A task's settings are typed as `cohort evaluate` takes them, before the task's name, too.
TEST_F(TrainPpo, ATasksSettingsStandAmongTheOthers) {
  const auto settings_of = [&](const std::string& name) {
    return json_text(parse_json<nlohmann::json>(text_of(latest(name) / "config.json"))["task_settings"]);
  };
  const Words few{"max_iterations=1", "n_envs=8", "num_steps_per_env=8", "algorithm.num_mini_batches=1"};
  const auto with = [&](Words more) {
    more.insert(more.end(), few.begin(), few.end());
    return more;
  };
  ASSERT_EQ(train("bare", with({"horizon=40"})).code, 0);
  EXPECT_EQ(settings_of("bare"), R"(["horizon=40"])");
  ASSERT_EQ(train("both", with({"task_settings=[horizon=30,end_on_success=false]", "task_settings.horizon=50"})).code,
            0);
  EXPECT_EQ(settings_of("both"), R"(["end_on_success=false","horizon=50"])");
  const Outcome wrong = train("wrong", with({"horizn=40"}));
  EXPECT_NE(wrong.code, 0);
  EXPECT_TRUE(contains(wrong.err, "unknown setting 'horizn'")) << wrong.err;
  const Outcome evaluated = run({cohort_path(), "evaluate", "--task", "cartpole-balance", "task_settings.horizon=20",
                                 "--policy", latest("bare").string(), "--episodes", "1", "--threads", "1"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
}

TEST_F(TrainPpo, WordsThatWouldDoNothingAreRefused) {
  for (const auto& [word, remedy] : std::vector<std::pair<std::string, std::string>>{
           {"ema.power=0.5", "ema.enabled=true"},
           {"policy.rnn_hidden_dim=8", "policy.class_name=ActorCriticRecurrent"}}) {
    const Outcome outcome = train("idle", {word});
    EXPECT_NE(outcome.code, 0) << word;
    EXPECT_TRUE(contains(outcome.err, word + ": ") && contains(outcome.err, "add " + remedy)) << outcome.err;
  }
  const Outcome two = run({cohort_path(), "train", "ppo", "cartpole-balance", "task=cartpole-swingup"});
  EXPECT_EQ(two.code, 2);
  EXPECT_TRUE(contains(two.err, "leave one of them out")) << two.err;
}

TEST_F(TrainPpo, WhatItsPolicyCannotDoIsRefusedWithWhatItCan) {
  ASSERT_EQ(train("plays", {"max_iterations=1"}).code, 0);
  const std::string run_folder = latest("plays").string();
  const Outcome device = run({cohort_path(), "evaluate", "--task", "cartpole-balance", "--policy", run_folder,
                              "--episodes", "1", "--device", "cuda:0"});
  EXPECT_EQ(device.code, 1) << device.output();
  EXPECT_TRUE(contains(device.err, "act on the CPU: leave --device out")) << device.err;
  const Outcome file = run({cohort_path(), "predict", run_folder, "a.csv", "--out", (out() / "b.csv").string()});
  EXPECT_EQ(file.code, 1) << file.output();
  EXPECT_TRUE(contains(file.err, "cohort evaluate --task cartpole-balance --policy")) << file.err;
  const Outcome estimate = run({cohort_path(), "estimate", "ppo", "task=cartpole-balance"});
  EXPECT_TRUE(contains(estimate.err, "cohort estimate: ")) << estimate.err;
  const std::string remedy = "max_iterations=3";
  EXPECT_TRUE(contains(estimate.err, "with " + remedy)) << estimate.err;
  EXPECT_EQ(train("remedy", {remedy}).code, 0);
}

TEST_F(TrainPpo, WhatARunThatGoesOnKeepsIsRefusedWithWhatItHas) {
  ASSERT_EQ(train("kept", {"max_iterations=1", "seed=4"}).code, 0);
  const std::string run_folder = latest("kept").string();
  const auto resumed = [&](const Words& more) {
    Words words{cohort_path(), "train", "resume=" + run_folder, "max_iterations=2"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {{"OMP_NUM_THREADS", "1"}});
  };
  for (const auto& [given, remedy] : {std::pair("task=cartpole-swingup", "task=cartpole-balance"),
                                      std::pair("policy.activation=tanh", "policy.activation=elu"),
                                      std::pair("policy.actor_hidden_dims=[8]", "policy.actor_hidden_dims=[64,64]")}) {
    const Outcome outcome = resumed({given});
    EXPECT_EQ(outcome.code, 1) << given;
    EXPECT_TRUE(contains(outcome.err, remedy)) << outcome.err;
  }
  // resume=auto has the seed's default, which nobody wrote.
  const Outcome by_name = train("kept", {"resume=auto", "max_iterations=2"});
  EXPECT_EQ(by_name.code, 1);
  EXPECT_TRUE(contains(by_name.err, "was learnt with seed=4 and not 1")) << by_name.err;
  EXPECT_TRUE(contains(by_name.err, "or say seed=4")) << by_name.err;
  EXPECT_EQ(lines_of(text_of(latest("kept") / "metrics.jsonl")).size(), 1u) << "nothing was changed";
  EXPECT_EQ(train("kept", {"resume=auto", "max_iterations=2", "seed=4"}).code, 0) << "the remedy";
  const Outcome slower = resumed({"max_iterations=3", "algorithm.learning_rate=1e-4"});
  EXPECT_EQ(slower.code, 0) << slower.err;
  EXPECT_TRUE(contains(slower.err, "algorithm.learning_rate=0.0001 from here on")) << slower.err;
  EXPECT_FALSE(contains(slower.err, "does nothing here")) << slower.err;
  const Outcome louder = resumed({"max_iterations=3", "policy.init_noise_std=0.3", "name=other"});
  EXPECT_EQ(louder.code, 0) << louder.err;
  EXPECT_TRUE(contains(louder.err, "policy.init_noise_std=0.3 does nothing here")) << louder.err;
  EXPECT_TRUE(contains(louder.err, "name=other does nothing here")) << louder.err;
  const double rate =
      parse_json<nlohmann::json>(lines_of(text_of(latest("kept") / "metrics.jsonl")).back())["train/lr"];
  EXPECT_LT(rate, 1e-3) << "the schedule had the rate of the checkpoint moved on otherwise";
}

TEST_F(TrainPpo, NamesOfRslRlAreTakenOrAnswered) {
  const Outcome outcome = run({cohort_path(), "train", "ppo", "--task", "cartpole-balance", "--headless", "--num_envs",
                               "32", "--max_iterations", "1", "--experiment_name", "other", "num_steps_per_env=16",
                               "charts=false", "output_dir=" + out().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(parse_json<nlohmann::json>(text_of(latest("other") / "config.json"))["n_envs"], 32);
  for (const auto& [given, says] :
       {std::pair("load_run=2026", "resume=outputs/NAME/RUN"), std::pair("checkpoint=model_50.pt", "checkpoint-50"),
        std::pair("total_timesteps=1000", "max_iterations=N"), std::pair("device=cuda:0", "devices=[cuda:0]")}) {
    const Outcome refused = train("other", {given});
    EXPECT_EQ(refused.code, 1) << given;
    EXPECT_TRUE(contains(refused.err, says)) << refused.err;
  }
}

TEST_F(TrainPpo, MoreEnvironmentsThanThereIsMemoryForAreRefused) {
  const Outcome outcome = run(command("many", {"n_envs=1000000"}), {{"COHORT_HOST_MEMORY", "1e9"}});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "learning from n_envs = 1000000 x num_steps_per_env = 16 takes ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, ": enough for n_envs=")) << outcome.err;
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(TrainPpo, HelpListsTheSettingsWithTheTasksDefaults) {
  const Outcome outcome = run({cohort_path(), "train", "ppo", "task=cartpole-swingup", "--help"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text :
       {"algorithm.clip_param", "algorithm.desired_kl", "policy.init_noise_std", "num_steps_per_env"})
    EXPECT_TRUE(contains(outcome.out, text)) << text << "\n" << outcome.out;
}

TEST_F(TrainPpo, ALinearScheduleThatIsStretchedIsSaidAndOneOfItsOwnLengthGoesOnAsItWas) {
  const auto rates = [this](const std::string& name) {
    std::vector<double> found;
    for (const std::string& line : lines_of(text_of(latest(name) / "metrics.jsonl")))
      found.push_back(parse_json<nlohmann::json>(line)["train/lr"].get<double>());
    return found;
  };
  const auto go_on = [this](const std::string& name) {
    return run({cohort_path(), "train", "resume=" + latest(name).string(), "max_iterations=4"},
               {{"OMP_NUM_THREADS", "1"}});
  };
  const Words own{"algorithm.schedule=linear", "algorithm.learning_rate=1e-3", "algorithm.decay_iterations=8"},
      to_the_end{"algorithm.schedule=linear", "algorithm.learning_rate=1e-3", "algorithm.decay_iterations=0"};
  const auto with = [](Words words, const std::string& more) {
    words.push_back(more);
    return words;
  };
  ASSERT_EQ(train("kept", with(own, "max_iterations=2")).code, 0);
  ASSERT_EQ(train("stretched", with(to_the_end, "max_iterations=2")).code, 0);
  const Outcome kept = go_on("kept"), stretched = go_on("stretched");
  ASSERT_EQ(kept.code, 0) << kept.err;
  ASSERT_EQ(stretched.code, 0) << stretched.err;
  const std::vector<double> expected{1e-3, 0.875e-3, 0.75e-3, 0.625e-3}, found = rates("kept");
  ASSERT_EQ(found.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
  EXPECT_FALSE(contains(kept.err, "stretches")) << kept.err;
  EXPECT_TRUE(contains(stretched.err,
                       "max_iterations=4 stretches algorithm.schedule=linear: the learning rate goes on "
                       "at 0.0005, and with 2 it would at 5e-05"))
      << stretched.err;
}

}  // namespace
}  // namespace cohort::testing
