// `cohort train` and bad input, as a user meets it: one clear line, a code that is not 0, and nothing written before
// the input was found good; runs that are continued, or cannot be; steps that change nothing.
#include <csignal>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

class TrainFaults : public ::testing::Test {
 protected:
  fs::path out() const { return folder_.path() / "out"; }
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_.path() / name, content);
    return (folder_.path() / name).string();
  }
  /// `rows` rows of four columns that vary; the last column of row `bad_row` is `bad`.
  std::string table(const std::string& name, int rows, int bad_row = -1, const std::string& bad = "") const {
    std::string text = "a,b,c,target\n";
    for (int i = 0; i < rows; ++i)
      text += std::to_string(i % 7) + "," + std::to_string(i % 11) + "," + std::to_string((i * i) % 13) + "," +
              (i == bad_row ? bad : std::to_string((i * 3) % 5)) + "\n";
    return file(name, text);
  }
  std::string hours(const std::string& name, int rows) const {
    std::string text = "date,OT\n";
    for (int i = 0; i < rows; ++i)
      text += "2016-07-" + std::string(i / 24 < 9 ? "0" : "") + std::to_string(i / 24 + 1) + " " +
              (i % 24 < 10 ? "0" : "") + std::to_string(i % 24) + ":00:00," + std::to_string(i % 9) + "\n";
    return file(name, text);
  }
  Outcome train(std::vector<std::string> arguments) const {
    std::vector<std::string> command{cohort_path(), "train", arguments[0], "output_dir=" + out().string(),
                                     "backend=cpu"};
    command.insert(command.end(), arguments.begin() + 1, arguments.end());
    return run(command, alone());
  }
  static std::map<std::string, std::string> alone() {
    return {{"RANK", ""}, {"WORLD_SIZE", ""}, {"OMP_NUM_THREADS", "1"}};
  }
  /// A run of five steps an epoch.
  std::vector<std::string> small(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"regressor",
                                       "data.path=" + table("good.csv", 400),
                                       "data.columns.n_targets=1",
                                       "train.batch_size=64",
                                       "charts=false",
                                       "loader.workers=1",
                                       "name=" + name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  fs::path latest(const std::string& name) const { return fs::canonical(out() / name / "latest"); }
  /// Continues a run, which says itself what it trains.
  static Outcome resume(const fs::path& run_folder, const std::vector<std::string>& more) {
    std::vector<std::string> command{cohort_path(), "train", "resume=" + run_folder.string()};
    command.insert(command.end(), more.begin(), more.end());
    return run(command, alone());
  }
  /// Fails before anything is written, with all `parts` in what it says.
  void refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = train(arguments);
    EXPECT_NE(outcome.code, 0) << arguments[1];
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << "\n" << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "terminate called")) << outcome.err;
    EXPECT_FALSE(contains(outcome.err, "frame #")) << outcome.err;
    EXPECT_FALSE(fs::exists(out())) << "written before the input was found good: " << parts[0];
  }

  TemporaryFolder folder_;
};

TEST_F(TrainFaults, APathOfAnyBytesTrainsAndItsRunKnowsItAgain) {
  const std::string path = hours("load\xE9.csv", 300);
  const Outcome outcome = train({"informer", "data.path=" + path, "name=bytes", "train.steps=2", "train.batch_size=8",
                                 "model.d_model=16", "model.n_heads=2", "model.d_ff=16", "data.windows.seq_len=24",
                                 "data.windows.label_len=12", "data.windows.pred_len=6", "charts=false"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  parse_json<nlohmann::json>(read_file(latest("bytes") / "config.json"));
  const Outcome again = resume(latest("bytes"), {"train.steps=4"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_FALSE(contains(again.err, "json.exception")) << again.err;
}

TEST_F(TrainFaults, NamesThatAreNotUtf8AreRefusedWithTheCommandThatConverts) {
  const std::string gbk = file("gbk.csv", "date,\xB7\xE7\xCB\xD9\n2024-03-01,1\n2024-03-02,2\n");
  refused({"informer", "data.path=" + gbk}, {"not UTF-8 at byte 5", "iconv -f ENCODING -t UTF-8 "});
  refused({"regressor", "data.path=" + gbk}, {"not UTF-8 at byte 5"});
}

TEST_F(TrainFaults, FilesThatAreNoTable) {
  const std::string missing = (folder_.path() / "no_such.csv").string();
  refused({"regressor", "data.path=" + missing}, {"no_such.csv", "No such file"});
  refused({"regressor", "data.path=" + file("empty.csv", "")}, {"empty.csv", "empty"});
  refused({"regressor"}, {"data.path=FILE.csv"});
  refused({"regressor", "data.path=" + file("ragged.csv", "a,b,target\n1,2,3\n4,5\n6,7,8\n")},
          {"ragged.csv", "line 3", "2", "3"});
}

TEST_F(TrainFaults, ColumnsThatCannotBeUsed) {
  refused({"regressor", "data.path=" + table("text.csv", 200, 120, "high")},
          {"text.csv", "line 122", "'target'", "high"});
  std::string constant = "a,b,target\n";
  for (int i = 0; i < 200; ++i) constant += std::to_string(i % 7) + ",4," + std::to_string(i % 5) + "\n";
  refused({"regressor", "data.path=" + file("constant.csv", constant), "data.columns.n_targets=1"},
          {"constant.csv", "'b' is constant (4)", "scaler.constant_column=keep"});
  refused({"informer", "data.path=" + hours("short.csv", 60), "data.features=S"}, {"short.csv", "96"});
}

TEST_F(TrainFaults, SettingsThatCannotBe) {
  const std::string path = table("good.csv", 400);
  refused({"regressor", "data.path=" + path, "train.batchsize=3"}, {"train.batchsize", "train.batch_size"});
  refused({"regressor", "data.path=" + path, "train.lr=fast"}, {"train.lr", "fast"});
  refused({"regressor", "data.path=" + path, "train.batch_size=1", "devices=cpu,cpu"}, {"batch", "2 devices"});
  refused({"regressor", "data.path=" + path, "backend=cuda"}, {"cuda"});
}

TEST_F(TrainFaults, WhatFailsWhileModelAndLoadersAreMade) {
  refused({"regressor", "data.path=" + table("good.csv", 400), "loader.memory_budget_bytes=1"},
          {"loader.memory_budget_bytes is 1 B"});
}

TEST_F(TrainFaults, DevicesThatCannotBe) {
  const std::string data = "data.path=" + table("good.csv", 400);
  refused({"regressor", data, "devices=mps:0"}, {"devices=mps:0 contradicts backend=cpu"});
  refused({"regressor", data, "backend=gpu", "devices=mps:0"}, {"device mps:0 cannot be used", "`cohort devices`"});
  refused({"regressor", data, "backend=gpu", "devices=cuda:99"}, {"device cuda:99 cannot be used", "`cohort devices`"});
  refused({"regressor", data, "backend=gpu", "devices=tpu:0"}, {"'tpu:0' is no device"});
  // Without a driver the reason is that, and not which of CUDA's libraries the linker misses.
  const Outcome none = train({"regressor", data, "backend=gpu", "devices=cuda:99"});
  EXPECT_FALSE(contains(none.err, "shared object file")) << none.err;
}

TEST_F(TrainFaults, HalfPrecisionOnACpuSaysHowSlowItIs) {
  const Outcome outcome = train({"regressor", "data.path=" + table("good.csv", 400), "data.columns.n_targets=1",
                                 "train.steps=1", "train.batch_size=8", "train.precision=fp16", "charts=false"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "train.precision=fp16 on a CPU")) << outcome.err;
}

TEST_F(TrainFaults, AGpuThatLibTorchCannotUseGivesWayToTheCpuWithALine) {
  // A machine with a GPU (tests/core/fake_driver), and a build without the CUDA plug-in.
  const auto train_there = [&](const std::string& backend) {
    return run({cohort_path(), "train", "regressor", "data.path=" + table("good.csv", 400), "data.columns.n_targets=1",
                "train.steps=1", "charts=false", "output_dir=" + out().string(), "backend=" + backend},
               {{"RANK", ""},
                {"WORLD_SIZE", ""},
                {"OMP_NUM_THREADS", "1"},
                {"LD_LIBRARY_PATH", std::getenv("COHORT_FAKE_DRIVER")},
                {"COHORT_FAKE_GPUS", "NVIDIA H100|GPU-00000000-d72c-4106-c12f-20bd9faed9f0|0000:19:00.0|80|9.0"},
                {"COHORT_PLUGIN_DIR", folder_.path().string()}});
  };
  const Outcome forced = train_there("cuda");
  EXPECT_EQ(forced.code, 1);
  EXPECT_TRUE(contains(forced.err, "backend cuda cannot be used: this build has no CUDA support")) << forced.err;
  EXPECT_FALSE(fs::exists(out()));
  const Outcome best = train_there("gpu");
  EXPECT_EQ(best.code, 0) << best.err;
  EXPECT_TRUE(contains(best.err, "backend gpu: falling back to the CPU")) << best.err;
  EXPECT_TRUE(contains(best.err, "because this build has no CUDA support")) << best.err;
}

TEST_F(TrainFaults, ANanAfterTheFirstStepsEndsTrainingAndLeavesAWholeCheckpoint) {
  const Outcome outcome =
      train({"regressor", "data.path=" + table("good.csv", 400), "data.columns.n_targets=1", "train.batch_size=32",
             "train.lr=1e30", "train.steps=40", "train.checkpoint.every=1", "charts=false"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.err, "NaN or inf in step")) << outcome.err;
  for (const auto& run_folder : fs::directory_iterator(out() / "regressor")) {
    if (run_folder.path().filename() == "tensorboard") continue;  // of all runs
    if (run_folder.is_symlink()) continue;
    for (const auto& entry : fs::directory_iterator(run_folder.path() / "checkpoints"))
      EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path() << " is half-written";
  }
}

TEST_F(TrainFaults, ACheckpointThatIsCutOrForeignIsNamed) {
  const std::string data = "data.path=" + table("good.csv", 400);
  ASSERT_EQ(
      train({"regressor", data, "data.columns.n_targets=1", "train.batch_size=64", "train.steps=2", "charts=false"})
          .code,
      0);
  const fs::path run_folder = fs::canonical(out() / "regressor" / "latest");
  const fs::path weights = fs::canonical(run_folder / "checkpoints" / "last") / "model.safetensors";
  const std::string whole = read_file(weights);
  for (const std::string& content :
       {whole.substr(0, whole.size() / 2), std::string("PK\x03\x04 a zip file, as torch.save writes")}) {
    write_file_atomically(weights, content);
    const Outcome outcome = resume(run_folder, {"train.steps=4"});
    EXPECT_NE(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.err, "model.safetensors")) << outcome.err;
    EXPECT_EQ(read_file(weights), content) << "left as it was found";
  }
}

TEST_F(TrainFaults, WhatIsFoundWhileARunIsSetUpLeavesNoFolder) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong{
      {"model.d_model=33", {"d_model = 33"}},
      {"model.dropout=1.5", {"dropout = 1.5"}},
      {"loader.workers=-1", {"loader.workers", "-1"}},
      {"loader.memory_budget_bytes=10", {"loader.memory_budget_bytes is 10 B"}},
      {"train.checkpoint.resume=no_such_folder", {"no_such_folder"}},
      {"train.early_stopping.metric=foo", {"'foo'", "validation/loss"}}};
  for (const auto& [setting, parts] : wrong) refused(small("wrong", {setting}), parts);
  refused({"informer", "data.path=" + hours("hours.csv", 600), "data.features=S", "model.seq_len=24",
           "model.label_len=12", "model.pred_len=6", "train.batch_size=1000"},
          {"do not fill a batch of 1000", "lower train.batch_size", "drop_last=false"});
  // And where there are runs already, the newest of them stays the newest.
  ASSERT_EQ(train(small("runs", {"train.steps=1"})).code, 0);
  const fs::path before = latest("runs");
  EXPECT_NE(train(small("runs", {"loader.workers=-1"})).code, 0);
  EXPECT_EQ(latest("runs"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(out() / "runs"), fs::directory_iterator()), 3)
      << "the run, the link to it, and TensorBoard's events";
}

TEST_F(TrainFaults, ARefusedResumeLeavesTheRunAsItWas) {
  ASSERT_EQ(train(small("poison", {"train.epochs=1"})).code, 0);
  const fs::path folder = latest("poison");
  const std::string configuration = read_file(folder / "config.json"), overrides = read_file(folder / "overrides.txt");
  for (const char* wrong : {"train.optimizer=sgd", "model.d_model=32", "loader.prefetch_factor=0"}) {
    EXPECT_NE(resume(folder, {"train.epochs=2", wrong}).code, 0) << wrong;
    EXPECT_EQ(read_file(folder / "config.json"), configuration) << wrong;
    EXPECT_EQ(read_file(folder / "overrides.txt"), overrides) << wrong;
  }
  const Outcome outcome = resume(folder, {"train.epochs=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "resuming from")) << outcome.err;
  EXPECT_EQ(read_file(folder / "config.1.json"), configuration);
}

TEST_F(TrainFaults, TheConfigurationOfARunStartsARunOfItsOwn) {
  ASSERT_EQ(train(small("first", {"train.epochs=1"})).code, 0);
  const fs::path folder = latest("first");
  ASSERT_EQ(resume(folder, {"train.epochs=2"}).code, 0);
  auto configuration = parse_json<nlohmann::ordered_json>(read_file(folder / "config.json"));
  EXPECT_EQ(configuration.at("job"), "regressor");
  EXPECT_EQ(configuration.at("resume"), "");
  configuration["resume"] = folder.string();  // as it was saved before
  const std::string path = file("earlier.json", json_text(configuration));
  const fs::path last = fs::canonical(folder / "checkpoints" / "last");
  const Outcome outcome = run({cohort_path(), "train", "--config", path, "train.epochs=3", "name=second"}, alone());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "resuming from")) << outcome.err;
  EXPECT_TRUE(fs::exists(latest("second") / "checkpoints" / "checkpoint-15"));
  EXPECT_EQ(fs::canonical(folder / "checkpoints" / "last"), last);

  const Outcome other = run({cohort_path(), "train", "informer", "resume=" + folder.string()}, alone());
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "is for `cohort train regressor`, not for informer")) << other.err;
  configuration.erase("job");
  const Outcome unnamed =
      run({cohort_path(), "train", "--config", file("unnamed.json", json_text(configuration))}, alone());
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_TRUE(contains(unnamed.err, "unnamed.json does not say what is trained")) << unnamed.err;
}

TEST_F(TrainFaults, ARunThatIsBeingTrainedIsNotResumedByAnother) {
  std::vector<std::string> command{cohort_path(), "train"};
  for (const std::string& word : small("long", {"train.steps=10000000", "output_dir=" + out().string(), "backend=cpu"}))
    command.push_back(word);
  Process process(command, alone());
  ASSERT_TRUE(eventually([&] { return fs::exists(out() / "long" / "latest" / "config.json"); })) << process.err();
  const fs::path folder = latest("long");
  const Outcome second = resume(folder, {});
  EXPECT_NE(second.code, 0);
  EXPECT_TRUE(contains(second.err, "another process is training in " + folder.string())) << second.err;
  process.send(SIGTERM);
  EXPECT_EQ(process.wait().code, 128 + SIGTERM);
  const Outcome third = resume(folder, {"train.steps=1"});
  EXPECT_EQ(third.code, 0) << third.err;
}

TEST_F(TrainFaults, ATrainingThatBeginsAnewInItsFolderSaysSo) {
  ASSERT_EQ(train(small("again", {"train.epochs=2"})).code, 0);
  const fs::path folder = latest("again");
  const Outcome asked = resume(folder, {"train.checkpoint.resume=none", "train.epochs=1"});
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_TRUE(contains(asked.err, "begins at its first step, because train.checkpoint.resume=none says so"))
      << asked.err;
  // What was asked for once does not hold for ever.
  const Outcome goes_on = resume(folder, {"train.epochs=2"});
  EXPECT_EQ(goes_on.code, 0) << goes_on.err;
  EXPECT_TRUE(contains(goes_on.err, "checkpoint-5: step 5")) << goes_on.err;
  fs::remove_all(folder / "checkpoints");
  const Outcome bare = resume(folder, {});
  EXPECT_EQ(bare.code, 0) << bare.err;
  EXPECT_TRUE(contains(bare.err, "begins at its first step, because there is no checkpoint")) << bare.err;
}

TEST_F(TrainFaults, StepsThatChangeNothingAreShown) {
  const Outcome outcome =
      train(small("skipped", {"train.non_finite=skip", "train.lr=1e30", "train.steps=12", "train.log_every=4"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "of 4 steps so far changed nothing")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "of 12 steps changed nothing")) << outcome.err;
  const auto lines = lines_of(read_file(latest("skipped") / "metrics.jsonl"));
  EXPECT_TRUE(contains(lines.front(), "\"train/skipped_steps\":")) << lines.front();

  const Outcome half = train(
      small("half", {"train.precision=fp16", "train.scaler.init_scale=1e30", "train.steps=3", "train.log_every=1"}));
  EXPECT_EQ(half.code, 0) << half.err;
  EXPECT_TRUE(contains(half.err, "3 of 3 steps changed nothing")) << half.err;
  EXPECT_TRUE(contains(half.err, "the loss is now scaled by")) << half.err;
  EXPECT_TRUE(contains(read_file(latest("half") / "metrics.jsonl"), "\"train/loss_scale\":"));
}

TEST_F(TrainFaults, APatienceWithoutAValidationIsSaidToHaveNoEffect) {
  const Outcome outcome = train(small("patient", {"train.steps=1", "train.early_stopping.patience=2",
                                                  "data.split.train_fraction=0.75", "data.split.test_fraction=0.25"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "train.early_stopping.patience = 2 has no effect")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
