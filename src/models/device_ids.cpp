#include "models/device_ids.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/types.h>

namespace cohort::models {

at::Tensor ids_on_device(const at::Tensor& ids, at::Device device) {
  struct Copy {
    at::Tensor ids;  // keeps the CPU tensor alive, so that its identity cannot be taken by another
    std::uint32_t version = 0;
    at::Tensor on_device;
  };
  thread_local Copy last;
  if (!last.ids.is_same(ids) || last.version != ids._version() || last.on_device.device() != device)
    last = {ids, static_cast<std::uint32_t>(ids._version()), ids.to(device)};
  return last.on_device;
}

void* current_stream(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStreamNativeHandle(guard.getStream(device));
}

}  // namespace cohort::models
