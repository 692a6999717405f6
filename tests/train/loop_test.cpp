#include "train/loop.h"

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "run/stop_request.h"
#include "support/fresh_folder.h"
#include "train/tiny_training.h"
#include "weights/checkpoint_folder.h"
#include "weights/named_tensors.h"
#include "weights/safetensors.h"

namespace cohort::train {
namespace {
namespace fs = std::filesystem;

/// A training of the tiny model on one rank.
struct Training {
  explicit Training(std::int64_t samples = 96, std::int64_t batch = 8, std::uint64_t seed = 7)
      : model(tiny_model(seed)), strategy(model), source(samples, batch) {
    job = {.strategy = &strategy, .loss = tiny_loss, .batches = &source};
    job.step_observers.push_back([this](const StepStats& stats) { reports.push_back(stats); });
    job.validation_observers.push_back([this](const ValidationStats& stats) { validations.push_back(stats); });
    settings = {.batch_size = batch, .epochs = 2, .lr = 0.01, .log_every = 1, .hash_every = 0};
  }
  TrainResult train() { return TrainLoop(settings, job).run(); }
  std::string error() {
    return message_of([this] { train(); });
  }
  std::vector<at::Tensor> weights() const {
    std::vector<at::Tensor> copies;
    for (const auto& [name, tensor] : weights::module_state(*model)) copies.push_back(tensor.detach().clone());
    return copies;
  }

  std::shared_ptr<TinyModel> model;
  PlainStrategy strategy;
  TinySource source;
  TrainSettings settings;
  TrainJob job;
  std::vector<StepStats> reports;
  std::vector<ValidationStats> validations;
};

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return false;
  }
  return a.size() == b.size();
}

Validator constant_validator(std::vector<double> values) {
  auto calls = std::make_shared<std::size_t>(0);
  return [values, calls](torch::nn::Module& model, std::int64_t) {
    EXPECT_FALSE(model.is_training());
    EXPECT_FALSE(at::GradMode::is_enabled());
    const double value = values[std::min((*calls)++, values.size() - 1)];
    return std::vector<Metric>{{"mse", value * 4.0, 4.0}, {"other", 1.0, 1.0}};
  };
}

TEST(Loop, MatchesAHandWrittenPyTorchStyleLoop) {
  Training run;
  run.settings.gradient_accumulation_steps = 3;
  run.settings.clip_norm = 0.5;
  run.settings.schedule = {.kind = "cosine", .warmup_steps = 2};
  const auto result = run.train();
  EXPECT_EQ(result.status, TrainStatus::kFinished);
  EXPECT_EQ(result.step, 8);  // 12 batches an epoch, in threes

  auto model = tiny_model();
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(0.01).weight_decay(0.01));
  TinySource source(96, 8);
  std::int64_t step = 0;
  std::vector<double> losses;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    source.start_epoch(epoch, 0);
    for (int window = 0; window < 4; ++window) {
      optimizer.zero_grad();
      double loss = 0.0;
      for (int i = 0; i < 3; ++i) {
        const auto batch = source.next();
        const models::RandomContextGuard random(
            {.seed = 1, .step = static_cast<std::uint64_t>(step), .sample_ids = batch->sample_ids});
        const at::Tensor micro = tiny_loss(*model, *batch);
        (micro / 3).backward();
        loss += micro.item<double>() / 3;
      }
      losses.push_back(loss);
      torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
      const double factor =
          step < 2 ? static_cast<double>(step) / 2 : 0.5 * (1 + std::cos(M_PI * static_cast<double>(step - 2) / 6.0));
      for (auto& group : optimizer.param_groups()) {
        static_cast<torch::optim::AdamWOptions&>(group.options()).lr(0.01 * factor);
      }
      optimizer.step();
      ++step;
    }
  }
  // The C++ optimizer orders its multiplications in another way than the fused kernel.
  constexpr double kRoundings = 2e-5;
  ASSERT_EQ(run.reports.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(run.reports[i].loss, losses[i], kRoundings);
  const auto a = weights::module_state(*run.model), b = weights::module_state(*model);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::allclose(a[i].second.to(torch::kDouble), b[i].second.to(torch::kDouble), kRoundings, kRoundings))
        << a[i].first;
  }
}

TEST(Loop, ReportsSayWhereTrainingStands) {
  Training run;
  run.settings.log_every = 5;
  run.train();
  ASSERT_EQ(run.reports.size(), 5u);  // 5, 10, 15, 20, and the rest
  const auto& stats = run.reports[2];
  EXPECT_EQ(stats.step, 15);
  EXPECT_EQ(stats.total_steps, 24);
  EXPECT_EQ(stats.epoch, 1);
  EXPECT_DOUBLE_EQ(stats.epoch_progress, 1.25);
  EXPECT_EQ(stats.lr, 0.01);
  EXPECT_GT(stats.grad_norm, 0.0);
  EXPECT_GT(stats.samples_per_s, 0.0);
  EXPECT_NEAR(stats.samples_per_s / stats.iterations_per_s, 8.0, 1e-6);
  EXPECT_GT(stats.host_bytes, 1e6);
  EXPECT_TRUE(std::isfinite(stats.seconds_left));
  EXPECT_EQ(run.reports.back().step, 24);
  EXPECT_EQ(run.reports.back().seconds_left, 0.0);
}

TEST(Loop, ResumingFromAnyCheckpointGivesTheSameBits) {
  const fs::path folder = test::fresh_folder("loop_resume");
  const auto configure = [](Training& run) {
    run.settings.gradient_accumulation_steps = 2;
    run.settings.ema.enabled = true;
    run.settings.log_every = 4;  // intervals that checkpoints cut
    run.settings.checkpoint = {.every = 3, .keep = 0};
    run.settings.epochs = 3;
    run.job.validator = constant_validator({3.0, 2.0, 1.0});
    run.settings.checkpoint.save_best = false;
  };
  Training whole;
  configure(whole);
  whole.job.checkpoints = folder / "whole";
  whole.train();
  const auto steps = weights::CheckpointFolder(folder / "whole").steps();
  ASSERT_EQ(steps, (std::vector<std::int64_t>{3, 6, 9, 12, 15, 18}));
  for (const std::int64_t step : steps) {
    const fs::path mine = folder / ("from_" + std::to_string(step));
    fs::create_directories(mine);
    fs::copy(folder / "whole" / ("checkpoint-" + std::to_string(step)), mine / ("checkpoint-" + std::to_string(step)),
             fs::copy_options::recursive);
    Training resumed(96, 8, /*seed=*/99);  // other initial weights
    configure(resumed);
    resumed.job.checkpoints = mine;
    const auto result = resumed.train();
    EXPECT_EQ(result.resumed_from, step);
    EXPECT_TRUE(equal(resumed.weights(), whole.weights())) << "from step " << step;
    for (const auto& report : resumed.reports) {
      for (const auto& expected : whole.reports) {
        if (expected.step != report.step) continue;
        EXPECT_EQ(report.loss, expected.loss) << "from " << step << " at " << report.step;
        EXPECT_EQ(report.grad_norm, expected.grad_norm);
        EXPECT_EQ(report.lr, expected.lr);
      }
    }
    for (const auto& validation : resumed.validations) {
      for (const auto& expected : whole.validations) {
        if (expected.step == validation.step) EXPECT_EQ(validation.train_loss, expected.train_loss);
      }
    }
    for (const char* file :
         {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors", "rng.safetensors"}) {
      EXPECT_EQ(read_file(mine / "checkpoint-18" / file), read_file(folder / "whole" / "checkpoint-18" / file)) << file;
    }
  }
}

TEST(Loop, ANanInTheDataEndsTrainingWithTheStepAndTheField) {
  const fs::path folder = test::fresh_folder("loop_nan");
  Training run;
  run.source.poisoned = 40;
  run.settings.checkpoint = {.every = 1, .keep = 0};
  run.job.checkpoints = folder;
  const std::string message = run.error();
  ASSERT_NE(message.find("NaN or inf in step"), std::string::npos) << message;
  EXPECT_NE(message.find("learning rate 0.01"), std::string::npos) << message;
  EXPECT_NE(message.find("first parameter with a non-finite gradient: one.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("field 'x' holds a NaN"), std::string::npos) << message;
  const std::int64_t bad = std::stoll(message.substr(message.find("step") + 5));
  const auto steps = weights::CheckpointFolder(folder).steps();
  if (bad > 1) EXPECT_EQ(steps.back(), bad - 1) << "the bad step was saved, or the one before it was not";
  // Buffers are no weights: batch norm's running statistics have seen the batch in the forward pass.
  for (const auto& [name, tensor] : weights::trainable_parameters(*run.model))
    EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
}

TEST(Loop, WithPolicySkipTheBadStepIsLeftOut) {
  Training run;
  run.source.poisoned = 40;
  run.settings.non_finite = "skip";
  const auto result = run.train();
  EXPECT_EQ(result.step, 24);
  EXPECT_EQ(result.skipped_steps, 2);  // once an epoch
  EXPECT_EQ(run.reports.back().skipped_steps, 2);
  for (const auto& [name, tensor] :
       weights::module_state(*run.model))  // parameters and batch norm's running statistics
    EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
  const at::Tensor& seen = run.model->norm->running_mean;
  EXPECT_GT(seen.abs().sum().item<double>(), 0.0) << "the good steps left their statistics";
}

TEST(Loop, EarlyStoppingEndsWithTheBestWeights) {
  struct Way {
    bool on_disk, save_best;
  };
  // Without save_best, a checkpoint keeps the best weights all the same: what is tested can be found afterwards.
  for (const auto& [on_disk, save_best] : {Way{false, true}, Way{true, true}, Way{true, false}}) {
    Training run;
    const fs::path folder = test::fresh_folder("loop_early");
    if (on_disk) run.job.checkpoints = folder;
    run.settings.checkpoint.save_best = save_best;
    run.settings.epochs = 10;
    run.settings.early_stopping = {.patience = 2, .min_delta = 0.1};
    run.job.validator = constant_validator({3.0, 2.0, 1.95, 1.94, 1.0});
    std::vector<at::Tensor> at_best;
    run.job.validation_observers.push_back([&](const ValidationStats& stats) {
      if (stats.improved) at_best = run.weights();
    });
    const auto result = run.train();
    EXPECT_EQ(result.status, TrainStatus::kEarlyStopped);
    EXPECT_EQ(result.epoch, 4);
    EXPECT_EQ(result.best, 2.0);
    EXPECT_EQ(result.best_step, 24);
    EXPECT_EQ(result.weights_step, 24);
    EXPECT_TRUE(equal(run.weights(), at_best)) << on_disk;
    if (on_disk) EXPECT_EQ(weights::CheckpointFolder(folder).best(), 24);
  }
}

TEST(Loop, AnUnknownEarlyStoppingMetricNamesTheKnownOnes) {
  Training run;
  run.settings.early_stopping.metric = "mae";
  run.job.validator = constant_validator({1.0});
  const std::string message = run.error();
  EXPECT_NE(message.find("'mae'"), std::string::npos) << message;
  EXPECT_NE(message.find("mse, other"), std::string::npos) << message;
}

TEST(Loop, ValidationSeesTheAveragesAndTrainingGoesOnWithTheWeights) {
  Training plain, averaged;
  averaged.settings.ema.enabled = true;
  std::vector<std::vector<at::Tensor>> seen_plain, seen_averaged;
  const auto watch = [](Training& run, std::vector<std::vector<at::Tensor>>& seen) {
    run.job.validator = [&](torch::nn::Module&, std::int64_t) {
      seen.push_back(run.weights());
      return std::vector<Metric>{{"mse", 1.0, 1.0}};
    };
  };
  watch(plain, seen_plain);
  watch(averaged, seen_averaged);
  plain.train();
  averaged.train();
  EXPECT_TRUE(equal(plain.weights(), averaged.weights()));
  EXPECT_FALSE(equal(seen_plain[0], seen_averaged[0]));
}

TEST(Loop, ValidationsAreCountedOnThroughAStopAndAResumption) {
  // What is done in every other validation, as rollouts are, may not begin to count anew with each process.
  const fs::path folder = test::fresh_folder("loop_numbers");
  run::clear_stop_request();
  std::vector<std::pair<std::int64_t, std::int64_t>> whole, parts;  // step and number
  const auto count = [](Training& run, std::vector<std::pair<std::int64_t, std::int64_t>>& seen, bool stops) {
    run.job.validator = [&seen, stops](torch::nn::Module&, std::int64_t number) {
      seen.emplace_back(0, number);
      if (stops && number == 3) run::request_stop();
      return std::vector<Metric>{{"mse", 1.0, 1.0}};
    };
    run.job.validation_observers.push_back([&seen](const ValidationStats& stats) { seen.back().first = stats.step; });
  };
  for (const std::int64_t every : {std::int64_t{5}, std::int64_t{0}}) {
    SCOPED_TRACE(every);
    whole.clear(), parts.clear();
    const fs::path checkpoints = folder / std::to_string(every);
    Training undisturbed, stopped, resumed(96, 8, 99);
    for (Training* run : {&undisturbed, &stopped, &resumed}) {
      run->settings.validate_every = every;
      run->settings.epochs = 4;
    }
    stopped.job.checkpoints = resumed.job.checkpoints = checkpoints;
    count(undisturbed, whole, false), count(stopped, parts, true), count(resumed, parts, false);
    undisturbed.train();
    EXPECT_EQ(stopped.train().status, TrainStatus::kStopped);
    run::clear_stop_request();
    EXPECT_EQ(resumed.train().status, TrainStatus::kFinished);
    ASSERT_GE(whole.size(), 4u);
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i].second, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(parts, whole);
  }
}

TEST(Loop, AStopRequestFinishesTheStepSavesAndCanBeResumed) {
  const fs::path folder = test::fresh_folder("loop_stop");
  run::install_stop_signals();
  run::clear_stop_request();
  Training whole, stopped, resumed(96, 8, 99);
  whole.train();
  stopped.job.checkpoints = resumed.job.checkpoints = folder;
  stopped.job.step_observers.push_back([](const StepStats& stats) {
    if (stats.step == 5) std::raise(SIGTERM);
  });
  const auto result = stopped.train();
  EXPECT_EQ(result.status, TrainStatus::kStopped);
  EXPECT_EQ(result.step, 5);
  EXPECT_EQ(run::stop_signal(), SIGTERM);
  EXPECT_EQ(weights::CheckpointFolder(folder).last(), 5);
  run::clear_stop_request();
  EXPECT_EQ(resumed.train().status, TrainStatus::kFinished);
  EXPECT_TRUE(equal(whole.weights(), resumed.weights()));
}

TEST(Loop, DataThatFailEndTheTrainingWithACheckpointOfTheStepBefore) {
  const fs::path folder = test::fresh_folder("loop_data_fail");
  Training whole, failed, resumed(96, 8, 99);
  whole.train();
  failed.job.checkpoints = resumed.job.checkpoints = folder;
  failed.source.fails_behind = 40;  // in step 6
  EXPECT_EQ(failed.error(), "the picture of step 3 is damaged");
  EXPECT_EQ(weights::CheckpointFolder(folder).last(), 5);
  EXPECT_EQ(resumed.train().resumed_from, 5);
  EXPECT_TRUE(equal(whole.weights(), resumed.weights()));

  // Nothing has been learnt since: nothing is written.
  Training at_once;
  at_once.job.checkpoints = folder / "none";
  at_once.source.fails_behind = 0;
  EXPECT_EQ(at_once.error(), "the picture of step 3 is damaged");
  EXPECT_EQ(weights::CheckpointFolder(folder / "none").steps(), std::vector<std::int64_t>{});
}

TEST(Loop, AStopBetweenTwoReportsChangesNoReport) {
  const fs::path folder = test::fresh_folder("loop_stop_reports");
  run::clear_stop_request();
  Training whole, stopped, resumed(96, 8, 99);
  for (Training* run : {&whole, &stopped, &resumed}) run->settings.log_every = 4;
  stopped.job.checkpoints = resumed.job.checkpoints = folder;
  // A validation in the middle of an interval is where this training can be told to stop.
  stopped.settings.validate_every = 7;
  stopped.job.validator = [](torch::nn::Module&, std::int64_t) {
    run::request_stop();
    return std::vector<Metric>{{"mse", 1.0, 1.0}};
  };
  whole.train();
  EXPECT_EQ(stopped.train().step, 7);
  run::clear_stop_request();
  resumed.train();
  std::vector<StepStats> reports = stopped.reports;
  reports.insert(reports.end(), resumed.reports.begin(), resumed.reports.end());
  ASSERT_EQ(reports.size(), whole.reports.size());
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].step, whole.reports[i].step);
    EXPECT_EQ(reports[i].loss, whole.reports[i].loss) << "step " << reports[i].step;
  }
}

TEST(Loop, AnEarlyStoppedTrainingIsNotContinuedUnlessItsPatienceIsRaised) {
  const fs::path folder = test::fresh_folder("loop_early_resumed");
  const auto configure = [&](Training& run, std::int64_t patience, std::vector<double> values) {
    run.settings.epochs = 10;
    run.settings.early_stopping = {.patience = patience, .min_delta = 0.1};
    run.job.checkpoints = folder;
    run.job.validator = constant_validator(std::move(values));
  };
  Training first, again(96, 8, 99), patient(96, 8, 99);
  configure(first, 2, {3.0, 2.0, 1.95, 1.94});
  EXPECT_EQ(first.train().step, 48);
  configure(again, 2, {1.0});
  const auto result = again.train();
  EXPECT_EQ(result.status, TrainStatus::kEarlyStopped);
  EXPECT_EQ(result.step, 48);
  EXPECT_EQ(result.best_step, 24);
  EXPECT_TRUE(again.source.seen.empty());
  EXPECT_TRUE(equal(first.weights(), again.weights())) << "those of the best validation";
  EXPECT_EQ(weights::CheckpointFolder(folder).last(), 48);
  configure(patient, 3, {1.95});
  EXPECT_EQ(patient.train().step, 60) << "a third validation without improvement";
}

TEST(Loop, ResumingOnOtherDataIsSaid) {
  const fs::path folder = test::fresh_folder("loop_other_data");
  const auto said = [&](const std::string& statistics) {
    Training run;
    run.job.checkpoints = folder;
    run.job.dataset_statistics = statistics;
    ::testing::internal::CaptureStderr();
    run.train();
    return ::testing::internal::GetCapturedStderr();
  };
  const char* warning = "the statistics of the training data are others";
  EXPECT_EQ(said(R"({"mean": [1.5], "std": [2]})").find(warning), std::string::npos);
  EXPECT_EQ(said(R"({"std": [2.0], "mean": [1.5]})").find(warning), std::string::npos) << "another spelling";
  const std::string other = said(R"({"mean": [1.25], "std": [2]})");
  EXPECT_NE(other.find(warning), std::string::npos) << other;
  EXPECT_NE(other.find("checkpoint-24/dataset_statistics.json"), std::string::npos) << other;
}

TEST(Loop, AnEpochWithoutABatchIsNamedWithItsNumbers) {
  Training run(96, 100);
  const std::string message = run.error();
  EXPECT_NE(message.find("96 samples for 1 process(es) do not fill one of 100"), std::string::npos) << message;
  EXPECT_NE(message.find("lower batch_size"), std::string::npos) << message;
}

TEST(Loop, AFinishedTrainingIsNotContinued) {
  const fs::path folder = test::fresh_folder("loop_finished");
  Training first, again(96, 8, 99);
  first.job.checkpoints = again.job.checkpoints = folder;
  first.train();
  const auto result = again.train();
  EXPECT_EQ(result.resumed_from, 24);
  EXPECT_EQ(result.step, 24);
  EXPECT_TRUE(again.source.seen.empty());
  EXPECT_TRUE(equal(first.weights(), again.weights()));
}

TEST(Loop, AnotherOptimizerOrModelRefusesToResume) {
  const fs::path folder = test::fresh_folder("loop_foreign");
  Training first, other;
  first.job.checkpoints = other.job.checkpoints = folder;
  first.train();
  other.settings.optimizer.kind = "sgd";
  const std::string message = other.error();
  EXPECT_NE(message.find("optimizer adamw, this run asks for sgd"), std::string::npos) << message;
}

TEST(Loop, Fp16ScalesTheLossAndItsStateIsSaved) {
  const fs::path folder = test::fresh_folder("loop_fp16");
  Training run;
  run.settings.precision = "fp16";
  run.settings.scaler.init_scale = 1e9;  // overflows at first
  run.job.checkpoints = folder;
  run.settings.epochs = 8;
  const auto result = run.train();
  EXPECT_EQ(result.step, 96);
  EXPECT_GT(result.skipped_steps, 5);
  EXPECT_LT(run.reports.back().loss_scale, 1e9);
  EXPECT_TRUE(std::isfinite(run.reports.back().loss));
  Training again(96, 8, 99);
  again.settings = run.settings;
  again.settings.epochs = 9;
  again.job.checkpoints = folder;
  again.train();
  EXPECT_EQ(again.reports.front().loss_scale, run.reports.back().loss_scale);
  EXPECT_EQ(again.reports.front().skipped_steps, result.skipped_steps);
}

// Half precision has 11 bits: after 24 steps the losses of two such trainings differ by a few per mille.
TEST(Loop, Fp16FollowsFp32) {
  constexpr double kTolerance = 0.02;
  Training half, full;
  half.settings.precision = "fp16";
  half.settings.scaler.init_scale = 1024.0;
  EXPECT_EQ(half.train().skipped_steps, 0);
  full.train();
  ASSERT_EQ(half.reports.size(), full.reports.size());
  for (std::size_t i = 0; i < full.reports.size(); ++i)
    EXPECT_NEAR(half.reports[i].loss, full.reports[i].loss, kTolerance * full.reports[i].loss) << "step " << i + 1;
}

TEST(Loop, GradientCheckpointingRefusesNothingWithoutSegments) {
  Training plain, checkpointed;
  checkpointed.settings.gradient_checkpointing = true;
  plain.train();
  checkpointed.train();
  EXPECT_TRUE(equal(plain.weights(), checkpointed.weights()));
}

TEST(Loop, StepsOverruleEpochsAndMayEndInsideOne) {
  Training run;
  run.settings.steps = 29;
  const auto result = run.train();
  EXPECT_EQ(result.step, 29);
  EXPECT_EQ(result.epoch, 2);
  EXPECT_EQ(run.source.seen.size(), 29u * 8u);
}

TEST(Loop, ALossThatDependsOnNothingIsNamed) {
  Training run;
  run.job.loss = [](torch::nn::Module&, const parallel::Batch& batch) { return batch.at("y").mean(); };
  EXPECT_NE(run.error().find("must return one number that depends on the model's parameters"), std::string::npos);
}

TEST(Loop, SettingsOutOfRangeAreNamed) {
  const auto message = [](const std::function<void(TrainSettings&)>& change) {
    Training run;
    change(run.settings);
    return run.error();
  };
  EXPECT_NE(message([](TrainSettings& s) { s.epochs = 0; }).find("epochs"), std::string::npos);
  EXPECT_NE(message([](TrainSettings& s) { s.non_finite = "ignore"; }).find("'ignore'"), std::string::npos);
  EXPECT_NE(message([](TrainSettings& s) { s.learning_rate_rule = "linear"; }).find("lr_base_batch"),
            std::string::npos);
  EXPECT_NE(
      message([](TrainSettings& s) { s.global_batch_size = 9, s.gradient_accumulation_steps = 2; }).find("8 and 10"),
      std::string::npos);
}

}  // namespace
}  // namespace cohort::train
