// The policy job on the RLDS and HDF5 fixtures of tests/data, and robomimic's configurations as its settings.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/message_of.h"
#include "data/fixture_folder.h"
#include "data/robot_windows.h"
#include "models/diffusion_policy/weight_names.h"
#include "models/random_context.h"
#include "train/jobs/policy_settings.h"
#include "train/jobs/robomimic_run.h"
#include "train/jobs/statistics_of_sets.h"
#include "train/ready_policy.h"
#include "train/reference_weights.h"
#include "train/small_language.h"
#include "train/weights.h"

namespace cohort::train {
namespace {

// Means of float32 values in another order.
constexpr double kOrderOfSums = 1e-5;
// Statistics are sums of float64 over a few dozen steps.
constexpr double kSums = 1e-9;

TEST(PolicyJob, WindowsAndShapesFollowFromModelAndData) {
  ReadyPolicy ready(small_diffusion());
  ready.job->load();
  const config::Json resolved = ready.fields.to_json();
  EXPECT_EQ(resolved["data"]["observation_steps"], 2);
  EXPECT_EQ(resolved["data"]["action_steps"], 8);
  EXPECT_EQ(resolved["data"]["action_begin"], -1) << "chunks begin with the oldest frame";
  EXPECT_EQ(resolved["model"]["action_width"], 7);
  EXPECT_EQ(resolved["model"]["low_dim_widths"], config::Json(std::vector<int>{6, 1}));
  EXPECT_EQ(ready.job->dataset(Part::kTrain)->size(), 20);
  EXPECT_EQ(ready.job->dataset(Part::kValidation), nullptr);
  EXPECT_EQ(ready.job->target_names().size(), 7u);
  const config::Json statistics = ready.job->statistics();
  EXPECT_EQ(statistics["action"]["mean"].size(), 7u);
  EXPECT_EQ(statistics["num_transitions"], 20);

  // A configuration that a run has saved is accepted again; one that contradicts the model is not.
  ReadyPolicy again({}, resolved);
  again.job->load();
  EXPECT_EQ(again.fields.to_json(), resolved);
  std::vector<std::string> wrong = small_diffusion();
  wrong.push_back("data.action_steps=9");
  EXPECT_NE(message_of([&] { ReadyPolicy(wrong).job->load(); }).find("data.action_steps=9"), std::string::npos);
}

TEST(PolicyJob, ALossIsTheMeanOfItsHalvesWithTheSameNoise) {
  for (const char* kind : {"diffusion", "bc", "rnn", "gmm"}) {
    SCOPED_TRACE(kind);
    std::vector<std::string> overrides = small_diffusion();
    const std::string name = kind;
    if (name != "diffusion") overrides.insert(overrides.end(), {"model.algorithm=bc", "model.bc.actor_layer_dims=16"});
    if (name == "rnn")
      overrides.insert(overrides.end(),
                       {"model.bc.rnn.enabled=true", "model.bc.rnn.horizon=3", "model.bc.rnn.hidden_dim=8"});
    if (name == "gmm") overrides.push_back("model.bc.gmm.enabled=true");
    ReadyPolicy ready(overrides);
    ready.job->load();
    const auto model = ready.job->make_model(3);
    const parallel::Batch batch = ready.batch(Part::kTrain, 4);
    const auto loss = [&](std::int64_t begin, std::int64_t count) {
      const parallel::Batch part = batch.slice(begin, count);
      const models::RandomContextGuard context({.seed = 1, .step = 5, .sample_ids = part.sample_ids});
      return ready.job->loss(*model, part).item<double>();
    };
    const double whole = loss(0, 4);
    EXPECT_GT(std::abs(whole), 0.0);
    EXPECT_NEAR(whole, 0.5 * (loss(0, 2) + loss(2, 2)), kOrderOfSums * std::max(1.0, std::abs(whole)));
  }
}

TEST(PolicyJob, ImagesReachTheEncoderUnderTheModelsNames) {
  std::vector<std::string> overrides = small_diffusion();
  overrides.insert(
      overrides.end(),
      {"data.images=observation/image,observation/wrist", "data.image_transforms=[\"resize(32, 32)\"]",
       "model.rgb=camera/image/varied_camera_1,camera/image/varied_camera_2", "model.shared_cameras=varied_camera",
       "model.images.core.backbone_class=ResNet18Conv", "model.images.core.feature_dimension=8"});
  ReadyPolicy ready(overrides);
  ready.job->load();
  const auto model = ready.job->make_model(1);
  const auto parameters = model->named_parameters();
  const std::string cameras = "policy.obs_encoder.nets.obs.obs_nets.camera/image/varied_camera_";
  EXPECT_NE(parameters.find(cameras + "1.backbone.nets.0.weight"), nullptr);
  EXPECT_EQ(parameters.find(cameras + "2.backbone.nets.0.weight"), nullptr) << "shared";
  const parallel::Batch batch = ready.batch(Part::kTrain, 2);
  const models::RandomContextGuard context({.seed = 1, .step = 0, .sample_ids = batch.sample_ids});
  const at::Tensor loss = ready.job->loss(*model, batch);
  loss.backward();
  EXPECT_GT(parameters.find(cameras + "1.backbone.nets.0.weight")->grad().abs().sum().item<double>(), 0.0);
}

TEST(PolicyJob, InstructionsReachThePolicyAsTheirEmbeddings) {
  const data::OwnFolder folder;
  const LanguageSettings language = write_small_language(folder.path(), 8);
  std::vector<std::string> overrides = small_diffusion();
  for (const std::string& text : overrides_of(language)) overrides.push_back(text);
  overrides.emplace_back("data.filters=labeled(language_instruction)");
  ReadyPolicy ready(overrides);
  ready.job->load();
  const parallel::Batch batch = ready.batch(Part::kTrain, 11);
  const at::Tensor& rows = batch.at("language");
  ASSERT_EQ(rows.sizes(), (std::vector<std::int64_t>{11, 8}));
  // Of the fixture's episodes 0 and 3 are to pick up the cup, 2 is to open the door, 1 and 4 say nothing.
  const std::vector<std::vector<float>> texts = embed_instructions(language, {"pick up the cup", "öffne die Tür"});
  const at::Tensor cup = torch::tensor(texts[0]), door = torch::tensor(texts[1]);
  std::int64_t of_cup = 0, of_door = 0;
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    of_cup += at::allclose(rows[i], cup) ? 1 : 0;
    of_door += at::allclose(rows[i], door) ? 1 : 0;
  }
  EXPECT_EQ(of_cup, 2 + 5) << "steps of these episodes";
  EXPECT_EQ(of_door, 4);
  const auto model = ready.job->make_model(1);
  const auto& settings = models::diffusion_settings(*model);
  EXPECT_EQ(settings.encoder.observations.back().name, "lang_fixed/language_distilbert");
  const models::RandomContextGuard context({.seed = 1, .step = 0, .sample_ids = batch.sample_ids});
  EXPECT_TRUE(std::isfinite(ready.job->loss(*model, batch).item<double>()));
  // A policy that should see instructions says what it lacks.
  EXPECT_NE(message_of([&] {
              std::vector<std::string> without = small_diffusion();
              without.push_back("model.language.required=true");
              ReadyPolicy(without).job->load();
            }).find("model.language.vocabulary"),
            std::string::npos);
}

TEST(PolicyJob, ValidationDrawsTheSameActionsHoweverTheSamplesAreBatched) {
  std::vector<std::string> overrides = small_diffusion();
  overrides.insert(overrides.end(),
                   {"data.splits=train[:60%]", "validation.splits=train[60%:]", "validation.sampled=3"});
  ReadyPolicy ready(overrides);
  ready.job->load();
  const auto model = ready.job->make_model(1);
  model->eval();
  const torch::NoGradGuard no_grad;
  const parallel::Batch batch = ready.batch(Part::kValidation, 4);
  const std::vector<Metric> whole = ready.job->validation_figures(*model, batch);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].name, "validation/action_mse");
  EXPECT_EQ(whole[1].name, "validation/action_mae/action");
  EXPECT_EQ(whole[0].weight, 3 * 8 * 7) << "the first three samples only";
  double sum = 0.0;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::vector<Metric> one = ready.job->validation_figures(*model, batch.slice(i, 1));
    ASSERT_EQ(one.size(), whole.size());
    sum += one[0].sum;
    EXPECT_EQ(one[0].weight, i < 3 ? 8 * 7 : 0);
  }
  EXPECT_NEAR(whole[0].sum, sum, kOrderOfSums * whole[0].sum);
  // Normalised by the statistics of the training data, not by its own.
  const auto& train = dynamic_cast<const data::RobotWindows&>(*ready.job->dataset(Part::kTrain));
  const auto& validation = dynamic_cast<const data::RobotWindows&>(*ready.job->dataset(Part::kValidation));
  EXPECT_EQ(train.statistics(0).action.max, validation.statistics(0).action.max);
  EXPECT_EQ(ready.job->dataset(Part::kTest)->size(), 3);
  EXPECT_NE(message_of([&] {
              std::vector<std::string> empty = small_diffusion();
              empty.push_back("validation.splits=train[99%:]");
              ReadyPolicy(empty).job->load();
            }).find("validation.splits"),
            std::string::npos);
}

TEST(PolicyJob, StatisticsOfTwoSetsAreThoseOfTheirUnion) {
  const auto windows = [](const std::vector<std::string>& splits) {
    data::RobotDataSettings settings;
    settings.paths.assign(splits.size(), data::fixture("arm").string());
    settings.splits = splits;
    settings.actions = {"action"};
    settings.proprio = {"observation/pose"};
    settings.statistics_cache = "never";
    return data::RobotWindows(settings);
  };
  const data::RobotWindows parts(windows({"train[:2]", "train[2:]"})), whole(windows({"train"}));
  const data::RobotStatistics joined = combined_statistics(parts);
  const data::RobotStatistics& expected = whole.statistics(0);
  EXPECT_EQ(joined.transitions, expected.transitions);
  EXPECT_EQ(joined.trajectories, expected.trajectories);
  EXPECT_EQ(joined.action.max, expected.action.max);
  EXPECT_EQ(joined.proprio.min, expected.proprio.min);
  for (std::size_t k = 0; k < expected.action.width(); ++k) {
    EXPECT_NEAR(joined.action.mean[k], expected.action.mean[k], kSums);
    EXPECT_NEAR(joined.action.std[k], expected.action.std[k], kSums);
  }
}

TEST(PolicyJob, ReferenceWeightsComeBackToTheSameBits) {
  std::vector<std::string> overrides = small_diffusion();
  ReadyPolicy ready(overrides);
  ready.job->load();
  const auto one = ready.job->make_model(1), two = ready.job->make_model(2);
  const NamedTensors theirs = to_reference(*one, module_state(*one), "one");
  EXPECT_TRUE(std::any_of(theirs.begin(), theirs.end(),
                          [](const auto& item) { return item.first.find("policy.noise_pred_net.module.") == 0; }));
  const NamedTensors ours = from_reference(*two, theirs, "theirs");
  const NamedTensors expected = module_state(*one);
  ASSERT_EQ(ours.size(), expected.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].first, expected[i].first);
    EXPECT_TRUE(at::equal(ours[i].second, expected[i].second)) << ours[i].first;
  }
  NamedTensors wrong = theirs;
  wrong[0].first = "policy.surprise";
  const std::string message = message_of([&] { from_reference(*two, wrong, "theirs.safetensors"); });
  EXPECT_NE(message.find("theirs.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("policy.surprise"), std::string::npos) << message;
}

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
    read_robomimic_run(path, {"train.goal_mode=geom", "experiment.rollout.enabled=True", "experiment.surprise=1",
                              "algo.unet.depth=3", "observation.encoder.rgb.fuser=perceiver",
                              "train.sample_weights=[1,2]", "experiment.ckpt_path=model.pth"});
  });
  for (const char* part :
       {"train.goal_mode = \"geom\"", "experiment.rollout.enabled = true", "experiment.surprise = 1 is unknown",
        "algo.unet.depth = 3", "observation.encoder.rgb.fuser = \"perceiver\"", "train.sample_weights", "model.pth"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
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

}  // namespace
}  // namespace cohort::train
