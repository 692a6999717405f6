#include "monitor/gpu_figures.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace cohort::monitor {
namespace {

TEST(GpuMonitor, ReadsEveryFigureThroughNvmlsInterface) {
  const GpuMonitor monitor(INVENTED_NVML);
  ASSERT_TRUE(monitor.available()) << monitor.unavailable_because();
  EXPECT_EQ(monitor.driver_version(), "580.65.06");
  const std::vector<GpuFigures> gpus = monitor.read();
  ASSERT_EQ(gpus.size(), 3u);
  const GpuFigures& gpu = gpus[0];
  EXPECT_EQ(gpu.index, 0);
  EXPECT_EQ(gpu.name, "Invented H100");
  EXPECT_EQ(gpu.uuid, "GPU-0");
  EXPECT_EQ(gpu.pci_bus, "00000000:1B:00.0");
  EXPECT_EQ(gpu.memory_used, 20ull << 30);
  EXPECT_EQ(gpu.memory_total, 80ull << 30);
  EXPECT_EQ(gpu.utilization, 97);
  EXPECT_EQ(gpu.memory_utilization, 41);
  EXPECT_DOUBLE_EQ(gpu.power.value_or(0), 650.5);
  EXPECT_DOUBLE_EQ(gpu.power_limit.value_or(0), 700);
  EXPECT_EQ(gpu.temperature, 71);
  EXPECT_EQ(gpu.sm_clock, 1980);
  EXPECT_EQ(gpu.memory_clock, 2619);
  EXPECT_EQ(gpu.slowed_by, (std::vector<std::string>{"power cap", "hardware thermal slowdown"}));
  ASSERT_TRUE(gpu.processes.has_value());
  ASSERT_EQ(gpu.processes->size(), 20u);
  EXPECT_EQ(gpu.processes->at(3).pid, 4003);
  EXPECT_EQ(gpu.processes->at(3).memory, 1ull << 30);
  EXPECT_FALSE(gpu.processes->at(19).memory.has_value());
  EXPECT_EQ(gpu.pcie_width, 8);
  EXPECT_EQ(gpu.pcie_width_max, 16);
  EXPECT_EQ(gpu.uncorrected_errors, 3u);
  EXPECT_EQ(monitor.peer_access(0, 1), false);
  EXPECT_EQ(monitor.peer_access(0, 0), true);
  EXPECT_FALSE(monitor.peer_access(0, 2).has_value());
}

TEST(GpuMonitor, WhatAGpuDoesNotReportIsUnsetAndALostOneHasOnlyItsIndex) {
  const GpuMonitor monitor(INVENTED_NVML);
  const std::vector<GpuFigures> gpus = monitor.read();
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[1].name, "Invented Thor");
  EXPECT_FALSE(gpus[1].power.has_value());
  EXPECT_FALSE(gpus[1].memory_total.has_value());
  EXPECT_EQ(gpus[1].temperature, 71);
  ASSERT_TRUE(gpus[1].slowed_by.has_value());
  EXPECT_TRUE(gpus[1].slowed_by->empty());
  EXPECT_FALSE(gpus[1].processes.has_value());
  EXPECT_FALSE(gpus[1].uncorrected_errors.has_value());
  EXPECT_EQ(gpus[2].index, 2);
  EXPECT_EQ(gpus[2].name, "");
  EXPECT_FALSE(gpus[2].temperature.has_value());
}

TEST(GpuMonitor, AnAbsentLibraryIsAnEmptyListWithAReason) {
  const GpuMonitor monitor("libno-such-nvml.so.1");
  EXPECT_FALSE(monitor.available());
  EXPECT_TRUE(monitor.read().empty());
  EXPECT_EQ(monitor.driver_version(), "");
  EXPECT_NE(monitor.unavailable_because().find("libno-such-nvml.so.1"), std::string::npos);
}

TEST(GpuMonitor, ALibraryThatIsNotNvmlIsRefused) {
  const GpuMonitor monitor("libc.so.6");
  EXPECT_FALSE(monitor.available());
  EXPECT_NE(monitor.unavailable_because().find("nvmlInit_v2"), std::string::npos);
}

TEST(GpuMonitor, ADriverThatDoesNotStartGivesItsOwnReason) {
  ::setenv("COHORT_INVENTED_NVML_INIT", "9", 1);
  const GpuMonitor monitor(INVENTED_NVML);
  ::unsetenv("COHORT_INVENTED_NVML_INIT");
  EXPECT_FALSE(monitor.available());
  EXPECT_EQ(monitor.unavailable_because(), "NVML does not start: Driver Not Loaded");
}

}  // namespace
}  // namespace cohort::monitor
