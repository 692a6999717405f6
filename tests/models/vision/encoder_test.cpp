// Images and observations: the encoder against the DROID package, ResNets and colour operations against torchvision.
#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/initialise.h"
#include "models/random_context.h"
#include "models/vision/observation_encoder.h"
#include "models/vision/resnet.h"
#include "models/vision/shallow_conv.h"

namespace cohort::models {
namespace {

// The reference ran in float64, ours in float32: through 50 layers with sums of up to 30,000 terms.
constexpr double kEncoderTolerance = 2e-5;
constexpr double kEncoderGradientTolerance = 2e-4;
// At the DROID size some of millions of ReLUs lie so near to zero that rounding decides whether they pass a gradient
// on: the package in float32 differs from itself in float64 by up to 5e-3 of a gradient's norm (outputs by 1e-6).
constexpr double kDroidGradientTolerance = 2e-2;
// Colours are made of a handful of float32 operations.
constexpr double kColourTolerance = 1e-5;

at::Tensor image(const std::string& name, std::vector<std::int64_t> shape) {
  return (formula(name, std::move(shape)) + 1) / 2;
}

void expect_output(const at::Tensor& output, const nlohmann::ordered_json& facts) {
  const at::Tensor o = output.detach().to(at::kDouble).contiguous().flatten();
  const auto expected = facts.get<std::vector<double>>();
  const double norm = expected[0], entry = norm / std::sqrt(static_cast<double>(o.numel()));
  EXPECT_NEAR(o.norm().item<double>(), norm, kEncoderTolerance * norm);
  EXPECT_NEAR(at::dot(o, formula("probe output", {o.numel()}).to(at::kDouble)).item<double>(), expected[1],
              kEncoderTolerance * norm);
  for (std::size_t i = 2; i < expected.size(); ++i)
    EXPECT_NEAR(o[static_cast<std::int64_t>(i) - 2].item<double>(), expected[i], 10 * kEncoderTolerance * entry) << i;
}

ObservationEncoderSettings settings_of(const nlohmann::ordered_json& test) {
  ObservationEncoderSettings settings;
  for (const auto& [name, shape] : test.at("shapes").items())
    settings.observations.push_back({name, shape.get<std::vector<int>>(), ""});
  share_cameras(settings.observations, "camera/image/varied_camera");
  const auto& core = test.at("core");
  settings.core.backbone_class = core.at("backbone_class");
  settings.core.feature_dimension =
      core.at("feature_dimension").is_null() ? 0 : core.at("feature_dimension").get<int>();
  if (!core.at("pool_class").is_null()) {
    settings.core.pool_class = core.at("pool_class");
    settings.core.pool.num_kp = core.at("pool_kwargs").at("num_kp");
    settings.core.pool.temperature = core.at("pool_kwargs").at("temperature");
    settings.core.pool.learnable_temperature = core.at("pool_kwargs").at("learnable_temperature");
  }
  settings.color.enabled = settings.crop.enabled = true;
  settings.crop.crop_height = test.at("crop")[0];
  settings.crop.crop_width = test.at("crop")[1];
  settings.combine = true;
  return settings;
}

Observations observations_of(const ObservationEncoderSettings& settings, std::int64_t batch, std::int64_t frames) {
  Observations observations;
  for (const ObservationSettings& o : settings.observations) {
    std::vector<std::int64_t> shape{batch, frames};
    shape.insert(shape.end(), o.shape.begin(), o.shape.end());
    observations[o.name] = o.is_camera() ? image(o.name, shape) : formula(o.name, shape);
  }
  return observations;
}

std::int64_t parameters_of(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const auto& p : module.parameters()) count += p.numel();
  return count;
}

class EncoderParity : public ::testing::TestWithParam<std::string> {};

TEST_P(EncoderParity, OutputAndGradientsAreTheReferences) {
  const auto facts = read_facts("encoder").at("cases").at(GetParam());
  for (const bool channels_last : {false, true}) {
    ObservationEncoderSettings settings = settings_of(facts.at("case"));
    settings.channels_last = channels_last;
    ObservationEncoder encoder(settings);
    fill(encoder);
    encoder.eval();
    EXPECT_EQ(parameters_of(encoder), facts.at("parameters").get<std::int64_t>());
    const at::Tensor output = encoder.forward(observations_of(settings, 2, 2), 2);
    ASSERT_EQ(output.sizes().vec(), facts.at("shape").get<std::vector<std::int64_t>>());
    expect_output(output, facts.at("output"));
    (output * formula("target", output.sizes().vec())).sum().backward();
    expect_gradients(encoder, facts.at("gradients"),
                     GetParam() == "droid" ? kDroidGradientTolerance : kEncoderGradientTolerance);
  }
}

TEST_P(EncoderParity, JoinedVectorIsTheReferences) {
  const auto facts = read_facts("encoder").at("cases").at(GetParam());
  ObservationEncoderSettings settings = settings_of(facts.at("case"));
  settings.combine = false;
  ObservationEncoder encoder(settings);
  fill(encoder);
  encoder.eval();
  const at::NoGradGuard no_grad;
  EXPECT_EQ(parameters_of(encoder), facts.at("joined").at("parameters").get<std::int64_t>());
  const Observations observations = observations_of(settings, 2, 2);
  const at::Tensor output = encoder.forward(observations, 2);
  ASSERT_EQ(output.sizes().vec(), facts.at("joined").at("shape").get<std::vector<std::int64_t>>());
  expect_output(output, facts.at("joined").at("output"));
}

INSTANTIATE_TEST_SUITE_P(Reference, EncoderParity, ::testing::Values("droid", "keypoints", "learned_temperature"),
                         [](const auto& param) { return param.param; });

TEST(ResNet, OutputAndGradientsAreTorchvisionsWithItsNames) {
  const auto all = read_facts("encoder").at("resnets");
  for (const auto& [depth, facts] : all.items()) {
    ResNet net(std::stoi(depth), 3, ResNetNames::kTorchvision);
    fill(net);
    const at::Tensor output = net.forward(image("image", {2, 3, 70, 50}));
    ASSERT_EQ(output.sizes().vec(), facts.at("shape").get<std::vector<std::int64_t>>());
    expect_output(output, facts.at("output"));
    (output * formula("target", output.sizes().vec())).sum().backward();
    expect_gradients(net, facts.at("gradients"), kEncoderGradientTolerance);
  }
  const auto batch_norm = read_facts("encoder").at("batch_norm");
  ResNet net(18, 3, ResNetNames::kTorchvision, ResNetNorm::kBatch);
  fill(net);
  const at::Tensor output = net.forward(image("image", {2, 3, 70, 50}));
  expect_output(output, batch_norm.at("output"));
  (output * formula("target", output.sizes().vec())).sum().backward();
  expect_gradients(net, batch_norm.at("gradients"), kEncoderGradientTolerance);
  EXPECT_EQ(message_of([] { ResNet(101, 3, ResNetNames::kTorchvision); }),
            "there is no ResNet-101 here, only ResNet-18, -34 and -50");
}

TEST(ShallowConv, OutputGradientsAndKeypointsAreRobomimicsWithItsNames) {
  const auto facts = read_facts("shallow");
  ShallowConv net(3);
  SpatialSoftmax pool({.num_kp = 8}, ShallowConv::kOutputChannels, 24, 16);
  fill(net);
  fill(pool);
  const at::Tensor output = net.forward(image("image", {2, 3, 48, 32}));
  ASSERT_EQ(output.sizes().vec(), facts.at("shape").get<std::vector<std::int64_t>>());
  expect_output(output, facts.at("output"));
  expect_output(pool.forward(output), facts.at("points"));
  (output * formula("target", output.sizes().vec())).sum().backward();
  expect_gradients(net, facts.at("gradients"), kEncoderGradientTolerance);
  const at::NoGradGuard no_grad;
  const VisualCore core({.backbone_class = "ShallowConv", .pool_class = "SpatialSoftmax", .feature_dimension = 5},
                        {3, 33, 47});
  EXPECT_EQ(core.forward(image("odd", {2, 3, 33, 47})).sizes().vec(), (std::vector<std::int64_t>{2, 5}));
}

TEST(ColourJitter, IsTorchvisionsForGivenFactors) {
  const auto facts = read_facts("encoder").at("colours");
  at::Tensor images = image("colours", {6, 3, 9, 7});
  images[4][1].copy_(images[4][0]);
  images[4][2].copy_(images[4][0]);
  images[5].copy_((images[5] > 0.5).to(at::kFloat));
  const at::Tensor factors = at::stack({1 + 0.3 * formula("brightness", {6}), 1 + 0.3 * formula("contrast", {6}),
                                        1 + 0.3 * formula("saturation", {6}), 0.3 * formula("hue", {6})},
                                       1);
  const auto orders = facts.at("orders").get<std::vector<std::vector<std::int64_t>>>();
  at::Tensor order = at::empty({6, 4}, at::kLong);
  for (std::size_t i = 0; i < orders.size(); ++i) order[static_cast<std::int64_t>(i)] = torch::tensor(orders[i]);
  const at::Tensor before = images.clone();
  const at::Tensor output = apply_color_jitter(images, {factors, order});
  EXPECT_LE(relative_difference(output.flatten(), tensor_of(facts.at("output")), 1.0), kColourTolerance);
  EXPECT_TRUE(at::equal(images, before)) << "the batch stays as it was";
}

TEST(Crop, IsRobomimicsForGivenCorners) {
  const auto facts = read_facts("encoder").at("crops");
  const auto corners = facts.at("corners").get<std::vector<std::vector<std::int64_t>>>();
  at::Tensor places = at::empty({3, 2}, at::kLong);
  for (std::size_t i = 0; i < 3; ++i) places[static_cast<std::int64_t>(i)] = torch::tensor(corners[i]);
  EXPECT_LE(relative_difference(crop(image("crops", {3, 2, 8, 9}), places, 4, 3).flatten(),
                                tensor_of(facts.at("output")), 1.0),
            1e-7);
}

TEST(Randomizers, DrawForTheSampleWhereverItIsInABatch) {
  const ColorRandomizerSettings color;
  CropRandomizerSettings crops{.enabled = true, .crop_height = 3, .crop_width = 4, .num_crops = 2};
  const ImageKeys both{.seed = 7, .step = 3, .sample_ids = {11, 5}, .frames = 2, .camera = 1};
  ImageKeys second = both;
  second.sample_ids = {5};
  const ColorJitter jitter = draw_color_jitter(color, both), alone = draw_color_jitter(color, second);
  EXPECT_TRUE(at::equal(jitter.factors.narrow(0, 2, 2), alone.factors));
  EXPECT_TRUE(at::equal(jitter.order.narrow(0, 2, 2), alone.order));
  EXPECT_TRUE(
      at::equal(draw_crop_corners(crops, both, 10, 12).narrow(0, 4, 4), draw_crop_corners(crops, second, 10, 12)));
  for (const int change : {0, 1, 2}) {
    ImageKeys other = second;
    (change == 0 ? other.seed : other.step) += change == 2 ? 0 : 1;
    other.camera += change == 2 ? 1 : 0;
    EXPECT_FALSE(at::equal(draw_color_jitter(color, other).factors, alone.factors)) << change;
  }
}

TEST(Randomizers, CoverTheirRangesEvenly) {
  ImageKeys keys{.seed = 1, .step = 0, .sample_ids = {}, .frames = 2, .camera = 0};
  for (std::int64_t id = 0; id < 3000; ++id) keys.sample_ids.push_back(id);
  const ColorJitter jitter =
      draw_color_jitter({.brightness = 0.3, .contrast = 1.5, .saturation = 0.0, .hue = 0.1}, keys);
  const std::vector<double> low{0.7, 0.0, 1.0, -0.1}, high{1.3, 2.5, 1.0, 0.1};
  for (std::int64_t k = 0; k < 4; ++k) {
    const at::Tensor f = jitter.factors.select(1, k).to(at::kDouble);
    const auto at = static_cast<std::size_t>(k);
    EXPECT_GE(f.min().item<double>(), low[at] - 1e-6);
    EXPECT_LE(f.max().item<double>(), high[at] + 1e-6);
    // The mean of 6000 uniform numbers has a deviation of 0.0037 of their range; five of these.
    EXPECT_NEAR(f.mean().item<double>(), (low[at] + high[at]) / 2, 0.019 * (high[at] - low[at]) + 1e-6);
    // Each operation comes at each place in a quarter of the cases: deviation 0.0056.
    EXPECT_NEAR((jitter.order.select(1, k) == 2).to(at::kDouble).mean().item<double>(), 0.25, 0.028);
  }
  const at::Tensor corners = draw_crop_corners({.enabled = true, .crop_height = 5, .crop_width = 9}, keys, 8, 10);
  // Rows 0, 1, 2 of the possible 0..3 (as the reference leaves the last one out), column 0 only.
  EXPECT_EQ(corners.select(1, 0).max().item<std::int64_t>(), 2);
  EXPECT_EQ(corners.select(1, 1).max().item<std::int64_t>(), 0);
  EXPECT_NEAR((corners.select(1, 0) == 1).to(at::kDouble).mean().item<double>(), 1.0 / 3, 0.031);
}

ObservationEncoderSettings small_settings() {
  ObservationEncoderSettings settings;
  settings.observations = {{"front", {3, 40, 40}, ""}, {"side", {3, 40, 40}, "front"}, {"arm", {2}, ""}};
  settings.core = {.backbone_class = "ResNet18Conv", .pool_class = "SpatialSoftmax", .feature_dimension = 16};
  settings.color.enabled = settings.crop.enabled = true;
  settings.crop.crop_height = settings.crop.crop_width = 36;
  return settings;
}

TEST(ObservationEncoder, TrainingIsAFunctionOfSeedStepAndSample) {
  const ObservationEncoderSettings settings = small_settings();
  ObservationEncoder encoder(settings);
  initialise(encoder, 1);
  const at::NoGradGuard no_grad;
  const Observations two = observations_of(settings, 2, 2);
  Observations second;
  for (const auto& [name, x] : two) second[name] = x.narrow(0, 1, 1);
  const auto run = [&](const Observations& observations, std::uint64_t step, std::vector<std::int64_t> ids) {
    const RandomContextGuard guard({.seed = 3, .step = step, .sample_ids = torch::tensor(ids)});
    return encoder.forward(observations, 2);
  };
  const at::Tensor both = run(two, 5, {40, 41});
  // Convolutions of another batch size may sum in another order.
  EXPECT_LE(relative_difference(run(second, 5, {41})[0], both[1], 1.0), 1e-5);
  EXPECT_TRUE(at::equal(run(two, 5, {40, 41}), both));
  EXPECT_GT((run(two, 6, {40, 41}) - both).abs().max().item<double>(), 1e-3) << "another step, another crop";
  EXPECT_GT((run(second, 5, {40})[0] - both[1]).abs().max().item<double>(), 1e-3) << "another sample, another crop";
  EXPECT_THROW(encoder.forward(two, 2), Error) << "training needs a context";
}

TEST(ObservationEncoder, AveragesTheFeaturesOfSeveralCrops) {
  ObservationEncoderSettings settings = small_settings();
  settings.color.enabled = false;
  settings.crop.num_crops = 3;
  settings.observations = {{"front", {3, 40, 40}, ""}};
  ObservationEncoder encoder(settings);
  initialise(encoder, 1);
  const at::NoGradGuard no_grad;
  const Observations observations = observations_of(settings, 1, 1);
  const RandomContextGuard guard({.seed = 3, .step = 5, .sample_ids = torch::tensor(std::vector<std::int64_t>{9})});
  const at::Tensor corners =
      draw_crop_corners(settings.crop, {.seed = 3, .step = 5, .sample_ids = {9}, .frames = 1, .camera = 0}, 40, 40);
  at::Tensor mean = at::zeros({1, 1, 16});
  for (std::int64_t i = 0; i < 3; ++i) {
    ObservationEncoderSettings plain = settings;
    plain.crop.enabled = false;
    plain.observations[0].shape = {3, 36, 36};
    ObservationEncoder single(plain);
    initialise(single, 1);
    mean += single.forward({{"front", crop(observations.at("front")[0], corners.narrow(0, i, 1), 36, 36).unsqueeze(0)}},
                           1) /
            3;
  }
  EXPECT_LE(relative_difference(encoder.forward(observations, 1), mean, 1.0), 1e-5);
}

TEST(ObservationEncoder, TakesBytesAsTheyComeFromADecoder) {
  ObservationEncoderSettings settings = small_settings();
  ObservationEncoder encoder(settings);
  initialise(encoder, 1);
  encoder.eval();
  const at::NoGradGuard no_grad;
  Observations floats = observations_of(settings, 2, 2), bytes = floats;
  for (const char* camera : {"front", "side"}) {
    const at::Tensor rounded = (floats[camera] * 255).round();
    floats[camera] = rounded / 255;
    bytes[camera] = rounded.to(at::kByte).permute({0, 1, 3, 4, 2}).contiguous();
  }
  EXPECT_TRUE(at::equal(encoder.forward(bytes, 2), encoder.forward(floats, 2)));
}

TEST(ObservationEncoder, NamesWhatIsWrong) {
  ObservationEncoderSettings settings = small_settings();
  ObservationEncoder encoder(settings);
  initialise(encoder, 1);
  encoder.eval();
  Observations observations = observations_of(settings, 2, 2);
  observations["side"] = at::zeros({2, 2, 3, 40, 41});
  EXPECT_EQ(message_of([&] { encoder.forward(observations, 2); }),
            "observation side has shape [2, 2, 3, 40, 41], but must be (samples, 2, 3, 40, 40): colours first");
  observations.erase("side");
  EXPECT_EQ(message_of([&] { encoder.forward(observations, 2); }), "observation side is missing from the batch");
  settings.crop.crop_height = 40;
  EXPECT_EQ(
      message_of([&] { ObservationEncoder e(settings); }),
      "CropRandomizer: crop_height = 40 and crop_width = 36, but must be smaller than the image's 40 x 40 pixels");
  settings = small_settings();
  settings.observations[1].shares = "rear";
  EXPECT_EQ(message_of([&] { ObservationEncoder e(settings); }),
            "side shares the image encoder of rear, which is no camera before it");
  settings = small_settings();
  settings.crop.enabled = false;
  settings.observations[1].shape[2] = 48;
  EXPECT_EQ(message_of([&] { ObservationEncoder e(settings); }),
            "side shares the image encoder of front, but its images have another size");
}

}  // namespace
}  // namespace cohort::models
