// `cohort train` and bad input, as a user meets it: one clear line, a code that is not 0, and nothing written before
// the input was found good.
#include <gtest/gtest.h>

#include "core/files.h"
#include "launch/process.h"

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
    return run(command, {{"RANK", ""}, {"WORLD_SIZE", ""}, {"OMP_NUM_THREADS", "1"}});
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
    const Outcome outcome = run({cohort_path(), "train", "regressor", "resume=" + run_folder.string(), "train.steps=4"},
                                {{"RANK", ""}, {"WORLD_SIZE", ""}, {"OMP_NUM_THREADS", "1"}});
    EXPECT_NE(outcome.code, 0);
    EXPECT_TRUE(contains(outcome.err, "model.safetensors")) << outcome.err;
    EXPECT_EQ(read_file(weights), content) << "left as it was found";
  }
}

}  // namespace
}  // namespace cohort::testing
