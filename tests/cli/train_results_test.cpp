// What `cohort train` leaves behind and says of it: log, configuration, weights, figures of the test set.
#include <cmath>
#include <csignal>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

class TrainResults : public ::testing::Test {
 protected:
  fs::path out() const { return folder_.path() / "out"; }
  fs::path latest(const std::string& name) const { return fs::canonical(out() / name / "latest"); }
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_.path() / name, content);
    return (folder_.path() / name).string();
  }
  /// 200 rows; the columns before the last one are the inputs. Row `missing_row` lacks its first value.
  std::string table(const std::string& name, int inputs = 3, int missing_row = -1) const {
    std::string text;
    for (int c = 0; c < inputs; ++c) text += std::string(1, static_cast<char>('a' + c)) + ",";
    text += "target\n";
    for (int i = 0; i < 200; ++i) {
      for (int c = 0; c < inputs; ++c)
        text += (i == missing_row && c == 0 ? "" : std::to_string((i * (c + 1)) % (7 + 2 * c))) + ",";
      text += std::to_string((i * 3) % 5) + "\n";
    }
    return file(name, text);
  }
  std::vector<std::string> regressor(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"train",
                                 "regressor",
                                 "name=" + name,
                                 "output_dir=" + out().string(),
                                 "backend=cpu",
                                 "data.columns.n_targets=1",
                                 "train.batch_size=16",
                                 "loader.workers=1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome start(const std::vector<std::string>& words) const {
    std::vector<std::string> command{cohort_path()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command, {{"OMP_NUM_THREADS", "1"}});
  }
  Outcome train(const std::string& name, const std::vector<std::string>& more) const {
    return start(regressor(name, more));
  }

  TemporaryFolder folder_;
};

TEST_F(TrainResults, TheColumnsThatPredictAndThoseThatArePredictedAreNamed) {
  const std::string path = "data.path=" + table("t.csv");
  Outcome outcome = train("named", {path, "train.steps=1", "charts=false"});
  EXPECT_TRUE(contains(outcome.err, "a, b, c predict target, ")) << outcome.err;
  // Where nothing says which, the last two; this is said, with what says otherwise.
  outcome = start({"train", "regressor", path, "name=default", "output_dir=" + out().string(), "backend=cpu",
                   "train.batch_size=16", "loader.workers=1", "train.steps=1", "charts=false"});
  EXPECT_TRUE(contains(outcome.err, "a, b predict c, target (the last columns; data.targets=NAME,NAME takes others)"))
      << outcome.err;
  outcome = train("wide", {"data.path=" + table("wide.csv", 9), "train.steps=1", "charts=false"});
  EXPECT_TRUE(contains(outcome.err, "a, b, c, d, e, f and 3 more predict target")) << outcome.err;
}

TEST_F(TrainResults, SettingsAreLoggedAndWarningsArePrintedTooAndFiguresNeedNoCharts) {
  const Outcome outcome = train("small", {"data.path=" + table("gap.csv", 3, 100), "data.csv.missing=forward_fill",
                                          "train.steps=3", "train.clip_norm=.5", "charts=false"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = latest("small");
  const std::string log = read_file(folder / "training.log");
  for (const std::string& part :
       {std::string("train.batch_size=16"), std::string("train.clip_norm=0.5"), std::string("model.inputs=3"),
        std::string("data.csv.missing=forward_fill"), (folder / "config.json").string(),
        std::string("1 missing values replaced by the value above"),
        (folder / "checkpoints" / "last" / "model.safetensors").string()}) {
    EXPECT_TRUE(contains(log, part)) << part << "\n" << log;
  }
  for (const std::string& part : {std::string("1 missing values replaced by the value above"),
                                  (folder / "checkpoints" / "last" / "model.safetensors").string(),
                                  (folder / "training.log").string(), std::string("effective batch: 16")})
    EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
  // What fits a screen of 24 lines: derived settings are in the files.
  EXPECT_FALSE(contains(outcome.err, "model.inputs=3")) << outcome.err;
  EXPECT_LT(lines_of(outcome.err.substr(0, outcome.err.find("\ntrain "))).size(), 20u) << outcome.err;
  EXPECT_TRUE(parse_json<nlohmann::json>(read_file(folder / "test_metrics.json")).contains("data_units"));
  EXPECT_TRUE(contains(read_file(folder / "test_metrics.txt"), "target"));
  EXPECT_FALSE(fs::exists(folder / "charts"));
  EXPECT_FALSE(contains(outcome.err, "charts   ")) << outcome.err;
}

TEST_F(TrainResults, TheWeightsThatWereTestedAreNamedAndKept) {
  // No validation after the first lowers the loss by that much.
  const Outcome outcome = train("early", {"data.path=" + table("good.csv"), "train.epochs=5", "train.ema.enabled=true",
                                          "train.early_stopping.patience=1", "train.early_stopping.min_delta=1e9",
                                          "train.checkpoint.save_best=false"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "stopped early at step 20, best at step 10")) << outcome.err;
  const fs::path folder = latest("early"), weights = fs::path("checkpoints") / "best" / "ema" / "model.safetensors";
  EXPECT_TRUE(contains(outcome.err, "weights  " + (folder / weights).string())) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the moving average of the weights of step 10, the best validation"))
      << outcome.err;
  EXPECT_TRUE(fs::exists(folder / weights));
  EXPECT_EQ(fs::read_symlink(folder / "checkpoints" / "best").string(), "checkpoint-10");
  EXPECT_TRUE(contains(read_file(folder / "report.html"), weights.string()));
}

TEST_F(TrainResults, AFailedRunSaysSoInItsLogAndReport) {
  const Outcome outcome = train("failed", {"data.path=" + table("good.csv"), "train.lr=1e30", "train.steps=40"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "NaN or inf in step")) << outcome.err;
  EXPECT_TRUE(contains(read_file(latest("failed") / "training.log"), " error NaN or inf in step"));
  EXPECT_TRUE(contains(read_file(latest("failed") / "report.html"), "failed: NaN or inf in step"));
}

// 20 rows to validate on: three ranks fill up their shares with one. Without distilling, whose batch norm would
// remember the batches of rank 0.
TEST_F(TrainResults, TheValidationLossDoesNotDependOnTheNumberOfRanks) {
  const std::string data = "data.path=" + table("good.csv");
  const auto loss = [&](int ranks) {
    const std::string name = "ranks" + std::to_string(ranks);
    std::vector<std::string> words{"--nproc_per_node=" + std::to_string(ranks)};
    for (std::string& word :
         regressor(name, {data, "train.lr=0", "train.epochs=1", "model.distil=false", "charts=false"}))
      words.push_back(std::move(word));
    const Outcome outcome = run(launch(words), {{"OMP_NUM_THREADS", "1"}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    for (const std::string& line : lines_of(read_file(latest(name) / "metrics.jsonl"))) {
      const auto json = parse_json<nlohmann::json>(line);
      if (json.contains("validation/loss")) return json.at("validation/loss").get<double>();
    }
    return std::nan("");
  };
  constexpr double kOrderOfSums = 1e-5;
  const double one = loss(1);
  EXPECT_NEAR(loss(3), one, kOrderOfSums * one);
}

TEST_F(TrainResults, ASavedConfigurationServesOtherDataWithOtherColumns) {
  ASSERT_EQ(train("three", {"data.path=" + table("three.csv", 3), "train.steps=1", "charts=false"}).code, 0);
  const std::string config = "--config=" + (latest("three") / "config.json").string();
  const std::string four = "data.path=" + table("four.csv", 4);
  const Outcome other = start({"train", "regressor", config, four, "name=four"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(contains(other.err, "model.inputs is 4 as the data has it, not 3")) << other.err;
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(latest("four") / "config.json")).at("model").at("inputs"), 4);
  const Outcome wrong = start({"train", "regressor", config, four, "name=wrong", "model.inputs=3"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(contains(wrong.err, "model.inputs=3 contradicts the data")) << wrong.err;
  EXPECT_FALSE(fs::exists(out() / "wrong"));
}

TEST_F(TrainResults, AResumedRunDropsTheFiguresOfItsEarlierTest) {
  ASSERT_EQ(train("again", {"data.path=" + table("good.csv"), "train.steps=2", "charts=false"}).code, 0);
  const fs::path folder = latest("again");
  ASSERT_TRUE(fs::exists(folder / "test_metrics.json"));
  Process process({cohort_path(), "train", "regressor", "resume=" + folder.string(), "train.steps=1000000"},
                  {{"OMP_NUM_THREADS", "1"}});
  EXPECT_TRUE(eventually([&] { return !fs::exists(folder / "test_metrics.json"); })) << process.err();
  process.send(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.err;
  EXPECT_FALSE(fs::exists(folder / "test_metrics.json"));
  EXPECT_FALSE(fs::exists(folder / "test_metrics.txt"));
}

TEST_F(TrainResults, RowsWhoseDatesGiveInformerTooLittleAreRefusedFirst) {
  const auto dates = [&](const std::string& name, bool monthly) {
    std::string text = "date,load\n";
    for (int i = 0; i < 190; ++i) {
      const int month = monthly ? i % 12 + 1 : 1;
      text += std::to_string(monthly ? 2000 + i / 12 : 1900 + i) + (month < 10 ? "-0" : "-") + std::to_string(month) +
              "-01," + std::to_string((i * 3) % 7) + "\n";
    }
    return "data.path=" + file(name, text);
  };
  const auto refused = [&](const std::vector<std::string>& more, const std::vector<std::string>& parts) {
    std::vector<std::string> words{"train",           "informer",         "output_dir=" + out().string(),
                                   "backend=cpu",     "model.seq_len=12", "model.label_len=6",
                                   "model.pred_len=4"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = start(words);
    EXPECT_EQ(outcome.code, 1);
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
    EXPECT_FALSE(fs::exists(out())) << "written before the input was found good: " << parts[0];
  };
  const std::string months = dates("months.csv", true);
  for (const char* embed : {"fixed", "learned"})
    refused({months, "model.embed=" + std::string(embed)},
            {"months.csv", std::string("model.embed=") + embed, "data.freq=m", "model.embed=timeF"});
  refused({dates("years.csv", false)}, {"years.csv", "yearly dates give no time features", "data.freq=m"});
}

}  // namespace
}  // namespace cohort::testing
