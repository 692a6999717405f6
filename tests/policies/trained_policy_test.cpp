// From a robomimic configuration and a data set of states, over training and its checkpoint, to a policy that acts.
#include "policies/trained_policy.h"

#include <cmath>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "actor/policy_actor.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "data/fixture_folder.h"
#include "data/rlds/example.h"
#include "data/rlds/rlds_writer.h"
#include "data/robot_windows.h"
#include "policies/acting_policy.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/small_language.h"
#include "policies/statistics_of_set.h"
#include "tasks/line_task.h"
#include "tasks/rollout.h"
#include "train/jobs/robomimic_run.h"
#include "train/ready_policy.h"
#include "train/run.h"
#include "train/state_set.h"
#include "weights/checkpoint.h"
#include "weights/weights.h"

namespace cohort::policies {
namespace {

// The same operations on the same numbers, in batches of another size.
constexpr double kOtherBatch = 1e-4;  // of actions of up to 512

/// The configuration for sets of states, with a network and a run of a test's size.
const std::string kConfiguration = COHORT_SOURCE_DIR "/examples/policies/state.json";
const std::vector<std::string> kSmall{"train.dataset_names=[reach]",
                                      "experiment.name=reach",
                                      "experiment.epoch_every_n_steps=10",
                                      "experiment.mse.every_n_epochs=1",
                                      "experiment.logging.log_tb=false",
                                      "train.num_epochs=1",
                                      "train.batch_size=16",
                                      "train.cuda=false",
                                      "algo.optim_params.policy.learning_rate.initial=0.001",
                                      "algo.horizon.action_horizon=4",
                                      "algo.horizon.prediction_horizon=8",
                                      "algo.unet.down_dims=[16,32]",
                                      "algo.unet.diffusion_step_embed_dim=16"};

class TrainedPolicyTest : public ::testing::Test {
 protected:
  /// What `cohort train load_from=... train.data_path=... more` does. Returns the run's folder.
  std::filesystem::path train_with(const std::vector<std::string>& more, const cohort::testing::StateSet& set = {}) {
    cohort::testing::write_state_set(folder_.path() / "sets", set);
    std::vector<std::string> overrides = kSmall;
    for (const std::string& text :
         {"train.data_path=" + (folder_.path() / "sets").string(), "output_dir=" + (folder_.path() / "out").string()})
      overrides.push_back(text);
    for (const char* text : {"data.statistics_cache=never", "data.proprio_normalization=bounds", "charts=false",
                             "threads=1", "devices=cpu", "data.splits=train[:80%]", "validation.splits=train[80%:]"})
      overrides.push_back(text);
    overrides.insert(overrides.end(), more.begin(), more.end());
    const auto job = train::make_job("policy");
    train::RunSettings settings;
    {
      config::Fields defaults;
      job->describe(defaults, settings);
    }
    config::Fields fields;
    describe(fields, settings);
    job->describe(fields, settings);
    const train::RobomimicRun robomimic = train::read_robomimic_run(kConfiguration, overrides);
    fields.apply_json(robomimic.settings, kConfiguration);
    for (const std::string& text : robomimic.overrides) fields.apply_override(text);
    COHORT_CHECK(train::run(*job, settings, fields, {}) == 0, "the run failed");
    return std::filesystem::canonical(folder_.path() / "out" / "reach" / "latest");
  }

  data::OwnFolder folder_;
};

TEST_F(TrainedPolicyTest, ActsAsTheNetworkWithTheAveragesOfTheCheckpointInUnitsOfTheData) {
  const std::filesystem::path run = train_with({});
  TrainedPolicy policy(run, {.seed = 9});
  EXPECT_EQ(policy.action_width(), 2);
  EXPECT_EQ(policy.low_dim_width(), 5);
  ASSERT_EQ(policy.low_dim_fields().size(), 1U);
  EXPECT_EQ(policy.low_dim_fields()[0].name, "observation/state");
  EXPECT_EQ(policy.step(), 10);
  EXPECT_TRUE(policy.cameras().empty());

  // By hand: the network of the settings, the averages of the file, normalised by the statistics of the file.
  const weights::CheckpointContent content =
      weights::read_checkpoint(std::filesystem::canonical(run / "checkpoints" / "last"));
  models::DiffusionPolicySettings settings;
  settings.action_width = 2;
  settings.horizon = {.observation_horizon = 2, .action_horizon = 4, .prediction_horizon = 8, .first_action = 0};
  settings.encoder.observations = {{"observation/state", {5}, ""}};
  settings.unet.down_dims = {16, 32};
  settings.unet.diffusion_step_embed_dim = 16;
  const auto network = models::make_diffusion_policy(settings, 1);
  weights::load_weights(*network, content.ema, {}, "ema");
  network->eval();
  const auto statistics = parse_json<nlohmann::json>(content.dataset_statistics);
  const auto bound = [&](const char* of, const char* which) {
    return torch::tensor(statistics.at(of).at(which).get<std::vector<double>>());
  };
  const auto state = cohort::testing::start_state(2, 0), later = cohort::testing::next_state(state, 300.0f, 200.0f);
  const auto normalised = [&](const std::vector<float>& row) {
    const at::Tensor low = bound("proprio", "min"), high = bound("proprio", "max");
    return (2 * (torch::tensor(row).to(at::kDouble) - low) / (high - low + 1e-8) - 1).clamp(-1, 1).to(at::kFloat);
  };
  const auto expected = [&](const std::vector<float>& before, const std::vector<float>& now, std::uint64_t count) {
    const at::Tensor seen = at::stack({normalised(before), normalised(now)}).unsqueeze(0);
    const at::Tensor chunk =
        models::sample_actions(*network, {{"observation/state", seen}}, {{.seed = 9, .id = 3, .count = count}});
    const at::Tensor low = bound("action", "min"), high = bound("action", "max");
    return ((chunk[0].narrow(0, 0, 4).to(at::kDouble) + 1) / 2 * (high - low + 1e-8) + low).to(at::kFloat);
  };
  const at::Tensor first = expected(state, state, 0);
  for (int t = 0; t < 5; ++t) {
    const std::vector<float> action = policy.act({3}, {.low_dim = t == 0 ? state : later});
    ASSERT_EQ(action.size(), 2u);
    const at::Tensor wanted = t < 4 ? first[t] : expected(later, later, 1)[0];
    for (int k = 0; k < 2; ++k)
      EXPECT_NEAR(action[static_cast<std::size_t>(k)], wanted[k].item<float>(), 512 * kOtherBatch) << t;
  }
  // An episode begins anew: what was seen and planned is forgotten, and its noise is that of a first chunk.
  policy.begin(3);
  const std::vector<float> begun = policy.act({3}, {.low_dim = state});
  EXPECT_NEAR(begun[0], first[0][0].item<float>(), 512 * kOtherBatch);

  // Beside others it does the same; the weights themselves do something else.
  TrainedPolicy beside(run / "checkpoints" / "last", {.seed = 9}), plain(run, {.seed = 9, .averaged = false});
  std::vector<float> both = cohort::testing::start_state(2, 7);
  both.insert(both.end(), state.begin(), state.end());
  const std::vector<float> actions = beside.act({11, 3}, {.low_dim = both});
  EXPECT_NEAR(actions[2], first[0][0].item<float>(), 512 * kOtherBatch);
  EXPECT_GT(std::abs(plain.act({3}, {.low_dim = state})[0] - actions[2]), 1e-3);
}

// Data that hold embeddings: a field of numbers that the network sees, which a robot that is told something lacks.
TEST_F(TrainedPolicyTest, TextsStandForEmbeddingsThatTheDataHeld) {
  const std::filesystem::path run =
      train_with({"experiment.epoch_every_n_steps=2", "data.proprio=observation/state[0:1],observation/state[1:5]",
                  "data.proprio_normalization=bounds,none", "model.low_dim=where,lang_fixed/language_distilbert"});
  const LanguageSettings language = write_small_language(folder_.path(), 4);
  TrainedPolicy numbers(run, {.seed = 9}), texts(run, {.seed = 9, .overrides = overrides_of(language)});
  EXPECT_FALSE(numbers.takes_instructions());
  EXPECT_EQ(numbers.low_dim_width(), 5);
  EXPECT_TRUE(texts.takes_instructions());
  EXPECT_EQ(texts.low_dim_width(), 1);
  ASSERT_EQ(texts.low_dim_fields().size(), 1U);
  EXPECT_EQ(texts.low_dim_fields()[0].name, "observation/state[0:1]");

  const auto embedded = embed_instructions(language, {"pick up the cup", "öffne die Tür"});
  const auto row = [&](float where, std::size_t text) {
    std::vector<float> values{where};
    values.insert(values.end(), embedded[text].begin(), embedded[text].end());
    return values;
  };
  const auto both = [&](std::size_t first, std::size_t second) {
    std::vector<float> values = row(100.0f, first), other = row(300.0f, second);
    values.insert(values.end(), other.begin(), other.end());
    return values;
  };
  const std::vector<float> where{100.0f, 300.0f};
  const std::vector<float> expected = numbers.act({0, 1}, {.low_dim = both(0, 1)});
  EXPECT_EQ(texts.act({0, 1}, {.low_dim = where, .instructions = {"pick up the cup", "öffne die Tür"}}), expected);
  for (int t = 1; t < 5; ++t) {
    // What was told holds, until something else is told; "" changes nothing. Chunks are of four actions.
    const bool told = t == 4;
    EXPECT_EQ(told ? texts.act({0, 1}, {.low_dim = where, .instructions = {"", "pick up the cup"}})
                   : texts.act({0, 1}, {.low_dim = where}),
              numbers.act({0, 1}, {.low_dim = both(0, told ? 0 : 1)}))
        << t;
  }
  texts.begin(0, "öffne die Tür");
  numbers.begin(0);
  const std::vector<float> here{100.0f};
  EXPECT_EQ(texts.act({0}, {.low_dim = here}), numbers.act({0}, {.low_dim = row(100.0f, 1)}));
  EXPECT_NE(expected[0], expected[2]);

  EXPECT_EQ(message_of([&] { texts.act({5}, {.low_dim = here}); }),
            "the policy sees instructions, and environment 5 has none: begin(environment, text)");
  EXPECT_EQ(message_of([&] {
              texts.act({0, 1}, {.low_dim = where, .instructions = {"x"}});
            }),
            "1 instructions for 2 environments");
  EXPECT_EQ(message_of([&] { numbers.act({0}, {.low_dim = row(1.0f, 0), .instructions = {"x"}}); }),
            "the policy takes no instructions, but is told 'x'");
  std::string words, more;
  for (int i = 0; i < language.encoder.max_position_embeddings; ++i) words += "cup ";
  for (int i = 0; i < 1000; ++i) more += "cup ";
  EXPECT_EQ(embed_instructions(language, {words}), embed_instructions(language, {more}))
      << "what the table of positions does not reach is left out";
  EXPECT_NE(message_of([&] {
              const LanguageSettings wide = write_small_language(folder_.path(), 8);
              TrainedPolicy(run, {.overrides = overrides_of(wide)});
            }).find("lang_fixed/language_distilbert has 4 numbers, but model.language.encoder.dim is 8"),
            std::string::npos);
}

// Data that hold texts: the policy embeds them itself, in training and when it acts.
TEST_F(TrainedPolicyTest, ActsAsItIsTold) {
  std::vector<std::string> overrides = train::small_diffusion();
  const LanguageSettings language = write_small_language(folder_.path(), 8);
  for (const std::string& text : overrides_of(language)) overrides.push_back(text);
  overrides.push_back("output_dir=" + (folder_.path() / "told").string());
  for (const char* text : {"name=told", "data.filters=labeled(language_instruction)", "train.steps=2",
                           "train.batch_size=4", "devices=cpu", "threads=1", "charts=false", "tensorboard=false"})
    overrides.emplace_back(text);
  train::ReadyPolicy ready(overrides);
  ASSERT_EQ(train::run(*ready.job, ready.settings, ready.fields, {}), 0);
  const std::filesystem::path folder = std::filesystem::canonical(folder_.path() / "told" / "told" / "latest");
  TrainedPolicy policy(folder, {.seed = 1}), again(folder, {.seed = 1});
  EXPECT_TRUE(policy.takes_instructions());
  EXPECT_EQ(policy.low_dim_width(), 7) << "the embedding is no part of it";
  const std::vector<float> one(7, 0.1f), two(14, 0.1f);
  policy.begin(0, "pick up the cup");
  const std::vector<float> cup = policy.act({0}, {.low_dim = one});
  const std::vector<float> rows =
      again.act({0, 1}, {.low_dim = two, .instructions = {"pick up the cup", "öffne die Tür"}});
  ASSERT_EQ(rows.size(), 2 * cup.size());
  const std::size_t width = cup.size();
  for (std::size_t i = 0; i < width; ++i) EXPECT_NEAR(rows[i], cup[i], kOtherBatch);
  // Told something else, the same environment acts otherwise.
  TrainedPolicy other(folder, {.seed = 1});
  const std::vector<float> door = other.act({0}, {.low_dim = one, .instructions = {"öffne die Tür"}});
  double difference = 0;
  for (std::size_t i = 0; i < width; ++i) difference += std::abs(static_cast<double>(door[i] - cup[i]));
  EXPECT_GT(difference, 1e-3);
}

/// What was done in each episode, by its number.
class Watched final : public tasks::RolloutObserver {
 public:
  void acting(tasks::Task&, std::span<const tasks::RunningEpisode> running, ArrayView actions) override {
    for (const tasks::RunningEpisode& r : running)
      done[r.episode].push_back(actions.span<float>()[static_cast<std::size_t>(r.env)]);
  }
  std::map<std::size_t, std::vector<float>> done;
};

// Of every third step: two actions of its chunk that follow one another are three control steps apart.
TEST_F(TrainedPolicyTest, WhatWasLearntFromEveryThirdStepIsHeldForThreeSteps) {
  using namespace cohort::data;
  const std::filesystem::path set = folder_.path() / "line";
  RldsWriter writer(
      set,
      make_dict({{"steps", make_steps(make_dict({{"observation", make_dict({{"x", make_tensor("float32", {1})}})},
                                                 {"action", make_tensor("float32", {1})},
                                                 {"is_first", make_tensor("bool", {})}}))}}),
      {.name = "line"});
  for (int e = 0; e < 6; ++e) {
    std::vector<float> x, actions;
    for (int t = 0; t < 30; ++t) {
      x.push_back(std::sin(static_cast<float>(7 * e + t)));
      actions.push_back(-x.back());
    }
    ExampleWriter example;
    example.add("steps/observation/x", x);
    example.add("steps/action", actions);
    example.add("steps/is_first", std::vector<std::int64_t>(30, 0));
    writer.add(example.finish());
  }
  writer.finish();
  for (const int stride : {1, 3}) {
    SCOPED_TRACE(stride);
    const std::string name = "every" + std::to_string(stride);
    std::vector<std::string> overrides = train::small_diffusion();
    for (const std::string& text : {"data.paths=" + (set / "line").string(), std::string("data.proprio=observation/x"),
                                    std::string("model.low_dim=x"), "data.stride=" + std::to_string(stride),
                                    "name=" + name, "output_dir=" + folder_.path().string()})
      overrides.push_back(text);
    for (const char* text :
         {"train.steps=2", "train.batch_size=4", "devices=cpu", "threads=1", "charts=false", "tensorboard=false"})
      overrides.emplace_back(text);
    train::ReadyPolicy ready(overrides);
    ASSERT_EQ(train::run(*ready.job, ready.settings, ready.fields, {}), 0);
    TrainedPolicy policy(std::filesystem::canonical(folder_.path() / name / "latest"));
    EXPECT_EQ(policy.stride(), stride);
    cohort::testing::LineTask task(2);
    const auto acting = acting_policy(std::move(policy));
    EXPECT_EQ(acting->spec().stride, stride);
    actor::PolicyActor actor(*acting, task, "line");
    Watched watched;
    const auto outcomes = tasks::run_episodes(task, actor, tasks::consecutive_seeds(0, 12),
                                              {.max_steps = 10, .instruction = ""}, &watched);
    std::size_t changes = 0;
    for (std::size_t e = 0; e < outcomes.size(); ++e) {
      const std::vector<float>& done = watched.done.at(e);
      ASSERT_EQ(std::ssize(done), outcomes[e].steps);
      for (std::size_t t = 1; t < done.size(); ++t) {
        if (t % static_cast<std::size_t>(stride) != 0)
          EXPECT_EQ(done[t], done[t - 1]) << "episode " << e << ", step " << t;
        else
          changes += done[t] != done[t - 1];
      }
    }
    EXPECT_GT(changes, 12u) << "it decides anew";
  }
}

TEST_F(TrainedPolicyTest, NamesWhatDoesNotFit) {
  const std::filesystem::path run = train_with({"train.num_epochs=1", "experiment.epoch_every_n_steps=2"});
  TrainedPolicy policy(run);
  const std::vector<float> state = cohort::testing::start_state(2, 0), short_state(4, 1.0f);
  EXPECT_EQ(message_of([&] { policy.act({0}, {.low_dim = short_state}); }),
            "4 low-dimensional numbers for 1 environments, but the policy takes 5 of each");
  std::vector<float> nan = state;
  nan[2] = std::nanf("");
  EXPECT_EQ(message_of([&] { policy.act({0}, {.low_dim = nan}); }),
            "low-dimensional number 2 of environment 0 of the frame is nan");
  EXPECT_NE(message_of([&] { TrainedPolicy(folder_.path() / "none"); }).find("no such run"), std::string::npos);
  EXPECT_NE(message_of([&] { TrainedPolicy(folder_.path()); }).find("trainer_state.json"), std::string::npos);
  EXPECT_NE(message_of([&] {
              TrainedPolicy(run, {.overrides = {"model.diffusion.unet.down_dims=8,16"}});
            }).find("does not fit the model"),
            std::string::npos);
  EXPECT_NE(message_of([&] { TrainedPolicy(run, {.data_set = "other"}); }).find("other"), std::string::npos);
  const auto in_training = [](const std::string& configuration) {
    return message_of([&] { TrainedPolicy(PolicyInTraining{.configuration = configuration, .statistics = ""}); });
  };
  EXPECT_NE(in_training(R"({"job": "regressor", "model": {}})")
                .find("no checkpoint of a policy but of `cohort train regressor`, which `cohort predict` uses"),
            std::string::npos);
  EXPECT_NE(in_training("null").find("no checkpoint of a policy: in a task acts"), std::string::npos);
  EXPECT_NE(message_of([] {
              statistics_of_set("", "", "x/dataset_statistics.json");
            }).find("x/dataset_statistics.json: there are no statistics of the data"),
            std::string::npos);
}

// It learns: in closed loop from starts that were in no demonstration. The demonstrator leaves 0.7 of the distance
// after a step, nothing to speak of after twelve; standing still leaves all.
TEST_F(TrainedPolicyTest, WalksToTheGoalAsTheDemonstratorDid) {
  constexpr int kEpisodes = 16, kWalk = 12;
  const std::filesystem::path run = train_with(
      {"train.num_epochs=40", "data.windows_per_episode=0", "train.batch_size=64", "experiment.mse.enabled=false",
       "algo.optim_params.policy.learning_rate.initial=0.003", "algo.unet.down_dims=[32,64]"},
      {.episodes = 60});
  TrainedPolicy policy(run);
  EXPECT_LT(policy.parameters(), 5'000'000);
  std::vector<std::uint64_t> environments;
  std::vector<std::vector<float>> states;
  double before = 0, after = 0;
  for (std::uint64_t e = 0; e < kEpisodes; ++e) {
    environments.push_back(e);
    states.push_back(cohort::testing::start_state(77, e));
    before += static_cast<double>(states.back()[4]) / kEpisodes;
  }
  for (int t = 0; t < kWalk; ++t) {
    std::vector<float> rows;
    for (const auto& state : states) rows.insert(rows.end(), state.begin(), state.end());
    const std::vector<float> actions = policy.act(environments, {.low_dim = rows});
    for (std::size_t e = 0; e < states.size(); ++e)
      states[e] = cohort::testing::next_state(states[e], actions[2 * e], actions[2 * e + 1]);
  }
  for (const auto& state : states) after += static_cast<double>(state[4]) / kEpisodes;
  EXPECT_LT(after, 0.3 * before) << after << " of " << before << " pixels";
}

}  // namespace
}  // namespace cohort::policies
