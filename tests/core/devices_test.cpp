#include "core/devices.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/devices_machine.h"
#include "core/error.h"
#include "core/message_of.h"

namespace cohort {
namespace {
using testing::Machine;

/// Every test starts without a choice and without LOCAL_RANK.
class Devices : public ::testing::Test {
 protected:
  void SetUp() override {
    forget_device();
    unsetenv("LOCAL_RANK");
  }
  void TearDown() override { SetUp(); }
};

TEST_F(Devices, BackendNamesAreReadAndOthersRefused) {
  for (const char* name : {"gpu", "cuda", "metal", "cpu"}) EXPECT_STREQ(backend_name(parse_backend(name)), name);
  EXPECT_EQ(message_of([] { parse_backend("tpu"); }),
            "'tpu' is no backend: it is gpu (the best one present), cuda, metal or cpu");
}

TEST_F(Devices, DeviceAndBackendAreErrorsBeforeInitialisation) {
  EXPECT_FALSE(initialised());
  EXPECT_NE(message_of([] { device(); }).find("call cohort::initialise first"), std::string::npos);
  EXPECT_NE(message_of([] { backend(); }).find("call cohort::initialise first"), std::string::npos);
}

TEST_F(Devices, GpuTakesTheGpuOfTheLocalRank) {
  auto machine = Machine::uniform(4);
  const DeviceChoice& choice = initialise({.backend = Backend::kGpu, .local_rank = 2}, machine);
  EXPECT_FALSE(choice.fell_back);
  EXPECT_EQ(device(), (DeviceId{DeviceKind::kCuda, 2}));
  EXPECT_EQ(backend(), Backend::kCuda);
  EXPECT_NE(choice.explanation.find("GPU-2000aaaa"), std::string::npos) << choice.explanation;
  EXPECT_NE(choice.explanation.find("4 of 4"), std::string::npos) << choice.explanation;
}

TEST_F(Devices, LocalRankComesFromTheEnvironment) {
  auto machine = Machine::uniform(4);
  setenv("LOCAL_RANK", "3", 1);
  initialise({}, machine);
  EXPECT_EQ(device().index, 3);
  forget_device();
  setenv("LOCAL_RANK", "three", 1);
  EXPECT_NE(message_of([&] { initialise({}, machine); }).find("LOCAL_RANK='three'"), std::string::npos);
}

TEST_F(Devices, GpuFallsBackToTheCpuAndSaysWhy) {
  auto machine = Machine::without_driver();
  const DeviceChoice& choice = initialise({.backend = Backend::kGpu}, machine);
  EXPECT_TRUE(choice.fell_back);
  EXPECT_EQ(backend(), Backend::kCpu);
  EXPECT_EQ(to_string(device()), "cpu");
  EXPECT_NE(choice.explanation.find("falling back to the CPU"), std::string::npos) << choice.explanation;
  EXPECT_NE(choice.explanation.find("libcuda.so.1"), std::string::npos) << choice.explanation;
}

TEST_F(Devices, CpuIsTakenWithoutAskingAnyDriver) {
  auto machine = Machine::uniform(2);
  EXPECT_FALSE(initialise({.backend = Backend::kCpu}, machine).fell_back);
  EXPECT_EQ(backend(), Backend::kCpu);
  EXPECT_EQ(machine.cuda_calls, 0);
}

TEST_F(Devices, AForcedBackendThatIsAbsentNamesWhatIsPresent) {
  auto cpu_only = Machine::without_driver();
  const std::string cuda = message_of([&] { initialise({.backend = Backend::kCuda}, cpu_only); });
  EXPECT_NE(cuda.find("backend cuda cannot be used: no NVIDIA driver"), std::string::npos) << cuda;
  EXPECT_NE(cuda.find("Present: cpu"), std::string::npos) << cuda;
  auto gpus = Machine::uniform(2);
  const std::string metal = message_of([&] { initialise({.backend = Backend::kMetal}, gpus); });
  EXPECT_NE(metal.find("macOS"), std::string::npos) << metal;
  EXPECT_NE(metal.find("Present: cuda, cpu"), std::string::npos) << metal;
  EXPECT_FALSE(initialised());
}

TEST_F(Devices, MetalIsTheGpuOfAMac) {
  auto mac = Machine::without_driver();
  GpuDevice m3;
  m3.kind = Backend::kMetal;
  m3.name = "Apple M3 Max";
  mac.metal_report = {.failure = "", .devices = {m3}};
  initialise({.backend = Backend::kGpu}, mac);
  EXPECT_EQ(backend(), Backend::kMetal);
  EXPECT_EQ(to_string(device()), "mps:0");
  forget_device();
  const std::string cuda = message_of([&] { initialise({.backend = Backend::kCuda}, mac); });
  EXPECT_NE(cuda.find("Present: metal, cpu"), std::string::npos) << cuda;
}

TEST_F(Devices, MoreRanksThanGpusIsAnErrorNotASecondRankOnTheSameGpu) {
  auto machine = Machine::uniform(2);
  const std::string message = message_of([&] { initialise({.local_rank = 2}, machine); });
  EXPECT_NE(message.find("local rank 2 has no GPU"), std::string::npos) << message;
  EXPECT_NE(message.find("at most 2"), std::string::npos) << message;
  auto one = Machine::uniform(1);
  EXPECT_NE(message_of([&] { initialise({.local_rank = 1}, one); }).find("at most 1"), std::string::npos);
}

TEST_F(Devices, ARankWithAMaskOfOneGpuTakesItWhateverItsNumber) {
  auto machine = Machine::uniform(4);
  machine.mask("3", {3});
  initialise({.local_rank = 3}, machine);
  EXPECT_EQ(device(), (DeviceId{DeviceKind::kCuda, 0}));
}

TEST_F(Devices, ASecondChoiceMustBeTheSame) {
  auto machine = Machine::uniform(2);
  initialise({.local_rank = 1}, machine);
  EXPECT_NO_THROW(initialise({.local_rank = 1}, machine));
  const std::string message = message_of([&] { initialise({.local_rank = 0}, machine); });
  EXPECT_NE(message.find("already works on cuda:1"), std::string::npos) << message;
}

TEST_F(Devices, ADriverOlderThanTheLibraryIsNamed) {
  auto machine = Machine::uniform(1);
  machine.cuda_report.version = 12040;
  const std::string message =
      message_of([&] { initialise({.backend = Backend::kCuda, .minimum_cuda_version = 13000}, machine); });
  EXPECT_NE(message.find("580.65.06 runs CUDA up to 12.4"), std::string::npos) << message;
  EXPECT_NE(message.find("needs 13.0"), std::string::npos) << message;
  EXPECT_TRUE(initialise({.backend = Backend::kGpu, .minimum_cuda_version = 13000}, machine).fell_back);
}

TEST_F(Devices, ALibraryWithoutCudaIsNamed) {
  auto machine = Machine::uniform(1);
  const DeviceChoice& choice = initialise({.cuda_unusable = "this LibTorch is built without CUDA"}, machine);
  EXPECT_TRUE(choice.fell_back);
  EXPECT_NE(choice.explanation.find("this LibTorch is built without CUDA"), std::string::npos);
}

TEST_F(Devices, ListJoinsCudaAndNvmlByUuidNotByIndex) {
  // The fastest card stands last on the bus; CUDA counts it first, nvidia-smi last.
  Machine machine({{"Quadro P400", "GPU-aaaa", "0000:17:00.0"}, {"NVIDIA RTX 6000", "GPU-bbbb", "0000:65:00.0"}});
  machine.show({1, 0});
  const DeviceListing listing = list_devices(machine);
  ASSERT_EQ(listing.visible.size(), 2u);
  EXPECT_EQ(listing.visible[0].name, "NVIDIA RTX 6000");
  EXPECT_EQ(listing.visible[0].cuda_index, 0);
  EXPECT_EQ(listing.visible[0].nvml_index, 1);
  EXPECT_EQ(listing.visible[1].nvml_index, 0);
  EXPECT_TRUE(listing.visible[0].seen_by_cuda && listing.visible[0].seen_by_nvml);
  EXPECT_EQ(listing.visible[0].memory_free, 79ull << 30);
  EXPECT_EQ(listing.driver_version, "580.65.06");
  EXPECT_EQ(present_backends(listing), (std::vector{Backend::kCuda, Backend::kCpu}));
}

TEST_F(Devices, WhatTheMaskHidesIsListedAsHidden) {
  auto machine = Machine::uniform(4);
  machine.mask("2,0", {2, 0});
  const DeviceListing listing = list_devices(machine);
  ASSERT_EQ(listing.visible.size(), 2u);
  EXPECT_EQ(listing.visible[0].nvml_index, 2);
  EXPECT_EQ(listing.visible[1].nvml_index, 0);
  ASSERT_EQ(listing.hidden.size(), 2u);
  EXPECT_EQ(listing.hidden[0].nvml_index, 1);
  EXPECT_EQ(listing.hidden[1].nvml_index, 3);
  EXPECT_TRUE(listing.absence.empty());
}

TEST_F(Devices, AnInvalidEntryEndsTheListAndANoteSaysSo) {
  auto machine = Machine::uniform(4);
  machine.mask("0,2,-1,1", {0, 2});  // the guide's own example
  const DeviceListing listing = list_devices(machine);
  EXPECT_EQ(listing.visible.size(), 2u);
  ASSERT_EQ(listing.notes.size(), 1u);
  EXPECT_NE(listing.notes[0].find("'-1' is no device index"), std::string::npos) << listing.notes[0];
}

TEST_F(Devices, AnEmptyMaskIsNamedAsTheReason) {
  for (const std::string text : {"", "-1", "NoDevFiles", "9", "1,1", "GPU-ffff"}) {
    auto machine = Machine::uniform(2);
    machine.mask(text, {});
    const DeviceListing listing = list_devices(machine);
    EXPECT_TRUE(listing.visible.empty());
    EXPECT_EQ(listing.hidden.size(), 2u);
    EXPECT_NE(listing.absence.find("CUDA_VISIBLE_DEVICES='" + text + "' shows no device"), std::string::npos)
        << text << ": " << listing.absence;
  }
}

TEST_F(Devices, TheReasonForNoGpuTellsDriverFromContainerFromMachine) {
  auto nothing = Machine::without_driver();
  EXPECT_NE(list_devices(nothing).absence.find("no NVIDIA GPU on the PCI bus"), std::string::npos);
  nothing.on_bus = true;
  EXPECT_NE(list_devices(nothing).absence.find("docker run --gpus all"), std::string::npos);
  auto no_compute = Machine::uniform(2);
  no_compute.cuda_report = {.library = false, .failure = "libcuda.so.1 cannot be opened", .version = 0, .devices = {}};
  EXPECT_NE(list_devices(no_compute).absence.find("NVIDIA_DRIVER_CAPABILITIES"), std::string::npos);
  auto mismatch = Machine::uniform(2);
  mismatch.cuda_report.devices.clear();
  mismatch.cuda_report.failure = "the kernel module and libcuda.so.1 are of different versions";
  EXPECT_NE(list_devices(mismatch).absence.find("different versions"), std::string::npos);
}

TEST_F(Devices, EqualGpusAreListedWithoutStartingCuda) {
  auto machine = Machine::uniform(4);
  machine.mask("3,1", {3, 1});
  const DeviceListing listing = list_devices(machine, {.initialise_cuda = false});
  EXPECT_EQ(machine.cuda_calls, 0);
  ASSERT_EQ(listing.visible.size(), 2u);
  EXPECT_EQ(listing.visible[0].nvml_index, 3);
  EXPECT_EQ(listing.visible[1].nvml_index, 1);
  EXPECT_EQ(listing.visible[1].cuda_index, 1);
}

TEST_F(Devices, MixedGpusNeedCudaForTheirOrderUnlessPciOrderIsAskedFor) {
  Machine machine({{"Quadro P400", "GPU-aaaa", "0000:17:00.0"}, {"NVIDIA RTX 6000", "GPU-bbbb", "0000:65:00.0"}});
  machine.mask("0", {1});  // CUDA's device 0 is the fast one
  const DeviceListing listing = list_devices(machine, {.initialise_cuda = false});
  EXPECT_EQ(machine.cuda_calls, 1);
  ASSERT_EQ(listing.visible.size(), 1u);
  EXPECT_EQ(listing.visible[0].uuid, "GPU-bbbb");
  machine.variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  EXPECT_EQ(list_devices(machine, {.initialise_cuda = false}).visible.at(0).uuid, "GPU-aaaa");
  EXPECT_EQ(machine.cuda_calls, 1);
  machine.mask("GPU-bbbb,GPU-aaaa", {1, 0});
  EXPECT_EQ(list_devices(machine, {.initialise_cuda = false}).visible.at(0).nvml_index, 1);
  EXPECT_EQ(machine.cuda_calls, 1) << "UUIDs need no order";
}

TEST_F(Devices, EglIndexFollowsUuidThenBusThenIsAssumed) {
  auto machine = Machine::uniform(3);
  const auto indices = [&] {
    std::vector<int> found;
    for (const GpuDevice& device : list_devices(machine).visible)
      found.push_back(device.egl_exact ? device.egl_index : -1);
    return found;
  };
  EXPECT_EQ(indices(), (std::vector{-1, -1, -1}));
  EXPECT_EQ(list_devices(machine).visible[2].egl_index, 2) << "without knowledge, PCI order";
  const std::string uuid0 = machine.nvml_report.devices[0].uuid;
  // EGL lists a software device first and the GPUs in an order of its own.
  machine.egl_report = {.failure = "",
                        .devices = {{.uuid = "", .pci_bus_id = "", .cuda_index = -1},
                                    {.uuid = "", .pci_bus_id = "0000:3b:00.0", .cuda_index = -1},
                                    {.uuid = uuid0, .pci_bus_id = "", .cuda_index = -1},
                                    {.uuid = "", .pci_bus_id = "", .cuda_index = 1}}};
  EXPECT_EQ(indices(), (std::vector{2, 3, 1}));
  // Under a mask EGL's CUDA numbers may or may not be renumbered: they are not used then.
  machine.mask("1,2", {1, 2});
  EXPECT_EQ(indices(), (std::vector{-1, 1}));
}

TEST_F(Devices, ASliceOfAGpuIsTracedToItsGpu) {
  auto machine = Machine::uniform(2);
  machine.nvml_report.mig = {{"MIG-1111-22", 1}, {"MIG-3333-44", 1}};
  machine.mask("MIG-3333-44", {0});
  machine.cuda_report.devices[0].uuid = "GPU-3333-44";  // CUDA gives the bytes without the word
  machine.cuda_report.devices[0].pci_bus_id = machine.nvml_report.devices[1].pci_bus_id;
  machine.cuda_report.devices[0].memory_total = 10ull << 30;
  for (const bool initialise_cuda : {true, false}) {
    const DeviceListing listing = list_devices(machine, {.initialise_cuda = initialise_cuda});
    ASSERT_EQ(listing.visible.size(), 1u);
    EXPECT_EQ(listing.visible[0].uuid, "MIG-3333-44");
    EXPECT_EQ(listing.visible[0].nvml_index, 1);
  }
  EXPECT_EQ(machine.cuda_calls, 1);
}

TEST_F(Devices, TheProbeOfThisMachineListsGpusOrSaysWhyThereAreNone) {
  const DeviceListing listing = list_devices();
  if (listing.visible.empty()) {
    EXPECT_FALSE(listing.absence.empty());
    const DeviceChoice& choice = initialise({.backend = Backend::kGpu});
    EXPECT_TRUE(choice.fell_back);
    EXPECT_NE(choice.explanation.find(listing.absence), std::string::npos);
    EXPECT_EQ(backend(), Backend::kCpu);
    forget_device();
    EXPECT_NE(message_of([] { initialise({.backend = Backend::kCuda}); }).find(listing.absence), std::string::npos);
  } else {
    EXPECT_TRUE(listing.absence.empty());
    EXPECT_FALSE(listing.visible[0].name.empty());
    EXPECT_GT(listing.visible[0].memory_total, 0u);
  }
}

}  // namespace
}  // namespace cohort
