#include <gtest/gtest.h>

#include "monitor/gpu_figures.h"

namespace cohort::monitor {
namespace {

TEST(GpuMonitorLive, TheDriverOfThisMachineAgreesWithItself) {
  const GpuMonitor monitor;
  if (!monitor.available()) GTEST_SKIP() << "no GPU here: " << monitor.unavailable_because();
  for (const GpuFigures& gpu : monitor.read()) {
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_TRUE(gpu.uuid.starts_with("GPU-")) << gpu.uuid;
    EXPECT_LE(gpu.memory_used.value_or(0), gpu.memory_total.value_or(0));
    EXPECT_LE(gpu.utilization.value_or(0), 100);
    EXPECT_LT(gpu.temperature.value_or(0), 120);
  }
}

}  // namespace
}  // namespace cohort::monitor
