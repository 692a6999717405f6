// Runs the code that opens libcuda.so.1, libnvidia-ml.so.1 and libEGL.so.1 against the libraries of fake_driver/, which
// ctest puts first into LD_LIBRARY_PATH.
#include <cstdlib>

#include <gtest/gtest.h>

#include "core/device_environment.h"
#include "core/devices.h"
#include "core/devices_probe.h"

namespace cohort {
namespace {

constexpr const char* kTwoGpus =
    "NVIDIA RTX 6000|GPU-8932f937-d72c-4106-c12f-20bd9faed9f6|0000:65:00.0|48|8.9;"
    "NVIDIA H100 PCIe|GPU-0c1d2e3f-0000-4106-c12f-20bd9faed9f7|0000:b3:00.0|80|9.0";

class Driver : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(std::getenv("LD_LIBRARY_PATH"), nullptr) << "ctest sets LD_LIBRARY_PATH to the fake driver's folder";
    for (const char* name : {"CUDA_VISIBLE_DEVICES", "COHORT_FAKE_CUDA_ORDER", "COHORT_FAKE_CUINIT",
                             "COHORT_FAKE_NVMLINIT", "COHORT_FAKE_EGL_ORDER", "LOCAL_RANK", "CUDA_DEVICE_ORDER"})
      unsetenv(name);
    setenv("COHORT_FAKE_GPUS", kTwoGpus, 1);
    forget_device();
  }
};

TEST_F(Driver, EveryFactOfAGpuIsRead) {
  const DeviceListing listing = list_devices();
  ASSERT_EQ(listing.visible.size(), 2u) << listing.absence;
  const GpuDevice& gpu = listing.visible[1];
  EXPECT_EQ(gpu.name, "NVIDIA H100 PCIe");
  EXPECT_EQ(gpu.memory_total, 80ull << 30);
  EXPECT_EQ(gpu.memory_free, 79ull << 30);
  EXPECT_EQ(gpu.capability_major, 9);
  EXPECT_EQ(gpu.capability_minor, 0);
  EXPECT_EQ(gpu.pci_bus_id, "0000:b3:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-0c1d2e3f-0000-4106-c12f-20bd9faed9f7");
  EXPECT_EQ(gpu.cuda_index, 1);
  EXPECT_EQ(gpu.nvml_index, 1);
  EXPECT_TRUE(gpu.seen_by_cuda && gpu.seen_by_nvml && gpu.egl_exact);
  EXPECT_EQ(listing.driver_version, "580.65.06");
  EXPECT_EQ(listing.cuda_version, 13000);
}

TEST_F(Driver, CudaAndEglMayCountInOrdersOfTheirOwn) {
  setenv("COHORT_FAKE_CUDA_ORDER", "1,0", 1);
  setenv("COHORT_FAKE_EGL_ORDER", "1,0", 1);
  const DeviceListing listing = list_devices();
  ASSERT_EQ(listing.visible.size(), 2u);
  EXPECT_EQ(listing.visible[0].name, "NVIDIA H100 PCIe");
  EXPECT_EQ(listing.visible[0].nvml_index, 1);
  EXPECT_EQ(listing.visible[0].egl_index, 0);
}

TEST_F(Driver, AMaskOfUuidsIsFollowed) {
  setenv("CUDA_VISIBLE_DEVICES", "GPU-0c1d", 1);
  const DeviceListing listing = list_devices();
  ASSERT_EQ(listing.visible.size(), 1u);
  EXPECT_EQ(listing.visible[0].nvml_index, 1);
  EXPECT_EQ(listing.hidden.size(), 1u);
  initialise({});
  EXPECT_EQ(device(), (DeviceId{DeviceKind::kCuda, 0}));
}

TEST_F(Driver, ReasonsOfTheDriverReachTheUser) {
  const auto absence = [](const char* code) {
    setenv("COHORT_FAKE_CUINIT", code, 1);
    return list_devices().absence;
  };
  EXPECT_NE(absence("803").find("different versions"), std::string::npos);
  EXPECT_NE(absence("802").find("fabricmanager"), std::string::npos);
  EXPECT_NE(absence("999").find("dmesg"), std::string::npos);
  EXPECT_NE(absence("34").find("stub"), std::string::npos);
  EXPECT_NE(absence("700").find("CUDA_ERROR_OF_THE_FAKE (700)"), std::string::npos);
}

TEST_F(Driver, CudaAloneIsEnough) {
  setenv("COHORT_FAKE_NVMLINIT", "9", 1);
  const DeviceListing listing = list_devices({.initialise_cuda = false});
  EXPECT_EQ(listing.visible.size(), 2u);
  EXPECT_FALSE(listing.visible[0].seen_by_nvml);
  ASSERT_EQ(listing.notes.size(), 1u);
  EXPECT_NE(listing.notes[0].find("an error of the fake (load the nvidia kernel module)"), std::string::npos);
  const auto own = device_environment(listing, DevicePolicy::kOwn, 1, 2);
  EXPECT_EQ(own.variables.front(), (std::pair<std::string, std::string>("CUDA_VISIBLE_DEVICES", "1")));
}

}  // namespace
}  // namespace cohort
