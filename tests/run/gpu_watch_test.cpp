// What is said of the GPUs of a run, from a library with NVML's interface and two invented GPUs (tests/monitor).
#include "run/gpu_watch.h"

#include <gtest/gtest.h>

namespace cohort::run {
namespace {

monitor::GpuFigures gpu(int index, int utilization, std::uint64_t memory, double power) {
  monitor::GpuFigures figures;
  figures.index = index;
  figures.utilization = utilization;
  figures.memory_used = memory;
  figures.power = power;
  return figures;
}

TEST(GpuWatch, LoadIsOfTheWatchedGpusOnly) {
  const std::vector<monitor::GpuFigures> all{gpu(0, 90, 5, 300), gpu(1, 7, 99, 50), gpu(2, 70, 8, 200)};
  const GpuLoad load = load_of(all, {0, 2});
  EXPECT_EQ(load.utilization, 80);
  EXPECT_EQ(load.least_utilization, 70);
  EXPECT_EQ(load.memory, 8);
  EXPECT_EQ(load.power, 500);
}

TEST(GpuWatch, WhatNoGpuReportsIsUnset) {
  monitor::GpuFigures silent;
  silent.index = 3;
  const GpuLoad load = load_of({silent}, {3});
  EXPECT_FALSE(load.utilization || load.least_utilization || load.memory || load.power);
}

TEST(GpuWatch, ReadsTheLibraryAndOpensNoneForTheCpu) {
  GpuWatch watch({0}, INVENTED_NVML);
  const std::optional<GpuLoad> load = watch.read();
  ASSERT_TRUE(load);
  ASSERT_TRUE(load->utilization);
  EXPECT_EQ(watch.mean_utilization(), load->utilization);
  EXPECT_FALSE(GpuWatch({}, INVENTED_NVML).read());
  EXPECT_FALSE(GpuWatch({0}, "libno-such-nvml.so").read()) << "a machine without a driver";
}

}  // namespace
}  // namespace cohort::run
