// From instructions to a trained RDT: `cohort data embed` on a data set of several instructions, then `cohort train rdt`
// with the tiny preset's way and main.py's flags.
#include <algorithm>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

const std::string kSource = COHORT_SOURCE_DIR;

class TrainRdt : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  Outcome cohort(std::vector<std::string> words) const {
    words.insert(words.begin(), cohort_path());
    return run(words, {{"OMP_NUM_THREADS", "1"}});
  }
  Outcome embed(std::vector<std::string> words) const {
    const std::vector<std::string> own{"data", "embed", "--text-encoder", kSource + "/tests/models/fixtures/t5"};
    words.insert(words.begin(), own.begin(), own.end());
    return cohort(words);
  }
  /// A few steps on the data set "arm", whose episodes are told three things. `begin`: the command's first words.
  Outcome train(const std::string& out, std::vector<std::string> more,
                const std::vector<std::string>& begin = {"train"}) const {
    std::vector<std::string> words = begin;
    const std::vector<std::string> rest{
        "rdt",
        "--config",
        kSource + "/configs/rdt_tiny.json",
        "data.paths=" + kSource + "/tests/data/fixtures/arm",
        "data.actions=[\"action\"]",
        "data.proprio=[\"observation/pose\",\"observation/gripper\"]",
        "data.images=[\"observation/image\"]",
        "data.image_transforms=[\"resize(16, 16)\"]",
        "data.statistics_cache=never",
        "model.rdt.slots=[\"observation/pose: 30-35\", \"observation/gripper: gripper_open\", "
        "\"action: 39-44, gripper_open\"]",
        "model.rdt.lang_token_dim=24",
        "model.rdt.hidden_size=32",
        "model.rdt.depth=2",
        "model.rdt.vision.image_size=16",
        "train.schedule=constant",
        "train.warmup_steps=0",
        "backend=cpu",
        "charts=false",
        "--train_batch_size=6",
        "--max_train_steps=3",
        "--checkpointing_period=3",
        "--report_to=none",
        "output_dir=" + path(out)};
    words.insert(words.end(), rest.begin(), rest.end());
    words.insert(words.end(), more.begin(), more.end());
    return cohort(words);
  }
  TemporaryFolder folder_;
};

/// One episode of "arm" is told nothing, which a policy that follows instructions refuses.
constexpr const char* kTold = "data.filters=[\"labeled(language_instruction)\"]";

TEST_F(TrainRdt, SeveralInstructionsAreEmbeddedOnceAndLearnt) {
  const std::string file = path("instructions.safetensors"), arm = kSource + "/tests/data/fixtures/arm";
  const Outcome first = embed({arm, "--out", file, "--pt-folder", path("pt")});
  if (first.err.find("this build has no SentencePiece") != std::string::npos) GTEST_SKIP() << first.err;
  ASSERT_EQ(first.code, 0) << first.output();
  EXPECT_NE(first.out.find("T5 of 2 layers, width 24"), std::string::npos) << "the memory, before it begins";
  EXPECT_NE(first.out.find("as bfloat16"), std::string::npos);
  EXPECT_TRUE(fs::exists(path("pt/lang_embed_0.pt")) && fs::exists(path("pt/empty_lang_embed.pt")));
  const std::string before = read_file(file);
  const Outcome again = embed({"--instruction", "pick up the cup", "--out", file});
  EXPECT_NE(again.out.find(" 0 embedded now"), std::string::npos) << again.output();
  EXPECT_EQ(read_file(file), before);

  const Outcome trained = train("out", {"--precomp_lang_embed", "model.rdt.lang_embed=" + file, "--image_aug", kTold});
  ASSERT_EQ(trained.code, 0) << trained.output();
  const fs::path folder_of_run = fs::path(path("out")) / "rdt_tiny" / "latest";
  const auto configuration = parse_json<nlohmann::json>(read_file(folder_of_run / "config.json"));
  const auto texts = configuration["model"]["rdt"]["instructions"].get<std::vector<std::string>>();
  EXPECT_EQ(texts.size(), 2u);
  EXPECT_NE(std::find(texts.begin(), texts.end(), "öffne die Tür"), texts.end());
  const std::string weights = read_file(folder_of_run / "checkpoints/last/model.safetensors");
  EXPECT_NE(weights.find("\"lang_embeds\""), std::string::npos) << "the checkpoint carries them";
  // What it carries is enough to go on.
  fs::remove(file);
  const Outcome continued = cohort({"train", "resume=" + folder_of_run.string(), "train.steps=4"});
  EXPECT_EQ(continued.code, 0) << continued.output();
  // The reference's folder says the same.
  const Outcome folder = train("from_pt", {"--precomp_lang_embed", "model.rdt.lang_embed=" + path("pt"), kTold});
  EXPECT_EQ(folder.code, 0) << folder.output();
}

TEST_F(TrainRdt, AMissingLangEmbedIsNamedWithTheCommandThatMakesIt) {
  const std::string file = path("one.safetensors");
  const Outcome made = embed({"--instruction", "pick up the cup", "--out", file});
  if (made.err.find("this build has no SentencePiece") != std::string::npos) GTEST_SKIP() << made.err;
  ASSERT_EQ(made.code, 0) << made.output();
  const Outcome outcome = train("out", {"--precomp_lang_embed", "model.rdt.lang_embed=" + file, kTold});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("has no lang_embed of \"öffne die Tür\""), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("make it: cohort data embed --instruction \"öffne die Tür\""), std::string::npos);
  EXPECT_FALSE(fs::exists(path("out"))) << "nothing is half-written";
}

TEST_F(TrainRdt, TheBannerSaysDevicesRanksBatchesAndStatistics) {
  const Outcome trained =
      train("out", {}, {"launch", "--num_processes", "2", "--cpu", "--mixed_precision", "bf16", "train"});
  ASSERT_EQ(trained.code, 0) << trained.output();
  const std::string log = read_file(fs::path(path("out")) / "rdt_tiny" / "latest" / "training.log");
  for (const char* part : {"scaled by", "actions and state: computed from ",
                           "state: mean and deviations computed from ", "no dataset_stat.json is named",
                           "parallel: DistributedDataParallel", "effective batch: 12 = 6 per process x 2 processes",
                           " in bf16", "rank 0 on host ", "rank 1 on host ", "): cpu, world_size=2"})
    EXPECT_NE(log.find(part), std::string::npos) << part << "\nin\n" << log;
}

// `tail -f OUTPUT_DIR/training.log` and `ls OUTPUT_DIR/checkpoint-*/`, as main.py's users look.
TEST_F(TrainRdt, TheOutputFolderShowsLogAndCheckpointsOfItsNewestRun) {
  const fs::path out = path("checkpoints/x");
  for (const char* seed : {"1", "2"}) {
    const Outcome trained = train("elsewhere", {"--output_dir=" + out.string(), "--checkpointing_period=1",
                                                "--checkpoints_total_limit=2", std::string("--seed=") + seed});
    ASSERT_EQ(trained.code, 0) << trained.output();
    EXPECT_NE(read_file(out / "training.log").find("effective batch"), std::string::npos);
    EXPECT_EQ(json_text(parse_json<nlohmann::json>(read_file(out / "config.json"))["train"]["seed"]), seed);
    EXPECT_TRUE(fs::exists(out / "checkpoint-3" / "model.safetensors"));
    EXPECT_FALSE(fs::is_symlink(out / "checkpoint-1")) << "it is removed, so is its link";
  }
  // The folder stands for that run, and a checkpoint is known by its name in it.
  const Outcome on = cohort(
      {"train", "--resume_from_checkpoint=checkpoint-3", "--output_dir=" + out.string(), "rdt", "--max_train_steps=4"});
  EXPECT_EQ(on.code, 0) << on.output();
  EXPECT_NE(on.err.find("checkpoint-3: step 3"), std::string::npos) << on.err;
  EXPECT_TRUE(fs::exists(out / "checkpoint-4" / "model.safetensors"));
  const Outcome whole = cohort({"train", "resume=" + out.string(), "--max_train_steps=5"});
  EXPECT_EQ(whole.code, 0) << whole.output();
}

TEST_F(TrainRdt, ItsFlagsAreKnownWhereTheFileNamesTheJobAndATypoHasItsNeighbour) {
  const std::string file = kSource + "/configs/rdt_tiny_libero.json";
  const auto message = [&](const std::string& flag) { return cohort({"train", "--config", file, flag}).err; };
  EXPECT_NE(message("--max_train_step=3").find("did you mean --max_train_steps?"), std::string::npos);
  EXPECT_NE(message("--train_batch_sise").find("wants a value"), std::string::npos);
  EXPECT_NE(message("--train_batch_sise=3").find("did you mean --train_batch_size?"), std::string::npos);
  // What is typed outranks the file's train.global_batch_size.
  const Outcome trained = cohort({"train", "--config", file, "data.paths=" + kSource + "/nowhere.hdf5",
                                  "--train_batch_size=4", "--max_train_steps=2"});
  EXPECT_NE(trained.err.find("train.global_batch_size=32 of the file is left out"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("nowhere.hdf5"), std::string::npos) << trained.err;
}

TEST_F(TrainRdt, TheEstimateHasTheHoursOfUsualLengthsOnOneAndTwoDevices) {
  const Outcome text = train("out", {}, {"estimate"});
  ASSERT_EQ(text.code, 0) << text.output();
  for (const char* part : {"  steps   1 device  2 devices", "\n   5000 ", "\n  10000 ", "\n  20000 ",
                           "as many samples as so many steps on 1 device see"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  const Outcome outcome = train("out", {"--json"}, {"estimate"});
  ASSERT_EQ(outcome.code, 0) << outcome.output();
  const auto on = parse_json<nlohmann::json>(outcome.out)["on"];
  for (const auto& devices : on) {
    const double step = devices["step_s"].get<double>();
    const int n = devices["devices"].get<int>();
    EXPECT_NEAR(devices["hours_of_steps"]["20000"].get<double>(), step * 20000 / 3600, 1e-9);
    EXPECT_NEAR(devices["hours_of_samples"]["5000"].get<double>(), step * 5000 / n / 3600, 1e-9);
  }
  EXPECT_FALSE(fs::exists(path("out"))) << "nothing is written";
}

TEST_F(TrainRdt, EmbedSaysWhatIsMissing) {
  EXPECT_EQ(embed({"--instruction", "x"}).code, 2);
  EXPECT_EQ(embed({"--out", path("x.safetensors")}).code, 2);
  const Outcome unknown = cohort(
      {"data", "embed", "--text-encoder", "google/no-such-t5", "--instruction", "x", "--out", path("x.safetensors")});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("hf download google/no-such-t5"), std::string::npos) << unknown.err;
  EXPECT_FALSE(fs::exists(path("x.safetensors")));
}

}  // namespace
}  // namespace cohort::testing
