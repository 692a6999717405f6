// Metal's devices, on macOS. Not run: the project has had no Mac so far.
#import <Metal/Metal.h>

#include "core/devices_probe.h"

namespace cohort {

MetalReport probe_metal() {
  MetalReport report;
  @autoreleasepool {
    // LibTorch's mps:0 is the system's default device (aten/src/ATen/mps/MPSDevice.mm), so that one stands first.
    id<MTLDevice> first = MTLCreateSystemDefaultDevice();
    NSArray<id<MTLDevice>>* all = MTLCopyAllDevices();
    for (int pass = 0; pass < 2; ++pass) {
      for (id<MTLDevice> metal in all) {
        const bool is_first = first != nil && metal.registryID == first.registryID;
        if (is_first != (pass == 0)) continue;
        GpuDevice device;
        device.kind = Backend::kMetal;
        device.name = metal.name.UTF8String;
        device.memory_total = metal.recommendedMaxWorkingSetSize;
        const std::uint64_t used = metal.currentAllocatedSize;
        device.memory_free = device.memory_total > used ? device.memory_total - used : 0;
        report.devices.push_back(device);
      }
    }
    if (report.devices.empty()) report.failure = "this Mac has no Metal device";
  }
  return report;
}

}  // namespace cohort
