// `cohort train ppo` as a user meets it: what it leaves, what it refuses, how it stops and goes on.
#include "cli/train_ppo.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "cli/training.h"
#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

TEST_F(TrainPpo, ARunEndsWhereItsReturnIsReachedAndSaysTheTermsAsOftenAsToldTo) {
  // Thirty-two episodes end every sixteen steps; the pole's return is above 0 from the first on.
  const Outcome reached = train("reached", {"max_iterations=50", "task_settings=[horizon=16]",
                                            "init_at_random_ep_len=false", "stop_at_return=0.001", "log_interval=2"});
  ASSERT_EQ(reached.code, 0) << reached.err;
  const std::string log = text_of(latest("reached") / "training.log");
  EXPECT_NE(log.find("stopped at iteration 4: the mean return"), std::string::npos) << log;
  EXPECT_NE(log.find("has reached stop_at_return=0.001"), std::string::npos);
  EXPECT_NE(log.find("iteration 2 of 50: return"), std::string::npos) << log;
  EXPECT_EQ(lines_of(text_of(latest("reached") / "metrics.jsonl")).size(), 4u);
  EXPECT_TRUE(fs::exists(latest("reached") / "checkpoints" / "checkpoint-4"));
  const Outcome not_reached = train("short", {"max_iterations=5", "task_settings=[horizon=16]", "stop_at_return=1e6"});
  ASSERT_EQ(not_reached.code, 0) << not_reached.err;
  EXPECT_EQ(lines_of(text_of(latest("short") / "metrics.jsonl")).size(), 5u);
}

TEST_F(TrainPpo, AFileThatTasksNewHasWrittenTrainsAsItStands) {
  for (const char* robot : {"quadruped", "cartpole"}) {
    const std::string file = (folder_.path() / (std::string(robot) + "_new.yaml")).string();
    const Outcome written = run({cohort_path(), "tasks", "new", file, "--robot",
                                 COHORT_SOURCE_DIR "/src/tasks/library/" + std::string(robot) + ".xml"});
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_NE(written.out.find("cohort train ppo task=" + file), std::string::npos) << written.out;
    const Outcome trained = train(robot, {"max_iterations=2"}, file);
    ASSERT_EQ(trained.code, 0) << trained.err;
    EXPECT_EQ(lines_of(text_of(latest(robot) / "metrics.jsonl")).size(), 2u);
  }
}

TEST_F(TrainPpo, WhatATaskAsksOfItIsCheckedWhereTheTaskIsLookedAt) {
  const auto file = [&](const std::string& name, const std::string& ppo) {
    const std::string path = (folder_.path() / (name + ".yaml")).string();
    std::ofstream(path) << "include: library:/cartpole-balance.yaml\n" << ppo;
    return path;
  };
  const std::pair<const char*, const char*> kFaults[] = {
      {"ppo: {algorithm: {gama: 0.9}}\n", "gamma"},         // no such word
      {"ppo: {n_envs: many}\n", "n_envs"},                  // another type
      {"ppo: {policy: {activation: tanhh}}\n", "tanh"},     // none of the choices
      {"ppo: {algorithm: {gamma: 1.5}}\n", "gamma"},        // out of its range
      {"ppo: {algorithm: {num_mini_batches: 7}}\n", "7"}};  // does not go with the others
  int number = 0;
  for (const auto& [ppo, said] : kFaults) {
    const std::string path = file("faulty" + std::to_string(++number), ppo);
    const Outcome trained = run({cohort_path(), "train", "ppo", "task=" + path}, {{"OMP_NUM_THREADS", "1"}});
    ASSERT_EQ(trained.code, 1) << ppo << trained.err;
    const std::string fault = trained.err.substr(trained.err.find("cohort train: ") + 14);
    EXPECT_NE(fault.find(said), std::string::npos) << fault;
    const Outcome shown = run({cohort_path(), "tasks", path}), checked = run({cohort_path(), "tasks", path, "--check"});
    EXPECT_EQ(shown.code, 1) << shown.out;
    EXPECT_NE(shown.err.find(fault), std::string::npos) << fault << shown.err;
    EXPECT_EQ(checked.code, 1);
    EXPECT_NE(checked.out.find("ppo           FAIL  " + fault), std::string::npos) << fault << checked.out;
  }
  const std::string good = file("good", "ppo: {algorithm: {gamma: 0.9}}\n");
  EXPECT_EQ(run({cohort_path(), "tasks", good}).code, 0);
  EXPECT_NE(run({cohort_path(), "tasks", good, "--check"}).out.find("ppo           pass"), std::string::npos);
}

TEST_F(TrainPpo, ATasksOwnMetricsAreInTheLogAndInEvaluationsAndPlayIsWhatEvaluateIsAskedFor) {
  const std::string model = COHORT_SOURCE_DIR "/src/tasks/library/cartpole.xml",
                    file = (folder_.path() / "pole.yaml").string();
  std::ofstream(file) << "scene: {robot: {mjcf: " << model << "}}\n"
                      << R"yaml(
simulation: {control_period: 0.02, episode_length_s: 0.2}
actions: {push: {type: joint_effort, joints: slider}}
observations: {policy: {joint_pos: {}, joint_vel: {}}}
rewards: {alive: {formula: 1, per_second: false}}
metrics:
  steps: step
  length: {formula: step, reduce: last}
  speed: norm(joint_vel)
play: {rewards: {alive: {formula: 7}}}
)yaml";
  const Outcome trained = train("pole", {"max_iterations=2", "log_interval=1"}, file);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto last = parse_json<nlohmann::json>(lines_of(text_of(latest("pole") / "metrics.jsonl")).back());
  // Episodes of ten steps: steps 1 to 10, in whatever part of them.
  EXPECT_GT(last["rl/metric/steps"].get<double>(), 1);
  EXPECT_LT(last["rl/metric/steps"].get<double>(), 10);
  EXPECT_NEAR(last["rl/metric/length"].get<double>(), 10, 1e-9);
  EXPECT_GT(last["rl/metric/speed"].get<double>(), 0);
  const std::string log = text_of(latest("pole") / "training.log");
  EXPECT_NE(log.find("metrics: steps "), std::string::npos) << log;
  const auto evaluated = [&](const Words& more) {
    Words words{cohort_path(), "evaluate", "--task", file, "--policy", "random", "--episodes", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {{"OMP_NUM_THREADS", "1"}});
  };
  const Outcome as_trained = evaluated({}), shown = evaluated({"--play"});
  ASSERT_EQ(as_trained.code, 0) << as_trained.err;
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(as_trained.out.find("10.0"), std::string::npos) << as_trained.out;
  EXPECT_NE(as_trained.out.find("metrics: steps 5.5, length 10, speed "), std::string::npos) << as_trained.out;
  const std::string table = (folder_.path() / "table.csv").string();
  ASSERT_EQ(evaluated({"--csv", table}).code, 0);
  const std::vector<std::string> rows = lines_of(text_of(table));
  EXPECT_TRUE(rows.at(0).ends_with(",fault,steps,length,speed")) << rows.at(0);
  EXPECT_NE(rows.at(1).find(",,5.5,10,"), std::string::npos) << rows.at(1);
  EXPECT_NE(shown.out.find("70.0"), std::string::npos) << shown.out;
  EXPECT_EQ(run({cohort_path(), "evaluate", "--task", "quadruped-velocity", "--policy", "zero", "--play", "--episodes",
                 "1", "--max-steps", "2"})
                .code,
            0)
      << "a task of the program that comes from a file";
  const Outcome refused = run({cohort_path(), "evaluate", "--task", "push", "--policy", "random", "--play"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--play: push comes from no task's file"), std::string::npos) << refused.err;
}

TEST_F(TrainPpo, EvaluationAndExportReadTheTaskThatTheRunKeepsWhereItsModelIsGone) {
  const fs::path model = folder_.path() / "pole.xml";
  fs::copy_file(COHORT_SOURCE_DIR "/src/tasks/library/cartpole.xml", model);
  const std::string file = (folder_.path() / "pole.yaml").string();
  std::ofstream(file) << R"yaml(
scene: {robot: {mjcf: pole.xml}}
simulation: {control_period: 0.02, episode_length_s: 0.2}
actions: {push: {type: joint_effort, joints: slider}}
observations: {policy: {joint_pos: {}, joint_vel: {}}}
rewards: {alive: {formula: 1, per_second: false}}
)yaml";
  ASSERT_EQ(train("pole", {"max_iterations=1"}, file).code, 0);
  fs::rename(model, folder_.path() / "moved.xml");
  const std::string kept = "keeps, instead of " + file;
  for (const Words& words : {Words{"evaluate", latest("pole"), "--episodes", "1"},
                             Words{"evaluate", file, "--policy", latest("pole"), "--episodes", "1"},
                             Words{"collect", file, "--policy", latest("pole"), "--episodes", "1", "--out",
                                   (folder_.path() / "episodes.hdf5").string()},
                             Words{"train", "resume=" + latest("pole").string(), "max_iterations=2"}}) {
    Words command{cohort_path()};
    command.insert(command.end(), words.begin(), words.end());
    const Outcome outcome = run(command, {{"OMP_NUM_THREADS", "1"}});
    EXPECT_EQ(outcome.code, 0) << words[0] << " " << words[1] << outcome.err;
    if (words.front() != "train") EXPECT_NE(outcome.err.find(kept), std::string::npos) << outcome.err;
  }
  const Outcome newest = train("pole", {"resume=auto", "max_iterations=3"}, file);
  EXPECT_EQ(newest.code, 0) << newest.err;
  EXPECT_NE(newest.err.find(kept), std::string::npos) << newest.err;
  EXPECT_EQ(train("another", {"resume=auto", "max_iterations=1"}, file).code, 1) << "no run of that name keeps it";
  std::ofstream(file, std::ios::app) << "instruction: another\n";
  fs::rename(folder_.path() / "moved.xml", model);
  const Outcome found_itself = train("pole", {"resume=auto", "max_iterations=4"}, file);
  EXPECT_EQ(found_itself.code, 0) << found_itself.err;
  EXPECT_NE(found_itself.err.find(kept + ", which has changed since"), std::string::npos) << found_itself.err;
  fs::remove(model);
  const Outcome changed = run({cohort_path(), "evaluate", latest("pole"), "--episodes", "1"});
  EXPECT_EQ(changed.code, 1);
  EXPECT_NE(changed.err.find("it has changed since"), std::string::npos) << changed.err;
  EXPECT_EQ(run({cohort_path(), "evaluate", (latest("pole") / "task" / "pole.json").string(), "--policy",
                 latest("pole"), "--episodes", "1"})
                .code,
            0)
      << "what the message names";
}

TEST_F(TrainPpo, TheLibraryOfMatrixProductsIsTheOneThatIsAskedFor) {
  const auto with = [this](const std::string& library) {
    return run(command("by_" + library, {"max_iterations=2"}),
               {{"OMP_NUM_THREADS", "1"}, {"COHORT_MATRIX_PRODUCTS", library}});
  };
  const Outcome mkl = with("mkl"), again = with("mkl"), wrong = with("blas");
  ASSERT_EQ(mkl.code, 0) << mkl.err;
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(contains(wrong.err, "COHORT_MATRIX_PRODUCTS=blas: it is mkl or onednn")) << wrong.err;
  // oneDNN's where the processor has AVX2; else refused with the reason.
  const Outcome onednn = with("onednn");
  EXPECT_TRUE(onednn.code == 0 || contains(onednn.err, "need a processor with AVX2")) << onednn.err;
}

TEST_F(TrainPpo, SaysWhereHoveringShortOfTheGoalPays) {
  // reach pays what is missing, below 0; turned round it pays above 0 in every step until success ends the episode.
  const Outcome good = train("good", {"max_iterations=1"}, "reach"),
                hovers = train("hovers", {"max_iterations=2", "task_settings=[reward_scales=[reach:-1]]"}, "reach"),
                goes_on = train("goes_on",
                                {"max_iterations=1",
                                 "task_settings=[end_on_success=false,"
                                 "reward_scales=[reach:-1]]"},
                                "reach");
  for (const Outcome& outcome : {good, hovers, goes_on}) ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string words = "PPO then learns to stay short of the goal";
  EXPECT_FALSE(contains(good.err, words)) << good.err;
  EXPECT_FALSE(contains(goes_on.err, words)) << goes_on.err;
  const std::size_t at = hovers.err.find(words);
  ASSERT_NE(at, std::string::npos) << hovers.err;
  EXPECT_EQ(hovers.err.find(words, at + 1), std::string::npos) << "once";
  EXPECT_TRUE(contains(hovers.err, "`cohort tasks reach --check`")) << hovers.err;
}

TEST_F(TrainPpo, LeavesWeightsMetricsAndALog) {
  const Outcome outcome = train("small", {"max_iterations=3", "tensorboard=true"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "return none yet")) << "no episode ends in 48 steps";
  EXPECT_FALSE(contains(outcome.err, "nan")) << outcome.err;
  const fs::path folder = latest("small");
  for (const char* file : {"config.json", "training.log", "checkpoints/last/model.safetensors",
                           "checkpoints/last/optimizer.safetensors", "checkpoints/last/trainer_state.json"})
    EXPECT_TRUE(fs::exists(folder / file)) << file;
  const std::vector<std::string> lines = lines_of(text_of(folder / "metrics.jsonl"));
  ASSERT_EQ(lines.size(), 3u);
  const auto last = parse_json<nlohmann::json>(lines.back());
  EXPECT_EQ(last["step"], 3);
  EXPECT_EQ(last["rl/control_steps"], 3 * 32 * 16);
  for (const char* name : {"rl/kl", "rl/entropy", "rl/value_loss", "train/lr", "speed/samples_per_s"})
    EXPECT_TRUE(last.contains(name)) << name;
  // The pole's only term is between 0 and 1 in a step.
  EXPECT_GT(last["rl/reward/upright"].get<double>(), 0);
  EXPECT_LE(last["rl/reward/upright"].get<double>(), 1);
  for (const char* name : {"speed/steps_per_s", "speed/compute_s", "memory/bytes", "host/memory_bytes"})
    EXPECT_GT(last[name].get<double>(), 0) << name;
  EXPECT_GE(last["speed/checkpoint_s"].get<double>(), 0);
  EXPECT_FALSE(last.contains("speed/exchange_s")) << "there is nobody to wait for";
  const auto rank = parse_json<nlohmann::json>(text_of(folder / "ranks/rank_0.json"));
  EXPECT_EQ(rank["state"], "finished");
  EXPECT_EQ(rank["job"], "ppo");
  EXPECT_EQ(rank["total_steps"], 3);
  const auto config = parse_json<nlohmann::json>(text_of(folder / "config.json"));
  EXPECT_EQ(config["job"], "ppo");
  EXPECT_EQ(config["policy"]["actor_hidden_dims"], nlohmann::json({64, 64})) << "the task's preset";
}

TEST_F(TrainPpo, TwoRanksShareTheEnvironmentsAndAnyNumberGoesOn) {
  const auto launched = [&](const std::string& name, const Words& more) {
    Words words = command(name, more);
    const Words launcher{cohort_path(), "launch", "--nproc_per_node=2"};
    words.erase(words.begin());
    words.insert(words.begin(), launcher.begin(), launcher.end());
    return run(words, {{"OMP_NUM_THREADS", "1"}});
  };
  const Outcome two = launched("two", {"max_iterations=2"}), one = train("one", {"max_iterations=2"});
  ASSERT_EQ(two.code, 0) << two.err << two.out;
  ASSERT_EQ(one.code, 0) << one.err;
  const auto figures = [&](const std::string& name) {
    return parse_json<nlohmann::json>(lines_of(text_of(latest(name) / "metrics.jsonl")).front());
  };
  const auto of_two = figures("two"), of_one = figures("one");
  EXPECT_EQ(of_two["rl/control_steps"], 32 * 16) << "of both ranks";
  for (const char* name : {"rl/value_loss", "rl/kl", "rl/entropy"})
    EXPECT_NEAR(of_two[name].get<double>(), of_one[name].get<double>(), 1e-4 * (1 + of_one[name].get<double>()))
        << name;
  // A checkpoint of two ranks is continued by one.
  const Outcome goes_on =
      run({cohort_path(), "train", "resume=" + latest("two").string(), "max_iterations=3"}, {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(goes_on.code, 0) << goes_on.err;
  EXPECT_EQ(lines_of(text_of(latest("two") / "metrics.jsonl")).size(), 3u);

  const Outcome shared = launched("shared", {"max_iterations=1", "devices=[cpu,cpu]"});
  EXPECT_NE(shared.code, 0);
  EXPECT_TRUE(contains(shared.err + shared.out, "each of 2 ranks has one of its own")) << shared.err << shared.out;

  const Outcome odd = launched("odd", {"max_iterations=1", "n_envs=33"});
  EXPECT_NE(odd.code, 0);
  EXPECT_TRUE(contains(odd.err + odd.out,
                       "n_envs = 33 do not divide over 2 ranks with 4 minibatches each; the nearest "
                       "that do: 32 and 34"))
      << odd.err << odd.out;
}

TEST_F(TrainPpo, TopMetricsAndReportShowBothRanks) {
  Words words = command("watched", {"max_iterations=100000", "save_interval=100000", "charts=true"});
  const Words launcher{cohort_path(), "launch", "--nproc_per_node=2"};
  words.erase(words.begin());
  words.insert(words.begin(), launcher.begin(), launcher.end());
  const auto began = std::chrono::steady_clock::now();
  Process job(words, {{"OMP_NUM_THREADS", "1"}});
  const fs::path folder = out() / "watched" / "latest";
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(folder / "metrics.jsonl")).size() >= 10; })) << job.err();
  nlohmann::json ranks;
  const auto see = [&] {
    ranks = nlohmann::json::array();
    const auto all = parse_json<nlohmann::json>(run({cohort_path(), "top", "--json"}).out);
    for (const auto& rank : all["ranks"])
      if (rank["run"] == fs::canonical(folder).string() && rank["state"] == "training" && rank["step"] > 5)
        ranks.push_back(rank);
    return ranks.size() == 2;
  };
  ASSERT_TRUE(eventually(see)) << json_text(ranks, 2);
  for (int i = 0; i < 2; ++i) {
    const auto& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank["rank"], i);
    EXPECT_EQ(rank["world_size"], 2);
    EXPECT_EQ(rank["job"], "ppo");
    EXPECT_EQ(rank["device"], "cpu");
    EXPECT_EQ(rank["total_steps"], 100000);
    EXPECT_EQ(rank["batch_size"], 16) << "environments of this rank";
    // Control steps: 16 environments, 16 of each in an iteration.
    EXPECT_NEAR(rank["samples_per_s"].get<double>(), 16 * 16 * rank["steps_per_s"].get<double>(),
                rank["samples_per_s"].get<double>() * 0.01);
    EXPECT_GT(rank["exchange_s"].get<double>(), 0);
    EXPECT_LT(rank["exchange_s"].get<double>(), rank["step_s"].get<double>());
    EXPECT_TRUE(rank["data_s"].is_null()) << "it reads none";
    EXPECT_GT(rank["host_bytes"].get<double>(), 1 << 20);
    EXPECT_GT(rank["seconds_left"].get<double>(), 0);
    EXPECT_LT(rank["since_beat_s"].get<double>(),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  const std::string list = run({cohort_path(), "top", "--once"}).out;
  EXPECT_TRUE(contains(list, fs::canonical(folder).string() + ": ppo, 2 of 2 rank(s)")) << list;
  job.send(SIGTERM);
  job.wait();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(parse_json<nlohmann::json>(text_of(folder / "ranks" / ("rank_" + std::to_string(i) + ".json")))["state"],
              "stopped");
  double exchange = 0, compute = 0, whole = 0;
  for (const std::string& line : lines_of(text_of(folder / "metrics.jsonl"))) {
    const auto figures = parse_json<nlohmann::json>(line);
    exchange += figures["speed/exchange_s"].get<double>();
    compute += figures["speed/least_compute_s"].get<double>();
    whole += 1 / figures["speed/steps_per_s"].get<double>();
  }
  EXPECT_GT(exchange, 0) << "mean of both ranks";
  EXPECT_LT(exchange + compute, whole * 1.001) << "parts of the same iterations, on a busy machine too";
  const std::string report = text_of(folder / "report.html");
  for (const char* text : {"an iteration", "communication ", "rank 0", "rank 1", "balance", "; an iteration computes "})
    EXPECT_TRUE(contains(report, text)) << text;
}

TEST_F(TrainPpo, ARankThatStandsStillIsNamedAndTheJobGoesOnFromItsCheckpoint) {
  Words words = command("still", {"max_iterations=100000", "save_interval=5"});
  const Words launcher{cohort_path(), "launch", "--nproc_per_node=2", "--max-restarts=1", "--hang-timeout=2"};
  words.erase(words.begin());
  words.insert(words.begin(), launcher.begin(), launcher.end());
  Process job(words, {{"OMP_NUM_THREADS", "1"}});
  const fs::path folder = out() / "still" / "latest";
  const auto iterations = [&] { return lines_of(text_of(folder / "metrics.jsonl")).size(); };
  ASSERT_TRUE(eventually([&] { return iterations() >= 10; })) << job.err();
  const auto pid = parse_json<nlohmann::json>(text_of(folder / "ranks" / "rank_1.json"))["pid"].get<pid_t>();
  ::kill(pid, SIGSTOP);
  ASSERT_TRUE(eventually([&] { return contains(job.err(), "hangs: "); })) << job.err();
  EXPECT_TRUE(contains(job.err(), "rank 1 (pid " + std::to_string(pid) + ") hangs: ")) << job.err();
  ASSERT_TRUE(eventually([&] { return contains(job.err(), "resuming from "); })) << job.err();
  const std::size_t seen = iterations();
  EXPECT_TRUE(eventually([&] { return iterations() > seen; })) << job.err();
  job.send(SIGTERM);
  job.wait();
}

TEST_F(TrainPpo, SeveralDevicesOfAProcessLearnAsOne) {
  const Outcome one = train("one", {"max_iterations=1"}),
                several = train("several", {"max_iterations=1", "devices=[cpu,cpu]"});
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(several.code, 0) << several.err;
  EXPECT_TRUE(contains(several.err, "cpu, cpu")) << several.err;
  const auto figures = [&](const std::string& name) {
    return parse_json<nlohmann::json>(lines_of(text_of(latest(name) / "metrics.jsonl")).front());
  };
  const auto of_one = figures("one"), of_several = figures("several");
  for (const char* name : {"rl/value_loss", "rl/kl", "rl/entropy"})
    EXPECT_NEAR(of_several[name].get<double>(), of_one[name].get<double>(), 1e-4 * (1 + of_one[name].get<double>()))
        << name;
}

TEST_F(TrainPpo, APolicyWithMemoryGoesOnToTheSameWeights) {
  const Words memory{"policy.class_name=ActorCriticRecurrent", "policy.rnn_hidden_dim=16",
                     "policy.critic_only=[cart_vel,pole_vel]"};
  const auto with = [&](const char* more) {
    Words words = memory;
    words.emplace_back(more);
    return words;
  };
  const Outcome part = train("part", with("max_iterations=2"));
  ASSERT_EQ(part.code, 0) << part.err;
  const Outcome rest = run({cohort_path(), "train", "resume=" + latest("part").string(), "max_iterations=4"},
                           {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(rest.code, 0) << rest.err;
  const Outcome whole = train("whole", with("max_iterations=4"));
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(text_of(latest("part") / "checkpoints/last/model.safetensors"),
            text_of(latest("whole") / "checkpoints/last/model.safetensors"));
}

TEST_F(TrainPpo, ANewRunBeginsWithTheWeightsOfAnother) {
  ASSERT_EQ(train("first", {"max_iterations=2"}).code, 0);
  // Other numbers of environments and another seed, which a run that is continued refuses.
  const Outcome tuned =
      train("tuned", {"max_iterations=1", "n_envs=64", "seed=9", "--init_from", latest("first").string(),
                      "algorithm.learning_rate=1e-12", "algorithm.schedule=fixed"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_TRUE(contains(tuned.err, "weights   of " + latest("first").string())) << tuned.err;
  // With next to no rate they stay what they were; those of a run of that seed alone are others.
  ASSERT_EQ(train("fresh", {"max_iterations=1", "n_envs=64", "seed=9", "algorithm.learning_rate=1e-12",
                            "algorithm.schedule=fixed"})
                .code,
            0);
  const auto numbers = [&](const std::string& name) {
    const std::string bytes = text_of(latest(name) / "checkpoints" / "last" / "model.safetensors");
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    return bytes.substr(sizeof header + header);
  };
  const auto share_of_first = [&](const std::string& name) {
    const std::string own = numbers(name), theirs = numbers("first");
    EXPECT_EQ(own.size(), theirs.size());
    std::size_t same = 0;
    for (std::size_t i = 0; i + 4 <= own.size(); i += 4) same += own.compare(i, 4, theirs, i, 4) == 0;
    return static_cast<double>(same) / static_cast<double>(own.size() / 4);
  };
  EXPECT_GT(share_of_first("tuned"), 0.8);
  EXPECT_LT(share_of_first("fresh"), 0.5);
  const Outcome other =
      train("wide", {"max_iterations=1", "init_from=" + latest("first").string(), "policy.actor_hidden_dims=[32,32]"});
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(contains(other.err, "init_from: ") && contains(other.err, "actor")) << other.err;
  const Outcome missing = train("missing", {"init_from=nowhere"});
  EXPECT_TRUE(contains(missing.err, "init_from=nowhere: there is no such run")) << missing.err;
}

TEST_F(TrainPpo, GoesBackToTheCheckpointThatIsNamed) {
  ASSERT_EQ(train("back", {"max_iterations=3", "save_interval=1", "keep_checkpoints=0"}).code, 0);
  const fs::path folder = latest("back");
  const Outcome back =
      run({cohort_path(), "train", "resume=" + (folder / "checkpoints/checkpoint-1").string(), "max_iterations=2"},
          {{"OMP_NUM_THREADS", "1"}});
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_TRUE(contains(back.err, "checkpoint-1: iteration 1")) << back.err;
  EXPECT_EQ(lines_of(text_of(folder / "metrics.jsonl")).size(), 2u) << "what came later is cut";
  EXPECT_EQ(fs::read_symlink(folder / "checkpoints" / "last").string(), "checkpoint-2");
  // The newest one is now that of iteration 2.
  const Outcome on =
      run({cohort_path(), "train", "resume=" + folder.string(), "max_iterations=3"}, {{"OMP_NUM_THREADS", "1"}});
  EXPECT_TRUE(contains(on.err, "checkpoint-2: iteration 2")) << on.err;
  const Outcome none = run({cohort_path(), "train", "resume=" + (folder / "checkpoints/checkpoint-9").string()});
  EXPECT_TRUE(contains(none.err, "there is no such folder; there are checkpoint-0, checkpoint-1, ")) << none.err;
  const Outcome other = run({cohort_path(), "train", "resume=" + (out() / "back" / "2020-01-01").string()});
  EXPECT_TRUE(contains(other.err, "the newest run there is resume=" + (out() / "back" / "latest").string()))
      << other.err;
}

TEST_F(TrainPpo, TheMovingAverageIsKeptContinuedAndPlayed) {
  const Words averaged{"ema.enabled=true", "precision=bf16"};
  const auto with = [&](const Words& more) {
    Words words = averaged;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const Outcome part = train("part", with({"max_iterations=2"})), whole = train("whole", with({"max_iterations=3"}));
  ASSERT_EQ(part.code, 0) << part.err;
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_TRUE(contains(whole.err, "checkpoints/last/ema/model.safetensors")) << whole.err;
  const std::string folder = latest("part").string();
  const Outcome more =
      run({cohort_path(), "train", "resume=" + folder, "max_iterations=3"}, {{"OMP_NUM_THREADS", "1"}});
  ASSERT_EQ(more.code, 0) << more.err;
  for (const char* file : {"checkpoints/last/model.safetensors", "checkpoints/last/ema/model.safetensors"})
    EXPECT_EQ(text_of(latest("part") / file), text_of(latest("whole") / file)) << file;
  const auto played = [&](const Words& flags) {
    Words words{cohort_path(), "evaluate", "--task", "cartpole-balance", "horizon=8", "--episodes",
                "1",           "--policy", folder};
    words.insert(words.end(), flags.begin(), flags.end());
    return run(words).output();
  };
  EXPECT_TRUE(contains(played({}), "moving average of the weights")) << played({});
  EXPECT_FALSE(contains(played({"--raw-weights"}), "moving average of the weights"));
  const Outcome other = run({cohort_path(), "train", "resume=" + folder, "max_iterations=4", "precision=fp32"},
                            {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(contains(other.err, "precision=fp32 from here on, and not bf16 as before")) << other.err;
}

TEST_F(TrainPpo, EvaluationSaysInWhatItsTaskDiffersFromTheOneThatWasLearnt) {
  ASSERT_EQ(train("walks", {"max_iterations=1"}, "Walker2d-v5").code, 0);
  const auto evaluated = [](const fs::path& run_folder, const Words& more) {
    Words words{cohort_path(), "evaluate", "--policy", run_folder.string(), "--episodes", "1", "--max-steps", "3"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  // Both have 17 observations and 6 actions.
  EXPECT_TRUE(contains(evaluated(latest("walks"), {"--task", "HalfCheetah-v5"}),
                       "it has learnt Walker2d-v5 and acts in HalfCheetah-v5"));
  EXPECT_FALSE(contains(evaluated(latest("walks"), {"--task", "Walker2d-v5"}), "it has learnt"));
  ASSERT_EQ(train("set", {"max_iterations=1", "task_settings=[horizon=40,end_on_success=False,reward_scales=upright:2]",
                          "engine=mujoco"})
                .code,
            0);
  const std::string other = evaluated(latest("set"), {"--task", "cartpole-balance"});
  for (const char* line :
       {"it has learnt with engine=mujoco; here engine=batched", "it has learnt with horizon=40; here horizon=",
        "it has learnt with reward_scales=[upright:2]; here reward_scales=[]"})
    EXPECT_TRUE(contains(other, line)) << line << "\n" << other;
  EXPECT_FALSE(contains(other, "it has learnt with end_on_success")) << "it is the task's own default\n" << other;
  EXPECT_FALSE(contains(evaluated(latest("set"), {"--task", "cartpole-balance", "--engine", "mujoco", "horizon=40",
                                                  "end_on_success=false", "reward_scales=[upright:2]"}),
                        "it has learnt"));
  // Where none is named, it is the run's own, as it was learnt; what is typed beats it.
  const std::string own = evaluated(latest("set"), {});
  EXPECT_TRUE(contains(own, "task cartpole-balance horizon=40")) << own;
  EXPECT_FALSE(contains(own, "it has learnt with")) << own;
  EXPECT_TRUE(contains(evaluated(latest("set"), {"horizon=30"}), "it has learnt with horizon=40; here horizon=30"));
}

TEST_F(TrainPpo, AFinishedRunIsLeftAsItWas) {
  ASSERT_EQ(train("done", {"max_iterations=2"}).code, 0);
  const fs::path folder = latest("done");
  const std::string overrides = text_of(folder / "overrides.txt"), log = text_of(folder / "training.log");
  const Outcome again = run({cohort_path(), "train", "resume=" + folder.string()}, {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "was finished at iteration 2")) << again.err;
  EXPECT_TRUE(contains(again.err, "raise max_iterations")) << again.err;
  EXPECT_EQ(text_of(folder / "overrides.txt"), overrides);
  EXPECT_EQ(text_of(folder / "training.log"), log);
}

TEST_F(TrainPpo, WhereEveryStepBreaksItsEnvironmentTheTrainingEnds) {
  // 10 a step times this is not finite.
  const Outcome outcome = train("broken", {"max_iterations=3", "task_settings=[reward_scales=[survive:3e38]]"},
                                "InvertedDoublePendulum-v5");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "in iteration 1 each of 512 control steps broke its environment")) << outcome.err;
  EXPECT_TRUE(
      contains(outcome.err, "environment 0 of InvertedDoublePendulum-v5 broke in step 1 of its episode and was reset"));
}

TEST_F(TrainPpo, ItsLastLinesSayHowThePolicyIsEvaluated) {
  const Outcome outcome = train("next", {"max_iterations=1", "task_settings=[horizon=30,reward_scales=[upright:2]]"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::size_t begin = outcome.err.find("evaluate --task");
  ASSERT_NE(begin, std::string::npos) << outcome.err;
  const std::string words = outcome.err.substr(begin, outcome.err.find('\n', begin) - begin);
  const Outcome evaluated = run({"sh", "-c", cohort_path() + " " + words});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_FALSE(contains(evaluated.err, "it has learnt with")) << "the task's settings are there\n" << evaluated.err;
  EXPECT_TRUE(contains(outcome.err, "--record-video")) << outcome.err;
}

TEST_F(TrainPpo, SeedsAreComparedByTheirReturns) {
  Words words{cohort_path(), "report", "--out", (folder_.path() / "seeds.html").string()};
  for (const char* seed : {"1", "2"}) {
    const std::string name = std::string("seed-") + seed;
    const Outcome outcome =
        train(name, {"max_iterations=2", std::string("seed=") + seed, "task_settings=[horizon=10]", "charts=true"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    words.push_back(latest(name).string());
  }
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string page = text_of(folder_.path() / "seeds.html");
  EXPECT_TRUE(contains(page, "<figcaption>mean return of the runs.")) << page.size();
  const double of_first =
      parse_json<nlohmann::json>(lines_of(text_of(latest("seed-1") / "metrics.jsonl")).back())["rl/mean_return"];
  char figure[32];
  std::snprintf(figure, sizeof figure, "mean return %.2f", of_first);
  EXPECT_TRUE(contains(page, figure)) << figure;
}

TEST_F(TrainPpo, DivergingLossesEndWithTheLastGoodCheckpoint) {
  const Outcome outcome = train("diverges", {"max_iterations=3", "reward_scale=1e30"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "PPO diverged in iteration 1")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the last good checkpoint is")) << outcome.err;
  EXPECT_TRUE(fs::exists(latest("diverges") / "checkpoints" / "checkpoint-0" / "model.safetensors"));
}

TEST_F(TrainPpo, AStoppedRunGoesOnToTheSameWeights) {
  Process job(command("stopped", {"max_iterations=100000"}), {{"OMP_NUM_THREADS", "1"}});
  const fs::path metrics = out() / "stopped" / "latest" / "metrics.jsonl";
  // Past the first ends of episodes, which are 500 steps long.
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(metrics)).size() >= 40; })) << job.err();
  job.send(SIGTERM);
  const Outcome stopped = job.wait();
  EXPECT_EQ(stopped.code, 128 + SIGTERM) << stopped.err;
  const std::size_t reached = lines_of(text_of(metrics)).size();
  EXPECT_TRUE(contains(stopped.err, "stopped at iteration " + std::to_string(reached))) << stopped.err;
  const std::string more = "max_iterations=" + std::to_string(reached + 5);
  const Outcome again =
      run({cohort_path(), "train", "resume=" + latest("stopped").string(), more}, {{"OMP_NUM_THREADS", "1"}});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(contains(again.err, "resuming from ")) << again.err;
  const Outcome whole = train("whole", {more});
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(text_of(latest("stopped") / "checkpoints/last/model.safetensors"),
            text_of(latest("whole") / "checkpoints/last/model.safetensors"));
}

}  // namespace
}  // namespace cohort::testing
