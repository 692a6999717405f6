// RDT as a job on the fixtures of tests/data, and main.py's flags.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "data/lerobot/parquet_file.h"
#include "models/random_context.h"
#include "policies/instruction_embeddings.h"
#include "policies/policy_settings.h"
#include "policies/rdt/files.h"
#include "policies/rdt/flags.h"
#include "policies/rdt/rdt_policy.h"
#include "policies/trained_policy.h"
#include "support/fresh_folder.h"
#include "train/ready_policy.h"
#include "train/small_rdt.h"
#include "weights/named_tensors.h"
#include "weights/safetensors.h"

namespace cohort::train {
namespace {

std::filesystem::path rdt_folder(const std::string& name) {
  return test::fresh_folder("rdt_job_" + name);
}

double rdt_job_loss(ReadyPolicy& ready, torch::nn::Module& model, const parallel::Batch& batch) {
  const models::RandomContextGuard guard({.seed = 4, .step = 2, .sample_ids = batch.sample_ids});
  return ready.job->loss(model, batch).item<double>();
}

TEST(RdtJob, SlotsAndWindowsFollowFromTheData) {
  ReadyPolicy ready(small_rdt());
  ready.job->load();
  const config::Json resolved = ready.fields.to_json();
  EXPECT_EQ(resolved["data"]["observation_steps"], 2) << "img_history_size";
  EXPECT_EQ(resolved["data"]["action_steps"], 4);
  EXPECT_EQ(resolved["data"]["action_begin"], 0) << "chunks begin with the newest frame";
  EXPECT_EQ(resolved["model"]["rdt"]["state_slots"], config::Json(std::vector<int>{30, 31, 32, 33, 34, 35, 10}));
  EXPECT_EQ(resolved["model"]["rdt"]["action_slots"], config::Json(std::vector<int>{39, 40, 41, 42, 43, 44, 10}));
  EXPECT_EQ(resolved["model"]["rdt"]["state_mean"].size(), 7u);
  ReadyPolicy again({}, resolved);
  again.job->load();
  EXPECT_EQ(again.fields.to_json(), resolved);
  const auto model = ready.job->make_model(1);
  const parallel::Batch batch = ready.batch(Part::kTrain, 4);
  EXPECT_TRUE(std::isfinite(rdt_job_loss(ready, *model, batch)));
  model->eval();
  const Prediction prediction = ready.job->predict(*model, batch);
  EXPECT_EQ(prediction.predicted.sizes().vec(), (std::vector<std::int64_t>{4, 4, 7}));
  EXPECT_EQ(prediction.truth.sizes(), prediction.predicted.sizes());
}

TEST(RdtJob, FieldsThatMapNowhereAreRefusedWithARemedy) {
  std::vector<std::string> unmapped = small_rdt();
  unmapped.back() = "model.rdt.slots=[\"observation/pose: 30-35\"]";
  const std::string message = message_of([&] { ReadyPolicy(unmapped).job->load(); });
  EXPECT_NE(message.find("observation/gripper (1 number) maps to none of RDT's 128 slots"), std::string::npos)
      << message;
  EXPECT_NE(message.find("model.rdt.slots=[\"observation/gripper: right_gripper_open\"]"), std::string::npos);
}

TEST(RdtJob, TrainingLowersTheLossAndTheModelActsAlone) {
  ReadyPolicy ready(small_rdt({"data.action_normalization=bounds", "model.rdt.cond_mask_prob=0"}));
  ready.job->load();
  const auto model = ready.job->make_model(1);
  const parallel::Batch batch = ready.batch(Part::kTrain, 8);
  const double before = rdt_job_loss(ready, *model, batch);
  for (int step = 0; step < 40; ++step) {
    const models::RandomContextGuard guard({.seed = 4, .step = 2, .sample_ids = batch.sample_ids});
    ready.job->loss(*model, batch).backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : model->parameters()) {
      p.add_(p.grad(), -1.0);
      p.mutable_grad().reset();
    }
  }
  EXPECT_LT(rdt_job_loss(ready, *model, batch), 0.9 * before);
  model->eval();
  policies::TrainedPolicy policy(policies::PolicyInTraining{.module = model.get(),
                                                            .configuration = json_text(ready.fields.to_json()),
                                                            .statistics = json_text(ready.job->statistics())});
  std::vector<std::uint8_t> pixels(20 * 24 * 3, 90);
  const ArrayView view = make_view(pixels.data(), {1, 20, 24, 3});
  const std::vector<float> state(7, 0.1f);
  const std::vector<float> action = policy.act({5}, {.low_dim = state, .images = {&view, 1}});
  ASSERT_EQ(action.size(), 7u);
  for (const float number : action) EXPECT_TRUE(std::isfinite(number));
}

TEST(RdtJob, NewTrainingsShowTheReferencesBackgroundBeforeAnEpisode) {
  ReadyPolicy fresh(small_rdt({"model.rdt.cond_mask_prob=0"})),
      repeating(small_rdt({"model.rdt.cond_mask_prob=0", "model.rdt.before_episode=first_frame"}));
  for (ReadyPolicy* ready : {&fresh, &repeating}) ready->job->load();
  EXPECT_EQ(fresh.fields.to_json()["model"]["rdt"]["before_episode"], "background");
  const auto model = fresh.job->make_model(1), other = repeating.job->make_model(1);
  // Away from the first weights, whose last layer is zero: nothing that the policy sees would matter.
  for (const auto& one : {model, other}) {
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : one->parameters()) p.add_(at::sin(at::arange(p.numel())).view(p.sizes()), 0.1);
  }
  const parallel::Batch batch = fresh.batch(Part::kTrain, 4);
  const at::Tensor real = batch.at("observation_mask");
  ASSERT_FALSE(real[0][0].item<bool>()) << "the first window begins before the first episode";
  ASSERT_EQ(real.logical_not().sum().item<std::int64_t>(), 1);
  parallel::Batch grey;
  for (const auto& [name, tensor] : batch.fields) grey.add(name, tensor.clone());
  grey.sample_ids = batch.sample_ids;
  grey.at("image/observation/image")[0][0].fill_(127);  // train/dataset.py: int(255 · 0.5)
  EXPECT_NEAR(rdt_job_loss(fresh, *model, batch), rdt_job_loss(repeating, *other, grey), 1e-6);
  EXPECT_NE(rdt_job_loss(fresh, *model, batch), rdt_job_loss(repeating, *other, batch));
}

TEST(RdtJob, WhatWasTrainedBeforeGoesOnAndPlaysWithTheFirstFrameOnceMore) {
  const auto folder = rdt_folder("before_episode");
  const std::filesystem::path checkpoint = folder / "checkpoints" / "checkpoint-5";
  const auto state = [&](const std::string& said) {
    std::filesystem::create_directories(checkpoint);
    write_file_atomically(checkpoint / "trainer_state.json",
                          R"({"configuration": {"model": {"algorithm": "rdt", "rdt": {)" + said + "}}}}");
  };
  const auto resumed = [&](const std::string& how, const std::vector<std::string>& more = {}) {
    ReadyPolicy ready(small_rdt(more));
    if (how == "run")
      ready.settings.resume = folder.string();
    else
      ready.settings.train.checkpoint.resume = how;
    ready.job->load();
    return ready.fields.to_json()["model"]["rdt"]["before_episode"].get<std::string>();
  };
  EXPECT_EQ(resumed("run"), "background") << "a run without a checkpoint begins anew";
  state("");
  for (const std::string& how : {std::string("run"), folder.string(), checkpoint.string()})
    EXPECT_EQ(resumed(how), "first_frame") << how;
  EXPECT_EQ(resumed("run", {"model.rdt.before_episode=background"}), "background") << "asked for by name";
  state(R"("before_episode": "background")");
  EXPECT_EQ(resumed("run"), "background");
  // What reads a checkpoint to answer (`cohort predict`), and to act (TrainedPolicy).
  ReadyPolicy trained(small_rdt()), asked(small_rdt()),
      told(small_rdt(), {{"model", {{"rdt", {{"before_episode", "background"}}}}}});
  trained.job->load();
  for (ReadyPolicy* ready : {&asked, &told}) ready->job->load_request(trained.job->statistics(), "");
  EXPECT_EQ(asked.fields.to_json()["model"]["rdt"]["before_episode"], "first_frame");
  EXPECT_EQ(told.fields.to_json()["model"]["rdt"]["before_episode"], "background");
  EXPECT_EQ(policies::PolicySettings().of<models::RdtSettings>().before_episode, "first_frame");
}

TEST(RdtJob, BeginsWithTheReferencesWeightsAnEmbeddedInstructionAndASiglip) {
  const auto folder = rdt_folder("files");
  ReadyPolicy donor(small_rdt({"train.seed=7"}));
  donor.job->load();
  const auto other = donor.job->make_model(7);
  weights::NamedTensors reference, siglip;
  for (const auto& [name, tensor] : weights::module_state(*other)) {
    if (name.starts_with("vision_encoder."))
      siglip.emplace_back(name.substr(15), tensor);
    else if (!name.starts_with("lang_"))
      reference.emplace_back("module." + name, tensor);
    else if (name.starts_with("lang_adaptor."))
      reference.emplace_back("module." + name, tensor);
  }
  siglip.emplace_back("vision_model.head.probe", torch::ones({1, 1, 12}));
  siglip.emplace_back("text_model.final_layer_norm.weight", torch::ones({12}));
  weights::write_safetensors(folder / "rdt.safetensors", reference);
  weights::write_safetensors(folder / "siglip.safetensors", siglip);
  weights::write_safetensors(folder / "told.safetensors", {{"lang_embed", torch::arange(24.0f).view({1, 3, 8})}});
  ReadyPolicy ready(small_rdt({"model.initial_weights=" + (folder / "rdt.safetensors").string(),
                               "model.rdt.vision_weights=" + (folder / "siglip.safetensors").string(),
                               "model.rdt.lang_embed=" + (folder / "told.safetensors").string()}));
  ready.job->load();
  const auto model = ready.job->make_model(1);
  EXPECT_EQ(ready.fields.to_json()["model"]["rdt"]["lang_tokens"], 3);
  std::map<std::string, at::Tensor> theirs;
  for (const auto& [name, tensor] : weights::module_state(*other)) theirs[name] = tensor;
  for (const auto& [name, tensor] : weights::module_state(*model)) {
    if (name == "lang_embed")
      EXPECT_TRUE(at::equal(tensor, torch::arange(24.0f).view({3, 8})));
    else
      EXPECT_TRUE(at::equal(tensor, theirs.at(name))) << name;
  }
  reference.pop_back();
  weights::write_safetensors(folder / "short.safetensors", reference);
  ReadyPolicy lacking(small_rdt({"model.initial_weights=" + (folder / "short.safetensors").string()}));
  lacking.job->load();
  EXPECT_NE(message_of([&] { lacking.job->make_model(1); }).find("Missing: "), std::string::npos);
  ReadyPolicy wide(small_rdt({"model.rdt.lang_embed=" + (folder / "siglip.safetensors").string()}));
  EXPECT_NE(message_of([&] { wide.job->load(); }).find("none of them is called lang_embed"), std::string::npos);
}

/// Weights that see every condition: RDT begins with a last layer of zeros.
void stir(torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(3);
  for (at::Tensor& p : model.parameters()) p.normal_(0.0, 0.2);
}

/// Embeddings of width 8 of what the episodes of "arm" are told, and of one more.
std::string arm_instructions(const std::filesystem::path& folder,
                             std::vector<std::string> texts = {"pick up the cup", "öffne die Tür", "", "close it"}) {
  policies::InstructionEmbeddings all;
  all.model = "a small T5";
  all.texts = std::move(texts);
  torch::manual_seed(9);
  for (std::size_t i = 0; i < all.texts.size(); ++i)
    all.embeddings.push_back(at::randn({static_cast<std::int64_t>(i) + 2, 8}));
  const std::filesystem::path file = folder / "instructions.safetensors";
  policies::write_instruction_embeddings(file, all);
  return file.string();
}

/// One episode of "arm" is told nothing, which a policy that follows instructions refuses.
constexpr const char* kTold = "data.filters=[\"labeled(language_instruction)\"]";

TEST(RdtJob, EverySampleIsToldItsOwnEpisodesInstruction) {
  const std::string file = arm_instructions(rdt_folder("told"));
  const policies::InstructionEmbeddings all = policies::read_instruction_embeddings(file);
  ReadyPolicy ready(small_rdt({"model.rdt.lang_embed=" + file, "model.rdt.cond_mask_prob=0", kTold}));
  ready.job->load();
  const auto carried = ready.fields.to_json()["model"]["rdt"]["instructions"].get<std::vector<std::string>>();
  EXPECT_EQ(carried.size(), 2u) << "those of the data alone";
  const auto model = ready.job->make_model(1);
  stir(*model);
  const auto buffers = model->named_buffers();
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const at::Tensor& told = all.at(carried[i]);
    const at::Tensor row = buffers["lang_embeds"][static_cast<std::int64_t>(i)];
    EXPECT_TRUE(at::equal(row.narrow(0, 0, told.size(0)), told)) << carried[i];
    EXPECT_EQ(row.narrow(0, told.size(0), row.size(0) - told.size(0)).abs().sum().item<double>(), 0.0);
    EXPECT_EQ(buffers["lang_mask"][static_cast<std::int64_t>(i)].sum().item<double>(),
              static_cast<double>(told.size(0)));
  }
  // As if the policy knew this one instruction alone: padding and the other instructions change nothing.
  const parallel::Batch batch = ready.batch(Part::kTrain, 20);
  const at::Tensor rows = batch.at("lang_row");
  EXPECT_GE(std::get<0>(at::_unique(rows)).numel(), 2) << "a batch of several instructions";
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const at::Tensor own = (rows == static_cast<std::int64_t>(i)).nonzero().view({-1});
    if (own.numel() == 0) continue;
    parallel::Batch part;
    for (const auto& [name, tensor] : batch.fields) part.add(name, tensor.index_select(0, own));
    part.sample_ids = batch.sample_ids.index_select(0, own);
    const auto alone = rdt_folder(format("told_{}", i));
    weights::write_safetensors(alone / "one.safetensors", {{"lang_embed", all.at(carried[i])}});
    ReadyPolicy one(small_rdt(
        {"model.rdt.lang_embed=" + (alone / "one.safetensors").string(), "model.rdt.cond_mask_prob=0", kTold}));
    one.job->load();
    const auto single = one.job->make_model(1);
    stir(*single);
    const double expected = rdt_job_loss(one, *single, part);
    EXPECT_NEAR(rdt_job_loss(ready, *model, part), expected, 1e-5 * std::max(1.0, expected)) << carried[i];
  }
  // It is the embedding that makes the loss.
  const double before = rdt_job_loss(ready, *model, batch);
  {
    const at::NoGradGuard no_grad;
    model->named_buffers()["lang_embeds"].add_(1.0);
  }
  EXPECT_NE(rdt_job_loss(ready, *model, batch), before);
}

TEST(RdtJob, AMissingLangEmbedNamesTheInstructionAndTheCommand) {
  const std::string file = arm_instructions(rdt_folder("lacking"), {"pick up the cup", "open the tür"});
  ReadyPolicy lacking(small_rdt({"model.rdt.lang_embed=" + file, kTold}));
  const std::string message = message_of([&] { lacking.job->load(); });
  EXPECT_NE(message.find(file + ": has no lang_embed of \""), std::string::npos) << message;
  EXPECT_NE(message.find("make it: cohort data embed --instruction \""), std::string::npos) << message;
  ReadyPolicy wide(small_rdt({"model.rdt.lang_embed=" + file, "model.rdt.lang_token_dim=12", kTold}));
  EXPECT_NE(message_of([&] {
              wide.job->load();
            }).find("have 8 numbers per token (a small T5), but model.rdt.lang_token_dim = 12"),
            std::string::npos);
  ReadyPolicy one(small_rdt({"model.rdt.instruction=pick up the cup", "model.rdt.lang_embed=" + file}));
  one.job->load();
  EXPECT_EQ(one.fields.to_json()["model"]["rdt"]["instructions"], config::Json({"pick up the cup"}));
}

TEST(RdtJob, APolicyFindsWhatItIsToldAmongWhatItCarriesAndInTheFile) {
  const auto folder = rdt_folder("acting");
  const std::string file = arm_instructions(folder);
  ReadyPolicy ready(small_rdt({"model.rdt.lang_embed=" + file, kTold}));
  ready.job->load();
  const auto model = ready.job->make_model(1);
  stir(*model);
  model->eval();
  const policies::PolicyInTraining training{.module = model.get(),
                                            .configuration = json_text(ready.fields.to_json()),
                                            .statistics = json_text(ready.job->statistics())};
  std::vector<std::uint8_t> pixels(3 * 20 * 24 * 3, 90);
  const std::vector<float> state(21, 0.1f);
  const auto act = [&](policies::TrainedPolicy& told, const std::vector<std::string>& texts) {
    std::vector<std::uint64_t> environments;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      environments.push_back(i);
      told.begin(i, texts[i]);
    }
    const auto n = static_cast<std::int64_t>(texts.size());
    const ArrayView view = make_view(pixels.data(), {n, 20, 24, 3});
    return told.act(environments, {.low_dim = std::span(state).first(texts.size() * 7), .images = {&view, 1}});
  };
  policies::TrainedPolicy policy(training);
  EXPECT_TRUE(policy.takes_instructions());
  const std::vector<float> cup = act(policy, {"pick up the cup"});
  policies::TrainedPolicy pair(training);
  const std::vector<float> both = act(pair, {"pick up the cup", "öffne die Tür"});
  EXPECT_TRUE(std::equal(cup.begin(), cup.end(), both.begin())) << "whoever acts beside it";
  policies::TrainedPolicy other(training);
  EXPECT_NE(act(other, {"öffne die Tür"}), cup) << "the same state and noise, another instruction";
  policies::TrainedPolicy more(training);
  EXPECT_NE(act(more, {"close it"}), cup) << "not carried, but in the file that the run names";
  const std::string message = message_of([&] { more.begin(0, "sing"); });
  EXPECT_NE(message.find("the policy has no lang_embed of \"sing\", and neither has " + file), std::string::npos)
      << message;
  EXPECT_NE(message.find("cohort data embed --instruction \"sing\""), std::string::npos);
  std::filesystem::remove(file);
  policies::TrainedPolicy without(training);
  EXPECT_EQ(act(without, {"pick up the cup"}), cup) << "the checkpoint carries it";
  EXPECT_NE(message_of([&] { without.begin(0, "close it"); }).find("it carries \""), std::string::npos);
}

TEST(RdtJob, DataSetsHaveWeightsAndFrequenciesOfTheirOwn) {
  const std::string arm = data::fixture("arm").string();
  const std::vector<std::string> more{"data.paths=[" + arm + "," + arm + "]", "data.weights=[3,1]",
                                      "data.samples_per_epoch=40", "model.rdt.cond_mask_prob=0"};
  std::vector<std::string> apart = small_rdt(more), alike = apart;
  apart.push_back("model.rdt.ctrl_freqs=[10,30]");
  alike.push_back("model.rdt.ctrl_freqs=[10,10]");
  ReadyPolicy ready(apart), other(alike);
  ready.job->load();
  other.job->load();
  const parallel::Batch batch = ready.batch(Part::kTrain, 40);
  const at::Tensor frequencies = batch.at("ctrl_freq");
  EXPECT_EQ((frequencies == 10).sum().item<std::int64_t>(), 30);
  EXPECT_EQ((frequencies == 30).sum().item<std::int64_t>(), 10);
  const auto model = ready.job->make_model(1);
  stir(*model);
  EXPECT_NE(rdt_job_loss(ready, *model, batch), rdt_job_loss(other, *model, other.batch(Part::kTrain, 40)));
  ReadyPolicy wrong(small_rdt({"model.rdt.ctrl_freqs=[10,30]"}));
  EXPECT_EQ(message_of([&] { wrong.job->load(); }), "model.rdt.ctrl_freqs names 2 frequencies for 1 data sets");
}

TEST(RdtJob, ALeRobotSetsFpsIsTheFrequencyUnlessOneIsSaid) {
  if (const std::string why = data::parquet_unavailable(); !why.empty()) GTEST_SKIP() << why;
  const auto load = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides =
        small_rdt({"data.paths=" + data::fixture("lerobot/v3").string(), "data.actions=action",
                   "data.proprio=observation.state", "data.images=observation.images.inset",
                   "model.rdt.slots=[\"observation.state: 30-31\", \"action: 39-44, gripper_open\"]"});
    overrides.insert(overrides.end(), more.begin(), more.end());
    ReadyPolicy ready(overrides);
    ready.job->load();
    std::string lines;
    for (const std::string& line : ready.job->statistics_summary()) lines += line + "\n";
    return std::pair(ready.fields.to_json()["model"]["rdt"]["ctrl_freq"].get<double>(), lines);
  };
  const auto [found, lines] = load({});
  EXPECT_EQ(found, 10);
  EXPECT_NE(lines.find("frequency: 10 Hz, the fps of "), std::string::npos) << lines;
  const auto [said, others] = load({"model.rdt.ctrl_freq=25"});
  EXPECT_EQ(said, 25);
  EXPECT_NE(others.find("is of 10 Hz, but model.rdt.ctrl_freq says 25"), std::string::npos) << others;
}

TEST(RdtJob, OneThatLearntSeveralFrequenciesActsAtTheTasksOwnOrIsRefusedWithTheChoices) {
  const std::string arm = data::fixture("arm").string();
  ReadyPolicy ready(small_rdt({"data.paths=[" + arm + "," + arm + "]", "model.rdt.cond_mask_prob=0",
                               "model.rdt.ctrl_freqs=[10,30]", "data.combine_statistics=true"}));
  ready.job->load();
  const auto model = ready.job->make_model(1);
  stir(*model);
  model->eval();
  const policies::PolicyInTraining training{.module = model.get(),
                                            .configuration = json_text(ready.fields.to_json()),
                                            .statistics = json_text(ready.job->statistics())};
  std::vector<std::uint8_t> pixels(20 * 24 * 3, 90);
  const std::vector<float> state(7, 0.1f);
  const ArrayView view = make_view(pixels.data(), {1, 20, 24, 3});
  const auto acting = [&](const std::vector<std::string>& overrides, std::optional<double> hz) {
    policies::TrainedPolicy policy(training, {.overrides = overrides});
    if (hz) policy.act_every(1 / *hz);
    policy.begin(0);
    return policy.act({0}, {.low_dim = state, .images = {&view, 1}});
  };
  const auto at_ten = acting({}, 10);
  EXPECT_EQ(acting({}, 10.02), at_ten) << "periods are sums of time steps";
  EXPECT_NE(acting({}, 30), at_ten);
  const std::string other = message_of([&] { acting({}, 25); });
  EXPECT_NE(other.find("the policy learnt data of 10, 30 Hz, and here an action is taken at 25 Hz"), std::string::npos)
      << other;
  EXPECT_NE(message_of([&] { acting({}, std::nullopt); }).find("has not been told how often it acts"),
            std::string::npos);
}

/// dataset_stat.json for the poses of "arm": means of 0.01 times the slot, deviations of `deviation`.
std::string statistics_of(const std::filesystem::path& folder, const std::vector<std::string>& names,
                          double deviation = 1) {
  std::vector<double> mean(128, 0.0), deviations(128, 0.0);
  for (const int slot : {30, 31, 32, 33, 34, 35, 10}) {
    mean[static_cast<std::size_t>(slot)] = 0.01 * slot;
    deviations[static_cast<std::size_t>(slot)] = deviation;
  }
  nlohmann::json file = nlohmann::json::object();
  for (const std::string& name : names) file[name] = {{"state_mean", mean}, {"state_std", deviations}};
  write_file_atomically(folder / "dataset_stat.json", json_text(file));
  return "model.rdt.dataset_stat=" + (folder / "dataset_stat.json").string();
}

TEST(RdtJob, TheStatesMeanComesFromTheReferencesStatistics) {
  const std::string statistics = statistics_of(rdt_folder("statistics"), {"droid"});
  ReadyPolicy ready(small_rdt({statistics, "model.rdt.data_sets=[droid]"}));
  ready.job->load();
  const auto resolved = ready.fields.to_json()["model"]["rdt"]["state_mean"].get<std::vector<double>>();
  ASSERT_EQ(resolved.size(), 7u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(resolved[i], 0.3 + 0.01 * static_cast<double>(i), 1e-6);
  EXPECT_NEAR(resolved[6], 0.1, 1e-6);
  ReadyPolicy none(small_rdt({}));
  none.job->load();
  ReadyPolicy unnamed(small_rdt({statistics, "model.rdt.data_sets=[other]"}));
  unnamed.job->load();
  EXPECT_EQ(unnamed.fields.to_json()["model"]["rdt"]["state_mean"], none.fields.to_json()["model"]["rdt"]["state_mean"])
      << "not in the file: computed";
  ReadyPolicy two(small_rdt({statistics, "model.rdt.data_sets=[droid,arm]"}));
  EXPECT_NE(message_of([&] { two.job->load(); }).find("names 2 data sets (droid, ...), but data.paths 1"),
            std::string::npos);
}

/// The banner's lines on statistics.
std::string said_of_statistics(const std::vector<std::string>& more) {
  ReadyPolicy ready(small_rdt(more));
  ready.job->load();
  std::string text;
  for (const std::string& line : ready.job->statistics_summary()) text += line + "\n";
  return text;
}

void expect_said(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

TEST(RdtJob, TheBannerSaysWhichStatisticsWereFoundAndWhichComputed) {
  const auto folder = rdt_folder("banner");
  const std::string file = (folder / "dataset_stat.json").string();
  const std::string plain = said_of_statistics({});
  expect_said(plain, "actions (the state is not scaled: data.proprio_normalization=none): computed from ");
  expect_said(plain, "state: mean and deviations computed from ");
  expect_said(plain, "no dataset_stat.json is named");
  // The data's folder is called arm: its own statistics come before the benchmark's.
  const std::string of_task =
      said_of_statistics({statistics_of(folder, {"all", "libero_90", "arm"}), "model.rdt.data_sets=[libero_90]"});
  expect_said(of_task, "state: mean of arm (single task, named by data.paths) in " + file);
  const std::string of_benchmark =
      said_of_statistics({statistics_of(folder, {"all", "libero_90"}), "model.rdt.data_sets=[libero_90]"});
  expect_said(of_benchmark, "state: mean of libero_90 (data set of the configuration) in " + file);
  expect_said(said_of_statistics({statistics_of(folder, {"all"}), "model.rdt.data_sets=[libero_90]"}),
              "state: mean of all (of all data) in " + file);
  const std::string of_none = said_of_statistics({statistics_of(folder, {"droid"}), "model.rdt.data_sets=[libero_90]"});
  expect_said(of_none, "state: mean and deviations computed from ");
  expect_said(of_none, file + " has none of arm, ");
  expect_said(of_none, "libero_90, all");
}

TEST(RdtJob, ATooSmallDeviationInTheFileIsNamedAndTheDatasIsUsed) {
  const auto folder = rdt_folder("small_deviation");
  const std::vector<std::string> given{statistics_of(folder, {"libero_90"}, 1e-5), "model.rdt.data_sets=[libero_90]"};
  expect_said(said_of_statistics(given), "; not the file's: state_std of right_");
  ReadyPolicy with(small_rdt(given)), without(small_rdt());
  with.job->load();
  without.job->load();
  EXPECT_EQ(with.fields.to_json()["model"]["rdt"]["state_std"], without.fields.to_json()["model"]["rdt"]["state_std"]);
  const std::string plausible =
      said_of_statistics({statistics_of(folder, {"libero_90"}, 1e3), "model.rdt.data_sets=[libero_90]"});
  EXPECT_EQ(plausible.find("not the file's"), std::string::npos) << plausible;
}

TEST(RdtJob, AugmentationGoesThroughTheLoaderAndLeavesValidationAlone) {
  ReadyPolicy ready(
      small_rdt({"model.rdt.image_aug=true", "data.splits=train[40%:]", "validation.splits=train[:40%]"}));
  ready.job->load();
  EXPECT_EQ(ready.fields.to_json()["data"]["image_transforms"], config::Json({"rdt_augment", "resize(16, 16)"}));
  ReadyPolicy plain(small_rdt({"data.splits=train[40%:]", "validation.splits=train[:40%]"}));
  plain.job->load();
  const auto picture = [](ReadyPolicy& policy, Part part) {
    return policy.batch(part, 8).at("image/observation/image");
  };
  EXPECT_FALSE(at::equal(picture(ready, Part::kTrain), picture(plain, Part::kTrain)));
  EXPECT_TRUE(at::equal(picture(ready, Part::kTrain), picture(ready, Part::kTrain))) << "drawn by sample and epoch";
  EXPECT_TRUE(at::equal(picture(ready, Part::kValidation), picture(plain, Part::kValidation)));
}

TEST(RdtFlags, MainPysFlagsAreOurSettings) {
  const policies::ForeignWords flags = policies::read_rdt_flags(
      {"train_batch_size=16", "max_train_steps=20000", "load_from_hdf5=true", "mixed_precision=bf16",
       "lr_scheduler=constant_with_warmup", "lr_warmup_steps=100", "scale_lr=true", "resume_from_checkpoint=latest",
       "sample_period=100", "sample_batch_size=4", "model.rdt.lang_embed=a.pt", "precomp_lang_embed=true",
       "pretrained_text_encoder_name_or_path=google/t5-v1_1-xxl", "alpha=0.9", "state_noise_snr=40", "report_to=none",
       "train.log_every=5"});
  const std::vector<std::string> expected{"train.batch_size=16",
                                          "train.steps=20000",
                                          "data.format=hdf5",
                                          "train.precision=bf16",
                                          "train.learning_rate_rule=linear",
                                          "train.lr_base_batch=1",
                                          "model.rdt.lang_embed=a.pt",
                                          "model.rdt.state_noise_snr=40",
                                          "tensorboard=false",
                                          "train.log_every=5",
                                          "resume=auto",
                                          "train.schedule=constant",
                                          "train.warmup_steps=100",
                                          "train.validate_every=100",
                                          "validation.sampled=8"};
  EXPECT_EQ(flags.overrides, expected);
  EXPECT_EQ(flags.notes.size(), 3u) << "alpha, the text encoder, what is sampled";
  EXPECT_TRUE(policies::is_rdt_switch("load_from_hdf5"));
  EXPECT_FALSE(policies::is_rdt_switch("train_batch_size"));
  // Every setting that flags become exists.
  RunSettings settings;
  config::Fields fields;
  describe(fields, settings);
  const auto job = make_job("rdt");
  job->describe(fields, settings);
  for (const std::string& text : flags.overrides) fields.apply_override(text);
  EXPECT_EQ(settings.train.batch_size, 16);
}

// What nobody typed changes nothing that a file says: main.py's defaults are for where nothing is said.
TEST(RdtFlags, AFlagLeavesTheFilesOtherSettingsAlone) {
  EXPECT_EQ(policies::read_rdt_flags({"lr_warmup_steps=100"}).overrides,
            std::vector<std::string>{"train.warmup_steps=100"});
  const policies::ForeignWords cosine = policies::read_rdt_flags({"lr_scheduler=cosine"});
  EXPECT_EQ(cosine.overrides, std::vector<std::string>{"train.schedule=cosine"});
  EXPECT_EQ(cosine.defaults, std::vector<std::string>{"train.warmup_steps=500"});
  const policies::ForeignWords sampled = policies::read_rdt_flags({"sample_batch_size=16"});
  EXPECT_TRUE(sampled.overrides.empty());
  EXPECT_EQ(sampled.notes.size(), 1u);
  EXPECT_EQ(policies::read_rdt_flags({"sample_period=-1"}).overrides, std::vector<std::string>{"validation.sampled=0"});
}

TEST(RdtFlags, AMisspeltFlagHasItsNeighbour) {
  EXPECT_EQ(policies::near_rdt_flag("max_train_step"), "max_train_steps");
  EXPECT_EQ(policies::near_rdt_flag("train-batch-sise"), "train_batch_size");
  EXPECT_EQ(policies::near_rdt_flag("sample_perid"), "sample_period");
  EXPECT_EQ(policies::near_rdt_flag("train.batch_sise"), "") << "a setting, no flag";
  EXPECT_EQ(policies::near_rdt_flag("wholly_other"), "");
}

TEST(RdtFlags, ACheckpointsNameIsLookedForInTheOutputFolder) {
  const std::filesystem::path folder = rdt_folder("output_dir");
  std::filesystem::create_directories(folder / "checkpoint-2");
  const std::string out = "output_dir=" + folder.string();
  const policies::ForeignWords found = policies::read_rdt_flags({"resume_from_checkpoint=checkpoint-2", out});
  EXPECT_TRUE(found.names_output_dir);
  EXPECT_EQ(found.overrides, (std::vector<std::string>{out, "resume=" + (folder / "checkpoint-2").string()}));
  const std::string missing = message_of([&] {
    policies::read_rdt_flags({out, "resume_from_checkpoint=checkpoint-3"});
  });
  EXPECT_NE(missing.find("checkpoint-3"), std::string::npos) << missing;
}

TEST(RdtFlags, WhatCannotBeHonouredIsRefusedByName) {
  const std::string message = message_of([] {
    policies::read_rdt_flags(
        {"report_to=wandb", "lr_scheduler=polynomial", "precomp_lang_embed=true", "push_to_hub=false"});
  });
  for (const char* flag : {"--report_to=wandb: ", "--lr_scheduler=polynomial: ", "--precomp_lang_embed: "})
    EXPECT_NE(message.find(flag), std::string::npos) << flag << message;
  EXPECT_EQ(message.find("push_to_hub"), std::string::npos);
  EXPECT_NE(message_of([] {
              policies::read_rdt_flags({"resume_from_checkpoint=checkpoint-2"});
            }).find("name it with its run"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              policies::read_rdt_flags({"pretrained_text_encoder_name_or_path=google/t5-v1_1-xxl"});
            }).find("cohort data embed DATA --text-encoder google/t5-v1_1-xxl"),
            std::string::npos);
}

TEST(RdtFlags, DeepspeedsFileAndTheOptimizerOf8BitsAreSettingsAndAreSaidOnce) {
  const std::string file = std::string(COHORT_SOURCE_DIR) + "/configs/zero2.json";
  const policies::ForeignWords flags =
      policies::read_rdt_flags({"deepspeed=" + file, "use_8bit_adam=true", "train_batch_size=4"});
  EXPECT_EQ(flags.overrides,
            (std::vector<std::string>{"parallel.zero=2", "train.optimizer=adamw8bit", "train.batch_size=4"}));
  EXPECT_EQ(policies::read_rdt_flags({"use_8bit_adam=false"}).overrides, std::vector<std::string>{});
  const std::string twice = message_of([&] { policies::read_rdt_flags({"deepspeed=" + file, "parallel.zero=1"}); });
  EXPECT_NE(twice.find("its file says parallel.zero=2 and the command line parallel.zero=1"), std::string::npos)
      << twice;
}

}  // namespace
}  // namespace cohort::train
