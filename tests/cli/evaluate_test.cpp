// `cohort evaluate`, and rollouts while training, as a user runs them.
#include <algorithm>
#include <fstream>

#include "cli/task_program.h"
#include "core/json_text.h"

namespace cohort::testing {
namespace {

class Evaluate : public TaskProgram {
 protected:
  /// One short demonstration of Push-T is enough for a policy that knows nothing.
  void record_push_t(const std::string& action = "offset") const {
    collect({"push-t", "action=" + action, "--episodes", "1", "beam=3", "--out", path(action)});
  }
  Outcome train_push_t(const std::string& name, const std::vector<std::string>& more = {},
                       const std::string& file = "push_t") const {
    std::vector<std::string> words{"name=" + name, "model.diffusion.unet.down_dims=[16,32]",
                                   "model.diffusion.sampler.num_inference_timesteps=4"};
    words.insert(words.end(), more.begin(), more.end());
    return train(file, "offset/push_t", words);
  }
  Outcome evaluate(const std::string& run, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{
        "evaluate", "--task",      "push-t", "action=offset", "--policy", path("runs/" + run + "/latest"), "--episodes",
        "2",        "--max-steps", "20",     "--threads",     "1"};
    words.insert(words.end(), more.begin(), more.end());
    return cohort(words);
  }
};

TEST_F(Evaluate, ATrainedPolicyStandsBesideExpertRandomAndReplay) {
  record_push_t();
  const Outcome trained = train_push_t("small");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome =
      evaluate("small", {"--policy", "expert", "--policy", "random", "--policy", "replay:" + path("offset/push_t"),
                         "--json", path("a.json"), "--csv", path("a.csv")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("of step 4"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("2 episodes of seeds 0 to 1, at most 20 steps"), std::string::npos) << outcome.out;
  for (const char* name : {"\nsmall/latest ", "\nexpert ", "\nrandom ", "\nreplay "})
    EXPECT_NE(outcome.out.find(name), std::string::npos) << name << "\n" << outcome.out;
  const auto json = parse_json<nlohmann::json>(read_file(path("a.json")));
  ASSERT_EQ(json.at("policies").size(), 4u);
  EXPECT_EQ(json.at("policies").at(0).at("table").at(1).at("seed"), 1);
  EXPECT_EQ(json.at("settings").at("action"), "offset");
  EXPECT_EQ(lines_of(read_file(path("a.csv"))).size(), 9u);

  const Outcome one = evaluate("small", {"--n_envs", "1", "--json", path("b.json")});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(path("b.json"))).at("policies").at(0), json.at("policies").at(0))
      << "the same policy and seeds, the same episodes";
}

TEST_F(Evaluate, TwoRanksGetTheTableOfASingleProcessWithTwiceTheEnvironments) {
  record_push_t();
  ASSERT_EQ(train_push_t("small").code, 0);
  std::vector<std::string> words{
      "evaluate", "--task",     "push-t", "action=offset", "--policy", path("runs/small/latest"), "--policy",
      "random",   "--episodes", "5",      "--max-steps",   "12"};
  std::vector<std::string> alone = words, ranks = words;
  alone.insert(alone.end(), {"--csv", path("one.csv"), "--n-envs", "4"});
  ranks.insert(ranks.end(), {"--csv", path("two.csv"), "--n-envs", "2"});
  ranks.insert(ranks.begin(), {"launch", "--nproc_per_node=2", "--cpu"});
  ASSERT_EQ(cohort(alone).code, 0);
  const Outcome outcome = cohort(ranks);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(read_file(path("two.csv")), read_file(path("one.csv")));
}

// One picture more or less, and actions differ: equal returns mean equal pictures.
TEST_F(Evaluate, APolicyIsShownThePicturesThatItLearntFromWithoutBeingTold) {
  for (const char* size : {"24", "16"})
    collect({"reach", "--episodes", "3", "--cameras", "front", "--size", size, "--out", path(size)});
  const auto train_seeing = [&](const std::string& name, const std::string& data, bool rollouts) {
    const Outcome outcome =
        train("pick_and_place_image", data,
              {"name=" + name, "data.proprio=[observation/eef_pos]", "data.images=[observation/front_image]",
               "data.image_transforms=[\"resize(24, 24)\"]", "train.lr=0.01", "rollout.task=reach", "rollout.n=2",
               "rollout.horizon=3", std::string("rollout.enabled=") + (rollouts ? "true" : "false")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  };
  train_seeing("fine", "24/reach", true);
  train_seeing("coarse", "16/reach", false);
  const auto recorded =
      parse_json<nlohmann::json>(read_file(path("runs/fine/latest/config.json"))).at("model").at("recorded");
  EXPECT_EQ(recorded.at("renderer"), "raycast");
  EXPECT_EQ(json_text(recorded.at("size")), "[24,24]");

  const auto table = [&](const std::vector<std::string>& policies, const std::vector<std::string>& more,
                         const std::string& name) {
    std::vector<std::string> words{"evaluate", "--task", "reach",    "--episodes", "2", "--max-steps",
                                   "15",       "--csv",  path(name), "--threads",  "1"};
    for (const std::string& policy : policies)
      words.insert(words.end(), {"--policy", path("runs/" + policy + "/latest")});
    words.insert(words.end(), more.begin(), more.end());
    return cohort(words);
  };
  for (const Outcome& outcome : {table({"fine"}, {}, "unsaid"), table({"fine"}, {"--size", "24"}, "said")}) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("learnt from"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(read_file(path("unsaid")), read_file(path("said")));
  const Outcome other = table({"fine"}, {"--size", "64"}, "other");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_NE(other.err.find("learnt from pictures of 24 x 24 px, and sees others now"), std::string::npos) << other.err;
  EXPECT_NE(read_file(path("other")), read_file(path("said"))) << "the pictures matter";
  expect_refused(table({"fine", "coarse"}, {}, "both"), 1, "evaluate them one at a time, or say which with --size");
  EXPECT_FALSE(fs::exists(path("both")));
  EXPECT_EQ(table({"fine", "coarse"}, {"--size", "24"}, "both").code, 0);
  // Cameras that are not there.
  expect_refused(cohort({"evaluate", "--task", "push-t", "--policy", path("runs/fine/latest"), "--episodes", "1"}), 1,
                 "does not fit the task");
  expect_refused(cohort({"evaluate", "--task", "reach", "--policy", "random", "--episodes", "1", "--record-video",
                         "--video-output-dir", path("videos"), "--video-camera", "fronte"}),
                 1, "did you mean 'front'?");
  EXPECT_FALSE(fs::exists(path("videos")));
}

// Collected, learnt from, and evaluated through a camera of the file's own, with colours and light of each episode's own.
TEST_F(Evaluate, ATaskOfAFileShowsAPolicyThePicturesOfItsCameras) {
  const std::string file = path("mine.yaml");
  write_file_atomically(file, R"(
include: library:/reach.yaml
scene: {cameras: {above: {pos: [0.5, -0.6, 0.9], lookat: [0.5, 0, 0.1]}}}
events:
  paint: {type: geom_rgba, entity: goal, ranges: {0: [0.2, 1], 1: [0.2, 1], 2: [0.2, 1]}}
  lamp: {type: light_diffuse, ranges: [0.2, 0.9]}
)");
  collect({file, "--episodes", "3", "--cameras", "above", "--size", "24", "--out", path("data")});
  std::vector<std::string> settings{"name=mine",
                                    "data.proprio=[observation/eef_pos]",
                                    "data.images=[observation/above_image]",
                                    "data.image_transforms=[\"resize(24, 24)\"]",
                                    "train.lr=0.01",
                                    "rollout.task=" + file,
                                    "rollout.n=2",
                                    "rollout.horizon=3",
                                    "rollout.enabled=true"};
  const Outcome learnt = train("pick_and_place_image", "data/mine", settings);
  ASSERT_EQ(learnt.code, 0) << learnt.err;
  const auto table = [&](const std::string& task, const std::string& csv) {
    const Outcome outcome = cohort({"evaluate", "--task", task, "--policy", path("runs/mine/latest"), "--episodes", "3",
                                    "--max-steps", "15", "--csv", path(csv), "--threads", "1"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_file(path(csv));
  };
  EXPECT_EQ(table(file, "once"), table(file, "again"));
  // Without the light of each episode it sees other pictures, and does otherwise.
  const std::string dark = path("dark.yaml");
  write_file_atomically(dark, "include: mine.yaml\nevents: {lamp: {ranges: [0, 0]}}\n");
  const std::string seen = table(file, "once"), unseen = table(dark, "dark");
  EXPECT_NE(seen.substr(seen.find('\n')), unseen.substr(unseen.find('\n'))) << "the pictures matter";
  // The run keeps the task that its rollouts are played in.
  const std::string run = path("runs/mine/latest");
  const auto episodes = [&](const std::vector<std::string>& task) {
    std::vector<std::string> words{"evaluate", "--policy", run,          "--episodes", "3", "--max-steps",
                                   "15",       "--csv",    path("kept"), "--threads",  "1"};
    words.insert(words.end(), task.begin(), task.end());
    const Outcome outcome = cohort(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::string csv = read_file(path("kept"));
    fs::remove(path("kept"));
    return csv;
  };
  EXPECT_EQ(episodes({}), seen) << "it knows the task";
  fs::rename(file, path("elsewhere.yaml"));
  EXPECT_EQ(episodes({}), seen) << "of the copy";
  EXPECT_EQ(episodes({"--task", file}), seen);
  expect_refused(cohort({"evaluate", "--policy", "zero", "--task", file, "--episodes", "1"}), 1, "no task");
  collect({file, "--policy", run, "--keep", "all", "--episodes", "1", "--max-steps", "3", "--out", path("acted")});
  const Outcome further = cohort({"train", "resume=" + run, "train.steps=6"});
  EXPECT_EQ(further.code, 0) << further.err;
  const std::string kept = "keeps, instead of " + file + ", which is not there any more";
  EXPECT_NE(further.err.find(kept), std::string::npos) << further.err;
  settings.insert(settings.end(), {"resume=auto", "train.steps=8"});
  const Outcome found_itself = train("pick_and_place_image", "data/mine", settings);
  EXPECT_EQ(found_itself.code, 0) << found_itself.err;
  EXPECT_NE(found_itself.err.find(kept), std::string::npos) << found_itself.err;
}

// The job of scripts/gpu_check, with a smaller network.
TEST_F(Evaluate, TheConfigurationOfTheReferencesSizeTrainsAndActs) {
  record_push_t();
  ASSERT_EQ(train_push_t("reference", {}, "push_t_reference").code, 0);
  const Outcome outcome = evaluate("reference");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(Evaluate, WhatDoesNotFitTheTaskIsRefusedBeforeAnEpisode) {
  record_push_t();
  ASSERT_EQ(train_push_t("rewards", {"data.proprio=reward"}).code, 0);
  expect_refused(evaluate("rewards"), 1, "observes no 'reward'");
  ASSERT_EQ(train_push_t("wrong_action", {"data.actions=observation/agent_pos"}).code, 0);
  expect_refused(evaluate("wrong_action"), 1,
                 "learnt observation/agent_pos, but the actions of push-t as it is set are action_offset");
  ASSERT_EQ(train_push_t("good").code, 0);
  const std::string good = path("runs/good/latest");
  expect_refused(cohort({"evaluate", "--task", "push-t", "--policy", good, "--episodes", "2"}), 1,
                 "learnt action_offset, but the actions of push-t as it is set are action;");
  expect_refused(cohort({"evaluate", "--task", "reach", "--policy", good, "--episodes", "2"}), 1,
                 "does not fit the task: it sees 'observation/agent_pos', but reach observes no 'agent_pos'");
  collect({"push", "--episodes", "2", "--out", path("data")});
  ASSERT_EQ(train("pick_and_place", "data/push", {"name=pushing", "data.proprio=[observation/eef_pos]"}).code, 0);
  expect_refused(
      cohort({"evaluate", "--task", "pick-and-place", "--policy", path("runs/pushing/latest"), "--out", path("none")}),
      1, "its actions have 4 numbers, those of pick-and-place have 5");
  EXPECT_FALSE(fs::exists(path("none/evaluation.json")));
  expect_refused(evaluate("good", {"model.no_such_key=1"}), 1, "no_such_key");
  expect_refused(evaluate("good", {"--device", "mps:0"}), 1, "device mps:0 cannot be used");
  expect_refused(cohort({"evaluate", "--task", "push-t", "--policy", path("nowhere")}), 1, "that is there");
  expect_refused(cohort({"evaluate", "--task", "push_t", "--policy", "random"}), 1, "did you mean 'push-t'?");
  expect_refused(cohort({"evaluate", "--task", "push-t", "--policy", "random", "--episodes", "0"}), 1, "--episodes 0");
  expect_refused(cohort({"evaluate", "--task", "push-t"}), 2, "--policy");
  expect_refused(cohort({"evaluate", "--task", "push-t", "--policy", "random", "--record-video"}), 1, "no video");
  std::ofstream(path("file")) << "no folder";
  expect_refused(cohort({"evaluate", "--task", "push-t", "--policy", "random", "--out", path("file/sub")}), 1, "file");
}

TEST_F(Evaluate, VideosOfATableThatIsReplacedGoWithItAndNoOthers) {
  const auto evaluate_into = [&](const std::string& seed, bool film) {
    std::vector<std::string> words{"evaluate", "--task",       "reach", "--policy",  "random",    "--episodes",
                                   "1",        "--first-seed", seed,    "--out",     path("out"), "--max-steps",
                                   "3",        "--size",       "32",    "--threads", "1"};
    if (film) words.push_back("--record-video");
    const Outcome outcome = cohort(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::string> names;
    for (const auto& [name, bytes] : content("out/videos")) names.push_back(name);
    std::sort(names.begin(), names.end());
    return std::pair(names, outcome.err);
  };
  using Names = std::vector<std::string>;
  ASSERT_EQ(evaluate_into("0", true).first, Names{"random_seed-0_failure.mp4"});
  // Files of the user's, the second of which is named as an evaluation names its own.
  for (const char* own : {"out/videos/talk.mp4", "out/videos/random_seed-7_failure.mp4"})
    std::ofstream(path(own)) << "the user's";
  EXPECT_EQ(evaluate_into("5", true).first,
            (Names{"random_seed-5_failure.mp4", "random_seed-7_failure.mp4", "talk.mp4"}));
  const auto [names, said] = evaluate_into("6", false);
  EXPECT_EQ(names, (Names{"random_seed-7_failure.mp4", "talk.mp4"}));
  EXPECT_NE(said.find("1 videos of the evaluation that this table replaces are removed"), std::string::npos) << said;
  EXPECT_EQ(read_file(path("out/videos/talk.mp4")), "the user's");
}

/// Width and height that an H.264 track in an mp4 file says it has (ISO/IEC 14496-12, VisualSampleEntry).
std::pair<int, int> size_of_video(const std::string& mp4) {
  const std::size_t entry = mp4.find("avc1", mp4.find("stsd"));
  if (entry == std::string::npos || entry + 32 > mp4.size()) return {0, 0};
  const auto number = [&](std::size_t at) {
    return static_cast<unsigned char>(mp4[at]) * 256 + static_cast<unsigned char>(mp4[at + 1]);
  };
  return {number(entry + 28), number(entry + 30)};
}

TEST_F(Evaluate, VideosAreDrawnAtTheirOwnSizeAndSayWhereTheyAre) {
  const auto film = [&](const std::vector<std::string>& more, const std::string& folder) {
    std::vector<std::string> words{
        "evaluate",           "--task",    "reach",  "--policy", "random",    "--episodes", "1",
        "--max-steps",        "2",         "--size", "32",       "--threads", "1",          "--record-video",
        "--video-output-dir", path(folder)};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = cohort(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("1 video is in " + fs::canonical(path(folder)).string()), std::string::npos)
        << "also without --out\n"
        << outcome.err;
    return size_of_video(read_file(path(folder + "/random_seed-0_failure.mp4")));
  };
  EXPECT_EQ(film({}, "both"), std::pair(512, 256)) << "two cameras side by side, whatever the policy sees";
  EXPECT_EQ(film({"--video-camera", "front", "--video-size", "320x240"}, "one"), std::pair(320, 240));
  EXPECT_EQ(film({"--video-camera", "wrist,front", "--video-size", "64", "--geom-groups", "3"}, "other"),
            std::pair(128, 64));
  EXPECT_NE(read_file(path("one/random_seed-0_failure.mp4")), read_file(path("other/random_seed-0_failure.mp4")));
  expect_refused(cohort({"evaluate", "--task", "reach", "--policy", "random", "--record-video", "--geom-groups", "7"}),
                 2, "0 to 5");
}

TEST_F(Evaluate, ThoseWhosePathsEndAlikeAreToldApart) {
  record_push_t();
  for (const char* name : {"one", "two"}) ASSERT_EQ(train_push_t(name).code, 0);
  const auto last = [this](const std::string& name) { return path("runs/" + name + "/latest/checkpoints/last"); };
  const std::vector<std::string> words{"evaluate",    "--task",    "push-t",     "action=offset",
                                       "--policy",    last("one"), "--episodes", "2",
                                       "--max-steps", "4",         "--csv",      path("a.csv")};
  std::vector<std::string> both = words;
  both.insert(both.end(),
              {"--policy", last("two"), "--policy", "replay:" + path("offset/push_t"), "--policy", "random"});
  const Outcome outcome = cohort(both);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string csv = read_file(path("a.csv"));
  for (const char* name :
       {"\none/latest/checkpoints/last,0,", "\ntwo/latest/checkpoints/last,0,", "\nreplay,0,", "\nrandom,0,"})
    EXPECT_NE(csv.find(name), std::string::npos) << name << "\n" << csv;
  EXPECT_NE(outcome.out.find("two/latest/checkpoints/last: "), std::string::npos) << outcome.out;
  std::vector<std::string> twice = words;
  twice.insert(twice.end(), {"--policy", last("one") + "/"});
  expect_refused(cohort(twice), 1, "is named twice");
}

TEST_F(Evaluate, RolloutsWhileTrainingCountSuccesses) {
  collect({"reach", "--episodes", "30", "--out", path("data")});
  const std::vector<std::string> settings{
      "name=reaching",        "data.proprio=[observation/eef_pos,observation/goal_to_eef]",
      "train.steps=6",        "train.validate_every=3",
      "rollout.enabled=true", "rollout.task=reach",
      "rollout.n=4",          "rollout.horizon=10",
      "charts=true"};
  const Outcome outcome = train("pick_and_place", "data/reach", settings);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("% of 4 rollouts succeed"), std::string::npos) << outcome.err;
  const std::string metrics = read_file(path("runs/reaching/latest/metrics.jsonl"));
  EXPECT_NE(metrics.find("\"rollout/success\":"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\"rollout/return\":"), std::string::npos) << metrics;
  std::vector<std::string> unknown = settings;
  unknown.push_back("rollout.task=reech");
  expect_refused(train("pick_and_place", "data/reach", unknown), 1, "did you mean 'reach'?");
  std::vector<std::string> misfit = settings;
  misfit.push_back("rollout.task=push-t");
  expect_refused(train("pick_and_place", "data/reach", misfit), 1, "does not fit the task");
}

TEST_F(Evaluate, AReportShowsTheTableOfSuccessAndRunsStandSideBySide) {
  record_push_t();
  for (const char* name : {"one", "two"}) {
    ASSERT_EQ(train_push_t(name, {std::string("train.lr=") + (name[0] == 'o' ? "0.001" : "0.002"), "charts=true"}).code,
              0);
    const std::string run = path(std::string("runs/") + name + "/latest");
    ASSERT_EQ(evaluate(name, {"--policy", "random", "--out", run + "/evaluation"}).code, 0);
    const Outcome outcome = cohort({"report", run});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string html = read_file(run + "/report.html");
    EXPECT_NE(html.find("Success in push-t"), std::string::npos);
    EXPECT_NE(html.find(">0 of 2<"), std::string::npos);
    EXPECT_NE(html.find("Environment"), std::string::npos) << "what the training wrote is still there";
  }
  const Outcome outcome =
      cohort({"report", path("runs/one/latest"), path("runs/two/latest"), "--out", path("both.html")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string html = read_file(path("both.html"));
  EXPECT_NE(html.find("push-t: 2 episodes from seed 0 on, at most 20 steps"), std::string::npos) << html;
  EXPECT_NE(html.find("train.lr"), std::string::npos);
  EXPECT_EQ(html.find("train.batch_size"), std::string::npos) << "the same in both";
  expect_refused(cohort({"report", path("nowhere")}), 1, "there is no such run");
  fs::create_directories(path("empty"));
  expect_refused(cohort({"report", path("empty")}), 1, "is no run");
}

TEST_F(Evaluate, TheDemoGoesTheWholeWayAndGoesOnWhereItWasStopped) {
  const std::vector<std::string> words{"demo",
                                       "--out",
                                       path("demo"),
                                       "--episodes",
                                       "20",
                                       "--evaluation-episodes",
                                       "4",
                                       "--steps",
                                       "20",
                                       "--no-video",
                                       "train.warmup_steps=0",
                                       "train.validate_every=10",
                                       "rollout.n=2",
                                       "validation.splits=train[80%:]",
                                       "data.splits=train[:80%]",
                                       "charts=false"};
  std::vector<std::string> broken = words;
  broken.push_back("train.lr=-1");
  const Outcome stopped = cohort(broken);
  EXPECT_EQ(stopped.code, 1) << stopped.err;
  EXPECT_NE(stopped.err.find("stopped in stage train"), std::string::npos) << stopped.err;
  expect_refused(cohort(words), 1, "is of a demo with other settings");
  fs::remove_all(path("demo"));

  const Outcome first = cohort(words);
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_NE(first.out.find("of 4 episodes succeed"), std::string::npos) << first.out;
  EXPECT_TRUE(fs::exists(path("demo/runs/pick_and_place/latest/report.html")));
  // As if it had been killed while it evaluated.
  auto state = parse_json<nlohmann::json>(read_file(path("demo/demo.json")));
  for (const char* stage : {"evaluate", "report"}) state["seconds"].erase(stage);
  std::ofstream(path("demo/demo.json")) << json_text(state);
  const Outcome second = cohort(words);
  ASSERT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_NE(second.out.find("[2/4] train: done before"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find("of 4 episodes succeed"), std::string::npos) << second.out;
}

}  // namespace
}  // namespace cohort::testing
