#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"
#include "train/checkpoint_writer.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {
namespace fs = std::filesystem;

weights::CheckpointContent content_of(std::int64_t step, double value = 1.0, std::int64_t size = 100) {
  weights::CheckpointContent content;
  content.state.step = step;
  content.state.samples = 32 * step;
  content.state.loss_sums = {{0.1 + value, 3.0, 1.0 / 3.0, 7.0}};
  content.state.early_stopping = {.best = 0.1, .best_step = 3, .validations_since_best = 2};
  content.state.scaler = weights::GradScalerState{65536.0, 2.0, 0.5, 2000, 17};
  content.state.configuration = R"({"train":{"lr":0.1}})";
  content.model = {{"weight", torch::full({size}, value)}, {"bias", torch::arange(3)}};
  content.ema = {{"weight", torch::full({size}, value / 2)}, {"bias", torch::arange(3)}};
  content.optimizer = {{"state.weight.exp_avg", torch::full({size}, value * 2)}};
  content.random = {{"rank_0.cpu", torch::arange(16, torch::kByte)}};
  content.dataset_statistics = R"({"mean":[1.5]})";
  return content;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void write(const fs::path& folder, const weights::CheckpointContent& content, std::int64_t keep = 0) {
  CheckpointWriter writer{weights::CheckpointFolder(folder), keep};
  writer.save(content);
  writer.finish();
}

TEST(Checkpoint, EverythingComesBackFromTheLayoutOfTheArchitecture) {
  const fs::path folder = test::fresh_folder("checkpoint_round") / "checkpoints";
  write(folder, content_of(500));
  for (const char* file : {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors", "trainer_state.json",
                           "rng.safetensors", "dataset_statistics.json", "checksums.json"}) {
    EXPECT_TRUE(fs::is_regular_file(folder / "checkpoint-500" / file)) << file;
  }
  EXPECT_EQ(fs::read_symlink(folder / "last"), "checkpoint-500");
  const auto expected = content_of(500);
  const auto read = weights::read_checkpoint(folder / "last");
  EXPECT_EQ(read.state.step, 500);
  EXPECT_EQ(read.state.samples, 16000);
  EXPECT_EQ(read.state.loss_sums[0].epoch_sum, 1.0 / 3.0);
  EXPECT_EQ(read.state.early_stopping.best, 0.1);
  EXPECT_EQ(read.state.scaler->growth_tracker, 17);
  EXPECT_EQ(read.state.configuration, expected.state.configuration);
  EXPECT_EQ(read.dataset_statistics, expected.dataset_statistics);
  const std::map<std::string, at::Tensor> model(read.model.begin(), read.model.end());
  EXPECT_TRUE(same_bits(model.at("weight"), expected.model[0].second));
  EXPECT_TRUE(same_bits(model.at("bias"), expected.model[1].second));
  EXPECT_TRUE(same_bits(read.random[0].second, expected.random[0].second));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"checkpoint-500", "last"}));
}

TEST(Checkpoint, TensorsMayChangeAsSoonAsSaveReturns) {
  const fs::path folder = test::fresh_folder("checkpoint_async");
  CheckpointWriter writer{weights::CheckpointFolder(folder), 0};
  auto content = content_of(1, 1.0, 1 << 20);
  for (std::int64_t step = 1; step <= 3; ++step) {
    content.state.step = step;
    content.model[0].second.fill_(static_cast<double>(step));
    writer.save(content);
    content.model[0].second.fill_(-1.0);
  }
  writer.finish();
  for (std::int64_t step = 1; step <= 3; ++step) {
    for (const auto& [name, tensor] :
         weights::read_checkpoint(weights::CheckpointFolder(folder).checkpoint(step)).model) {
      if (name == "weight") EXPECT_TRUE((tensor == static_cast<double>(step)).all().item<bool>()) << step;
    }
  }
}

TEST(Checkpoint, TheNewestAndTheBestAreKept) {
  const fs::path folder = test::fresh_folder("checkpoint_keep");
  CheckpointWriter writer{weights::CheckpointFolder(folder), 2};
  for (std::int64_t step = 1; step <= 6; ++step) {
    auto content = content_of(step * 10);
    content.is_best = step == 2;
    writer.save(content);
  }
  writer.finish();
  EXPECT_EQ(weights::CheckpointFolder(folder).steps(), (std::vector<std::int64_t>{20, 50, 60}));
  EXPECT_EQ(weights::CheckpointFolder(folder).best(), 20);
  EXPECT_EQ(weights::CheckpointFolder(folder).last(), 60);
}

TEST(Checkpoint, ThoseOfATrainingThatWasBegunAnewGoBeforeThoseOfThePresentOne) {
  const fs::path folder = test::fresh_folder("checkpoint_anew");
  for (const std::int64_t step : {30, 35, 40}) write(folder, content_of(step));
  CheckpointWriter writer{weights::CheckpointFolder(folder), 3};
  for (const std::int64_t step : {5, 10, 15, 20}) {
    writer.save(content_of(step));
    writer.finish();
    EXPECT_EQ(weights::CheckpointFolder(folder).last(), step);
    if (step == 10) EXPECT_EQ(weights::CheckpointFolder(folder).steps(), (std::vector<std::int64_t>{5, 10, 40}));
  }
  EXPECT_EQ(weights::CheckpointFolder(folder).steps(), (std::vector<std::int64_t>{10, 15, 20}));
}

TEST(Checkpoint, WhatAKilledRunLeftIsIgnoredAndCleaned) {
  const fs::path folder = test::fresh_folder("checkpoint_clean");
  write(folder, content_of(10));
  fs::create_directories(folder / ".checkpoint-20.tmp" / "ema");
  std::ofstream(folder / ".checkpoint-20.tmp" / "model.safetensors") << "half";
  fs::create_symlink("checkpoint-20", folder / "last.tmp4711");
  fs::rename(folder / "checkpoint-10", folder / ".checkpoint-10.old");  // killed between two renames
  write(folder, content_of(30));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"checkpoint-10", "checkpoint-30", "last"}));
  EXPECT_EQ(weights::read_checkpoint(folder / "checkpoint-10").state.step, 10);
}

TEST(Checkpoint, ACheckpointOfTheSameStepIsReplaced) {
  const fs::path folder = test::fresh_folder("checkpoint_again");
  write(folder, content_of(10, 1.0));
  write(folder, content_of(10, 2.0));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"checkpoint-10", "last"}));
  EXPECT_EQ(weights::read_checkpoint(folder / "last").state.loss_sums[0].interval_sum, 2.1);
}

TEST(Checkpoint, DamageIsNamedByFile) {
  const fs::path folder = test::fresh_folder("checkpoint_damage");
  const auto damaged = [&](const std::function<void(const fs::path&)>& damage) {
    fs::remove_all(folder);
    write(folder, content_of(10));
    damage(folder / "checkpoint-10");
    return message_of([&] { weights::read_checkpoint(folder / "checkpoint-10"); });
  };
  const auto expect = [](const std::string& message, const char* file, const char* what) {
    EXPECT_NE(message.find(file), std::string::npos) << message;
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  expect(damaged([](const fs::path& p) { fs::resize_file(p / "model.safetensors", 200); }), "model.safetensors",
         "truncated");
  expect(damaged([](const fs::path& p) { fs::remove(p / "optimizer.safetensors"); }), "optimizer.safetensors",
         "missing");
  expect(damaged([](const fs::path& p) { fs::resize_file(p / "trainer_state.json", 40); }), "trainer_state.json",
         "no JSON");
  expect(damaged([](const fs::path& p) { std::ofstream(p / "trainer_state.json") << R"({"global_step": 5})"; }),
         "trainer_state.json", "another program");
  expect(damaged([](const fs::path& p) { fs::remove(p / "trainer_state.json"); }), "trainer_state.json",
         "No such file");
  // Files of two checkpoints of the same model have the same size.
  expect(damaged([&](const fs::path& p) {
           write(folder, content_of(20));
           fs::copy_file(folder / "checkpoint-20" / "rng.safetensors", p / "rng.safetensors",
                         fs::copy_options::overwrite_existing);
         }),
         "rng.safetensors", "mixed");
  expect(message_of([&] { weights::read_checkpoint(folder / "nothing"); }), "nothing", "no checkpoint folder");
}

TEST(Checkpoint, OneBitTurnedOverInAnyFileIsFoundAndNamed) {
  const fs::path folder = test::fresh_folder("checkpoint_bit");
  for (const char* name : {"model.safetensors", "ema/model.safetensors", "optimizer.safetensors", "rng.safetensors",
                           "dataset_statistics.json", "trainer_state.json"}) {
    fs::remove_all(folder);
    write(folder, content_of(10));
    write(folder, content_of(20));
    const fs::path path = folder / "checkpoint-20" / name;
    std::string bytes = read_file(path);
    // A digit or a number's bits: the file still reads.
    const std::size_t place = name == std::string("trainer_state.json") ? bytes.find("640") : bytes.size() - 3;
    bytes[place] = static_cast<char>(bytes[place] ^ 1);
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string message = message_of([&] { weights::read_checkpoint(folder / "checkpoint-20"); });
    EXPECT_NE(message.find(std::string(name) + " is not what was written"), std::string::npos)
        << name << ": " << message;
    // The older one is taken, with a line.
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(weights::find_resume_point("auto", folder)->content.state.step, 10) << name;
    EXPECT_EQ(weights::find_resume_point(folder.string(), {})->content.state.step, 10) << name;
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("checkpoint-10 is used instead"), std::string::npos) << said;
  }
  // What acts does not read what only training needs.
  write(folder, content_of(20));
  std::string bytes = read_file(folder / "checkpoint-20" / "optimizer.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(folder / "checkpoint-20" / "optimizer.safetensors", std::ios::binary) << bytes;
  EXPECT_EQ(weights::read_checkpoint(folder / "checkpoint-20", weights::CheckpointParts::kWeights).state.step, 20);
}

TEST(Checkpoint, OneOfAnEarlierVersionWithoutChecksumsIsRead) {
  const fs::path folder = test::fresh_folder("checkpoint_old");
  write(folder, content_of(10));
  fs::remove(folder / "checkpoint-10" / "checksums.json");
  EXPECT_EQ(weights::read_checkpoint(folder / "checkpoint-10").state.step, 10);
}

/// scp -r, zip and object stores make folders of links.
TEST(Checkpoint, ACopyWithoutLinksGetsThemBackAndNoSaveFailsForThem) {
  const fs::path folder = test::fresh_folder("checkpoint_copied");
  write(folder, content_of(10));
  fs::remove(folder / "last");
  fs::copy(folder / "checkpoint-10", folder / "last", fs::copy_options::recursive);
  EXPECT_EQ(weights::find_resume_point("auto", folder)->content.state.step, 10);
  write(folder, content_of(20));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"checkpoint-10", "checkpoint-20", "last"}));
  EXPECT_EQ(fs::read_symlink(folder / "last"), "checkpoint-20");
  // Only what the link led to was copied.
  fs::remove(folder / "last");
  fs::rename(folder / "checkpoint-20", folder / "last");
  fs::remove_all(folder / "checkpoint-10");
  EXPECT_EQ(weights::find_resume_point("auto", folder)->content.state.step, 20);
  EXPECT_EQ(weights::find_resume_point(folder.string(), {})->content.state.step, 20);
  write(folder, content_of(30));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"checkpoint-20", "checkpoint-30", "last"}));
  // What is no checkpoint stays, and is said before the first step; saving goes on.
  fs::remove(folder / "last");
  fs::create_directories(folder / "last");
  std::ofstream(folder / "last" / "notes.txt") << "mine";
  ::testing::internal::CaptureStderr();
  {
    CheckpointWriter writer{weights::CheckpointFolder(folder), 1};
    const std::string before = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(before.find("last is a folder and no link"), std::string::npos) << before;
    ::testing::internal::CaptureStderr();
    writer.save(content_of(40));
    EXPECT_NO_THROW(writer.finish());
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("checkpoint-40 is saved, but: "), std::string::npos) << said;
  EXPECT_EQ(read_file(folder / "last" / "notes.txt"), "mine");
  EXPECT_EQ(weights::find_resume_point("auto", folder)->content.state.step, 40);
}

TEST(Checkpoint, APathWithoutOneSaysWhatToNameInstead) {
  const fs::path folder = test::fresh_folder("checkpoint_elsewhere"), run = folder / "small" / "latest";
  fs::create_directories(run / "checkpoints" / ".checkpoint-4.tmp");
  write_file_atomically(run / "config.json", "{}");
  const auto said = [](const fs::path& path) {
    return message_of([&] { weights::find_resume_point(path.string(), {}); });
  };
  EXPECT_EQ(said(run).find(run.string() + " is a run that has saved no checkpoint yet: the first comes after"), 0u)
      << said(run);
  EXPECT_NE(said(folder).find("the newest runs of the names in it are " + run.string()), std::string::npos);
  EXPECT_NE(said(folder / "small").find("the newest run of this name is " + run.string()), std::string::npos);
  write(run / "checkpoints", content_of(10));
  const fs::path whole = run / "checkpoints" / "checkpoint-10";
  for (const char* file : {"model.safetensors", "ema/model.safetensors", "trainer_state.json"})
    EXPECT_NE(said(whole / file).find("is one file of many: name the folder, " + whole.string()), std::string::npos)
        << said(whole / file);
  EXPECT_NE(said(run / "config.json").find("name the folder, " + run.string()), std::string::npos);
  fs::remove(whole / "dataset_statistics.json");
  EXPECT_NE(said(whole).find("copy the checkpoint as a whole, or name another one"), std::string::npos) << said(whole);
}

TEST(Checkpoint, AutoFallsBackToTheLastWholeOne) {
  const fs::path folder = test::fresh_folder("checkpoint_auto");
  EXPECT_FALSE(weights::find_resume_point("auto", folder / "not yet there"));
  EXPECT_FALSE(weights::find_resume_point("auto", folder));
  for (const std::int64_t step : {10, 20, 30}) write(folder, content_of(step));
  EXPECT_EQ(weights::find_resume_point("auto", folder)->content.state.step, 30);
  fs::resize_file(folder / "checkpoint-30" / "model.safetensors", 100);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(weights::find_resume_point("auto", folder)->content.state.step, 20);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("checkpoint-30 cannot be used"), std::string::npos) << said;
  EXPECT_NE(said.find("truncated"), std::string::npos) << said;
  EXPECT_NE(said.find("checkpoint-20 is used instead"), std::string::npos) << said;
  EXPECT_FALSE(weights::find_resume_point("none", folder));
  EXPECT_EQ(weights::find_resume_point((folder / "checkpoint-10").string(), folder)->content.state.step, 10);
  EXPECT_THROW(weights::find_resume_point((folder / "checkpoint-30").string(), folder), Error);
  for (const std::int64_t step : {10, 20})
    fs::remove(weights::CheckpointFolder(folder).checkpoint(step) / "trainer_state.json");
  EXPECT_NE(message_of([&] { weights::find_resume_point("auto", folder); }).find("no checkpoint under"),
            std::string::npos);
}

TEST(Checkpoint, AWriteErrorComesBackWithPathAndReasonAndLeavesTheLastOneWhole) {
  const fs::path folder = test::fresh_folder("checkpoint_limit");
  write(folder, content_of(10));
  // A file-size limit holds for a whole process: a child takes it. SIGXFSZ would end it before the error.
  const pid_t child = ::fork();
  if (child == 0) {
    at::set_num_threads(1);  // the parent's OpenMP threads do not exist here
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    CheckpointWriter writer{weights::CheckpointFolder(folder), 0};
    try {
      writer.save(content_of(20, 1.0, 1 << 20));
      writer.finish();
    } catch (const Error& e) {
      const std::string message = e.what();
      const bool good = message.find("checkpoint of step 20") != std::string::npos &&
                        message.find("model.safetensors") != std::string::npos &&
                        message.find("File too large") != std::string::npos;
      ::_exit(good ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"checkpoint-10", "last"}));
  EXPECT_EQ(weights::read_checkpoint(folder / "last").state.step, 10);
}

TEST(Checkpoint, AFullDiskIsReportedAndTheLastCheckpointStaysWhole) {
  const fs::path folder = test::fresh_folder("checkpoint_full");
  // A file system of 256 KiB, seen by the child only. Root may mount one; others may inside a user namespace of their
  // own.
  const pid_t child = ::fork();
  if (child == 0) {
    at::set_num_threads(1);  // the parent's OpenMP threads do not exist here
    const bool apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (!apart || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=256k") != 0) {
      ::_exit(77);
    }
    try {
      write(folder, content_of(10));
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      ::_exit(10);
    }
    CheckpointWriter writer{weights::CheckpointFolder(folder), 0};
    try {
      writer.save(content_of(20, 1.0, 1 << 18));
      writer.finish();
    } catch (const Error& e) {
      const bool named = std::string(e.what()).find("No space left on device") != std::string::npos;
      const bool whole = weights::read_checkpoint(folder / "last").state.step == 10;
      const bool clean = names_in(folder) == std::vector<std::string>{"checkpoint-10", "last"};
      ::_exit(named && whole && clean ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    GTEST_SKIP() << "no small file system can be mounted here: needs root or user namespaces "
                    "(AFullDiskIsAnErrorWithTheSystemsReason covers the message)";
  }
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Checkpoint, BuffersOnTheHostAreReused) {
  const fs::path folder = test::fresh_folder("checkpoint_buffers");
  CheckpointWriter writer{weights::CheckpointFolder(folder), 1};
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    std::int64_t total = 0, pages = 0;
    statm >> total >> pages;
    return pages * ::sysconf(_SC_PAGESIZE);
  };
  auto content = content_of(1, 1.0, 4 << 20);  // 16 MiB each of weights, averages and optimizer state
  for (std::int64_t step = 1; step <= 2; ++step) {
    content.state.step = step;
    writer.save(content);
    writer.finish();
  }
  const auto before = resident();
  for (std::int64_t step = 3; step <= 6; ++step) {
    content.state.step = step;
    writer.save(content);
    writer.finish();
  }
  EXPECT_LT(resident() - before, 16 << 20) << "every save takes new memory";
}

}  // namespace
}  // namespace cohort::train
