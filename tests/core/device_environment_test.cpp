#include "core/device_environment.h"

#include <map>

#include <gtest/gtest.h>

#include "core/devices_machine.h"
#include "core/error.h"
#include "core/message_of.h"

namespace cohort {
namespace {
using testing::Machine;

std::map<std::string, std::string> variables(const DeviceEnvironment& environment) {
  return {environment.variables.begin(), environment.variables.end()};
}

TEST(DeviceEnvironment, WithoutAGpuNothingIsSet) {
  auto machine = Machine::without_driver();
  const auto environment = device_environment(list_devices(machine), DevicePolicy::kOwn, 1, 2);
  EXPECT_TRUE(environment.variables.empty());
  EXPECT_EQ(environment.device, -1);
  EXPECT_NE(environment.explanation.find("CPU"), std::string::npos);
}

TEST(DeviceEnvironment, AnOwnDeviceStaysInsideAMaskOfIndices) {
  auto machine = Machine::uniform(4);
  machine.mask("3,1", {3, 1});
  const auto listing = list_devices(machine);
  const auto rank0 = variables(device_environment(listing, DevicePolicy::kOwn, 0, 2));
  const auto rank1 = variables(device_environment(listing, DevicePolicy::kOwn, 1, 2));
  EXPECT_EQ(rank0, (std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "3"},
                                                       {"TI_VISIBLE_DEVICE", "3"},
                                                       {"QD_VISIBLE_DEVICE", "3"},
                                                       {"EGL_DEVICE_ID", "3"},
                                                       {"MUJOCO_EGL_DEVICE_ID", "3"}}));
  EXPECT_EQ(rank1, (std::map<std::string, std::string>{{"CUDA_VISIBLE_DEVICES", "1"},
                                                       {"TI_VISIBLE_DEVICE", "1"},
                                                       {"QD_VISIBLE_DEVICE", "1"},
                                                       {"EGL_DEVICE_ID", "1"},
                                                       {"MUJOCO_EGL_DEVICE_ID", "1"}}));
}

TEST(DeviceEnvironment, WithoutAMaskTheOwnDeviceIsTheLocalRank) {
  auto machine = Machine::uniform(2);
  EXPECT_EQ(variables(device_environment(list_devices(machine), DevicePolicy::kOwn, 1, 2)).at("CUDA_VISIBLE_DEVICES"),
            "1");
}

TEST(DeviceEnvironment, SharedDevicesLeaveTheMaskAloneAndPointTheRendererAtTheRanksGpu) {
  auto machine = Machine::uniform(4);
  machine.mask("2,3", {2, 3});
  const auto environment = device_environment(list_devices(machine), DevicePolicy::kShared, 1, 2);
  EXPECT_EQ(variables(environment), (std::map<std::string, std::string>{{"TI_VISIBLE_DEVICE", "3"},
                                                                        {"QD_VISIBLE_DEVICE", "3"},
                                                                        {"EGL_DEVICE_ID", "3"},
                                                                        {"MUJOCO_EGL_DEVICE_ID", "3"}}));
  EXPECT_EQ(environment.device, 1);
  EXPECT_TRUE(environment.warnings.empty());
  EXPECT_NE(environment.explanation.find("CUDA_VISIBLE_DEVICES stays 2,3"), std::string::npos)
      << environment.explanation;
  EXPECT_NE(environment.explanation.find("its cuda:1"), std::string::npos) << environment.explanation;
}

TEST(DeviceEnvironment, UuidsAreKeptAndTheOtherVariablesGetTheGpusPlace) {
  auto machine = Machine::uniform(4);
  machine.mask("GPU-2,GPU-0000", {2, 0});  // the beginning of a UUID is enough
  const auto listing = list_devices(machine);
  const auto rank0 = variables(device_environment(listing, DevicePolicy::kOwn, 0, 2));
  EXPECT_EQ(rank0.at("CUDA_VISIBLE_DEVICES"), "GPU-2");
  EXPECT_EQ(rank0.at("EGL_DEVICE_ID"), "2");
  EXPECT_EQ(rank0.at("QD_VISIBLE_DEVICE"), "2");
  const auto rank1 = variables(device_environment(listing, DevicePolicy::kOwn, 1, 2));
  EXPECT_EQ(rank1.at("CUDA_VISIBLE_DEVICES"), "GPU-0000");
  EXPECT_EQ(rank1.at("TI_VISIBLE_DEVICE"), "0");
}

TEST(DeviceEnvironment, ASliceKeepsItsUuidAndPointsAtItsGpu) {
  auto machine = Machine::uniform(2);
  machine.nvml_report.mig = {{"MIG-1111", 1}, {"MIG-3333", 1}};
  machine.mask("MIG-3333,MIG-1111", {1, 1});
  machine.cuda_report.devices[0].uuid = "GPU-3333";
  machine.cuda_report.devices[1].uuid = "GPU-1111";
  const auto listing = list_devices(machine);
  const auto rank0 = variables(device_environment(listing, DevicePolicy::kOwn, 0, 2));
  EXPECT_EQ(rank0.at("CUDA_VISIBLE_DEVICES"), "MIG-3333");
  EXPECT_EQ(rank0.at("EGL_DEVICE_ID"), "1");
}

TEST(DeviceEnvironment, AnInvalidEntryEndsTheDevicesThatRanksGet) {
  auto machine = Machine::uniform(4);
  machine.mask("1,7,2", {1});
  const auto listing = list_devices(machine);
  EXPECT_EQ(variables(device_environment(listing, DevicePolicy::kOwn, 0, 2)).at("CUDA_VISIBLE_DEVICES"), "1");
  const std::string message = message_of([&] { device_environment(listing, DevicePolicy::kOwn, 1, 2); });
  EXPECT_NE(message.find("at most 1 can start here (CUDA_VISIBLE_DEVICES=1,7,2)"), std::string::npos) << message;
}

TEST(DeviceEnvironment, CudasOwnOrderIsNotTakenForTheMachines) {
  Machine machine({{"Quadro P400", "GPU-aaaa", "0000:17:00.0"}, {"NVIDIA RTX 6000", "GPU-bbbb", "0000:65:00.0"}});
  machine.show({1, 0});
  const auto rank0 = variables(device_environment(list_devices(machine), DevicePolicy::kOwn, 0, 2));
  EXPECT_EQ(rank0.at("CUDA_VISIBLE_DEVICES"), "0");  // CUDA's device 0 is the fast card ...
  EXPECT_EQ(rank0.at("QD_VISIBLE_DEVICE"), "1");     // ... which stands second on the bus
  EXPECT_EQ(rank0.at("EGL_DEVICE_ID"), "1");
}

TEST(DeviceEnvironment, EglsOwnOrderIsFollowedWhereItIsKnown) {
  auto machine = Machine::uniform(2);
  machine.egl_report = {.failure = "",
                        .devices = {{.uuid = machine.nvml_report.devices[1].uuid, .pci_bus_id = "", .cuda_index = -1},
                                    {.uuid = machine.nvml_report.devices[0].uuid, .pci_bus_id = "", .cuda_index = -1}}};
  machine.mask("0,1", {0, 1});
  const auto environment = device_environment(list_devices(machine), DevicePolicy::kOwn, 0, 2);
  EXPECT_EQ(variables(environment).at("EGL_DEVICE_ID"), "1");
  EXPECT_EQ(variables(environment).at("MUJOCO_EGL_DEVICE_ID"), "0")
      << "MuJoCo 4 and robosuite want the entry of the mask";
  EXPECT_EQ(environment.explanation.find("assumed"), std::string::npos);
}

TEST(DeviceEnvironment, RanksBeyondTheGpusShareOneWithAWarning) {
  auto machine = Machine::uniform(2);
  const auto environment = device_environment(list_devices(machine), DevicePolicy::kShared, 3, 4);
  EXPECT_EQ(environment.device, 1);
  ASSERT_EQ(environment.warnings.size(), 1u);
  EXPECT_NE(environment.warnings[0].find("local rank 3 shares"), std::string::npos) << environment.warnings[0];
}

TEST(DeviceEnvironment, AMaskThatRenumbersIsWarnedAboutForMujoco) {
  auto machine = Machine::uniform(2);
  machine.mask("1,0", {1, 0});
  EXPECT_EQ(device_environment(list_devices(machine), DevicePolicy::kShared, 0, 2).warnings.size(), 1u);
  EXPECT_TRUE(device_environment(list_devices(machine), DevicePolicy::kOwn, 0, 2).warnings.empty());
}

TEST(NarrowMask, GpuIdsStayInsideTheMask) {
  auto machine = Machine::uniform(4);
  EXPECT_EQ(narrow_mask(list_devices(machine), "2,0"), "2,0");
  EXPECT_EQ(narrow_mask(list_devices(machine), "all"), std::nullopt);
  machine.mask("3,1", {3, 1});
  const auto listing = list_devices(machine);
  EXPECT_EQ(narrow_mask(listing, "1"), "1");
  const std::string message = message_of([&] { narrow_mask(listing, "0,1"); });
  EXPECT_NE(message.find("GPU '0' is not among those this process may use (3, 1, by CUDA_VISIBLE_DEVICES=3,1)"),
            std::string::npos)
      << message;
}

TEST(NarrowMask, GpuIdsAndMaskMayBeOfDifferentKinds) {
  auto machine = Machine::uniform(4);
  machine.mask("GPU-3000,GPU-1000", {3, 1});
  EXPECT_EQ(narrow_mask(list_devices(machine), "1,3"), "GPU-1000,GPU-3000");
  auto indices = Machine::uniform(4);
  indices.mask("3,1", {3, 1});
  EXPECT_EQ(narrow_mask(list_devices(indices), "GPU-1000aaaa"), "1");
}

TEST(NarrowMask, ABeginningThatSeveralGpusShareIsRefused) {
  auto machine = Machine::uniform(2);
  const auto listing = list_devices(machine);
  const std::string message = message_of([&] { narrow_mask(listing, "GPU-"); });
  EXPECT_NE(message.find("'GPU-' may be any of GPU-0000aaaa"), std::string::npos) << message;
  EXPECT_NE(message.find(", GPU-1000aaaa"), std::string::npos) << message;
  EXPECT_EQ(narrow_mask(listing, "GPU-1"), "1");
}

TEST(NarrowMask, BadListsAreRefused) {
  auto machine = Machine::uniform(2);
  const auto listing = list_devices(machine);
  EXPECT_NE(message_of([&] { narrow_mask(listing, "zero"); }).find("is no list of GPUs"), std::string::npos);
  EXPECT_NE(message_of([&] { narrow_mask(listing, "0,0"); }).find("twice"), std::string::npos);
  auto none = Machine::without_driver();
  EXPECT_NE(message_of([&] { narrow_mask(list_devices(none), "0"); }).find("sees no GPU"), std::string::npos);
}

}  // namespace
}  // namespace cohort
