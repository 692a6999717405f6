// Optimizer state and gradients divided among real processes (parallel.zero): the numbers of one process, less memory on
// each, checkpoints that any number of processes goes on from.
#include <algorithm>
#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/ranks.h"

namespace cohort::testing {
namespace {

const std::string kZeroWorker = test_binary("zero_worker");
// Means of float32 gradients in another order.
constexpr double kOtherOrder = 1e-5;

struct Kept {
  double weights = 0, gradients = 0, optimizer = 0, ema = 0;
};

struct Trained {
  fs::path folder;
  std::vector<Outcome> outcomes;

  std::string text(int rank, const char* kind) const { return read_file(folder / (std::to_string(rank) + "." + kind)); }
  /// A line per step: number, loss, norm of the gradients.
  std::vector<std::string> lines() const { return lines_of(text(0, "losses")); }
  Kept kept(int rank) const {
    Kept k;
    std::istringstream(text(rank, "bytes")) >> k.weights >> k.gradients >> k.optimizer >> k.ema;
    return k;
  }
  std::string hash(int rank) const { return text(rank, "hash"); }
};

/// The test's own; names are those of one test.
fs::path folder_of(const std::string& name) {
  return fs::path(COHORT_BINARY_DIR) / "test-output" / ("Zero." + name);
}

/// Trains on `ranks` processes in a folder of that name, which it goes on from where it exists.
Trained train(const std::string& name, int ranks, std::vector<std::string> words, bool fails = false) {
  Trained run{.folder = folder_of(name), .outcomes = {}};
  fs::create_directories(run.folder);
  std::vector<std::string> command{kZeroWorker,
                                   run.folder.string(),
                                   "train.log_every=1",
                                   "train.clip_norm=0.5",
                                   "train.lr=1e-3",
                                   "train.optimizer=adamw",
                                   "train.ema.enabled=true",
                                   "train.checkpoint.every=2",
                                   "train.checkpoint.save_best=false"};
  command.insert(command.end(), words.begin(), words.end());
  if (ranks == 1) {
    run.outcomes.push_back(testing::run(command, {{"OMP_NUM_THREADS", "1"}}));
  } else {
    run.outcomes = run_ranks(command, ranks, {{"OMP_NUM_THREADS", "1"}});
  }
  for (const Outcome& outcome : run.outcomes)
    if (!fails) EXPECT_EQ(outcome.code, 0) << name << "\n" << outcome.output();
  return run;
}

Trained train_anew(const std::string& name, int ranks, std::vector<std::string> words, bool fails = false) {
  fs::remove_all(folder_of(name));
  return train(name, ranks, std::move(words), fails);
}

void expect_close_losses(const Trained& a, const Trained& b) {
  const auto one = a.lines(), other = b.lines();
  ASSERT_EQ(one.size(), other.size());
  ASSERT_GE(one.size(), 6u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    int step[2];
    double loss[2], norm[2];
    ASSERT_EQ(std::sscanf(one[i].c_str(), "%d %la %la", &step[0], &loss[0], &norm[0]), 3);
    ASSERT_EQ(std::sscanf(other[i].c_str(), "%d %la %la", &step[1], &loss[1], &norm[1]), 3);
    EXPECT_EQ(step[0], step[1]);
    EXPECT_NEAR(loss[0], loss[1], kOtherOrder * loss[0]) << "step " << step[0];
    EXPECT_NEAR(norm[0], norm[1], 10 * kOtherOrder * norm[0]) << "step " << step[0];
  }
}

TEST(Zero, LossesNormsAndAveragesAreThoseOfOneProcessWhateverIsDivided) {
  const std::vector<std::string> steps{"train.steps=8"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), steps.begin(), steps.end());
    return more;
  };
  const Trained one = train_anew("one", 1, with({"train.batch_size=4"}));
  const Trained whole = train_anew("whole", 2, with({"train.batch_size=2"}));
  expect_close_losses(one, whole);
  const struct {
    const char* name;
    int ranks;
    std::vector<std::string> words;
  } cases[] = {
      {"state", 2, {"train.batch_size=2", "parallel.zero=1"}},
      {"gradients", 2, {"train.batch_size=2", "parallel.zero=2"}},
      {"small_buckets", 2, {"train.batch_size=2", "parallel.zero=2", "parallel.ddp.bucket_cap_mb=0.01"}},
      {"sockets", 2, {"train.batch_size=2", "parallel.zero=2", "parallel.ddp.cpu_reduction=gloo"}},
      {"accumulated", 2, {"train.batch_size=1", "train.gradient_accumulation_steps=2", "parallel.zero=2"}},
      {"four", 4, {"train.batch_size=1", "parallel.zero=2", "parallel.ddp.cpu_reduction=gloo"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const Trained divided = train_anew(c.name, c.ranks, with(c.words));
    expect_close_losses(one, divided);
    for (int rank = 1; rank < c.ranks; ++rank) EXPECT_EQ(divided.hash(0), divided.hash(rank)) << "averages differ";
    // Through shared memory ranks are added up in one order, whatever the buckets: the same bits.
    if (c.name == std::string("state") || c.name == std::string("gradients"))
      EXPECT_EQ(divided.text(0, "losses"), whole.text(0, "losses"));
    if (c.name == std::string("gradients")) EXPECT_EQ(divided.hash(0), whole.hash(0));
  }
}

TEST(Zero, AnOverflowInOneRanksPartIsSkippedByAll) {
  // The scale begins where gradients of 16 bits overflow, so that some steps are skipped before it fits.
  const std::vector<std::string> words{"train.steps=8", "train.batch_size=2", "train.precision=fp16",
                                       "train.scaler.init_scale=1e9"};
  const Trained whole = train_anew("fp16_whole", 2, words);
  for (const char* zero : {"parallel.zero=1", "parallel.zero=2"}) {
    std::vector<std::string> divided = words;
    divided.emplace_back(zero);
    const Trained run = train_anew("fp16_divided", 2, divided);
    EXPECT_EQ(run.hash(0), whole.hash(0)) << zero;
    EXPECT_EQ(run.hash(1), whole.hash(0)) << zero;
  }
}

TEST(Zero, EachRankKeepsItsPartOfStateGradientsAndAverages) {
  const std::vector<std::string> words{"train.steps=2", "train.batch_size=2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), words.begin(), words.end());
    return more;
  };
  const Kept whole = train_anew("all_kept", 2, with({})).kept(0);
  EXPECT_GT(whole.optimizer, 1.9 * whole.gradients) << "two moments for each gradient";
  for (const int stage : {1, 2}) {
    const Trained run = train_anew("part_kept", 2, with({"parallel.zero=" + std::to_string(stage)}));
    const Kept a = run.kept(0), b = run.kept(1);
    EXPECT_EQ(a.optimizer + b.optimizer, whole.optimizer) << stage;
    EXPECT_EQ(a.ema + b.ema, whole.ema) << stage;
    EXPECT_LT(std::max(a.optimizer, b.optimizer), 0.55 * whole.optimizer) << stage;
    EXPECT_LT(std::max(a.ema, b.ema), 0.55 * whole.ema) << stage;
    EXPECT_EQ(a.weights, whole.weights) << "parameters are whole on every rank";
    if (stage == 1) {
      EXPECT_EQ(a.gradients, whole.gradients);
    } else {
      EXPECT_EQ(a.gradients + b.gradients, whole.gradients);
      EXPECT_LT(std::max(a.gradients, b.gradients), 0.55 * whole.gradients);
    }
  }
}

TEST(Zero, ARankKilledAndTheJobResumedHaveTheBitsOfAnUndisturbedRun) {
  const struct {
    const char* name;
    std::vector<std::string> words;
  } cases[] = {
      {"bits_plain", {}},
      {"bits_16", {"train.weights=bf16", "parallel.zero=2", "train.optimizer=adamw8bit"}},
      {"bits_state", {"parallel.zero=1", "train.gradient_checkpointing=true"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<std::string> words{"train.steps=7", "train.batch_size=1", "train.gradient_accumulation_steps=2",
                                   "train.precision=bf16"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const Trained whole = train_anew(c.name, 2, words);
    std::vector<std::string> dying = words;
    dying.push_back("die=5");
    const std::string name = std::string(c.name) + "_killed";
    const Trained killed = train_anew(name, 2, dying, /*fails=*/true);
    EXPECT_NE(killed.outcomes[1].code, 0);
    EXPECT_FALSE(fs::exists(killed.folder / "0.hash"));
    const Trained resumed = train(name, 2, words);
    EXPECT_EQ(whole.hash(0), resumed.hash(0));
    const auto undisturbed = whole.lines(), again = resumed.lines();
    ASSERT_EQ(undisturbed.size(), 7u);
    ASSERT_GT(again.size(), 7u) << "step 5 and perhaps 6 were made twice";
    for (std::size_t i = 5; i <= 7; ++i)
      EXPECT_EQ(undisturbed[undisturbed.size() - (8 - i)], again[again.size() - (8 - i)]) << "step " << i;
  }
}

TEST(Zero, AnyNumberOfRanksGoesOnFromACheckpointOfAnyOther) {
  const Trained whole = train_anew("go_on_whole", 1, {"train.steps=8", "train.batch_size=4"});
  train_anew("go_on", 2, {"train.steps=4", "train.batch_size=2", "parallel.zero=2"});
  train("go_on", 4, {"train.steps=6", "train.batch_size=1", "parallel.zero=1"});
  const Trained last = train("go_on", 1, {"train.steps=8", "train.batch_size=4"});
  expect_close_losses(whole, last);
}

TEST(Zero, WhatCannotBeDividedIsRefusedByName) {
  const auto refused = [](int ranks, std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"train.steps=1", "train.batch_size=2"});
    const Trained run = train_anew("refused", ranks, words, /*fails=*/true);
    for (const Outcome& outcome : run.outcomes) {
      EXPECT_EQ(outcome.code, 1) << message;
      EXPECT_TRUE(contains(outcome.out, message)) << outcome.output();
    }
  };
  refused(1, {"parallel.zero=3"}, "parallel.zero=3: it is 0, 1 (optimizer state divided) or 2 (gradients, too)");
  refused(2, {"parallel.zero=2", "parallel.ddp.compression=bf16"},
          "parallel.zero=2 does not know parallel.ddp.compression");
  refused(2, {"parallel.zero=2", "parallel.ddp.find_unused_parameters=true"}, "choose parallel.zero=1");
  refused(1, {"train.weights=bf16"}, "train.weights=bf16 needs train.precision=bf16, not fp32");
}

}  // namespace
}  // namespace cohort::testing
