#include "report/machine.h"

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

class MachineTest : public test::TestFolder {
 protected:
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }
};

TEST_F(MachineTest, IsReadFromProcAndEtc) {
  put("proc/cpuinfo",
      "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 9654\n");
  put("proc/meminfo", "MemTotal:       67108864 kB\n");
  put("etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  put("proc/driver/nvidia/gpus/0000:43:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ: 5\n");
  put("proc/driver/nvidia/gpus/0000:1b:00.0/information", "Model: \t\t NVIDIA H100 80GB HBM3\n");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:16:45 UTC 2025\nGCC version: 12.2.0\n");
  const Machine m = describe_machine({.libtorch = "2.11.0", .usable_cores = 1}, folder_.string());
  EXPECT_EQ(m.cpu, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(m.cores, 2);
  EXPECT_EQ(m.memory_bytes, 67108864.0 * 1024);
  EXPECT_EQ(m.gpus.size(), 2u);
  EXPECT_EQ(m.gpu_driver, "580.65.06");
  EXPECT_TRUE(m.system.starts_with("Debian GNU/Linux 12 (bookworm), Linux ")) << m.system;
  const std::string text = m.to_text();
  for (const char* line : {"cores: 2, 1 usable\n", "memory: 64.0 GiB\n", "GPUs: 2 x NVIDIA H100 80GB HBM3\n",
                           "GPU driver: 580.65.06\n", "LibTorch: 2.11.0\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " in " << text;
  const auto json = parse_json<nlohmann::json>(m.to_json());
  EXPECT_EQ(json["gpus"].size(), 2u);
  EXPECT_EQ(json["revision"], m.revision);
}

TEST_F(MachineTest, WhatTheCallerKnowsWins) {
  const Machine m = describe_machine({.gpus = {"A", "A", "B"}, .gpu_driver = "1.2"}, folder_.string());
  EXPECT_NE(m.to_text().find("GPUs: 2 x A, B\nGPU driver: 1.2\n"), std::string::npos) << m.to_text();
}

TEST_F(MachineTest, AnArmProcessorWithoutANameIsNamedByItsNumbers) {
  put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  EXPECT_EQ(describe_machine({}, folder_.string()).cpu, "CPU implementer 0x41, part 0xd4f");
}

TEST(Machine, ThisOneIsDescribed) {
  const Machine m = describe_machine();
  EXPECT_EQ(m.cores, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(m.memory_bytes, 1e8);
  EXPECT_NE(m.compiler.find('.'), std::string::npos);
  EXPECT_FALSE(m.revision.empty());
  EXPECT_FALSE(m.system.empty());
}

}  // namespace
}  // namespace cohort::report
