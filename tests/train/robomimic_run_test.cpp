// robomimic's configurations, as they are and as the DROID package generates them, as settings of the policy job.
#include "train/jobs/robomimic_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/array_view.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "data/fixture_folder.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/metadata.h"
#include "data/robot_windows.h"
#include "policies/bc/behaviour_cloning.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/policy_settings.h"
#include "train/ready_policy.h"
#include "train/schedule.h"

namespace cohort::train {
namespace {

// Means of float32 values in another order.
constexpr double kActionTolerance = 1e-5;

/// The DROID package's configuration, shortened to what differs from one run to another.
const char* const kDroid = R"({
  "algo_name": "diffusion_policy",
  "experiment": {"name": "droid", "validate": false, "logging": {"log_tb": true, "log_wandb": true},
                 "mse": {"enabled": true, "every_n_epochs": 10, "num_samples": 6},
                 "save": {"enabled": true, "every_n_epochs": 50, "epochs": []},
                 "epoch_every_n_steps": 100, "rollout": {"enabled": false, "n": 50}},
  "train": {"data_format": "droid_rlds", "data_path": "/data", "dataset_names": ["droid"], "sample_weights": [1],
            "batch_size": 128, "num_epochs": 30, "seed": 4, "shuffle_buffer_size": 50000, "subsample_length": 100,
            "action_keys": ["action/abs_pos", "action/abs_rot_6d", "action/gripper_position"],
            "action_shapes": [[1, 3], [1, 6], [1, 1]],
            "action_config": {"action/abs_pos": {"normalization": "min_max"},
                              "action/abs_rot_6d": {"normalization": "min_max", "format": "rot_6d"}},
            "seq_length": 15, "frame_stack": 2, "goal_mode": null, "cuda": true},
  "algo": {"optim_params": {"policy": {"learning_rate": {"initial": 0.0001, "decay_factor": 0.1,
                                                         "epoch_schedule": [10, 20]},
                                       "regularization": {"L2": 0.0}}},
           "horizon": {"observation_horizon": 2, "action_horizon": 8, "prediction_horizon": 16},
           "ema": {"enabled": true, "power": 0.75}, "noise_samples": 8,
           "ddpm": {"enabled": false}, "ddim": {"enabled": true}},
  "observation": {"image_dim": [128, 128],
    "modalities": {"obs": {"low_dim": ["robot_state/cartesian_position", "robot_state/gripper_position"],
                           "rgb": ["camera/image/varied_camera_1_left_image",
                                   "camera/image/varied_camera_2_left_image"]}},
    "encoder": {"rgb": {"core_class": "VisualCore",
                        "core_kwargs": {"feature_dimension": 512, "flatten": true, "backbone_class": "ResNet50Conv",
                                        "backbone_kwargs": {"pretrained": true}}}}},
  "meta": {"hp_base_config_file": null}})";

std::string written(const data::OwnFolder& folder, const std::string& text) {
  const std::filesystem::path path = folder.path() / "config.json";
  write_file_atomically(path, text);
  return path.string();
}

config::Json hdf5_configuration(const std::string& format, const std::vector<std::string>& files);

TEST(RobomimicRun, TheDroidConfigurationBecomesSettingsOfTheJob) {
  const data::OwnFolder folder;
  const std::string path = written(folder, kDroid);
  ASSERT_TRUE(is_robomimic_file(path));
  const RobomimicRun run =
      read_robomimic_run(path, {"train.data_path=/other", "train.optim_params.policy.learning_rate.initial=0.5",
                                "algo.noise_samples=3", "train.precision=bf16", "backend=cpu"});
  EXPECT_EQ(run.overrides, (std::vector<std::string>{"train.precision=bf16", "backend=cpu"}));
  const config::Json& s = run.settings;
  EXPECT_EQ(s["name"], "droid");
  EXPECT_EQ(s["data"]["paths"], config::Json(std::vector<std::string>{"/other/droid"}));
  EXPECT_EQ(s["data"]["splits"], config::Json(std::vector<std::string>{"train[:95%]"}));
  EXPECT_EQ(s["data"]["actions"],
            config::Json(std::vector<std::string>{"action_dict/cartesian_position[0:3]",
                                                  "action_dict/cartesian_position[3:6] | euler_xyz->rotation_6d",
                                                  "action_dict/gripper_position"}));
  EXPECT_EQ(s["data"]["action_normalization"], config::Json(std::vector<std::string>{"bounds", "bounds", "bounds"}));
  EXPECT_EQ(s["data"]["action_width"], 10);
  EXPECT_EQ(s["data"]["images"], config::Json(std::vector<std::string>{"observation/exterior_image_1_left",
                                                                       "observation/exterior_image_2_left"}));
  EXPECT_EQ(s["data"]["image_transforms"], config::Json(std::vector<std::string>{"resize(128, 128)"}));
  EXPECT_EQ(s["data"]["windows_per_episode"], 100);
  EXPECT_EQ(s["data"]["filters"].size(), 2u);
  EXPECT_EQ(s["model"]["diffusion"]["noise_samples"], 3);
  EXPECT_EQ(s["model"]["diffusion"]["horizon"]["first_action"], 0) << "chunks begin with the newest frame";
  EXPECT_EQ(s["model"]["rgb"][1], "camera/image/varied_camera_2_left_image");
  EXPECT_EQ(s["model"]["pretrained_backbone"], true);
  EXPECT_EQ(s["train"]["lr"], 0.5);
  EXPECT_EQ(s["train"]["steps"], 3000);
  EXPECT_EQ(s["train"]["schedule"], "multistep");
  EXPECT_EQ(s["train"]["milestones"], config::Json(std::vector<int>{1000, 2000}));
  EXPECT_EQ(s["train"]["checkpoint"]["every"], 5000);
  EXPECT_EQ(s["train"]["validate_every"], 1000);
  EXPECT_EQ(s["train"]["ema"]["enabled"], true);
  EXPECT_EQ(s["validation"]["sampled"], 6);
  EXPECT_TRUE(std::any_of(run.notes.begin(), run.notes.end(), [](const std::string& note) {
    return note.find("experiment.logging.log_wandb = true") == 0;
  }));
  // Every one of them is a setting of the job.
  ReadyPolicy ready(run.overrides, s);
  EXPECT_EQ(ready.settings.train.seed, 4u);
  EXPECT_NE(message_of([&] { ready.job->load(); }).find("model.backbone_weights"), std::string::npos);
}

// robomimic/scripts/train.py, main: --dataset, --algo and --debug; in JSON, RLDS data are named by their folder.
TEST(RobomimicRun, TheFlagsOfItsTrainScriptMeanWhatTheyMeanThere) {
  const data::OwnFolder folder;
  const config::Json hdf5 = hdf5_configuration("robomimic", {"/data/a.hdf5"});
  const std::string path = written(folder, json_text(hdf5));
  RobomimicRun run = read_robomimic_run(path, {"dataset=/other/lift.hdf5", "debug=true", "backend=cpu"});
  EXPECT_EQ(run.overrides, (std::vector<std::string>{"backend=cpu"}));
  EXPECT_EQ(run.settings["data"]["paths"], config::Json(std::vector<std::string>{"/other/lift.hdf5"}));
  EXPECT_EQ(run.settings["train"]["steps"], 6) << "two epochs of three steps";
  EXPECT_EQ(std::filesystem::path(run.settings["output_dir"].get<std::string>()).filename(), "tmp_trained_models");
  run = read_robomimic_run(path, {"algo=" + hdf5["algo_name"].get<std::string>()});
  EXPECT_TRUE(run.overrides.empty());
  EXPECT_NE(message_of([&] { read_robomimic_run(path, {"algo=iql"}); }).find("leave --algo out"), std::string::npos);
  run = read_robomimic_run(written(folder, kDroid), {"dataset=/sets"});
  EXPECT_EQ(run.settings["data"]["paths"], config::Json(std::vector<std::string>{"/sets/droid"}));
}

TEST(RobomimicRun, AnotherAlgorithmIsRefusedWithoutAdviceForItsSequences) {
  const data::OwnFolder folder;
  config::Json iql = hdf5_configuration("robomimic", {"/data/a.hdf5"});
  iql["algo_name"] = "iql";
  iql["train"]["frame_stack"] = 1;
  iql["train"]["seq_length"] = 1;
  const std::string path = written(folder, json_text(iql)), message = message_of([&] { read_robomimic_run(path, {}); });
  EXPECT_NE(message.find("\"iql\" is not supported"), std::string::npos) << message;
  EXPECT_EQ(message.find("train.frame_stack"), std::string::npos) << message;
  EXPECT_EQ(message.find("train.seq_length"), std::string::npos) << message;
}

// The file that the DROID package's generator writes (make_droid_configuration.py), unchanged.
TEST(RobomimicRun, TheGeneratedDroidFileIsReadAsItIs) {
  const std::string path = COHORT_SOURCE_DIR "/tests/train/fixtures/droid_generated.json";
  const RobomimicRun run = read_robomimic_run(path, {"train.data_path=/data"});
  const config::Json& s = run.settings;
  EXPECT_EQ(s["data"]["paths"], config::Json(std::vector<std::string>{"/data/droid"}));
  EXPECT_EQ(s["data"]["actions"].size(), 3u);
  EXPECT_EQ(s["data"]["action_width"], 10);
  EXPECT_EQ(s["data"]["shuffle_buffer_size"], 500000);
  EXPECT_EQ(s["train"]["batch_size"], 128);
  EXPECT_EQ(s["train"]["steps"], 50'000'000);
  EXPECT_EQ(s["train"]["checkpoint"]["every"], 25'000);
  EXPECT_EQ(s["model"]["diffusion"]["noise_samples"], 8);
  EXPECT_EQ(s["model"]["images"]["crop"]["crop_height"], 116);
  EXPECT_EQ(s["model"]["images"]["color"]["enabled"], true);
  EXPECT_EQ(s["loader"]["workers"], 4);
  // All of it are settings of the job; what it asks for and nothing here can give is said before anything starts.
  ReadyPolicy ready(run.overrides, s);
  EXPECT_NE(message_of([&] { ready.job->load(); }).find("model.pretrained_backbone=false"), std::string::npos);
}

// What the reference recommends for data of one's own (train.py: filter_success for droid only).
TEST(RobomimicRun, DroidTrainsTogetherWithOtherSets) {
  const std::string path = COHORT_SOURCE_DIR "/tests/train/fixtures/droid_generated.json";
  const RobomimicRun run = read_robomimic_run(
      path, {"train.data_path=/data", "train.dataset_names=[\"droid\",\"my_lab\"]", "train.sample_weights=[0.5,0.5]"});
  EXPECT_EQ(run.settings["data"]["paths"], config::Json(std::vector<std::string>{"/data/droid", "/data/my_lab"}));
  EXPECT_EQ(
      run.settings["data"]["filters"],
      config::Json(std::vector<std::string>{"0: metadata_contains(episode_metadata/file_path, /success/)",
                                            "0: labeled(language_instruction)", "1: labeled(language_instruction)"}));
}

TEST(RobomimicRun, EveryKeyThatCannotBeHonouredIsNamed) {
  const data::OwnFolder folder;
  const std::string path = written(folder, kDroid);
  const std::string message = message_of([&] {
    read_robomimic_run(path, {"train.goal_mode=geom", "experiment.surprise=1", "algo.unet.depth=3",
                              "observation.encoder.rgb.fuser=perceiver", "train.sample_weights=[1,2]",
                              "experiment.ckpt_path=model.pth"});
  });
  for (const char* part : {"train.goal_mode = \"geom\"", "experiment.surprise = 1 is unknown", "algo.unet.depth = 3",
                           "observation.encoder.rgb.fuser = \"perceiver\"", "train.sample_weights", "model.pth"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

/// What robomimic's own templates (exps/templates/bc.json of 0.3.0, diffusion_policy.json after it) have beside this.
TEST(RobomimicRun, AdamwCosineAndRolloutsOfTheTemplatesAreTaken) {
  const data::OwnFolder folder;
  config::Json c = parse_json<config::Json>(kDroid);
  c["experiment"]["rollout"] = {{"enabled", true}, {"n", 50},        {"horizon", 400},
                                {"rate", 50},      {"warmstart", 0}, {"terminate_on_success", true}};
  config::Json& optimizer = c["algo"]["optim_params"]["policy"];
  optimizer["optimizer_type"] = "adamw";
  optimizer["learning_rate"] = {{"initial", 0.0001},
                                {"decay_factor", 0.1},
                                {"step_every_batch", true},
                                {"scheduler_type", "cosine"},
                                {"num_cycles", 0.5},
                                {"warmup_steps", 500},
                                {"epoch_schedule", config::Json::array()}};
  optimizer["regularization"]["L2"] = 1e-6;
  const std::string path = written(folder, json_text(c));
  const RobomimicRun run = read_robomimic_run(path, {});
  const config::Json& train = run.settings["train"];
  EXPECT_EQ(train["optimizer"], "adamw");
  EXPECT_EQ(train["weight_decay"], 1e-6);
  EXPECT_EQ(train["schedule"], "cosine");
  EXPECT_EQ(train["warmup_steps"], 500);
  EXPECT_EQ(train["lr"], 1e-4);
  EXPECT_TRUE(std::any_of(run.notes.begin(), run.notes.end(), [](const std::string& note) {
    return note.find("experiment.rollout.enabled = true: ") == 0;
  }));
  // The rate is the reference's: lr_lambda of lr_scheduler_from_optim_params.
  ScheduleSettings schedule{.kind = "cosine", .warmup_steps = 500};
  for (const std::int64_t step : {0, 250, 499, 500, 1000, 2999}) {
    const double progress = static_cast<double>(step - 500) / (3000 - 500);
    const double expected =
        step < 500 ? static_cast<double>(step) / 500 : 0.5 * (1.0 + std::cos(std::numbers::pi * 0.5 * 2.0 * progress));
    EXPECT_NEAR(learning_rate_factor(schedule, {.step = step, .epoch = 0, .total_steps = 3000}), expected, 1e-15)
        << step;
  }
  EXPECT_EQ(train["steps"], 3000);
  const auto refused = [&](const std::string& text) { return message_of([&] { read_robomimic_run(path, {text}); }); };
  EXPECT_NE(refused("algo.optim_params.policy.learning_rate.num_cycles=2").find("num_cycles = 2 is not supported"),
            std::string::npos);
  EXPECT_NE(refused("algo.optim_params.policy.learning_rate.scheduler_type=linear")
                .find("scheduler_type = \"linear\" is not supported; there are multistep, cosine"),
            std::string::npos);
}

TEST(RobomimicRun, BehaviourCloningOnHdf5TrainsOnSequences) {
  const data::OwnFolder folder;
  const std::string path = written(folder, R"({
    "algo_name": "bc",
    "experiment": {"validate": true, "epoch_every_n_steps": 2, "rollout": {"enabled": false}},
    "train": {"data": "unset", "hdf5_filter_key": "train", "hdf5_validation_filter_key": "valid", "seq_length": 3,
              "frame_stack": 1, "batch_size": 2, "num_epochs": 1},
    "algo": {"actor_layer_dims": [], "gmm": {"enabled": true},
             "rnn": {"enabled": true, "horizon": 3, "hidden_dim": 8, "kwargs": {"bidirectional": false}},
             "gaussian": {"enabled": false}, "vae": {"enabled": false}, "transformer": {"enabled": false}},
    "observation": {"modalities": {"obs": {"low_dim": ["eef_pos", "big_endian"], "rgb": []}}}})");
  const RobomimicRun run = read_robomimic_run(path, {"train.data=" + data::fixture("robomimic.hdf5").string(),
                                                     "data.statistics_cache=never", "train.num_epochs=2"});
  ReadyPolicy ready(run.overrides, run.settings);
  ready.job->load();
  EXPECT_EQ(ready.settings.train.steps, 4);
  const auto& windows = dynamic_cast<const data::RobotWindows&>(*ready.job->dataset(Part::kTrain));
  EXPECT_EQ(windows.source(0).size(), 1) << "mask/train names one demo";
  EXPECT_EQ(windows.size(), 7);
  EXPECT_EQ(ready.job->dataset(Part::kValidation)->size(), 5);
  const auto model = ready.job->make_model(1);
  // Sorted by name, as robomimic joins them: big_endian (2), then eef_pos (3).
  const models::BcSettings& settings = models::bc_settings(*model);
  EXPECT_EQ(settings.encoder.observations[0].name, "big_endian");
  const parallel::Batch batch = ready.batch(Part::kTrain, 3);
  EXPECT_EQ(batch.at("action").sizes(), (std::vector<std::int64_t>{3, 3, 7}));
  const models::RandomContextGuard context({.seed = 1, .step = 0, .sample_ids = batch.sample_ids});
  EXPECT_TRUE(std::isfinite(ready.job->loss(*model, batch).item<double>()));
}

using Arrays = std::map<std::string, std::vector<float>>;

/// A file with one demo of such arrays (steps, ...).
std::string write_demo(const std::filesystem::path& path, std::int64_t steps, Arrays arrays) {
  data::Hdf5Writer writer(path);
  writer.begin_demo(steps);
  for (auto& [name, values] : arrays) {
    const auto width = static_cast<std::int64_t>(values.size()) / steps;
    writer.add(name, make_view(values.data(), {steps, width}), false);
  }
  writer.finish();
  return path.string();
}

/// `count` numbers that go from `low` to `high`.
std::vector<float> ramp(std::size_t count, float low, float high) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = low + (high - low) * static_cast<float>(i) / static_cast<float>(count - 1);
  return values;
}

/// A small diffusion policy on HDF5 files; the sections "train" and "modalities.obs" are to be filled in.
config::Json hdf5_configuration(const std::string& format, const std::vector<std::string>& files) {
  config::Json c = parse_json<config::Json>(R"({
    "algo_name": "diffusion_policy",
    "experiment": {"epoch_every_n_steps": 2, "rollout": {"enabled": false}},
    "train": {"data": [], "frame_stack": 2, "seq_length": 15, "batch_size": 2},
    "algo": {"unet": {"down_dims": [16, 32], "diffusion_step_embed_dim": 16}},
    "observation": {"modalities": {"obs": {"low_dim": [], "rgb": []}}}})");
  c["train"]["data_format"] = format;
  for (const std::string& file : files) {
    config::Json entry = config::Json::object();
    entry["path"] = file;
    c["train"]["data"].push_back(entry);
  }
  return c;
}

TEST(RobomimicRun, FramesAndRowsThatDoNotFitTheHorizonsNameRemediesThatWork) {
  const data::OwnFolder folder;
  const std::string path = written(folder, json_text(hdf5_configuration("robomimic", {"/data/a.hdf5"})));
  const std::vector<std::string> template_has{"train.frame_stack=1", "train.seq_length=1"};
  const std::string message = message_of([&] { read_robomimic_run(path, template_has); });
  EXPECT_NE(message.find("set train.frame_stack=2"), std::string::npos) << message;
  EXPECT_NE(message.find("set train.seq_length=15"), std::string::npos) << message;
  EXPECT_EQ(message_of([&] { read_robomimic_run(path, {"train.frame_stack=2", "train.seq_length=15"}); }), "");
}

const std::vector<std::string> kUncached{"data.statistics_cache=never"};

// robomimic#48; the reference, too, ends where training and validation demonstrations overlap.
TEST(RobomimicRun, MasksThatAreAskedForAreThereAndShareNoDemo) {
  if (!data::has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const data::OwnFolder folder;
  const auto load = [&](const std::string& train, const std::string& validation) {
    config::Json c = hdf5_configuration("robomimic", {data::fixture("masks.hdf5").string()});
    c["train"]["hdf5_filter_key"] = train;
    c["train"]["hdf5_validation_filter_key"] = validation;
    c["experiment"]["validate"] = true;
    c["observation"]["modalities"]["obs"]["low_dim"] = {"tip", "block"};
    const RobomimicRun run = read_robomimic_run(written(folder, json_text(c)), kUncached);
    return message_of([&] { ReadyPolicy(run.overrides, run.settings).job->load(); });
  };
  EXPECT_NE(load("training", "valid").find("has no /mask/training: its masks are once, train, twice, valid"),
            std::string::npos);
  EXPECT_NE(load("train", "valid").find("1 of 2 episodes that validate are also trained on"), std::string::npos);
  EXPECT_NE(load("twice", "valid").find("/mask/twice names demo_0 more than once"), std::string::npos);
}

// What the reference's MetaDataset does with one file per trajectory: statistics over all of them, and either file
// drawn from as often, however long it is.
TEST(RobomimicRun, Hdf5FilesAreOneDataSetWithOneNormalisation) {
  if (!data::has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const data::OwnFolder folder;
  // The second element never changes within a file.
  const auto file = [&](const char* name, std::int64_t steps, float low, float high, float gripper) {
    Arrays arrays{{"obs/state", ramp(static_cast<std::size_t>(steps), 0, 1)}};
    for (const float x : ramp(static_cast<std::size_t>(steps), low, high))
      arrays["actions"].insert(arrays["actions"].end(), {x, gripper});
    return write_demo(folder.path() / name, steps, arrays);
  };
  config::Json c = hdf5_configuration("robomimic", {file("a.hdf5", 5, -1, 1, 0), file("b.hdf5", 15, 4, 6, 1)});
  c["train"]["action_config"]["actions"]["normalization"] = "min_max";
  c["observation"]["modalities"]["obs"]["low_dim"] = {"state"};
  const std::string path = written(folder, json_text(c));
  const RobomimicRun run = read_robomimic_run(path, kUncached);
  ReadyPolicy ready(run.overrides, run.settings);
  ready.job->load();
  const config::Json statistics = ready.job->statistics();
  EXPECT_EQ(statistics["action"]["min"], config::Json(std::vector<double>{-1, 0}));
  EXPECT_EQ(statistics["action"]["max"], config::Json(std::vector<double>{6, 1}));
  EXPECT_EQ(statistics["num_transitions"], 20);
  const auto& windows = dynamic_cast<const data::RobotWindows&>(*ready.job->dataset(Part::kTrain));
  std::vector<float> action{1, 0, 4, 1};
  windows.action_normalizer(1).normalize(action);
  EXPECT_NEAR(action[0], 2.0 / 3.5 - 1.0, kActionTolerance);
  EXPECT_NEAR(action[2], 5.0 / 3.5 - 1.0, kActionTolerance) << "one scale for both files";
  EXPECT_EQ(run.settings["data"]["weights"], config::Json(std::vector<double>{1, 1}));
  std::int64_t of_the_short = 0;
  for (std::int64_t i = 0; i < windows.size(); ++i) of_the_short += windows.address(i, 0).set == 0 ? 1 : 0;
  EXPECT_EQ(of_the_short, windows.size() / 2);

  // Weights of the files, and robomimic's of their windows.
  c["train"]["data"][0]["weight"] = 0.7;
  c["train"]["data"][1]["weight"] = 0.3;
  EXPECT_EQ(read_robomimic_run(written(folder, json_text(c)), {}).settings["data"]["weights"],
            config::Json(std::vector<double>{0.7, 0.3}));
  c["train"]["normalize_weights_by_ds_size"] = false;
  EXPECT_NE(
      message_of([&] { read_robomimic_run(written(folder, json_text(c)), {}); }).find("normalize_weights_by_ds_size"),
      std::string::npos);
  c["train"]["data"][1]["weight"] = 0.7;
  EXPECT_TRUE(read_robomimic_run(written(folder, json_text(c)), {}).settings["data"]["weights"].empty());

  // An element that no file changes is still named.
  c = hdf5_configuration("robomimic", {file("c.hdf5", 5, -1, 1, 0), file("d.hdf5", 5, 4, 6, 0)});
  c["train"]["action_config"]["actions"]["normalization"] = "min_max";
  c["observation"]["modalities"]["obs"]["low_dim"] = {"state"};
  const RobomimicRun still = read_robomimic_run(written(folder, json_text(c)), kUncached);
  EXPECT_NE(message_of([&] { ReadyPolicy(still.overrides, still.settings).job->load(); }).find("constant_elements"),
            std::string::npos);
}

// What robomimic's keys on the command line say outranks every file, and not a word that says the same.
TEST(RobomimicRun, TypedKeysAreKnownApartFromTheFileAndRivalsAreNamed) {
  if (!data::has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const data::OwnFolder folder;
  config::Json c = hdf5_configuration(
      "robomimic",
      {write_demo(folder.path() / "a.hdf5", 20, {{"obs/state", ramp(20, 0, 1)}, {"actions", ramp(40, -1, 1)}})});
  c["observation"]["modalities"]["obs"]["low_dim"] = {"state"};
  const std::string path = written(folder, json_text(c));
  const std::string rate = "algo.optim_params.policy.learning_rate.initial=0.5";
  const auto of = [&](std::vector<std::string> words) {
    words.insert(words.end(), kUncached.begin(), kUncached.end());
    return settings_of_robomimic_words(path, words, read_robomimic_run(path, words).overrides);
  };
  EXPECT_EQ(json_text(of({rate, "train.num_epochs=3"})["train"]), R"({"lr":0.5,"steps":6})");
  EXPECT_TRUE(of({"train.lr=0.1"}).empty());
  for (const auto& [typed, rival] : std::vector<std::pair<std::string, std::string>>{
           {rate, "train.lr=0.1"}, {"train.num_epochs=3", "train.steps=9"}, {"train.num_epochs=3", "train.epochs=1"}})
    EXPECT_EQ(message_of([&, typed = typed, rival = rival] {
                of({typed, rival});
              }),
              typed + " and " + rival + " set the same thing: leave one of them out");
  // It still says when there is a validation.
  EXPECT_EQ(json_text(of({"experiment.epoch_every_n_steps=5", "train.steps=9"})).find("set the same"),
            std::string::npos);
  const std::string wrong = message_of([&] { read_robomimic_run(path, {"train.batch_size=abc"}); });
  EXPECT_NE(wrong.find("the command line's train.batch_size = \"abc\" has the wrong type: it takes a whole number"),
            std::string::npos)
      << wrong;
  EXPECT_EQ(near_robomimic_key("train.num_epoch"), "train.num_epochs");
  // Whatever the file may say can be typed.
  EXPECT_EQ(near_robomimic_key("train.normalize_weights_by_ds"), "train.normalize_weights_by_ds_size");
  for (const char* word : {"train.normalize_weights_by_ds_size=false", "train.hdf5_cache_mode=all",
                           "train.num_parallel_calls=4", "train.view_dropout_prob=0", "train.action_config={}"})
    EXPECT_TRUE(read_robomimic_run(path, {word, kUncached.front()}).overrides.size() <= 1)
        << word << " is the file's key";
}

// A sampler that clamps to [-1, 1] never draws an action of 5; the reference refuses such a batch, too.
TEST(RobomimicRun, ActionsThatTheSamplerCannotReachAreRefused) {
  if (!data::has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const data::OwnFolder folder;
  config::Json c = hdf5_configuration(
      "robomimic",
      {write_demo(folder.path() / "far.hdf5", 6, {{"actions", ramp(6, 4, 6)}, {"obs/state", ramp(6, 0, 1)}})});
  c["observation"]["modalities"]["obs"]["low_dim"] = {"state"};
  const std::string path = written(folder, json_text(c));
  const auto loaded = [&](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = kUncached;
    overrides.insert(overrides.end(), more.begin(), more.end());
    const RobomimicRun run = read_robomimic_run(path, overrides);
    ReadyPolicy(run.overrides, run.settings).job->load();
  };
  const std::string message = message_of([&] { loaded({}); });
  for (const char* part : {"far.hdf5", "actions, element 0", "lies in [4", "min_max", "clip_sample=false"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  loaded({"train.action_config.actions.normalization=min_max"});
  loaded({"model.diffusion.sampler.clip_sample=false"});
  // A key in use that action_config forgets.
  const std::string forgotten = message_of([&] { loaded({"train.action_config.action.normalization=min_max"}); });
  EXPECT_NE(forgotten.find("train.action_keys: actions has no entry"), std::string::npos) << forgotten;
}

/// The first two rows of Rx(a) Ry(b) Rz(c).
std::vector<float> rows_of_xyz(double a, double b, double c) {
  const auto f = [](double x) { return static_cast<float>(x); };
  return {f(std::cos(b) * std::cos(c)),
          f(-std::cos(b) * std::sin(c)),
          f(std::sin(b)),
          f(std::cos(a) * std::sin(c) + std::sin(a) * std::sin(b) * std::cos(c)),
          f(std::cos(a) * std::cos(c) - std::sin(a) * std::sin(b) * std::sin(c)),
          f(-std::sin(a) * std::cos(b))};
}

// convert_droid.py stores the rotation that its angles give about moving axes; training reads what is stored.
TEST(RobomimicRun, DroidHdf5TakesTheStoredRotationOrTheOneThatWouldBeStored) {
  if (!data::has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const data::OwnFolder folder;
  const std::vector<float> pose{0.1f, 0.2f, 0.3f, 0.4f, -0.5f, 0.6f, 0.3f, 0.1f, 0.2f, -1.2f, 0.7f, 2.0f};
  const std::vector<float> stored = ramp(12, -0.9f, 0.9f);
  const auto rotation = [&](const char* name, const Arrays& more, const std::string& component) {
    Arrays arrays{{"action/cartesian_position", pose}, {"observation/robot_state/cartesian_position", pose}};
    arrays.insert(more.begin(), more.end());
    config::Json c = hdf5_configuration("droid", {write_demo(folder.path() / name, 2, arrays)});
    c["train"]["action_keys"] = {"action/abs_rot_6d"};
    c["observation"]["modalities"]["obs"]["low_dim"] = {"robot_state/cartesian_position"};
    const RobomimicRun run = read_robomimic_run(written(folder, json_text(c)), kUncached);
    EXPECT_EQ(run.settings["data"]["actions"], config::Json(std::vector<std::string>{component}));
    ReadyPolicy ready(run.overrides, run.settings);
    ready.job->load();
    // Chunks begin one step before the newest frame, which is the first step here.
    return ready.batch(Part::kTrain, 1).at("action")[0].narrow(0, 1, 2).flatten();
  };
  const at::Tensor as_stored = rotation("stored.hdf5", {{"action/abs_rot_6d", stored}}, "action/abs_rot_6d");
  EXPECT_TRUE(at::allclose(as_stored, torch::tensor(stored)));
  const at::Tensor derived = rotation("derived.hdf5", {}, "action/cartesian_position[3:6] | euler_XYZ->rotation_6d");
  std::vector<float> expected = rows_of_xyz(pose[3], pose[4], pose[5]);
  const std::vector<float> second = rows_of_xyz(pose[9], pose[10], pose[11]);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_TRUE(at::allclose(derived, torch::tensor(expected), 0, 1e-6));
}

// The fork's table of shapes says the order, not the configuration.
TEST(RobomimicRun, DroidHdf5JoinsObservationsInTheForksOrder) {
  if (!data::has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const data::OwnFolder folder;
  config::Json c =
      hdf5_configuration("droid", {write_demo(folder.path() / "a.hdf5", 4,
                                              {{"action/cartesian_position", ramp(24, -1, 1)},
                                               {"observation/robot_state/cartesian_position", ramp(24, -1, 1)},
                                               {"observation/robot_state/gripper_position", ramp(4, 0, 1)},
                                               {"observation/robot_state/joint_positions", ramp(28, 0, 1)},
                                               {"observation/lang_fixed/language_distilbert", ramp(32, 0, 1)}})});
  c["train"]["action_keys"] = {"action/cartesian_position"};
  c["observation"]["modalities"]["obs"]["low_dim"] = {"lang_fixed/language_distilbert", "robot_state/joint_positions",
                                                      "robot_state/gripper_position", "robot_state/cartesian_position"};
  const RobomimicRun run = read_robomimic_run(written(folder, json_text(c)), kUncached);
  ReadyPolicy ready(run.overrides, run.settings);
  ready.job->load();
  const auto model = ready.job->make_model(1);
  std::vector<std::string> names;
  for (const auto& observation : models::diffusion_settings(*model).encoder.observations)
    names.push_back(observation.name);
  EXPECT_EQ(names, (std::vector<std::string>{"robot_state/cartesian_position", "robot_state/gripper_position",
                                             "lang_fixed/language_distilbert", "robot_state/joint_positions"}));
}

TEST(RobomimicRun, MissingKeysHaveTheReferencesDefaultsAndNullItsMeaning) {
  const data::OwnFolder folder;
  config::Json c = hdf5_configuration("robomimic", {"/data/a.hdf5"});
  c["experiment"].erase("epoch_every_n_steps");
  c["experiment"].erase("rollout");
  const std::string path = written(folder, json_text(c));
  const RobomimicRun run = read_robomimic_run(path, {});
  EXPECT_EQ(run.settings["train"]["steps"], 2000 * 100);
  EXPECT_EQ(run.settings["train"]["checkpoint"]["every"], 50 * 100);
  EXPECT_EQ(run.settings["train"]["checkpoint"]["keep"], 0) << "the reference deletes none";
  EXPECT_TRUE(std::any_of(run.notes.begin(), run.notes.end(),
                          [](const std::string& note) { return note.find("experiment.rollout.enabled") == 0; }));
  const RobomimicRun nulls =
      read_robomimic_run(path, {"experiment.epoch_every_n_steps=null", "experiment.save.every_n_epochs=null",
                                "experiment.save.enabled=False", "train.max_grad_norm=null"});
  EXPECT_EQ(nulls.settings["train"]["epochs"], 2000);
  EXPECT_FALSE(nulls.settings["train"].contains("steps"));
  EXPECT_FALSE(nulls.settings["train"]["checkpoint"].contains("every"));
  EXPECT_FALSE(nulls.settings["train"]["checkpoint"].contains("every_epochs"));
  EXPECT_TRUE(std::any_of(nulls.notes.begin(), nulls.notes.end(),
                          [](const std::string& note) { return note.find("experiment.save.enabled = false") == 0; }));
  const std::string message = message_of([&] {
    read_robomimic_run(path, {"train.batch_size=4.7", "train.seed=1e20", "train.num_epochs=null",
                              "experiment.epoch_every_n_steps=0", "observation.image_dim=[40,40,3]"});
  });
  for (const char* part :
       {"train.batch_size = 4.7 has the wrong type", "train.seed = 1e+20 has the wrong type",
        "train.num_epochs = null is no value here", "experiment.epoch_every_n_steps = 0 is no number of steps",
        "observation.image_dim = [40,40,3] is no height and width"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
}

}  // namespace
}  // namespace cohort::train
