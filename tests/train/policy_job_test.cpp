// The policy job on the RLDS and HDF5 fixtures of tests/data.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/log.h"
#include "core/message_of.h"
#include "data/fixture_folder.h"
#include "data/robot_windows.h"
#include "models/random_context.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/policy_settings.h"
#include "policies/reference_weights.h"
#include "policies/small_language.h"
#include "policies/weight_names.h"
#include "train/jobs/statistics_of_sets.h"
#include "train/ready_policy.h"
#include "train/state_set.h"
#include "weights/weights.h"

namespace cohort::train {
namespace {

// Means of float32 values in another order.
constexpr double kOrderOfMeans = 1e-5;
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

TEST(PolicyJob, WithoutNamesThePolicyTakesTheDataSetsOwnFieldsAndScalesTheState) {
  std::vector<std::string> overrides = small_diffusion();
  std::erase_if(overrides, [](const std::string& text) {
    return text.starts_with("data.actions") || text.starts_with("data.proprio") || text.starts_with("data.images") ||
           text.starts_with("model.low_dim") || text.starts_with("model.rgb") || text.starts_with("data.action_");
  });
  const data::OwnFolder folder;
  const std::string file = (folder.path() / "training.log").string();
  log::add_file(file);
  ReadyPolicy ready(overrides);
  ready.job->load();
  log::flush();
  log::remove_file(file);
  const std::string said = read_file(file);
  EXPECT_NE(
      said.find("not seen unless they are named: observation/buttons: of type bool; observation/depth: a picture of "
                "one channel; observation/matrix: 2 x 3 numbers; name what"),
      std::string::npos)
      << said;
  const config::Json resolved = ready.fields.to_json();
  const auto names = [&](const char* key) { return resolved["data"][key].get<std::vector<std::string>>(); };
  EXPECT_EQ(names("actions"), std::vector<std::string>{"action"});
  EXPECT_EQ(names("proprio"), (std::vector<std::string>{"observation/gripper", "observation/pose"}))
      << "no flags, no matrix";
  EXPECT_EQ(names("images"), (std::vector<std::string>{"observation/image", "observation/wrist"})) << "no depth";
  EXPECT_EQ(names("proprio_normalization"), std::vector<std::string>{"bounds"});

  // What is not there is answered with what is.
  overrides.push_back("data.proprio=observation/pose");
  overrides.push_back("data.actions=[]");
  ReadyPolicy acts(overrides);
  acts.job->load();
  EXPECT_EQ(acts.fields.to_json()["data"]["images"].size(), 0u) << "what it sees has been said";
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
    EXPECT_NEAR(whole, 0.5 * (loss(0, 2) + loss(2, 2)), kOrderOfMeans * std::max(1.0, std::abs(whole)));
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
  const policies::LanguageSettings language = policies::write_small_language(folder.path(), 8);
  std::vector<std::string> overrides = small_diffusion();
  for (const std::string& text : overrides_of(language)) overrides.push_back(text);
  overrides.emplace_back("data.filters=labeled(language_instruction)");
  ReadyPolicy ready(overrides);
  ready.job->load();
  const parallel::Batch batch = ready.batch(Part::kTrain, 11);
  const at::Tensor& rows = batch.at("language");
  ASSERT_EQ(rows.sizes(), (std::vector<std::int64_t>{11, 8}));
  // Of the fixture's episodes 0 and 3 are to pick up the cup, 2 is to open the door, 1 and 4 say nothing.
  const std::vector<std::vector<float>> texts =
      policies::embed_instructions(language, {"pick up the cup", "öffne die Tür"});
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
  const std::int64_t samples = ready.job->dataset(Part::kValidation)->size();
  ASSERT_GT(samples, 6) << "of two episodes";
  const parallel::Batch batch = ready.batch(Part::kValidation, samples);
  const std::vector<Metric> whole = ready.job->validation_figures(*model, batch);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].name, "validation/action_mse");
  EXPECT_EQ(whole[1].name, "validation/action_mae/action");
  EXPECT_EQ(ready.job->validation_figure_names(), (std::vector<std::string>{whole[0].name, whole[1].name}));
  EXPECT_EQ(whole[0].weight, 3 * 8 * 7) << "three samples only";
  double sum = 0.0;
  const std::set<std::int64_t> spread{0, samples / 3, 2 * samples / 3};
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::vector<Metric> one = ready.job->validation_figures(*model, batch.slice(i, 1));
    ASSERT_EQ(one.size(), whole.size());
    sum += one[0].sum;
    EXPECT_EQ(one[0].weight, spread.contains(i) ? 8 * 7 : 0) << "those of the report, from all episodes";
  }
  EXPECT_NEAR(whole[0].sum, sum, kOrderOfMeans * whole[0].sum);
  // Normalised by the statistics of the training data, not by its own.
  const auto& train = dynamic_cast<const data::RobotWindows&>(*ready.job->dataset(Part::kTrain));
  const auto& validation = dynamic_cast<const data::RobotWindows&>(*ready.job->dataset(Part::kValidation));
  EXPECT_EQ(train.statistics(0).action.max, validation.statistics(0).action.max);
  EXPECT_EQ(ready.job->dataset(Part::kTest)->size(), 3);
  EXPECT_NE(message_of([&] {
              std::vector<std::string> empty = small_diffusion();
              empty.push_back("validation.splits=train[99%:]");  // of five episodes
              ReadyPolicy(empty).job->load();
            }).find("validation.splits"),
            std::string::npos);
}

// The first data set is looked at where the fields are not named.
TEST(PolicyJob, SplitsThatDoNotFitTheDataSetsAreRefusedByName) {
  for (const char* splits : {"data.splits=[]", "data.splits=[train,train]"}) {
    std::vector<std::string> wrong = small_diffusion();
    wrong.insert(wrong.end(), {"data.actions=[]", splits});
    const std::string said = message_of([&] { ReadyPolicy(wrong).job->load(); });
    EXPECT_TRUE(said.starts_with("data.splits names ") && said.ends_with("or leave data.splits out")) << said;
  }
}

TEST(PolicyJob, EpisodesThatAreTrainedOnDoNotValidate) {
  const auto load = [](const std::string& train, const std::string& validation) {
    std::vector<std::string> overrides = small_diffusion();
    overrides.insert(overrides.end(), {"data.splits=" + train, "validation.splits=" + validation});
    return message_of([&] { ReadyPolicy(overrides).job->load(); });
  };
  EXPECT_EQ(load("train[:60%]", "train[60%:]"), "");
  EXPECT_NE(load("train[:80%]", "train[60%:]").find("1 of 2 episodes that validate are also trained on, the first is"),
            std::string::npos);
  EXPECT_NE(load("auto", "auto").find("5 of 5 episodes that validate are also trained on"), std::string::npos);
}

TEST(PolicyJob, ExamplesShowEveryPartOfAnActionOnceAndNothingBeforeIt) {
  std::vector<std::string> overrides = small_diffusion();
  overrides.insert(overrides.end(),
                   {"data.actions=observation/pose[0:3],observation/pose[3:6] | "
                    "euler_xyz->rotation_6d,observation/gripper",
                    "data.splits=train[:60%]", "validation.splits=train[60%:]", "data.constant_elements=keep"});
  ReadyPolicy ready(overrides);
  ready.job->load();
  const std::vector<std::string> names = ready.job->target_names();
  ASSERT_EQ(names.size(), 10u);
  EXPECT_EQ(names[2], "pose[0:3] 2");
  EXPECT_EQ(names[8], "pose[3:6]->rotation_6d 5") << "not one of the three angles";
  EXPECT_EQ(names[9], "gripper");
  EXPECT_EQ(ready.job->test_name(), "validation data");
  std::vector<std::string> shown;
  const std::vector<std::int64_t> samples = ready.job->example_samples();
  ASSERT_EQ(samples.size(), 6u);
  for (const std::int64_t sample : samples) {
    const report::ForecastWindow window = ready.job->example(sample, std::vector<float>(8 * 10, 0.5f));
    EXPECT_TRUE(window.history.empty());
    EXPECT_EQ(window.truth.size(), 8u) << "each row once";
    EXPECT_EQ(window.prediction, std::vector<double>(8, 0.5));
    shown.push_back(window.y_label);
  }
  EXPECT_EQ(shown, (std::vector<std::string>{names[0], names[1], names[3], names[5], names[7], names[9]}));
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

TEST(PolicyJob, ErrorsAreInTheUnitsOfTheSetThatASampleIsOf) {
  // Two sets whose actions have other bounds, each normalised by its own.
  const data::OwnFolder folder;
  for (const auto& [name, episodes] : {std::pair{"many", 10}, std::pair{"few", 5}})
    cohort::testing::write_state_set(folder.path(), {.name = name, .episodes = episodes});
  const std::string many = (folder.path() / "many").string(), few = (folder.path() / "few").string();
  std::vector<std::string> overrides = small_diffusion();
  for (const std::string& text : {"data.paths=" + many + "," + few, std::string("data.proprio=observation/state"),
                                  std::string("model.low_dim=state"), std::string("data.splits=train[:80%]"),
                                  std::string("validation.splits=train[80%:]"), std::string("validation.sampled=48")})
    overrides.push_back(text);
  ReadyPolicy ready(overrides);
  ready.job->load();
  ASSERT_EQ(ready.job->dataset(Part::kValidation)->size(), 48) << "two episodes and one, of 16 steps";
  const auto model = ready.job->make_model(3);
  model->eval();
  const torch::NoGradGuard no_gradients;
  const parallel::Batch batch = ready.batch(Part::kValidation, 48);
  const Prediction normalised = ready.job->predict(*model, batch);
  const at::Tensor errors = (normalised.predicted - normalised.truth).abs().to(at::kDouble);  // (48, rows, 2)
  const config::Json statistics = ready.job->statistics();
  const auto half_range = [&](const std::string& set) {
    const auto low = statistics.at(set).at("action").at("min").get<std::vector<double>>(),
               high = statistics.at(set).at("action").at("max").get<std::vector<double>>();
    return torch::tensor({0.5 * (high[0] - low[0]), 0.5 * (high[1] - low[1])}, at::kDouble);
  };
  ASSERT_GT((half_range(many) - half_range(few)).abs().max().item<double>(), 1.0) << "pixels";
  const at::Tensor in_pixels =
      at::cat({errors.narrow(0, 0, 32) * half_range(many), errors.narrow(0, 32, 16) * half_range(few)});
  const std::vector<Metric> figures = ready.job->validation_figures(*model, batch);
  ASSERT_EQ(figures.size(), 2u);
  constexpr double kFloat32 = 1e-4;  // of pixels that were normalised and back
  EXPECT_NEAR(figures[1].sum / figures[1].weight, in_pixels.mean().item<double>(), 512 * kFloat32);
  // The report's table and examples, too.
  std::vector<float> rows(2, 1.0f);
  for (const auto& [sample, set] : {std::pair{std::int64_t{0}, many}, std::pair{std::int64_t{47}, few}}) {
    std::fill(rows.begin(), rows.end(), 1.0f);
    ready.job->to_units_of({&sample, 1}, rows);
    EXPECT_NEAR(rows[0], statistics.at(set).at("action").at("max").at(0).get<double>(), 512 * kFloat32) << set;
  }
}

TEST(PolicyJob, ReferenceWeightsComeBackToTheSameBits) {
  std::vector<std::string> overrides = small_diffusion();
  ReadyPolicy ready(overrides);
  ready.job->load();
  const auto one = ready.job->make_model(1), two = ready.job->make_model(2);
  const weights::NamedTensors theirs = policies::to_reference(*one, weights::module_state(*one), "one");
  EXPECT_TRUE(std::any_of(theirs.begin(), theirs.end(),
                          [](const auto& item) { return item.first.find("policy.noise_pred_net.module.") == 0; }));
  const weights::NamedTensors ours = policies::from_reference(*two, theirs, "theirs");
  const weights::NamedTensors expected = weights::module_state(*one);
  ASSERT_EQ(ours.size(), expected.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].first, expected[i].first);
    EXPECT_TRUE(at::equal(ours[i].second, expected[i].second)) << ours[i].first;
  }
  weights::NamedTensors wrong = theirs;
  wrong[0].first = "policy.surprise";
  const std::string message = message_of([&] { policies::from_reference(*two, wrong, "theirs.safetensors"); });
  EXPECT_NE(message.find("theirs.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("policy.surprise"), std::string::npos) << message;
}

TEST(PolicyJob, WeightsOfAnotherPolicyAreRefusedWithWhatMayBeMeant) {
  const auto policy = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = small_diffusion();
    overrides.insert(overrides.end(), more.begin(), more.end());
    ReadyPolicy ready(overrides);
    ready.job->load();
    return ready.job->make_model(1);
  };
  const auto plain = policy({}), combined = policy({"model.images.combine=true"}),
             wider = policy({"model.diffusion.unet.down_dims=24,32"});
  const auto message = [](const torch::nn::Module& asked, const torch::nn::Module& given) {
    const weights::NamedTensors theirs = policies::to_reference(given, weights::module_state(given), "given");
    return message_of([&] { policies::from_reference(asked, theirs, "theirs.safetensors"); });
  };
  EXPECT_NE(message(*plain, *combined).find("model.images.combine=true"), std::string::npos);
  EXPECT_NE(message(*combined, *plain).find("model.images.combine=false"), std::string::npos);
  for (const std::string& text : {message(*plain, *wider), message_of([&] {
                                    policies::to_reference(*plain, weights::module_state(*wider), "theirs.safetensors");
                                  })}) {
    EXPECT_NE(text.find("theirs.safetensors"), std::string::npos) << text;
    EXPECT_NE(text.find("other shapes"), std::string::npos) << text;
    EXPECT_NE(text.find("policy.noise_pred_net."), std::string::npos) << text;
    EXPECT_NE(text.find("[24"), std::string::npos) << text;
  }
}

TEST(PolicyJob, WhatNoPolicyCanBeMadeOfIsSaidByLoad) {
  const auto refused = [](const std::vector<std::string>& more, const std::vector<std::string>& parts) {
    std::vector<std::string> overrides = small_diffusion();
    overrides.insert(overrides.end(), more.begin(), more.end());
    ReadyPolicy ready(overrides);
    const std::string message = message_of([&] { ready.job->load(); });
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  };
  const std::string diffusion = "model.diffusion (robomimic: algo)";
  refused({"model.diffusion.unet.n_groups=7"}, {diffusion, "n_groups = 7"});
  refused({"model.diffusion.unet.down_dims=12,24", "model.diffusion.unet.n_groups=4"},
          {diffusion, "down_dims[0] = 12"});
  refused({"model.diffusion.unet.diffusion_step_embed_dim=15"}, {diffusion, "diffusion_step_embed_dim = 15"});
  refused({"model.diffusion.horizon.prediction_horizon=7"}, {diffusion, "7 rows"});
  refused({"model.diffusion.horizon.action_horizon=9"}, {diffusion, "9 actions"});
  refused({"model.diffusion.sampler.num_inference_timesteps=1000"}, {diffusion, "num_inference_timesteps = 1000"});
  refused({"model.diffusion.sampler.steps_offset=50"}, {diffusion, "steps_offset = 50"});
  refused({"model.diffusion.network=transformer", "model.diffusion.transformer.n_emb=15"}, {diffusion, "n_emb = 15"});
  refused({"model.algorithm=bc", "model.bc.actor_layer_dims=[]"}, {"model.bc (robomimic: algo)", "actor_layer_dims"});
  refused({"data.images=observation/image", "data.image_transforms=[\"resize(32, 32)\"]", "model.rgb=camera",
           "model.images.crop.enabled=true", "model.images.crop.crop_height=40"},
          {"model.images (robomimic: observation.encoder.rgb)", "crop_height = 40", "32 x 32"});
  refused({"model.initial_weights=/nowhere/theirs.safetensors"},
          {"model.initial_weights", "experiment.ckpt_path", "/nowhere/theirs.safetensors", "no such file"});
  refused({"model.backbone_weights=/nowhere/resnet.safetensors"}, {"model.backbone_weights=/nowhere"});
  refused({"drop_last=true", "train.batch_size=21"}, {"train.batch_size = 21", "20 windows", "drop_last=false"});
}

TEST(PolicyJob, AResumedRunDoesWithoutTheFilesThatItBeganWith) {
  const data::OwnFolder folder;
  std::vector<std::string> overrides = small_diffusion();
  overrides.insert(overrides.end(),
                   {"model.initial_weights=/nowhere/theirs.safetensors",
                    "model.backbone_weights=/nowhere/resnet.safetensors", "resume=" + folder.path().string()});
  // Without a checkpoint it begins anew, for which it needs them.
  EXPECT_NE(message_of([&] { ReadyPolicy(overrides).job->load(); }).find("/nowhere/theirs"), std::string::npos);
  std::filesystem::create_directories(folder.path() / "checkpoints" / "checkpoint-4");
  ReadyPolicy resumed(overrides);
  resumed.job->load();
  EXPECT_NE(resumed.job->make_model(1), nullptr);
  EXPECT_EQ(resumed.fields.to_json()["model"]["initial_weights"], "/nowhere/theirs.safetensors")
      << "the run still says what it began with";
}

}  // namespace
}  // namespace cohort::train
