// What an environment does may not depend on which others act with it: not even in the last bit.
#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/philox.h"
#include "models/policy_network.h"
#include "policies/algorithm.h"
#include "policies/bc/behaviour_cloning.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/policy_settings.h"

namespace cohort::policies {
namespace {

constexpr int kFrames = 3;

/// Hidden sizes with whole and with broken blocks of BLAS's kernels.
PolicySettings acting_settings(const std::string& algorithm, int width = 7) {
  PolicySettings s;
  s.algorithm = algorithm;
  s.action_width = width;
  s.action_widths = {width};
  s.low_dim = {"state"};
  s.low_dim_widths = {19};
  s.of<models::DiffusionPolicySettings>().horizon = {
      .observation_horizon = 2, .action_horizon = 1, .prediction_horizon = 8};
  s.of<models::DiffusionPolicySettings>().unet.down_dims = {32, 64};
  s.of<models::DiffusionPolicySettings>().unet.diffusion_step_embed_dim = 32;
  s.of<models::DiffusionPolicySettings>().sampler.num_inference_timesteps = 4;
  s.of<models::DiffusionPolicySettings>().transformer.n_layer = 2;
  s.of<models::DiffusionPolicySettings>().transformer.n_head = 2;
  s.of<models::DiffusionPolicySettings>().transformer.n_emb = 48;
  s.of<models::BcSettings>().actor_layer_dims = {200, 257};
  return s;
}

/// The frame of environment `id` at time t; a picture where `size` is not 0.
models::Observations acting_frame(const std::vector<std::uint64_t>& ids, int t, int size) {
  std::vector<at::Tensor> states, images;
  for (const std::uint64_t id : ids) {
    at::Tensor state = at::empty({19}, at::kFloat);
    for (std::int64_t k = 0; k < 19; ++k)
      state.mutable_data_ptr<float>()[k] = RandomStream(3, RandomPurpose::kSampling, id, static_cast<std::uint64_t>(t))
                                               .normal(static_cast<std::uint64_t>(k));
    states.push_back(state);
    if (size == 0) continue;
    at::Tensor image = at::empty({size, size, 3}, at::kByte);
    const RandomStream pixels(4, RandomPurpose::kSampling, id, static_cast<std::uint64_t>(t));
    for (std::int64_t k = 0; k < image.numel(); ++k)
      image.mutable_data_ptr<std::uint8_t>()[k] =
          static_cast<std::uint8_t>(pixels.below(static_cast<std::uint64_t>(k), 256));
    images.push_back(image);
  }
  models::Observations frame{{"state", at::stack(states)}};
  if (size > 0) frame["camera"] = at::stack(images);
  return frame;
}

/// kFrames actions of each environment, which act in groups of these sizes.
std::map<std::uint64_t, std::vector<float>> acts(const PolicySettings& settings,
                                                 const std::vector<std::vector<std::uint64_t>>& groups, int size) {
  const auto network = make_policy(settings, 1);
  network->eval();
  const auto control = network->control(5);
  std::map<std::uint64_t, std::vector<float>> all;
  for (int t = 0; t < kFrames; ++t)
    for (const auto& ids : groups) {
      if (t == 0)
        for (const std::uint64_t id : ids) control->begin(id);
      const at::Tensor actions = control->act(ids, acting_frame(ids, t, size)).contiguous();
      const float* value = actions.const_data_ptr<float>();
      for (const std::uint64_t id : ids)
        for (int k = 0; k < settings.action_width; ++k) all[id].push_back(*value++);
    }
  return all;
}

std::vector<std::uint64_t> up_to(std::uint64_t n) {
  std::vector<std::uint64_t> ids(n);
  for (std::uint64_t i = 0; i < n; ++i) ids[i] = i;
  return ids;
}

void expect_same_bits(const std::string& what, const PolicySettings& settings, int size = 0) {
  const auto together = acts(settings, {up_to(17)}, size);
  std::vector<std::uint64_t> turned = up_to(17);
  std::reverse(turned.begin(), turned.end());
  const std::vector<std::pair<std::string, std::vector<std::vector<std::uint64_t>>>> ways{
      {"alone", {{0}, {1}, {2}}},
      {"of three", {{0, 1, 2}}},
      {"of three, in another order", {{16, 0, 9}, {2, 1, 3}}},
      {"of 17 from the last to the first", {turned}},
      {"of 40", {up_to(40)}},
  };
  for (const auto& [name, groups] : ways)
    for (const auto& [id, actions] : acts(settings, groups, size)) {
      const auto found = together.find(id);
      if (found == together.end()) continue;
      ASSERT_EQ(actions.size(), found->second.size());
      EXPECT_EQ(std::memcmp(actions.data(), found->second.data(), actions.size() * sizeof(float)), 0)
          << what << ", environment " << id << ": in a group " << name << " it acts otherwise than in one of 17";
    }
}

TEST(Acting, DiffusionPoliciesActTheSameAloneAndTogether) {
  PolicySettings s = acting_settings("diffusion_policy");
  expect_same_bits("U-Net", s);
  s.of<models::DiffusionPolicySettings>().network = "transformer";
  expect_same_bits("transformer", s);
}

TEST(Acting, BehaviourCloningActsTheSameAloneAndTogether) {
  PolicySettings s = acting_settings("bc");
  expect_same_bits("MLP", s);
  s.of<models::BcSettings>().gmm.enabled = true;
  s.of<models::BcSettings>().gmm.low_noise_eval = false;
  expect_same_bits("mixture", s);
  s.of<models::BcSettings>().rnn = {.enabled = true, .horizon = 10, .hidden_dim = 50};
  expect_same_bits("LSTM", s);
  s.of<models::BcSettings>().rnn.rnn_type = "GRU";
  expect_same_bits("GRU", s);
}

TEST(Acting, PoliciesThatSeeActTheSameAloneAndTogether) {
  PolicySettings s = acting_settings("bc");
  s.rgb = {"camera"};
  s.image_size = {32, 32};
  s.images.core.backbone_class = "ResNet18Conv";
  s.images.core.feature_dimension = 32;
  expect_same_bits("ResNet", s, 32);
}

// Who asks now and then, and shows in between what a decision looks at, gets the actions of who asks at every frame.
TEST(Acting, ChunksAreTheActionsThatAreHandedOutOneByOne) {
  PolicySettings recurrent = acting_settings("bc");
  recurrent.of<models::BcSettings>().rnn = {.enabled = true, .horizon = 10, .hidden_dim = 50};
  PolicySettings chunks = acting_settings("diffusion_policy");
  chunks.of<models::DiffusionPolicySettings>().horizon.action_horizon = 3;
  for (const PolicySettings& settings : {chunks, recurrent}) {
    SCOPED_TRACE(settings.algorithm);
    const auto network = make_policy(settings, 1);
    network->eval();
    const auto often = network->control(5), seldom = network->control(5);
    const std::int64_t chunk = seldom->chunk(), frames = seldom->frames();
    EXPECT_EQ(chunk, settings.algorithm == "bc" ? 1 : 3);
    std::vector<at::Tensor> one_by_one, ahead;
    for (int t = 0; t < kFrames; ++t) {
      const auto frame = acting_frame({7}, t, 0);
      one_by_one.push_back(often->act({7}, frame)[0]);
      const std::int64_t since = t % chunk;
      if (since == 0) {
        ahead.push_back(seldom->act({7}, frame)[0]);
        if (const at::Tensor queued = seldom->take_queued(7); queued.defined())
          for (const at::Tensor& row : queued.unbind()) ahead.push_back(row);
        EXPECT_FALSE(seldom->take_queued(7).defined()) << "they are taken";
      } else if (chunk - since < frames) {
        seldom->see({7}, frame);
      }
    }
    ASSERT_GE(ahead.size(), one_by_one.size());
    for (std::size_t t = 0; t < one_by_one.size(); ++t) EXPECT_TRUE(at::equal(ahead[t], one_by_one[t])) << t;
  }
}

TEST(Acting, WithoutExactBitsOneRobotIsOneRowAndTheActionsAgreeToRounding) {
  PolicySettings recurrent = acting_settings("bc");
  recurrent.of<models::BcSettings>().rnn = {.enabled = true, .horizon = 10, .hidden_dim = 50};
  for (const PolicySettings& settings : {acting_settings("diffusion_policy"), acting_settings("bc"), recurrent}) {
    SCOPED_TRACE(settings.algorithm);
    const auto network = make_policy(settings, 1);
    network->eval();
    const auto exact = network->control(5), quick = network->control(5);
    quick->set_exact(false);
    for (int t = 0; t < kFrames; ++t) {
      const at::Tensor a = exact->act({7}, acting_frame({7}, t, 0)), b = quick->act({7}, acting_frame({7}, t, 0));
      EXPECT_TRUE(at::allclose(a, b, /*rtol=*/1e-3, /*atol=*/1e-4)) << "float32 through a few layers";
    }
  }
}

TEST(Acting, NothingIsKeptOfAnEpisodeThatIsOver) {
  PolicySettings recurrent = acting_settings("bc");
  recurrent.of<models::BcSettings>().rnn = {.enabled = true, .horizon = 10, .hidden_dim = 50};
  for (const PolicySettings& settings : {acting_settings("diffusion_policy"), recurrent}) {
    SCOPED_TRACE(settings.algorithm);
    const auto network = make_policy(settings, 1);
    network->eval();
    const auto control = network->control(5);
    for (std::uint64_t episode = 0; episode < 20; ++episode) {
      control->begin(episode);
      control->act({episode}, acting_frame({episode}, 0, 0));
      EXPECT_EQ(control->environments(), 1u);
      control->end(episode);
      EXPECT_EQ(control->environments(), 0u);
    }
  }
}

TEST(Acting, RowsArePaddedWithTheLastOne) {
  const at::Tensor x = at::arange(6, at::kFloat).reshape({3, 2});
  const at::Tensor padded = models::padded_rows(x, models::kActingRows);
  ASSERT_EQ(padded.sizes(), (std::vector<std::int64_t>{16, 2}));
  EXPECT_TRUE(at::equal(padded.narrow(0, 0, 3), x));
  EXPECT_TRUE(at::equal(padded[15], x[2]));
  EXPECT_EQ(models::padded_rows(at::zeros({2, 32, 1}), models::kActingRows, 1).size(1), 32);
  EXPECT_EQ(models::whole_blocks(0, models::kActingRows), 0);
  EXPECT_EQ(models::whole_blocks(17, models::kActingRows), 32);
}

}  // namespace
}  // namespace cohort::policies
