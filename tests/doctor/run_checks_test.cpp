// Checks of a run, on folders as runs and launchers leave them.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/json_text.h"
#include "doctor/disk_speed.h"
#include "doctor/examination.h"
#include "doctor/training_speed.h"

namespace cohort::doctor {
namespace {
namespace fs = std::filesystem;

class Run : public ::testing::Test {
 protected:
  Run() : folder_("cohort-run-") { fs::create_directories(path() / "ranks"); }
  fs::path path() const { return folder_.path() / "my runs" / "2026-11-26_10-00-00"; }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << text;
  }
  /// Ten reports, of which the first two are slow: they choose kernels.
  static std::string metrics(const std::string& figures, double steps_per_s = 100) {
    std::string text;
    for (int i = 1; i <= 10; ++i)
      text += format("{{\"step\":{},\"time\":1,\"train/loss\":0.5,\"speed/steps_per_s\":{},{}}}\n", i,
                     i < 3 ? 1.0 : steps_per_s, figures);
    return text;
  }
  static rank::Status rank(int number, int world = 2) {
    rank::Status s;
    monitor::identify_process(s);
    s.rank = number;
    s.world_size = world;
    s.job = "regressor";
    s.device = "cpu";
    s.phase = rank::Phase::kFinished;
    s.step = s.total_steps = 100;
    s.batches_per_epoch = 10;
    s.batch_size = 16;
    s.time = now();
    return s;
  }
  static double now() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  void put(const rank::Status& status) const { put(format("ranks/rank_{}.json", status.rank), to_json(status)); }

  Examination look() const {
    Case c = this_machine();
    c.devices.reset();
    c.machine.gpus = gpus;
    c.machine.cores.usable = 16;
    c.run = read_run(path());
    return examine(c);
  }
  /// The findings of a check, as text.
  std::string of(const std::string& check) const {
    std::string text;
    for (const Finding& f : look().findings)
      if (f.check == check)
        text += format("{}: {}; {}; {}\n", severity_name(f.severity), f.title, f.evidence, f.remedy);
    return text;
  }
  void expect(const std::string& check, const std::vector<std::string>& parts) const {
    const std::string text = of(check);
    for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << check << ": " << text;
  }

  std::vector<monitor::GpuFigures> gpus;
  TemporaryFolder folder_;
};

TEST_F(Run, OneThatWentWellHasNoFindingOfItsOwn) {
  put(rank(0));
  put(rank(1));
  put("config.json", R"({"backend": "cpu", "loader": {"workers": 2}})");
  put("metrics.jsonl", metrics(R"("speed/data_s":0.0002,"speed/exchange_s":0.0005,"speed/compute_s":0.009,)"
                               R"("speed/least_compute_s":0.0088,"speed/samples_per_s":3200)"));
  put("training.log", "step 100: all ranks have the same parameters\n");
  const Examination found = look();
  for (const Finding& f : found.findings) EXPECT_FALSE(f.check.starts_with("run-")) << f.check << ": " << f.title;
  for (const char* check : {"run-alive", "run-steps", "run-batches", "run-device", "run-loader", "run-communication",
                            "run-balance", "run-loss", "run-messages"})
    EXPECT_NE(std::find(found.looked_at.begin(), found.looked_at.end(), check), found.looked_at.end()) << check;
}

TEST_F(Run, ALoaderThatHoldsStepsUpIsNamedWithItsShare) {
  put("config.json", R"({"loader": {"workers": 1}})");
  put("metrics.jsonl", metrics(R"("speed/data_s":0.004)"));
  expect("run-loader", {"warning: the loader", "waits 40 % of its time", "loader.workers=1, 16 usable",
                        "loader.workers=16", "prefetch_factor"});
  put("metrics.jsonl", metrics(R"("speed/data_s":0.0009)"));
  EXPECT_EQ(of("run-loader"), "");
}

TEST_F(Run, CommunicationOfReinforcementLearningHasItsOwnRemedy) {
  put("config.json", R"({"job": "ppo"})");
  put("metrics.jsonl", metrics(R"("speed/exchange_s":0.003,"speed/compute_s":0.007)"));
  expect("run-communication", {"30 % of a step", "num_mini_batches"});
}

TEST(TrainingSpeed, AMeasuredLoaderThatIsSlowerThanTheStepIsTheBottleneck) {
  Case c = this_machine();
  c.machine.cores.usable = 8;
  const auto found_for = [&](double loader_s, double step_s) {
    Examination found;
    found.findings.push_back({.check = "other", .severity = Severity::kNote});
    judge(parse_training_speed(format(R"({{"job":"policy","device":"cuda:0","batch_size":64,"loader_workers":2,)"
                                      R"("loader_s_per_batch":{},"step_s_per_batch":{}}})",
                                      loader_s, step_s)),
          c, found);
    EXPECT_EQ(found.looked_at, std::vector<std::string>{kMeasuredLoader});
    return found.findings;
  };
  EXPECT_EQ(found_for(0.010, 0.020).size(), 1u);
  EXPECT_EQ(found_for(0.010, 0.0095).size(), 1u) << "a wait of 5 %";
  const auto findings = found_for(0.020, 0.005);
  ASSERT_EQ(findings.size(), 2u);
  const Finding& f = findings.front();  // before the note
  EXPECT_EQ(f.check, "measured-loader");
  EXPECT_EQ(f.severity, Severity::kWarning);
  EXPECT_EQ(f.title, "the loader is the bottleneck");
  for (const char* part : {"0.02 s for a batch of 64", "loader.workers=2 (3200 samples/s)", "step on cuda:0 0.005 s",
                           "(12800 samples/s)", "waits at least 75 % of its time"})
    EXPECT_NE(f.evidence.find(part), std::string::npos) << part << ": " << f.evidence;
  EXPECT_NE(f.remedy.find("loader.workers=8"), std::string::npos) << f.remedy;
}

TEST(TrainingSpeed, AMeasurementThatIsNoneIsRefused) {
  for (const char* text : {"", "{}", "[1]", R"({"job":"policy","device":"cpu","batch_size":"many"})",
                           R"({"job":"p","device":"cpu","batch_size":4,"loader_workers":2,"loader_s_per_batch":0,)"
                           R"("step_s_per_batch":null})",
                           R"({"job":"p","device":"cpu","batch_size":4,"loader_workers":2,"loader_s_per_batch":0,)"
                           R"("step_s_per_batch":1})"})
    EXPECT_THROW(parse_training_speed(text), Error) << text;
}

TEST_F(Run, GpusBelowEightyPercentAndWhy) {
  put("metrics.jsonl", metrics(R"("gpu/utilization":95,"speed/data_s":0.0)"));
  EXPECT_EQ(of("run-gpu-use"), "");
  put("metrics.jsonl", metrics(R"("gpu/utilization":40,"speed/data_s":0.005)"));
  expect("run-gpu-use", {"busy 40 %", "50 % of a step waits for data", "the loader is the cause"});
  put("metrics.jsonl", metrics(R"("gpu/utilization":70,"speed/data_s":0.0)"));
  expect("run-gpu-use", {"busy 70 %", "train.cuda_graph", "80 % and more is usual"});
}

TEST_F(Run, CommunicationAboveATenthIsNamedAndASmallModelToo) {
  put("metrics.jsonl", metrics(R"("speed/exchange_s":0.003,"speed/compute_s":0.007)"));
  expect("run-communication", {"more than a tenth", "30 % of a step", "takes 7.0 ms", "gradient_accumulation_steps"});
  put("metrics.jsonl", metrics(R"("speed/exchange_s":0.0003,"speed/compute_s":0.0007)", 1000));
  expect("run-communication", {"the model or the batch is small"});
  put("metrics.jsonl", metrics(R"("speed/exchange_s":0.0005,"speed/compute_s":0.0095)"));
  EXPECT_EQ(of("run-communication"), "");
}

TEST_F(Run, RanksWithUnequalWorkAreNamed) {
  put("metrics.jsonl", metrics(R"("speed/compute_s":0.009,"speed/least_compute_s":0.005)"));
  expect("run-balance", {"unequal times", "slowest 9.0 ms", "fastest 5.0 ms"});
  put("metrics.jsonl", metrics(R"("speed/compute_s":0.009,"speed/least_compute_s":0.0089,"gpu/utilization":80,)"
                               R"("gpu/least_utilization":50)"));
  expect("run-balance", {"one GPU is less busy", "80 % on average, 50 % the idlest"});
}

TEST_F(Run, TwoDevicesWithoutASpeedUpAreComparedWithTheRunBeside) {
  put(rank(0));
  put(rank(1));
  put("metrics.jsonl", metrics(R"("speed/samples_per_s":1050,"speed/compute_s":0.001)"));
  EXPECT_EQ(of("run-speed-up"), "");
  const fs::path beside = path().parent_path() / "2026-11-26_09-00-00";
  fs::create_directories(beside / "ranks");
  std::ofstream(beside / "ranks/rank_0.json") << to_json(rank(0, 1));
  std::ofstream(beside / "metrics.jsonl") << metrics(R"("speed/samples_per_s":1000)");
  expect("run-speed-up", {"2 devices bring 1.05 times", "1000 in", "2026-11-26_09-00-00", "too small"});
  put("metrics.jsonl", metrics(R"("speed/samples_per_s":1900,"speed/compute_s":0.001)"));
  EXPECT_EQ(of("run-speed-up"), "");
}

TEST_F(Run, OutOfStepRanksAndOtherBatchCountsAreErrors) {
  put(rank(0));
  rank::Status behind = rank(1);
  behind.step = 93;
  put(behind);
  expect("run-steps",
         {"error: ranks are out of step", "rank 0 is at step 100", "rank 1 at step 93", "what rank 1 does"});
  behind = rank(1);
  behind.batches_per_epoch = 9;
  put(behind);
  expect("run-batches", {"error: ranks have other numbers of batches", "rank 0: 10 batches", "rank 1: 9", "drop_last"});
  EXPECT_EQ(of("run-steps"), "");
  fs::remove(path() / "ranks/rank_1.json");
  expect("run-batches", {"warning: not every rank", "of 2 ranks there is nothing of 1"});
}

TEST_F(Run, ARunningRankMayBeAStepAwayAndSeenLater) {
  rank::Status first = rank(0), second = rank(1);
  first.phase = second.phase = rank::Phase::kTraining;
  first.step = 1000;
  first.steps_per_s = second.steps_per_s = 100;
  first.step_s = second.step_s = 0.01;
  second.time = first.time - 0.9;
  second.step = first.step - 90;
  put(first);
  put(second);
  EXPECT_EQ(of("run-steps"), "");
  EXPECT_EQ(of("run-alive"), "");
  second.step = 5;
  put(second);
  expect("run-steps", {"out of step"});
}

TEST_F(Run, ARankThatHangsIsGoneOrFailedIsAnError) {
  rank::Status silent = rank(0);
  silent.phase = rank::Phase::kTraining;
  silent.step_s = 0.01;
  silent.time = now() - 30;
  put(silent);
  expect("run-alive", {"error: rank 0 hangs", "its last beat 3", format("gdb -p {}", ::getpid())});
  silent.step_s = 7;  // five steps are longer than its silence
  put(silent);
  EXPECT_EQ(of("run-alive"), "");
  silent.phase = rank::Phase::kValidation;
  silent.step_s = 0.01;
  put(silent);
  EXPECT_EQ(of("run-alive"), "") << "a validation takes its time";
  silent.started += 1;  // another process has its number now
  put(silent);
  expect("run-alive", {"error: rank 0 has gone", "no such process", "resume="});
  silent.host = "another-machine";
  put(silent);
  EXPECT_EQ(of("run-alive"), "") << "nothing is known of processes elsewhere";
  silent.phase = rank::Phase::kFailed;
  put(silent);
  // As a shell takes it: the path has a blank.
  expect("run-alive", {"error: rank 0 failed", "cohort train resume='" + fs::canonical(path()).string() + "'"});
}

TEST_F(Run, TwoRanksOnOneGpuAndARunOnTheCpuBesideAGpuAreFound) {
  rank::Status a = rank(0), b = rank(1);
  a.device = b.device = "cuda:1";
  put(a);
  put(b);
  expect("run-device", {"error: two ranks are on one GPU", "ranks 0 and 1 on cuda:1", "one rank per GPU"});
  b.device = "cuda:0";
  put(b);
  EXPECT_EQ(of("run-device"), "");
  put(rank(0));
  put(rank(1));
  gpus.resize(2);
  put("config.json", R"({"backend": "gpu"})");
  expect("run-device", {"warning: the run is on the CPU", "backend=gpu", "cohort devices"});
}

TEST_F(Run, WeightsOfAWrappedModuleAreFound) {
  const auto save = [&](const std::string& header) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> 8 * i);
    put("checkpoints/last/model.safetensors", bytes + header);
  };
  put("training.log", "x\n");
  save(R"({"module.a.weight":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"__metadata__":{}})");
  expect("run-weights", {"warning: the weights are those of a wrapped module", "module.a.weight"});
  save(R"({"a.weight":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})");
  EXPECT_EQ(of("run-weights"), "");
  put("checkpoints/last/model.safetensors", std::string(16, '\x7f'));
  EXPECT_EQ(of("run-weights"), "") << "a damaged file has no names";
}

TEST_F(Run, ALossThatIsNoNumberIsAnError) {
  put("metrics.jsonl",
      metrics(R"("x":1)") + R"({"step":11,"train/loss":null,"not_finite":{"train/loss":"nan"}})" + "\n");
  expect("run-loss", {"error: the loss is no longer a number", "step 11", "clip_norm"});
}

TEST_F(Run, KnownMessagesInLaunchersLogsAreExplainedOnce) {
  // Lines as PyTorch 2, NCCL and Linux print them, and what is to be said of each.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"torch.distributed.DistBackendError: NCCL error in: x.cpp:317, unhandled system error, NCCL version 2.21.5",
       "NCCL_IB_DISABLE=1"},
      {"ncclInvalidUsage: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000", "one rank per GPU"},
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "gradient_checkpointing"},
      {"RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
       "find_unused_parameters"},
      {"The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE, Address already "
       "in use",
       "leave --master_port out"},
      {"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and "
       "cuda:1!",
       "model->to(device)"},
      {"RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0])",
       "different devices"},
      {"AttributeError: 'DataParallel' object has no attribute 'encoder'", "model.module.xxx"},
      {"RuntimeError: CUDA error: invalid device ordinal", "no more ranks than visible GPUs"},
      {"OSError: [Errno 28] No space left on device: '/dev/shm/nccl-abc'", "--shm-size 1g"},
      {"OSError: [Errno 28] No space left on device: 'outputs/x'", "a disk is full"},
      {"rank 1 (local 1, pid 7) ended by signal 9 (SIGKILL)", "memory ran out"},
      {"RuntimeError: The client socket has timed out after 60s while trying to connect to (10.0.0.2, 29500).",
       "firewall"},
      {"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", "did not come to a collective"},
      {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040)", "update the driver"}};
  for (const auto& [line, remedy] : cases) {
    put("logs/attempt_0/1/stderr.log", "one\n" + line + "\n" + line + "\n");
    const std::string text = of("run-messages");
    EXPECT_NE(text.find(remedy), std::string::npos) << line << "\n" << text;
    EXPECT_NE(text.find("stderr.log, line 2: " + line.substr(0, 40)), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_TRUE(text.starts_with("error: ")) << text;
  }
  put(rank(0));
  put(rank(1));
  EXPECT_TRUE(of("run-messages").starts_with("warning: ")) << "the run finished all the same";
}

TEST_F(Run, AFolderThatIsNoRunIsRefused) {
  fs::remove_all(path() / "ranks");
  EXPECT_THROW(read_run(path()), Error);
  EXPECT_THROW(read_run(path() / "nothing"), Error);
}

TEST(DoctorMeasures, DiskAndMemoryAndLeavesNothingBehind) {
  const TemporaryFolder folder("cohort-measure-");
  const MachineSpeed speed = measure_machine(folder.path());
  EXPECT_GT(speed.disk_write, 0);
  EXPECT_GT(speed.memory_copy, 0);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_THROW(measure_machine(folder.path() / "nothing"), Error);
}

}  // namespace
}  // namespace cohort::doctor
