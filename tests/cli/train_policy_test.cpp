// `cohort train load_from=…` on RLDS and HDF5 data: a robomimic configuration as it is, on one process, two replicas
// and two ranks; its weights under the reference's names; and `cohort train act` so.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"
#include "train/state_set.h"

namespace cohort::testing {
namespace {

// Gradients are float32 sums in another order, over eight steps.
constexpr double kOrderOfSums = 1e-5;
constexpr int kSteps = 8;

class TrainPolicy : public ::testing::Test {
 protected:
  /// A configuration of the DROID fork for the data set "arm" of tests/data.
  std::string configuration() const {
    nlohmann::ordered_json c = parse_json<nlohmann::ordered_json>(R"({
      "algo_name": "diffusion_policy",
      "experiment": {"name": "arm", "validate": false, "logging": {"log_tb": false, "log_wandb": false},
                     "mse": {"enabled": true, "every_n_epochs": 1, "num_samples": 3}, "save": {"enabled": true},
                     "epoch_every_n_steps": 4, "rollout": {"enabled": false}},
      "train": {"data_format": "droid_rlds", "data_path": "", "dataset_names": ["arm"], "sample_weights": [1],
                "batch_size": 4, "num_epochs": 2, "seed": 1, "shuffle_buffer_size": 500000, "subsample_length": 100,
                "action_keys": ["action"], "action_shapes": [[1, 7]],
                "action_config": {"action": {"normalization": "min_max"}},
                "seq_length": 15, "frame_stack": 2, "goal_mode": null, "cuda": false},
      "algo": {"horizon": {"observation_horizon": 2, "action_horizon": 4, "prediction_horizon": 8},
               "unet": {"enabled": true, "diffusion_step_embed_dim": 16, "down_dims": [16, 32], "kernel_size": 5,
                        "n_groups": 8},
               "ema": {"enabled": true, "power": 0.75}, "noise_samples": 2,
               "ddpm": {"enabled": false},
               "ddim": {"enabled": true, "num_train_timesteps": 100, "num_inference_timesteps": 4}},
      "observation": {"image_dim": [32, 32],
                      "modalities": {"obs": {"low_dim": ["observation/pose", "observation/gripper"],
                                             "rgb": ["observation/image"], "depth": [], "scan": []}},
                      "encoder": {"rgb": {"core_class": "VisualCore",
                                          "core_kwargs": {"feature_dimension": 8, "backbone_class": "ResNet18Conv",
                                                          "pool_class": null, "backbone_kwargs": {"pretrained": false}},
                                          "obs_randomizer_class": ["ColorRandomizer", "CropRandomizer"],
                                          "obs_randomizer_kwargs": [{}, {"crop_height": 28, "crop_width": 28}]}}}})");
    write_file_atomically(folder_.path() / "droid.json", json_text(c, 2));
    return (folder_.path() / "droid.json").string();
  }

  std::vector<std::string> arguments(const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"train", "load_from=" + configuration(),
                                 "train.data_path=" COHORT_SOURCE_DIR "/tests/data/fixtures",
                                 "output_dir=" + (folder_.path() / out).string(), "data.statistics_cache=never",
                                 // Whole batches for any number of ranks, and some data to validate on.
                                 "data.samples_per_epoch=16", "data.splits=train[40%:]",
                                 "validation.splits=train[:40%]", "train.log_every=1", "charts=false"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Outcome start(const std::vector<std::string>& words) const {
    std::vector<std::string> command{cohort_path()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command, {{"OMP_NUM_THREADS", "1"}});
  }
  Outcome single(const std::string& out, const std::vector<std::string>& more) const {
    return start(arguments(out, more));
  }

  /// On the sets in `data`: a configuration for states, written beside them.
  std::vector<std::string> state_arguments(const std::string& out, const fs::path& data,
                                           const std::vector<std::string>& more) const {
    std::vector<std::string> all =
        arguments(out, {"train.data_path=" + data.string(), "train.dataset_names=[reach]",
                        "train.action_shapes=[[1,2]]", "data.splits=train", "validation.splits=[]",
                        "observation.modalities.obs.low_dim=[observation/state]", "observation.modalities.obs.rgb=[]"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome on_states(const std::string& out, const StateSet& set, const std::vector<std::string>& more = {}) const {
    const fs::path data = folder_.path() / (out + "_data");
    write_state_set(data, set);
    return start(state_arguments(out, data, more));
  }
  /// A copy of the fixture "arm" that may be damaged.
  fs::path arm(const std::string& folder) const {
    const fs::path copy = folder_.path() / folder;
    fs::create_directories(copy);
    fs::copy(fs::path(COHORT_SOURCE_DIR) / "tests" / "data" / "fixtures" / "arm", copy / "arm",
             fs::copy_options::recursive);
    return copy;
  }

  fs::path latest(const std::string& out) const { return fs::canonical(folder_.path() / out / "arm" / "latest"); }

  std::vector<double> metric(const std::string& out, const std::string& name) const {
    std::vector<double> values;
    for (const std::string& line : lines_of(read_file(latest(out) / "metrics.jsonl"))) {
      const auto json = parse_json<nlohmann::json>(line);
      if (json.contains(name)) values.push_back(json.at(name).get<double>());
    }
    return values;
  }

  void expect_equal(const std::string& out, const std::string& name, const std::vector<double>& expected,
                    double tolerance = kOrderOfSums) const {
    const std::vector<double> values = metric(out, name);
    ASSERT_EQ(values.size(), expected.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << name << " " << i;
  }

  TemporaryFolder folder_;
};

TEST_F(TrainPolicy, OneProcessTwoReplicasAndTwoRanksHaveTheSameLosses) {
  const Outcome one = single("one", {"devices=cpu"});
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<double> losses = metric("one", "train/loss"), drawn = metric("one", "validation/action_mse");
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(drawn.size(), 2u) << "after each epoch of four steps";
  EXPECT_TRUE(std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss) && loss > 0; }));

  const Outcome two = single("replicas", {"devices=cpu,cpu"});
  ASSERT_EQ(two.code, 0) << two.err;
  expect_equal("replicas", "train/loss", losses);
  expect_equal("replicas", "validation/action_mse", drawn);

  std::vector<std::string> ranks{"--nproc_per_node=2"};
  for (std::string& word : arguments("ranks", {"train.batch_size=2"})) ranks.push_back(std::move(word));
  const Outcome both = run(launch(ranks), {{"OMP_NUM_THREADS", "1"}});
  ASSERT_EQ(both.code, 0) << both.err;
  expect_equal("ranks", "train/loss", losses);
  expect_equal("ranks", "validation/action_mse", drawn);

  const fs::path last = fs::canonical(latest("one") / "checkpoints" / "last");
  const auto statistics = parse_json<nlohmann::json>(read_file(last / "dataset_statistics.json"));
  EXPECT_EQ(statistics.at("action").at("mean").size(), 7u);
  EXPECT_TRUE(fs::exists(last / "ema" / "model.safetensors"));

  // To the reference's names and back: the same file.
  const std::string config = (latest("one") / "config.json").string();
  const fs::path theirs = folder_.path() / "theirs.safetensors", ours = folder_.path() / "ours.safetensors";
  const Outcome there = run({cohort_path(), "convert-weights", "--config", config, "--to", "reference",
                             (last / "model.safetensors").string(), theirs.string()});
  ASSERT_EQ(there.code, 0) << there.err;
  EXPECT_TRUE(contains(read_file(theirs), "policy.noise_pred_net.module."));
  const Outcome back =
      run({cohort_path(), "convert-weights", "--config", config, "--to", "cohort", theirs.string(), ours.string()});
  ASSERT_EQ(back.code, 0) << back.err;
  // What the weights weigh is the same; the metadata of the two files differ.
  const std::string a = read_file(last / "model.safetensors"), b = read_file(ours);
  const auto payload = [](const std::string& file) {
    std::uint64_t header = 0;
    std::copy_n(file.data(), sizeof header, reinterpret_cast<char*>(&header));
    return file.substr(sizeof header + header);
  };
  EXPECT_TRUE(payload(a) == payload(b));
}

TEST_F(TrainPolicy, ShowsDrawnBesideTrueActions) {
  const Outcome outcome = single("shown", {"devices=cpu", "charts=true", "train.num_epochs=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = latest("shown");
  for (const char* chart : {"loss.svg", "forecast.svg", "forecast.png", "prediction.svg"})
    EXPECT_GT(fs::file_size(folder / "charts" / chart), 1000u) << chart;
  const std::string report = read_file(folder / "report.html");
  EXPECT_TRUE(contains(report, "validation sample"));
  EXPECT_TRUE(contains(report, "Errors on the validation data"));
  EXPECT_FALSE(contains(report, "on the test set")) << "there is none";
  const auto test = parse_json<nlohmann::json>(read_file(folder / "test_metrics.json"));
  EXPECT_TRUE(test.contains("data_units"));
  EXPECT_EQ(metric("shown", "validation/action_mae/action").size(), 1u) << "in units of the data";
}

TEST_F(TrainPolicy, AResumedRunIsTheRunThatWasNeverStopped) {
  const std::vector<std::string> settings{"devices=cpu", "data.splits=train", "validation.splits=[]"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), settings.begin(), settings.end());
    return more;
  };
  ASSERT_EQ(single("whole", with({})).code, 0);
  const Outcome half = single("half", with({"train.num_epochs=1"}));
  ASSERT_EQ(half.code, 0) << half.err;
  const fs::path folder = latest("half");
  EXPECT_EQ(metric("half", "train/loss").size(), 4u);
  const Outcome epochs = start({"train", "policy", "resume=" + folder.string(), "train.num_epochs=2"});
  EXPECT_NE(epochs.code, 0);
  EXPECT_TRUE(contains(epochs.err, "train.steps=N, which is 4 now")) << epochs.err;
  // robomimic's name of the rate, with the value that the run has.
  const Outcome rest = start({"train", "policy", "resume=" + folder.string(), "train.steps=8",
                              "train.optim_params.policy.learning_rate.initial=0.0001"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(metric("half", "train/loss"), metric("whole", "train/loss"));
  for (const char* file : {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors"})
    EXPECT_TRUE(read_file(folder / "checkpoints" / "last" / file) ==
                read_file(latest("whole") / "checkpoints" / "last" / file))
        << file;
}

// ACT with a camera, dropout and the autoencoder. Whole chunks only: where rows are padded, each share of a batch has a
// mean of its own, over the rows that count in it.
TEST_F(TrainPolicy, ActTrainsAlikeOnOneProcessTwoReplicasAndTwoRanks) {
  const auto words = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{"train",
                                 "act",
                                 "data.paths=" COHORT_SOURCE_DIR "/tests/data/fixtures/arm",
                                 "data.actions=action",
                                 "data.proprio=observation/pose,observation/gripper",
                                 "data.images=observation/image",
                                 "data.image_transforms=[\"resize(32, 32)\"]",
                                 "data.pad_after=drop",
                                 "data.statistics_cache=never",
                                 "data.samples_per_epoch=16",
                                 "model.act.chunk_size=3",
                                 "model.act.n_action_steps=3",
                                 "model.act.dim_model=16",
                                 "model.act.n_heads=2",
                                 "model.act.dim_feedforward=32",
                                 "model.act.latent_dim=4",
                                 "model.act.n_encoder_layers=1",
                                 "model.act.n_vae_encoder_layers=1",
                                 "data.splits=train[40%:]",
                                 "validation.splits=train[:40%]",
                                 "train.lr=1e-4",
                                 "train.batch_size=4",
                                 format("train.steps={}", kSteps),
                                 "train.validate_every=4",
                                 "train.log_every=1",
                                 "charts=false",
                                 "name=arm",
                                 "output_dir=" + (folder_.path() / out).string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Outcome one = start(words("one", {"devices=cpu"}));
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<double> losses = metric("one", "train/loss"), drawn = metric("one", "validation/action_mse");
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_NE(drawn[0], drawn[1]) << "it learns";
  const auto expect_alike = [&](const std::string& out, const Outcome& outcome) {
    SCOPED_TRACE(out);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    expect_equal(out, "train/loss", losses);
    expect_equal(out, "validation/action_mse", drawn);
  };
  expect_alike("replicas", start(words("replicas", {"devices=cpu,cpu"})));
  std::vector<std::string> ranks{"--nproc_per_node=2"};
  for (std::string& word : words("ranks", {"train.batch_size=2"})) ranks.push_back(std::move(word));
  expect_alike("ranks", run(launch(ranks), {{"OMP_NUM_THREADS", "1"}}));
}

// The sample in the DROID schema, with the keys of the DROID configuration and a small network.
TEST_F(TrainPolicy, TheDroidSampleTrainsAlikeOnOneProcessTwoReplicasAndTwoRanks) {
  const char* shared = std::getenv("COHORT_SHARED");
  const fs::path sample = shared ? fs::path(shared) / "data" / "rlds_droid_sample" : fs::path();
  if (!shared || !fs::exists(sample)) GTEST_SKIP() << "COHORT_SHARED names no folder with data/rlds_droid_sample";
  const std::vector<std::string> droid{
      "train.data_path=" + sample.string(),
      "train.dataset_names=[droid]",
      "train.action_keys=[action/abs_pos,action/abs_rot_6d,action/gripper_position]",
      "train.action_shapes=[[1,3],[1,6],[1,1]]",
      "train.action_config.action={}",
      "observation.modalities.obs.low_dim=[robot_state/cartesian_position,robot_state/gripper_position]",
      "observation.modalities.obs.rgb=[camera/image/varied_camera_1_left_image,camera/image/"
      "varied_camera_2_left_image]",
      "data.splits=train[:60%]",
      "validation.splits=train[60%:]"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), droid.begin(), droid.end());
    return more;
  };
  const Outcome one = single("one", with({"devices=cpu"}));
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<double> losses = metric("one", "train/loss"), drawn = metric("one", "validation/action_mse");
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(drawn.size(), 2u);
  const Outcome two = single("replicas", with({"devices=cpu,cpu"}));
  ASSERT_EQ(two.code, 0) << two.err;
  expect_equal("replicas", "train/loss", losses);
  expect_equal("replicas", "validation/action_mse", drawn);
  std::vector<std::string> ranks{"--nproc_per_node=2"};
  for (std::string& word : arguments("ranks", with({"train.batch_size=2"}))) ranks.push_back(std::move(word));
  const Outcome both = run(launch(ranks), {{"OMP_NUM_THREADS", "1"}});
  ASSERT_EQ(both.code, 0) << both.err;
  expect_equal("ranks", "train/loss", losses);
  expect_equal("ranks", "validation/action_mse", drawn);
}

// robomimic's HDF5: its masks are the splits, its images those of the file.
TEST_F(TrainPolicy, RobomimicsHdf5TrainsAlikeOnOneProcessAndTwoReplicas) {
  const auto trained = [&](const std::string& out, const std::string& devices) {
    std::vector<std::string> words = arguments(
        out, {"train.data_format=robomimic", "train.data_path=" COHORT_SOURCE_DIR "/tests/data/fixtures/robomimic.hdf5",
              "train.hdf5_filter_key=train", "train.hdf5_validation_filter_key=valid", "experiment.validate=true",
              "train.action_keys=[actions]", "train.action_config={\"actions\": {\"normalization\": \"min_max\"}}",
              "observation.modalities.obs.low_dim=[eef_pos,big_endian]",
              "observation.modalities.obs.rgb=[agentview_image]", "devices=" + devices});
    std::erase_if(words, [](const std::string& word) { return word.find("splits=") != std::string::npos; });
    return start(words);
  };
  const Outcome one = trained("one", "cpu");
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<double> losses = metric("one", "train/loss"), drawn = metric("one", "validation/action_mse");
  ASSERT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_TRUE(std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss) && loss > 0; }));
  const Outcome two = trained("replicas", "cpu,cpu");
  ASSERT_EQ(two.code, 0) << two.err;
  // Seven windows: gradients near zero, whose signs Adam's first steps make into full steps.
  constexpr double kFewSamples = 2e-4;
  expect_equal("replicas", "train/loss", losses, kFewSamples);
  expect_equal("replicas", "validation/action_mse", drawn, kFewSamples);

  const auto config = parse_json<nlohmann::json>(read_file(latest("one") / "config.json"));
  EXPECT_EQ(config.at("data").at("format"), "hdf5");
  EXPECT_EQ(config.at("data").at("images").at(0), "obs/agentview_image");
  EXPECT_EQ(config.at("model").at("image_size"), nlohmann::json({32, 32})) << "observation.image_dim";
  // mask/train names demo_10 with its seven steps.
  const auto statistics =
      parse_json<nlohmann::json>(read_file(latest("one") / "checkpoints" / "last" / "dataset_statistics.json"));
  EXPECT_EQ(statistics.at("num_transitions"), 7);
}

// Two subsets as two entries of train.data: one normalisation for both, and either is drawn from as often.
TEST_F(TrainPolicy, Hdf5FilesThatAreMixedShareTheirStatistics) {
  const std::string robomimic = COHORT_SOURCE_DIR "/tests/data/fixtures/robomimic.hdf5";
  const Outcome outcome = single(
      "mixed", {"train.data_format=robomimic", "train.data_path=null",
                "train.data=[{\"path\": \"" + robomimic + "\", \"filter_key\": \"train\"}, {\"path\": \"" + robomimic +
                    "\", \"filter_key\": \"valid\"}]",
                "train.action_keys=[actions]", "train.action_config={\"actions\": {\"normalization\": \"min_max\"}}",
                "observation.modalities.obs.low_dim=[eef_pos]", "observation.modalities.obs.rgb=[]",
                "data.splits=train,valid", "validation.splits=[]", "devices=cpu"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto statistics =
      parse_json<nlohmann::json>(read_file(latest("mixed") / "checkpoints" / "last" / "dataset_statistics.json"));
  EXPECT_EQ(statistics.at("num_transitions"), 5 + 7);
  EXPECT_EQ(statistics.at("action").at("min").size(), 7u);
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(latest("mixed") / "config.json")).at("data").at("weights"),
            nlohmann::json({1.0, 1.0}));
}

// LIBERO's file: no masks, double precision, an instruction for the whole file; behaviour cloning with a memory, as
// robomimic's own configuration has it.
TEST_F(TrainPolicy, LiberosHdf5TrainsWithCamerasAndAlikeOnTwoReplicas) {
  const std::string path = (folder_.path() / "bc.json").string();
  write_file_atomically(path, R"({
    "algo_name": "bc",
    "experiment": {"name": "arm", "validate": false, "epoch_every_n_steps": 4, "rollout": {"enabled": false},
                   "logging": {"log_tb": false}},
    "train": {"data": null, "data_path": "", "seq_length": 3, "frame_stack": 1, "batch_size": 4, "num_epochs": 2,
              "cuda": false},
    "algo": {"actor_layer_dims": [], "gmm": {"enabled": true, "num_modes": 2},
             "rnn": {"enabled": true, "horizon": 3, "hidden_dim": 8, "kwargs": {"bidirectional": false}},
             "gaussian": {"enabled": false}, "vae": {"enabled": false}, "transformer": {"enabled": false}},
    "observation": {"modalities": {"obs": {"low_dim": ["joint_states", "gripper_states"],
                                           "rgb": ["agentview_rgb", "eye_in_hand_rgb"]}},
                    "encoder": {"rgb": {"core_class": "VisualCore",
                                        "core_kwargs": {"feature_dimension": 8, "flatten": true,
                                                        "backbone_class": "ResNet18Conv",
                                                        "backbone_kwargs": {"pretrained": false},
                                                        "pool_class": "SpatialSoftmax",
                                                        "pool_kwargs": {"num_kp": 4}}}}}})");
  const auto trained = [&](const std::string& out, const std::string& devices, const std::vector<std::string>& more) {
    std::vector<std::string> words{"train",
                                   "load_from=" + path,
                                   "train.data_path=" COHORT_SOURCE_DIR "/tests/data/fixtures/libero.hdf5",
                                   "output_dir=" + (folder_.path() / out).string(),
                                   "data.statistics_cache=never",
                                   "data.samples_per_epoch=16",
                                   "train.log_every=1",
                                   "charts=false",
                                   "devices=" + devices};
    words.insert(words.end(), more.begin(), more.end());
    return start(words);
  };
  const auto finite_losses = [&](const std::string& out) {
    const std::vector<double> losses = metric(out, "train/loss");
    EXPECT_EQ(losses.size(), static_cast<std::size_t>(kSteps));
    EXPECT_TRUE(std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); }));
    return losses;
  };
  // With cameras there is batch norm, robomimic's, of which every replica sees its own share.
  const Outcome cameras = trained("cameras", "cpu", {});
  ASSERT_EQ(cameras.code, 0) << cameras.err;
  finite_losses("cameras");
  const std::vector<std::string> blind{"observation.modalities.obs.rgb=[]"};
  const Outcome one = trained("one", "cpu", blind);
  ASSERT_EQ(one.code, 0) << one.err;
  const std::vector<double> losses = finite_losses("one");
  const Outcome two = trained("replicas", "cpu,cpu", blind);
  ASSERT_EQ(two.code, 0) << two.err;
  expect_equal("replicas", "train/loss", losses);
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(latest("one") / "config.json")).at("model").at("algorithm"), "bc");
}

TEST_F(TrainPolicy, DataThatCannotBeUsedEndTheRunBeforeAnythingIsWritten) {
  const auto refused = [&](const Outcome& outcome, const std::string& out, const std::vector<std::string>& parts) {
    EXPECT_NE(outcome.code, 0) << parts[0];
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "terminate called")) << outcome.err;
    EXPECT_FALSE(fs::exists(folder_.path() / out)) << parts[0];
  };
  const fs::path missing = arm("missing_data"), cut = arm("cut_data");
  const std::string shard = "arm-train.tfrecord-00001-of-00002";
  fs::remove(missing / "arm" / "1.0.0" / shard);
  refused(single("missing", {"train.data_path=" + missing.string()}), "missing", {shard, "is missing"});
  fs::resize_file(cut / "arm" / "1.0.0" / shard, fs::file_size(cut / "arm" / "1.0.0" / shard) / 2);
  refused(single("cut", {"train.data_path=" + cut.string()}), "cut", {shard, "offset"});
  refused(on_states("nan", {.nan_episode = 4}), "nan", {"reach", "action", "step 3"});
  refused(on_states("constant", {.constant_goal = true}), "constant", {"reach", "actions", "0", "constant_elements"});
  refused(on_states("empty", {.empty_episode = 2}), "empty", {"reach", "empty"});
  refused(on_states("width", {}, {"train.action_shapes=[[1,3]]"}), "width", {"reach", "2", "3"});
  // And what is sound trains.
  const Outcome sound = on_states("sound", {});
  EXPECT_EQ(sound.code, 0) << sound.err;
  EXPECT_TRUE(contains(sound.err, "language_instruction")) << "a note: the reference would want one\n" << sound.err;
}

TEST_F(TrainPolicy, WhatCannotBeHonouredEndsTheRunBeforeAnythingIsWritten) {
  const auto refused = [&](const std::vector<std::string>& more, const std::vector<std::string>& parts) {
    const Outcome outcome = single("refused", more);
    EXPECT_NE(outcome.code, 0);
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
    EXPECT_FALSE(fs::exists(folder_.path() / "refused")) << parts[0];
  };
  refused({"train.goal_mode=geom", "algo.unet.depth=3"}, {"train.goal_mode", "algo.unet.depth", "droid.json"});
  refused({"train.action_shapes=[[1,6]]"}, {"action", "7", "6"});
  refused({"observation.modalities.obs.rgb=[observation/no_such_camera]"}, {"observation/no_such_camera"});
  refused({"observation.encoder.rgb.core_kwargs.backbone_kwargs.pretrained=true"}, {"model.backbone_weights"});
  refused({"train.dataset_names=[no_such_set]"}, {"no_such_set"});
  refused({"algo.unet.n_groups=7"}, {"model.diffusion (robomimic: algo)", "n_groups = 7"});
  refused({"algo.horizon.action_horizon=9"}, {"robomimic: algo", "9 actions"});
  refused({"experiment.ckpt_path=/nowhere/theirs.safetensors"}, {"experiment.ckpt_path", "no such file"});
  refused({"observation.encoder.rgb.obs_randomizer_kwargs=[{}, {\"crop_height\": 40, \"crop_width\": 28}]"},
          {"observation.encoder.rgb", "crop_height = 40"});
  refused({"drop_last=true", "train.batch_size=17"}, {"train.batch_size = 17", "drop_last"});
  refused({"train.batchsize=3"}, {"train.batchsize", "train.batch_size"});
}

}  // namespace
}  // namespace cohort::testing
