#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "run/stop_request.h"
#include "support/fresh_folder.h"
#include "train/loop.h"
#include "train/random_state.h"
#include "train/rank_threads.h"
#include "weights/checkpoint.h"
#include "weights/named_tensors.h"

namespace cohort::train {
namespace {
namespace fs = std::filesystem;

/// BatchNorm sees a rank's own batch only: ranks and accumulation agree without it.
at::Tensor loss_without_batch_norm(torch::nn::Module& module, const parallel::Batch& batch) {
  auto& model = dynamic_cast<TinyModel&>(module);
  at::Tensor h = torch::gelu(model.one(batch.at("x")));
  if (model.is_training()) h = keyed_dropout(h);
  return torch::mse_loss(model.two(h), batch.at("y"));
}

struct RankResult {
  TrainResult result;
  std::vector<at::Tensor> weights;
  std::vector<StepStats> reports;
  std::vector<std::int64_t> seen;
};

using Configure = std::function<void(int rank, TrainSettings& settings, TrainJob& job, TinySource& source)>;

std::vector<std::string> train_ranks(int world, std::int64_t samples, std::int64_t batch, const Configure& configure,
                                     std::vector<RankResult>& results) {
  results.assign(static_cast<std::size_t>(world), {});
  // torch::manual_seed is global: models are made one after the other.
  std::vector<std::shared_ptr<TinyModel>> models;
  for (int rank = 0; rank < world; ++rank) models.push_back(tiny_model());
  return run_ranks(world, [&](int rank, Meeting& meeting) {
    RankResult& mine = results[static_cast<std::size_t>(rank)];
    const auto& model = models[static_cast<std::size_t>(rank)];
    ThreadStrategy strategy(model, rank, world, meeting);
    TinySource source(samples, batch, rank, world);
    TrainSettings settings{.batch_size = batch, .epochs = 2, .lr = 0.01, .log_every = 1, .hash_every = 0};
    TrainJob job{.strategy = &strategy, .loss = loss_without_batch_norm, .batches = &source};
    job.step_observers.push_back([&](const StepStats& stats) { mine.reports.push_back(stats); });
    configure(rank, settings, job, source);
    mine.result = TrainLoop(settings, job).run();
    for (const auto& [name, tensor] : weights::module_state(*model)) mine.weights.push_back(tensor.detach().clone());
    mine.seen = source.seen;
  });
}

void expect_no_error(const std::vector<std::string>& errors) {
  for (const auto& error : errors) EXPECT_EQ(error, "");
}

// Means of float32 gradients in another order.
constexpr double kOrderOfSums = 1e-5;

TEST(LoopRanks, TwoRanksEqualOneThatAccumulatesTheSameHalvesWithDropout) {
  std::vector<RankResult> two, one;
  expect_no_error(train_ranks(
      2, 96, 8, [](int, TrainSettings&, TrainJob&, TinySource&) {}, two));
  // One rank whose micro-batches are the two ranks' shares.
  class Halves final : public BatchSource {
   public:
    std::int64_t samples_per_epoch() const override { return 96; }
    std::int64_t batches_per_epoch() const override { return 12; }
    std::int64_t start_epoch(std::int64_t epoch, std::int64_t first) override {
      for (auto& share : shares_) share.start_epoch(epoch, first);
      turn_ = 0;
      return 12;
    }
    std::optional<parallel::Batch> next() override { return shares_[turn_++ % 2].next(); }
    double wait_seconds() const override { return 0.0; }

   private:
    TinySource shares_[2] = {TinySource(96, 8, 0, 2), TinySource(96, 8, 1, 2)};
    std::size_t turn_ = 0;
  } halves;
  expect_no_error(train_ranks(
      1, 96, 8,
      [&](int, TrainSettings& settings, TrainJob& job, TinySource&) {
        settings.gradient_accumulation_steps = 2;
        job.batches = &halves;
      },
      one));
  ASSERT_EQ(two[0].reports.size(), 12u);
  ASSERT_EQ(one[0].reports.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(two[0].reports[i].loss, one[0].reports[i].loss, kOrderOfSums) << i;
    EXPECT_EQ(two[0].reports[i].loss, two[1].reports[i].loss) << "the reported loss is the mean over ranks";
  }
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(at::allclose(two[0].weights[i], one[0].weights[i], kOrderOfSums, kOrderOfSums));
    EXPECT_TRUE(same_bits(two[0].weights[i], two[1].weights[i]));
  }
}

TEST(LoopRanks, AnotherNumberOfRanksGoesOnWithTheSameGlobalOrder) {
  const fs::path folder = test::fresh_folder("ranks_resize");
  std::vector<RankResult> whole, first, second;
  expect_no_error(train_ranks(
      1, 96, 8, [](int, TrainSettings& s, TrainJob&, TinySource&) { s.epochs = 1; }, whole));
  // Two ranks make 3 steps of 16 samples, then four ranks go on with steps of 16.
  expect_no_error(train_ranks(
      2, 96, 8,
      [&](int, TrainSettings& s, TrainJob& job, TinySource&) {
        s.steps = 3;
        job.checkpoints = folder;
      },
      first));
  expect_no_error(train_ranks(
      4, 96, 4,
      [&](int, TrainSettings& s, TrainJob& job, TinySource&) {
        s.epochs = 1;
        job.checkpoints = folder;
      },
      second));
  EXPECT_EQ(second[3].result.resumed_from, 3);
  EXPECT_EQ(second[0].result.step, 6);
  std::vector<std::int64_t> order;
  const auto interleave = [&](const std::vector<RankResult>& ranks) {
    for (std::size_t i = 0; i < ranks[0].seen.size(); ++i) {
      for (const auto& rank : ranks) order.push_back(rank.seen[i]);
    }
  };
  interleave(first);
  interleave(second);
  EXPECT_EQ(order, whole[0].seen);
}

TEST(LoopRanks, ANanOnOneRankEndsAllOfThemAtTheSameStep) {
  for (const char* precision : {"fp32", "fp16"}) {
    const fs::path folder = test::fresh_folder("ranks_nan");
    std::vector<RankResult> results;
    const auto errors = train_ranks(
        2, 96, 8,
        [&](int rank, TrainSettings& s, TrainJob& job, TinySource& source) {
          s.precision = precision;
          s.checkpoint = {.every = 1, .keep = 0};
          job.checkpoints = folder;
          job.loss = [rank, n = std::make_shared<int>(0)](auto& m, const auto& b) {
            const at::Tensor loss = loss_without_batch_norm(m, b);
            return rank == 1 && ++*n == 4 ? loss + std::nan("") : loss;
          };
          (void)source;
        },
        results);
    EXPECT_NE(errors[1].find("NaN or inf in step 4"), std::string::npos) << precision << errors[1];
    // In float32 the reduced gradients tell rank 0; under a scaler it hears of it.
    EXPECT_NE(errors[0].find(std::string(precision) == "fp32" ? "NaN or inf in step 4" : "another rank"),
              std::string::npos)
        << precision << errors[0];
    EXPECT_EQ(weights::CheckpointFolder(folder).steps(), (std::vector<std::int64_t>{1, 2, 3})) << precision;
  }
}

TEST(LoopRanks, ABadStepOfOneRankIsSkippedOnAll) {
  std::vector<RankResult> results;
  expect_no_error(train_ranks(
      2, 96, 8,
      [&](int rank, TrainSettings& s, TrainJob& job, TinySource&) {
        s.non_finite = "skip";
        job.loss = [rank, n = std::make_shared<int>(0)](auto& m, const auto& b) {
          const at::Tensor loss = loss_without_batch_norm(m, b);
          return rank == 1 && ++*n == 4 ? loss * std::nan("") : loss;
        };
      },
      results));
  for (const auto& rank : results) EXPECT_EQ(rank.result.skipped_steps, 1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(results[0].weights[i], results[1].weights[i]));
}

TEST(LoopRanks, AnFp16OverflowOnOneRankShrinksTheScaleOnBoth) {
  std::vector<RankResult> results;
  expect_no_error(train_ranks(
      2, 96, 8,
      [&](int rank, TrainSettings& s, TrainJob& job, TinySource&) {
        s.precision = "fp16";
        s.scaler = {.init_scale = 1024.0, .growth_interval = 1000};
        job.loss = [rank, n = std::make_shared<int>(0)](auto& m, const auto& b) {
          const at::Tensor loss = loss_without_batch_norm(m, b);
          if (rank == 1 && ++*n == 4) {
            loss.register_hook([](const at::Tensor& g) { return g * 3e38f * 3e38f; });
          }
          return loss;
        };
      },
      results));
  for (const auto& rank : results) {
    EXPECT_EQ(rank.reports[2].loss_scale, 1024.0);
    EXPECT_EQ(rank.reports[3].loss_scale, 512.0);
    EXPECT_EQ(rank.result.skipped_steps, 1);
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(same_bits(results[0].weights[i], results[1].weights[i]));
}

/// Trains 12 steps on two ranks, of which rank 1 leaves the other after step `leaves_after`; the errors of both.
std::vector<std::string> errors_of_two(std::int64_t hash_every, std::int64_t leaves_after) {
  std::vector<RankResult> results;
  return train_ranks(
      2, 96, 8,
      [&](int rank, TrainSettings& s, TrainJob& job, TinySource&) {
        s.hash_every = hash_every;
        const auto leave = [module = &job.strategy->module()] {
          const at::NoGradGuard no_grad;
          module->parameters()[0][0][0].add_(1e-3);
        };
        if (rank != 1) return;
        if (leaves_after == 0) leave();
        job.step_observers.push_back([=](const StepStats& stats) {
          if (stats.step == leaves_after) leave();
        });
      },
      results);
}

TEST(LoopRanks, ParametersThatDifferAreNoticedAfterTheFirstStepOnTheWayAndAtTheEnd) {
  struct Case {
    std::int64_t hash_every, leaves_after;
    const char* noticed;
  };
  for (const Case& c : {Case{500, 0, "step 1,"}, Case{4, 5, "step 8,"}, Case{500, 9, "step 12,"}})
    for (const auto& error : errors_of_two(c.hash_every, c.leaves_after))
      EXPECT_NE(error.find(std::string("parameters of the ranks differ at ") + c.noticed), std::string::npos) << error;
  for (const auto& error : errors_of_two(/*hash_every=*/0, /*leaves_after=*/0)) EXPECT_EQ(error, "");
}

TEST(LoopRanks, AResumedRunIsComparedAfterItsOwnFirstStep) {
  const fs::path folder = test::fresh_folder("ranks_resumed");
  std::vector<RankResult> results;
  expect_no_error(train_ranks(
      2, 96, 8,
      [&](int, TrainSettings& s, TrainJob& job, TinySource&) {
        s.steps = 6;
        job.checkpoints = folder;
      },
      results));
  const auto errors = train_ranks(
      2, 96, 8,
      [&](int rank, TrainSettings& s, TrainJob& job, TinySource&) {
        s.hash_every = 500;
        job.checkpoints = folder;
        if (rank != 1) return;
        job.started = [module = &job.strategy->module()](std::int64_t) {
          const at::NoGradGuard no_grad;
          module->parameters()[0][0][0].add_(1e-3);
        };
      },
      results);
  for (const auto& error : errors) EXPECT_NE(error.find("differ at step 7,"), std::string::npos) << error;
}

TEST(LoopRanks, RanksThatDifferSaveNothingOfTheLastSteps) {
  const fs::path folder = test::fresh_folder("ranks_differ");
  std::vector<RankResult> results;
  const auto errors = train_ranks(
      2, 96, 8,
      [&](int rank, TrainSettings& s, TrainJob& job, TinySource&) {
        s.hash_every = 500;
        job.checkpoints = folder;
        if (rank != 1) return;
        job.step_observers.push_back([module = &job.strategy->module()](const StepStats& stats) {
          const at::NoGradGuard no_grad;
          if (stats.step == 9) module->parameters()[0][0][0].add_(1e-3);
        });
      },
      results);
  for (const auto& error : errors) EXPECT_NE(error.find("differ at step 12,"), std::string::npos) << error;
  EXPECT_TRUE(weights::CheckpointFolder(folder).steps().empty());
}

TEST(LoopRanks, AStopWishOfOneRankStopsAllAtOneStep) {
  run::clear_stop_request();
  const fs::path folder = test::fresh_folder("ranks_stop");
  std::vector<RankResult> results;
  expect_no_error(train_ranks(
      2, 96, 8,
      [&](int rank, TrainSettings& s, TrainJob& job, TinySource&) {
        s.epochs = 1000;
        job.checkpoints = folder;
        if (rank != 1) return;
        job.step_observers.push_back([](const StepStats& stats) {
          if (stats.step == 7) run::request_stop();
        });
      },
      results));
  run::clear_stop_request();
  EXPECT_EQ(results[0].result.status, TrainStatus::kStopped);
  EXPECT_EQ(results[0].result.step, results[1].result.step);
  EXPECT_GE(results[0].result.step, 7);
  EXPECT_EQ(weights::CheckpointFolder(folder).last(), results[0].result.step);
}

TEST(LoopRanks, ACheckpointThatRankZeroCannotWriteEndsAll) {
  const fs::path folder = test::fresh_folder("ranks_unwritable");
  std::ofstream(folder / "taken") << "a file where the folder should be";
  std::vector<RankResult> results;
  const auto errors = train_ranks(
      2, 96, 8,
      [&](int, TrainSettings& s, TrainJob& job, TinySource&) {
        s.checkpoint.every = 2;
        job.checkpoints = folder / "taken" / "checkpoints";
      },
      results);
  EXPECT_NE(errors[0].find("checkpoint of step 2 could not be saved"), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("taken"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("rank 0 could not save"), std::string::npos) << errors[1];
}

TEST(LoopRanks, ByteStringsOfAllRanksAreGatheredExactly) {
  std::vector<at::Tensor> tables(3);
  expect_no_error(run_ranks(3, [&](int rank, Meeting& meeting) {
    ThreadStrategy strategy(nullptr, rank, 3, meeting);
    at::Tensor bytes = torch::arange(100 * rank, 100 * rank + 1003).to(torch::kByte);
    tables[static_cast<std::size_t>(rank)] = gather_over_ranks(strategy, bytes);
  }));
  for (const auto& table : tables) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(at::equal(table[rank], torch::arange(100 * rank, 100 * rank + 1003).to(torch::kByte)));
    }
  }
}

}  // namespace
}  // namespace cohort::train
