#include "tensors/stream_order.h"

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "tensors/convert.h"

namespace cohort::tensors {

namespace {

void order(const ArrayView& view, bool owner_first) {
  if (view.device.kind == DeviceKind::kCpu) return;
  const c10::Device device = to_torch_device(view.device);
  const c10::impl::VirtualGuardImpl guard(device.type());
  // LibTorch's id of a stream that it did not make is the stream's handle (c10/cuda/CUDAStream.cpp); 0 is the default
  // stream.
  const c10::Stream owner(c10::Stream::UNSAFE, device,
                          static_cast<c10::StreamId>(reinterpret_cast<std::intptr_t>(view.stream)));
  const c10::Stream present = guard.getStream(device);
  c10::Event event(device.type());
  event.record(owner_first ? owner : present);
  event.block(owner_first ? present : owner);
}

}  // namespace

void read_after(const ArrayView& view) {
  order(view, true);
}

void write_before(const ArrayView& view) {
  order(view, false);
}

}  // namespace cohort::tensors
