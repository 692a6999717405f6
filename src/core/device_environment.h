/// The one place that derives a rank's device variables, always inside the mask that this process was given.
///
/// Who reads which variable, and how it counts (looked up in the sources named, 2026):
/// - CUDA_VISIBLE_DEVICES: the CUDA driver; indices in CUDA's order or UUIDs.
/// - QD_VISIBLE_DEVICE (Quadrants, Genesis' compiler) and TI_VISIBLE_DEVICE (Taichi, its ancestor): read by the Vulkan
///   back end only, as an index into vkEnumeratePhysicalDevices (quadrants/rhi/vulkan/vulkan_device_creator.cpp,
///   pick_physical_device), which no CUDA mask filters; their CUDA back end always takes the first device of
///   CUDA_VISIBLE_DEVICES (quadrants/rhi/cuda/cuda_context.cpp). Genesis' guide sets them to the index of the GPU on
///   the machine. So: the index in PCI order (nvidia-smi's), never the index within the mask.
/// - EGL_DEVICE_ID: an index into eglQueryDevicesEXT (Genesis and pyrender: ext/pyrender/platforms/egl.py; dm_control).
///   EGL lists every GPU, masked or not, usually but not always in PCI order (VirtualGL #251, RLinf/RPent #51,
///   cuda-python #2865). So: the index that EGL itself reports for the GPU's UUID or PCI bus, else the PCI index.
/// - MUJOCO_EGL_DEVICE_ID: before MuJoCo 4 and in robosuite, an index into eglQueryDevicesEXT, which robosuite wants to
///   occur in CUDA_VISIBLE_DEVICES (utils/binding_utils.py); in MuJoCo 4.0.1 (mujoco/egl/__init__.py,
///   _select_egl_device) first the position within CUDA_VISIBLE_DEVICES, then a CUDA index. So: the rank's entry of the
///   mask where it is an index (all three agree when the rank sees one GPU), else the EGL index.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/devices.h"

namespace cohort {

/// Which devices a rank sees.
enum class DevicePolicy {
  kShared,  ///< all of the mask; the rank takes the device LOCAL_RANK. PyTorch's and torchrun's convention, the
            ///< default.
  kOwn,     ///< its own device only, which it calls cuda:0; LOCAL_RANK is 0. Genesis' convention, torchrun's
            ///< --virtual-local-rank. Needed by programs that always take the first device.
};

/// The device variables of one rank.
struct DeviceEnvironment {
  std::vector<std::pair<std::string, std::string>> variables;  ///< to set; what is not named stays as it is
  int device = -1;                    ///< index into DeviceListing::visible; -1: none, the rank works on the CPU
  std::string explanation;            ///< one line for people: which GPU, and every variable
  std::vector<std::string> warnings;  ///< e.g. two ranks on one GPU
};

/// Derives the variables of `local_rank` of `local_world_size`. Without a visible GPU nothing is set. Under kShared a
/// rank beyond the number of GPUs shares one and a warning says so; under kOwn that is an Error, as with torchrun.
DeviceEnvironment device_environment(const DeviceListing& listing, DevicePolicy policy, int local_rank,
                                     int local_world_size);

/// Narrows a mask to the GPUs named in `gpu_ids` ("0,2", "GPU-8932...", or "all"), as `accelerate launch --gpu_ids`
/// does, but inside the mask: an id that the mask `listing.mask` does not show is an Error. Returns the new
/// CUDA_VISIBLE_DEVICES, or nothing for "all".
std::optional<std::string> narrow_mask(const DeviceListing& listing, const std::string& gpu_ids);

}  // namespace cohort
