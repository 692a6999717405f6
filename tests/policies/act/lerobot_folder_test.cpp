// LeRobot's folders, read and written: beside one that lerobot 0.6.1 wrote (make_act_fixtures.py).
#include "policies/lerobot_folder.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/random_context.h"
#include "policies/act/act_policy.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/policy_settings.h"
#include "policies/trained_policy.h"
#include "support/fresh_folder.h"
#include "weights/safetensors.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;
using models::formula;
using models::tensor_of;

const fs::path kFixtures = COHORT_SOURCE_DIR "/tests/policies/act/fixtures";
constexpr int kState = 5, kEnvironment = 4, kAction = 3, kChunk = 10, kExecuted = 4;
constexpr const char *kBefore = "policy_preprocessor.json", *kAfter = "policy_postprocessor.json";

std::vector<float> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous().flatten();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

/// The observations of make_act_fixtures.py: state, then environment.
std::vector<float> frame_of(int i) {
  std::vector<float> frame = numbers(3 * formula("state " + std::to_string(i), {kState}));
  const std::vector<float> more = numbers(3 * formula("environment " + std::to_string(i), {kEnvironment}));
  frame.insert(frame.end(), more.begin(), more.end());
  return frame;
}

/// The actions that the policy in a folder executes of its chunk, by LeRobot's answers.
void expect_answers(const fs::path& folder) {
  const auto answers = parse_json<nlohmann::ordered_json>(read_file(kFixtures / "folder.json")).at("chunks");
  TrainedPolicy policy(folder, {.exact = false});
  EXPECT_EQ(policy.action_width(), kAction);
  EXPECT_EQ(policy.chunk(), kExecuted);
  for (int i = 0; i < 2; ++i) {
    policy.begin(0);
    const std::vector<float> rows = policy.act_ahead({0}, {.low_dim = frame_of(i), .images = {}});
    const at::Tensor wanted = tensor_of(answers[static_cast<std::size_t>(i)]).view({kChunk, kAction});
    EXPECT_LE(models::relative_difference(torch::tensor(rows).view({kExecuted, kAction}),
                                          wanted.narrow(0, 0, kExecuted), 1.0),
              1e-5);
  }
}

/// A copy of lerobot's folder, changed.
fs::path changed(const std::string& name, const std::function<void(const fs::path&)>& change) {
  const fs::path folder = test::fresh_folder("lerobot_" + name);
  fs::copy(kFixtures / "folder", folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  change(folder);
  return folder;
}

void edit_json(const fs::path& path, const std::function<void(nlohmann::ordered_json&)>& edit) {
  auto json = parse_json<nlohmann::ordered_json>(read_file(path));
  edit(json);
  std::ofstream(path) << json_text(json, 2);
}

void edit_tensors(const fs::path& path, const std::function<void(weights::NamedTensors&)>& edit) {
  weights::NamedTensors tensors;
  for (const auto& [name, tensor] : weights::read_safetensors(path).tensors) tensors.emplace_back(name, tensor.clone());
  edit(tensors);
  weights::write_safetensors(path, tensors);
}

TEST(LeRobotFolder, GivesTheChunksThatLeRobotGives) {
  expect_answers(kFixtures / "folder");
  const TrainedPolicy policy(kFixtures / "folder");
  ASSERT_EQ(policy.low_dim_fields().size(), 2u);
  EXPECT_EQ(policy.low_dim_fields()[0].name, "observation.state");
  EXPECT_EQ(policy.low_dim_fields()[1].name, "observation.environment_state");
  EXPECT_EQ(policy.action_fields()[0].name, "action");
  EXPECT_NE(policy.summary().find("weights of a LeRobot folder, which does not say its step"), std::string::npos)
      << policy.summary();
}

TEST(LeRobotFolder, WrittenAgainItIsWhatLeRobotWrote) {
  const fs::path folder = test::fresh_folder("lerobot_again");
  const fs::path theirs = kFixtures / "folder";
  write_lerobot_folder(read_lerobot_folder(theirs), "theirs", folder);
  expect_answers(folder);
  // What names no network, and is null or another way of saying so in theirs.
  const std::vector<std::string> free{"device", "push_to_hub", "pretrained_revision"};
  const auto ours = parse_json<nlohmann::ordered_json>(read_file(folder / "config.json"));
  const auto config = parse_json<nlohmann::ordered_json>(read_file(theirs / "config.json"));
  for (const auto& [name, value] : config.items())
    if (std::find(free.begin(), free.end(), name) == free.end())
      EXPECT_EQ(ours.value(name, nlohmann::ordered_json("absent")), value) << name;
  for (const char* name : {kBefore, kAfter})
    EXPECT_EQ(parse_json<nlohmann::ordered_json>(read_file(folder / name)),
              parse_json<nlohmann::ordered_json>(read_file(theirs / name)))
        << name;
  for (const auto& file : fs::directory_iterator(theirs)) {
    if (file.path().extension() != ".safetensors") continue;
    std::map<std::string, at::Tensor> written;
    for (const auto& [name, tensor] : weights::read_safetensors(folder / file.path().filename()).tensors)
      written.emplace(name, tensor);
    for (const auto& [name, tensor] : weights::read_safetensors(file.path()).tensors) {
      // Bounds are not kept by a policy that is normalised by mean and deviation, nor what is left as it is.
      if (name.ends_with(".min") || name.ends_with(".max") || name.starts_with("observation.environment_state"))
        continue;
      // Processors hold the statistics of all features; the action's is the last one's own.
      if (file.path().filename().string().starts_with("policy_postprocessor") && !name.starts_with("action")) continue;
      ASSERT_TRUE(written.contains(name)) << file.path().filename() << " " << name;
      EXPECT_TRUE(at::equal(written.at(name), tensor)) << name;
    }
  }
}

TEST(LeRobotFolder, OfADiffusionPolicyGivesTheActionsThatLeRobotGivesAndIsWrittenAgain) {
  const fs::path theirs = COHORT_SOURCE_DIR "/tests/policies/diffusion/lerobot";
  const auto answers = parse_json<nlohmann::ordered_json>(read_file(theirs / "folder.json")).at("actions");
  const fs::path folder = test::fresh_folder("lerobot_diffusion");
  write_lerobot_folder(read_lerobot_folder(theirs / "folder"), "theirs", folder,
                       {.environment_state = {"observation.environment_state"}});
  for (const fs::path& one : {theirs / "folder", folder}) {
    TrainedPolicy policy(one, {.seed = 0, .exact = false});
    for (int i = 0; i < 2; ++i) {
      policy.begin(0);
      std::vector<float> frame = numbers(3 * formula("state " + std::to_string(i), {kState}));
      const std::vector<float> more = numbers(formula("environment " + std::to_string(i), {kEnvironment}));
      frame.insert(frame.end(), more.begin(), more.end());
      const std::vector<float> rows = policy.act_ahead({0}, {.low_dim = frame, .images = {}});
      // Ten calls of the network.
      EXPECT_LE(models::relative_difference(torch::tensor(rows), tensor_of(answers[static_cast<std::size_t>(i)]), 1.0),
                1e-4)
          << one << " " << i;
    }
  }
  const auto ours = parse_json<nlohmann::ordered_json>(read_file(folder / "config.json")),
             config = parse_json<nlohmann::ordered_json>(read_file(theirs / "folder" / "config.json"));
  for (const char* name : {"type", "n_obs_steps", "horizon", "n_action_steps", "down_dims", "noise_scheduler_type",
                           "num_inference_steps", "beta_schedule", "clip_sample", "drop_n_last_frames"})
    EXPECT_EQ(ours.at(name), config.at(name)) << name;
  std::map<std::string, at::Tensor> written;
  for (const auto& [name, tensor] : weights::read_safetensors(folder / "model.safetensors").tensors)
    written.emplace(name, tensor);
  const weights::NamedTensors tensors = weights::read_safetensors(theirs / "folder" / "model.safetensors").tensors;
  EXPECT_EQ(written.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(written.contains(name)) << name;
    EXPECT_TRUE(at::equal(written.at(name), tensor)) << name;
  }
  EXPECT_NE(message_of([&] {
              write_lerobot_folder(read_lerobot_folder(theirs / "folder"), "run", folder / "other",
                                   {.environment_state = {"observation.state"}});
            }).find("train with model.first_observations=[observation.environment_state,observation.state]"),
            std::string::npos);
}

/// A folder as make_lerobot_fixtures.py had it, its weights made by the formula from LeRobot's names and shapes.
fs::path folder_with_pictures(const std::string& name, const nlohmann::ordered_json& shapes) {
  const fs::path folder = test::fresh_folder("lerobot_" + name);
  fs::copy(fs::path(COHORT_SOURCE_DIR "/tests/policies/diffusion/lerobot") / name, folder,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  weights::NamedTensors tensors;
  for (const auto& [weight, extents] : shapes.items()) {
    const auto shape = extents.get<std::vector<std::int64_t>>();
    const bool grid = weight.ends_with("pos_grid"), count = weight.ends_with("num_batches_tracked");
    if (grid) {  // two by two pixels: x of each, and its y
      tensors.emplace_back(weight, torch::tensor({-1.f, -1.f, 1.f, -1.f, -1.f, 1.f, 1.f, 1.f}).view({4, 2}));
    } else if (count) {
      tensors.emplace_back(weight, torch::zeros({}, at::kLong));
    } else if (shape.size() >= 2) {
      const double fan_in = static_cast<double>(c10::multiply_integers(shape)) / static_cast<double>(shape[0]);
      tensors.emplace_back(weight, formula(weight, shape, std::sqrt(3.0 / fan_in)));
    } else {
      const bool about_one = weight.ends_with("weight") || weight.ends_with("running_var");
      tensors.emplace_back(weight, formula(weight, shape, 0.1) + (about_one ? 1 : 0));
    }
  }
  weights::write_safetensors(folder / "model.safetensors", tensors);
  return folder;
}

/// Compares the actions of a folder of make_lerobot_fixtures.py with LeRobot's.
void expect_actions(const fs::path& folder, const nlohmann::ordered_json& answers, const std::vector<int>& size,
                    bool environment) {
  TrainedPolicy policy(folder, {.seed = 0, .exact = false});
  for (int i = 0; i < 2; ++i) {
    const std::string number = " " + std::to_string(i);
    std::vector<float> frame = numbers(3 * formula("state" + number, {kState}));
    if (environment) {
      const std::vector<float> more = numbers(formula("environment" + number, {kEnvironment}));
      frame.insert(frame.end(), more.begin(), more.end());
    }
    std::vector<at::Tensor> pictures;
    for (const char* camera : {"front", "wrist"})
      pictures.push_back(
          (formula(std::string("observation.images.") + camera + number, {3, size[0], size[1]}) * 127 + 128)
              .to(at::kByte)
              .permute({1, 2, 0})
              .contiguous()
              .unsqueeze(0));
    std::vector<ArrayView> views;
    for (at::Tensor& picture : pictures)
      views.push_back(make_view(picture.mutable_data_ptr<std::uint8_t>(), {1, size[0], size[1], 3}));
    policy.begin(0);
    const std::vector<float> rows = policy.act_ahead({0}, {.low_dim = frame, .images = views});
    EXPECT_LE(models::relative_difference(torch::tensor(rows), tensor_of(answers[static_cast<std::size_t>(i)]), 1.0),
              1e-5)
        << folder << " " << i;
  }
}

TEST(LeRobotFolder, OfADiffusionPolicyWithPicturesGivesTheActionsThatLeRobotGivesAndIsWrittenAgain) {
  const auto facts = parse_json<nlohmann::ordered_json>(
      read_file(COHORT_SOURCE_DIR "/tests/policies/diffusion/lerobot/pictures.json"));
  const std::vector<std::string> fields{"vision_backbone",
                                        "crop_shape",
                                        "crop_is_random",
                                        "use_group_norm",
                                        "spatial_softmax_num_keypoints",
                                        "use_separate_rgb_encoder_per_camera"};
  for (const auto& [name, size, environment] : {std::tuple{"pictures_apart", std::vector<int>{47, 45}, true},
                                                std::tuple{"pictures_shared", std::vector<int>{40, 36}, false}}) {
    const fs::path theirs = folder_with_pictures(name, facts.at(name).at("weights"));
    expect_actions(theirs, facts.at(name).at("actions"), size, environment);
    const fs::path ours = test::fresh_folder(std::string("lerobot_again_") + name);
    const std::vector<std::string> of_environment{"observation.environment_state"};
    write_lerobot_folder(read_lerobot_folder(theirs), "theirs", ours,
                         {.environment_state = environment ? of_environment : std::vector<std::string>()});
    expect_actions(ours, facts.at(name).at("actions"), size, environment);
    const auto written = parse_json<nlohmann::ordered_json>(read_file(ours / "config.json")),
               read = parse_json<nlohmann::ordered_json>(read_file(theirs / "config.json"));
    for (const std::string& field : fields) EXPECT_EQ(written.at(field), read.at(field)) << name << " " << field;
    std::map<std::string, at::Tensor> again;
    for (const auto& [weight, tensor] : weights::read_safetensors(ours / "model.safetensors").tensors)
      again.emplace(weight, tensor);
    const weights::NamedTensors tensors = weights::read_safetensors(theirs / "model.safetensors").tensors;
    EXPECT_EQ(again.size(), tensors.size());
    for (const auto& [weight, tensor] : tensors) {
      ASSERT_TRUE(again.contains(weight)) << weight;
      EXPECT_TRUE(at::equal(again.at(weight), tensor)) << weight;
    }
    for (const fs::path& folder : {theirs, ours}) fs::remove_all(folder);  // 45 MB an encoder
  }
}

TEST(LeRobotFolder, OfADiffusionPolicyWithPicturesIsRefusedByTheFieldThatDoesNotFit) {
  const auto facts = parse_json<nlohmann::ordered_json>(
      read_file(COHORT_SOURCE_DIR "/tests/policies/diffusion/lerobot/pictures.json"));
  const fs::path folder = folder_with_pictures("pictures_shared", facts.at("pictures_shared").at("weights"));
  const auto refused = [&](const char* field, const nlohmann::ordered_json& value) {
    const std::string before = read_file(folder / "config.json");
    edit_json(folder / "config.json", [&](auto& json) { json[field] = value; });
    const std::string text = message_of([&] { read_lerobot_folder(folder); });
    std::ofstream(folder / "config.json") << before;
    return text;
  };
  EXPECT_THAT(refused("resize_shape", {32, 32}), testing::HasSubstr("resize_shape = [32,32] is not done here"));
  EXPECT_THAT(refused("vision_backbone", "resnet101"),
              testing::HasSubstr("vision_backbone = \"resnet101\"; known are"));
  EXPECT_THAT(refused("crop_shape", 7), testing::HasSubstr("crop_shape = 7"));
  EXPECT_THAT(refused("crop_shape", {50, 50}), testing::HasSubstr("crop_height = 50"));
  EXPECT_THAT(refused("use_separate_rgb_encoder_per_camera", true),
              testing::HasSubstr("model.safetensors: holds diffusion.rgb_encoder.backbone"));
  EXPECT_THAT(refused("n_action_steps", 9), testing::HasSubstr("prediction_horizon = 8"));
  // Networks that LeRobot has not.
  const auto not_written = [&](const std::function<void(nlohmann::ordered_json&)>& edit) {
    weights::CheckpointContent content = read_lerobot_folder(folder);
    auto configuration = parse_json<nlohmann::ordered_json>(content.state.configuration);
    edit(configuration.at("model"));
    content.state.configuration = json_text(configuration);
    return message_of([&] { write_lerobot_folder(content, "run", folder / "other"); });
  };
  EXPECT_THAT(not_written([](auto& model) { model["images"]["core"]["feature_dimension"] = 64; }),
              testing::HasSubstr("model.images.core.pool_kwargs.num_kp=6 model.images.core.feature_dimension=12"));
  EXPECT_THAT(not_written([](auto& model) {
                model["images"]["crop"] = {{"enabled", true}, {"crop_height", 33}, {"crop_width", 34}};
              }),
              testing::HasSubstr("train with model.images.crop.half_to_even=true"));
  EXPECT_THAT(not_written([](auto& model) { model["first_observations"] = {"observation.images.front"}; }),
              testing::HasSubstr("train with model.first_observations=[observation.state,observation.images.front,"
                                 "observation.images.wrist]"));
  fs::remove_all(folder);  // 45 MB
}

TEST(LeRobotFolder, HoldsAPolicyThatLearntFromSeveralFieldsAndCameras) {
  PolicySettings model;
  model.algorithm = "act";
  model.low_dim = {"cube", "hand", "gripper"};
  model.low_dim_widths = {3, 2, 1};
  model.rgb = {"observation/front_image", "observation/wrist_image"};
  model.image_size = {32, 32};
  model.action_width = 4;
  model.action_widths = {3, 1};
  model.recorded.size = model.image_size;
  model.recorded_fields = {
      .names = {"state", "gripper", "action", "grip"}, .widths = {5, 1, 3, 1}, .elements = {"", "", "", ""}};
  auto& act = model.of<models::ActSettings>();
  act.chunk_size = 6;
  act.n_action_steps = 2;
  act.environment_state = {"cube"};
  act.dim_model = act.dim_feedforward = 16;
  act.n_heads = 2;
  act.n_encoder_layers = act.n_vae_encoder_layers = 1;
  act.dropout = 0;
  const auto network = make_policy(model, 1);
  models::fill(*network);
  config::Fields fields;
  fields.section("model", [&] { describe(fields, model); });
  nlohmann::ordered_json configuration = fields.to_json();
  configuration["data"] = {{"proprio", {"state[0:3]", "state[3:5]", "gripper"}},
                           {"actions", {"action", "grip"}},
                           {"images", {"observation/front_image", "observation/wrist_image"}},
                           {"image_transforms", {"resize(32, 32)"}},
                           {"proprio_normalization", {"bounds", "normal", "none"}},
                           {"action_normalization", {"bounds", "none"}}};
  const auto of = [](std::vector<double> mean, std::vector<double> low, std::vector<double> high) {
    nlohmann::ordered_json one;
    one["mean"] = mean;
    one["std"] = std::vector<double>(mean.size(), 0.5);
    one["min"] = low, one["max"] = high, one["q01"] = low, one["q99"] = high;
    return one;
  };
  nlohmann::ordered_json statistics;
  statistics["action"] = of({0, 0, 0, 0}, {-1, -2, 0, 0}, {1, 4, 0, 1});  // the third never changes
  statistics["proprio"] = of({1, 2, 3, 4, 5, 6}, {-9, -9, -9, -9, -9, -9}, {9, 9, 9, 9, 9, 9});
  statistics["num_transitions"] = statistics["num_trajectories"] = 1;
  weights::CheckpointContent content;
  content.state.configuration = json_text(configuration);
  content.dataset_statistics = json_text(statistics);
  for (const auto& [name, tensor] : models::state_of(*network)) content.model.emplace_back(name, tensor);
  const fs::path folder = test::fresh_folder("lerobot_fields");
  const std::vector<std::string> lines = write_lerobot_folder(content, "run", folder);
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "observation.state: state[3:5] (2), gripper (1)", "observation.environment_state: state[0:3] (3)",
                "observation.images.front_image: observation/front_image, 32 x 32 px, as its colours are after "
                "resize(32, 32)",
                "observation.images.wrist_image: observation/wrist_image, 32 x 32 px, as its colours are after "
                "resize(32, 32)",
                "action: action, grip"}));
  const weights::CheckpointContent read = read_lerobot_folder(folder);
  const auto json = parse_json<nlohmann::ordered_json>(read.state.configuration);
  EXPECT_EQ(json["model"]["low_dim"], configuration["model"]["low_dim"]);
  EXPECT_EQ(json["model"]["act"]["environment_state"], nlohmann::ordered_json({"cube"}));
  EXPECT_EQ(json["data"]["proprio"], configuration["data"]["proprio"]);
  // The same numbers by mean and deviation: bounds of -9 and 9 are a mean of 0 and a deviation of 9.
  const auto proprio = parse_json<nlohmann::ordered_json>(read.dataset_statistics)["proprio"];
  const auto mean = proprio["mean"].get<std::vector<double>>(), std = proprio["std"].get<std::vector<double>>();
  EXPECT_NEAR(mean[0], 0, 1e-6);
  EXPECT_NEAR(std[0], 9, 1e-6);
  EXPECT_NEAR(mean[3], 4, 1e-6);
  EXPECT_NEAR(std[3], 0.5, 1e-6);
  EXPECT_NEAR(mean[5], 0, 1e-6);
  EXPECT_NEAR(std[5], 1, 1e-6);
  const auto actions = parse_json<nlohmann::ordered_json>(read.dataset_statistics)["action"];
  EXPECT_EQ(actions["std"][2], 0);
  EXPECT_NEAR(actions["mean"][1].get<double>(), 1, 1e-6);
  // lerobot itself, where it is: the chunks that it gives to the same observations.
  if (const char* python = std::getenv("COHORT_LEROBOT_PYTHON"); python != nullptr) {
    const std::string command = format("OMP_NUM_THREADS=1 {} {}/tests/policies/act/check_folder.py {} > {}/answers.txt",
                                       python, COHORT_SOURCE_DIR, folder.string(), folder.string());
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream answers(folder / "answers.txt");
    std::string line;
    int i = 0;
    for (; std::getline(answers, line); ++i) {
      if (!line.starts_with("[")) {
        --i;
        continue;
      }
      const std::string number = " " + std::to_string(i);
      std::vector<float> frame = numbers(formula("observation.environment_state" + number, {3}));
      const std::vector<float> state = numbers(formula("observation.state" + number, {3}));
      frame.insert(frame.end(), state.begin(), state.end());
      std::vector<at::Tensor> pictures;
      for (const char* camera : {"front_image", "wrist_image"})
        pictures.push_back((formula(std::string("observation.images.") + camera + number, {3, 32, 32}) * 127 + 128)
                               .to(at::kByte)
                               .permute({1, 2, 0})
                               .contiguous()
                               .unsqueeze(0));
      std::vector<ArrayView> views;
      for (at::Tensor& picture : pictures)
        views.push_back(make_view(picture.mutable_data_ptr<std::uint8_t>(), {1, 32, 32, 3}));
      TrainedPolicy policy(folder, {.exact = false});
      policy.begin(0);
      const std::vector<float> rows = policy.act_ahead({0}, {.low_dim = frame, .images = views});
      EXPECT_LE(models::relative_difference(
                    torch::tensor(rows), tensor_of(parse_json<nlohmann::ordered_json>(line)).narrow(0, 0, 2 * 4), 1.0),
                1e-5)
          << i;
    }
    EXPECT_EQ(i, 2);
  }
  // Cameras in another order, and a sidecar of another policy.
  edit_json(folder / "cohort.json", [](auto& own) { std::swap(own["model"]["rgb"][0], own["model"]["rgb"][1]); });
  EXPECT_NE(message_of([&] {
              read_lerobot_folder(folder);
            }).find("the cameras are observation.images.front_image, observation.images.wrist_image, but"),
            std::string::npos);
  edit_json(folder / "cohort.json", [](auto& own) { own["model"]["low_dim_widths"] = {3, 2, 2}; });
  EXPECT_NE(message_of([&] { read_lerobot_folder(folder); }).find("is no vector of 4 numbers"), std::string::npos);
}

/// A small policy of the task pick-and-place.
PolicySettings of_pick_and_place(const std::string& algorithm, bool pictures) {
  PolicySettings model;
  model.algorithm = algorithm;
  model.low_dim = {"robot", "things"};
  model.low_dim_widths = {6, 11};
  if (pictures) {
    model.rgb = {"front", "wrist"};
    model.low_dim.pop_back(), model.low_dim_widths.pop_back();
  }
  model.image_size = {64, 64};
  model.action_width = 5;
  model.action_widths = {5};
  model.recorded.size = model.image_size;
  model.images.core = {
      .backbone_class = "ResNet18Conv", .pool_class = "SpatialSoftmax", .pool = {.num_kp = 8}, .feature_dimension = 16};
  auto& act = model.of<models::ActSettings>();
  act.chunk_size = 6;
  act.n_action_steps = 3;
  if (!pictures) act.environment_state = {"things"};
  act.dim_model = act.dim_feedforward = 16;
  act.n_heads = 2;
  auto& diffusion = model.of<models::DiffusionPolicySettings>();
  diffusion.unet.down_dims = {16, 32};
  diffusion.unet.diffusion_step_embed_dim = 16;
  diffusion.sampler.kind = "ddim";
  diffusion.sampler.num_inference_timesteps = 2;
  for (std::size_t i = 0; i < model.low_dim.size(); ++i) {
    model.recorded_fields.names.push_back(model.low_dim[i]);
    model.recorded_fields.widths.push_back(model.low_dim_widths[i]);
  }
  model.recorded_fields.names.emplace_back("action");
  model.recorded_fields.widths.push_back(5);
  model.recorded_fields.elements.resize(model.recorded_fields.names.size());
  return model;
}

/// Its checkpoint with random weights.
weights::CheckpointContent checkpoint_of(PolicySettings model) {
  const auto network = make_policy(model, 1);
  config::Fields fields;
  fields.section("model", [&] { describe(fields, model); });
  nlohmann::ordered_json configuration = fields.to_json();
  configuration["data"] = {{"proprio", model.low_dim},
                           {"actions", {"action"}},
                           {"images", model.rgb},
                           {"image_transforms", {"resize(64, 64)"}},
                           {"proprio_normalization", {"normal"}},
                           {"action_normalization", {"bounds"}}};
  const auto of = [](std::size_t width) {
    nlohmann::ordered_json one;
    for (const char* name : {"mean", "std", "min", "max", "q01", "q99"})
      one[name] = std::vector<double>(width, name[0] == 's'                                             ? 0.5
                                             : name == std::string("min") || name == std::string("q01") ? -1.0
                                                                                                        : 1.0);
    return one;
  };
  nlohmann::ordered_json statistics;
  statistics["action"] = of(5);
  statistics["proprio"] = of(model.rgb.empty() ? 17 : 6);
  statistics["num_transitions"] = statistics["num_trajectories"] = 1;
  weights::CheckpointContent content;
  content.state.configuration = json_text(configuration);
  content.dataset_statistics = json_text(statistics);
  for (const auto& [name, tensor] : models::state_of(*network)) content.model.emplace_back(name, tensor);
  return content;
}

TEST(LeRobotFolder, ADiffusionPolicysPictureEncoderOfLeRobotsLearns) {
  for (const bool shared : {false, true}) {
    PolicySettings model = of_pick_and_place("diffusion_policy", true);
    model.images.core.norm = shared ? "batch" : "group";
    model.shared_cameras = shared ? "r" : "";
    model.images.crop = {.enabled = true, .crop_height = 57, .crop_width = 60, .random = !shared, .half_to_even = true};
    model.images.image_mean = {0.4, 0.5, 0.6}, model.images.image_std = {0.2, 0.2, 0.3};
    const auto network = make_policy(model, 1);
    const models::Observations seen{{"robot", formula("robot", {2, 2, 6})},
                                    {"front", (formula("front", {2, 2, 64, 64, 3}) * 127 + 128).to(at::kByte)},
                                    {"wrist", (formula("wrist", {2, 2, 64, 64, 3}) * 127 + 128).to(at::kByte)}};
    const models::RandomContextGuard guard({.seed = 1, .step = 1, .sample_ids = torch::tensor({3, 4}, at::kLong)});
    const at::Tensor loss = network->loss(seen, formula("action", {2, 16, 5}));
    EXPECT_TRUE(std::isfinite(loss.item<double>()));
    loss.backward();
    for (const auto& parameter : network->named_parameters())
      EXPECT_GT(parameter.value().grad().abs().sum().item<double>(), 0) << parameter.key();
    const fs::path folder = test::fresh_folder(shared ? "lerobot_learns_shared" : "lerobot_learns_apart");
    write_lerobot_folder(checkpoint_of(model), "run", folder);
    const auto config = parse_json<nlohmann::ordered_json>(read_file(folder / "config.json"));
    EXPECT_EQ(config.at("crop_shape"), nlohmann::ordered_json({57, 60}));
    EXPECT_EQ(config.at("crop_is_random"), !shared);
    EXPECT_EQ(config.at("use_separate_rgb_encoder_per_camera"), !shared);
    fs::remove_all(folder);  // 45 MB an encoder
  }
}

TEST(LeRobotFolder, PlaysInLeRobotsOwnEvaluationLoop) {
  const char* python = std::getenv("COHORT_LEROBOT_PYTHON");
  if (python == nullptr)
    GTEST_SKIP() << "set COHORT_LEROBOT_PYTHON to a Python with lerobot (tests/data/lerobot_venv), and PYTHONPATH to "
                    "build/release/python";
  for (const std::string algorithm : {"act", "diffusion_policy"}) {
    for (const bool pictures : {false, true}) {
      const fs::path folder = test::fresh_folder("lerobot_plays_" + algorithm + (pictures ? "_pictures" : ""));
      write_lerobot_folder(
          checkpoint_of(of_pick_and_place(algorithm, pictures)), "run", folder,
          {.environment_state = pictures ? std::vector<std::string>() : std::vector<std::string>{"things"}});
      const std::string command =
          format("OMP_NUM_THREADS=1 {} {}/tests/policies/play_in_lerobot.py {} pick-and-place 2 > {}/played.txt",
                 python, COHORT_SOURCE_DIR, folder.string(), folder.string());
      ASSERT_EQ(std::system(command.c_str()), 0) << command;
      const std::string printed = read_file(folder / "played.txt");
      const auto played = parse_json<nlohmann::ordered_json>(printed.substr(printed.rfind('{')));
      EXPECT_EQ(played.at("episodes"), 2) << algorithm;
      EXPECT_LT(played.at("reward").get<double>(), 0) << algorithm;  // minus distances, summed over an episode
      fs::remove_all(folder);
    }
  }
}

TEST(LeRobotFolder, WhatDoesNotFitIsRefusedByName) {
  const auto message = [](const std::string& name, const std::function<void(const fs::path&)>& change) {
    const fs::path folder = changed(name, change);
    std::string text = message_of([&] { read_lerobot_folder(folder); });
    for (std::size_t at; (at = text.find(folder.string())) != std::string::npos;)
      text.replace(at, folder.string().size(), "FOLDER");
    return text;
  };
  const std::string state = "policy_preprocessor_step_3_normalizer_processor.safetensors",
                    of_action = "policy_postprocessor_step_0_unnormalizer_processor.safetensors";
  EXPECT_EQ(
      message("no_state", [&](const fs::path& folder) { fs::remove(folder / state); }),
      "FOLDER/policy_preprocessor.json: the statistics of step 3, normalizer_processor, are missing: there is no " +
          state +
          "; save the processors again with the data set's statistics (make_pre_post_processors(..., "
          "dataset_stats=dataset.meta.stats))");
  EXPECT_EQ(
      message("no_processor", [&](const fs::path& folder) { fs::remove(folder / kAfter); }),
      "FOLDER/policy_postprocessor.json: is not there, and with it the statistics by which numbers are normalised; "
      "folders of LeRobot before 0.4 get it by `python -m lerobot.processor.migrate_policy_normalization "
      "--pretrained-path FOLDER`");
  EXPECT_EQ(
      message("no_feature",
              [&](const fs::path& folder) {
                edit_tensors(folder / state, [](auto& all) {
                  std::erase_if(all, [](const auto& one) { return one.first == "observation.state.std"; });
                });
              }),
      "FOLDER/" + state +
          ": has no observation.state.std, and LeRobot would leave observation.state as it is without a word; save "
          "the processors again with the data set's statistics");
  EXPECT_EQ(
      message("other_width",
              [&](const fs::path& folder) {
                edit_tensors(folder / state, [](auto& all) {
                  for (auto& [name, tensor] : all)
                    if (name == "observation.state.mean") tensor = at::zeros({kState + 1});
                });
              }),
      "FOLDER/" + state +
          ": observation.state.mean has 6 numbers, but the feature has 5: the statistics are of another data set; "
          "save the processors again with those of the data that it was trained on");
  EXPECT_EQ(
      message("stale",
              [&](const fs::path& folder) {
                edit_tensors(folder / of_action, [](auto& all) {
                  for (auto& [name, tensor] : all)
                    if (name == "action.mean") tensor += 1;
                });
              }),
      "FOLDER/" + state + " and FOLDER/" + of_action +
          " have another action.mean: one of them is stale; save both processors again with the statistics of the "
          "data that the policy was trained on");
  EXPECT_EQ(message("unknown_step",
                    [&](const fs::path& folder) {
                      edit_json(folder / kBefore,
                                [](auto& json) { json["steps"][1]["registry_name"] = "tokenizer_processor"; });
                    }),
            "FOLDER/policy_preprocessor.json: step 1 is tokenizer_processor, which is not done here; known are "
            "rename_observations_processor, to_batch_processor, device_processor and normalizer_processor");
  EXPECT_EQ(message("short_chunk",
                    [&](const fs::path& folder) {
                      edit_json(folder / "config.json", [](auto& json) { json["n_action_steps"] = kChunk + 2; });
                    }),
            "FOLDER/config.json: model.act (robomimic: algo): n_action_steps = 12, but a chunk has chunk_size = 10 "
            "actions: lower the first or raise the second");
  EXPECT_EQ(message("other_policy",
                    [&](const fs::path& folder) {
                      edit_json(folder / "config.json", [](auto& json) { json["type"] = "smolvla"; });
                    }),
            "FOLDER/config.json: its type is smolvla, and of LeRobot's policies these are known here: diffusion, act");
  EXPECT_EQ(message("dilation",
                    [&](const fs::path& folder) {
                      edit_json(folder / "config.json",
                                [](auto& json) { json["replace_final_stride_with_dilation"] = true; });
                    }),
            "FOLDER/config.json: replace_final_stride_with_dilation = true is not done here");
}

TEST(LeRobotFolder, RobotsNamesAreTakenFromTheProcessor) {
  const fs::path folder = changed("renamed", [](const fs::path& path) {
    edit_json(path / kBefore, [](auto& json) {
      json["steps"][0]["config"]["rename_map"] = {{"observation.joints", "observation.state"}};
    });
  });
  expect_answers(folder);
  EXPECT_EQ(TrainedPolicy(folder).low_dim_fields()[0].name, "observation.joints");
}

}  // namespace
}  // namespace cohort::policies
