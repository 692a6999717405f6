#include "rl/device_tensors.h"

#include <ATen/Context.h>

#include "tensors/convert.h"
#include "tensors/stream_order.h"

namespace cohort::rl {

bool DeviceTensors::sees(DeviceId device) const {
  return device.kind == DeviceKind::kCuda && at::hasCUDA();
}

at::Tensor DeviceTensors::read(const ArrayView& view) const {
  tensors::read_after(view);
  return tensors::to_tensor(view);
}

void DeviceTensors::write_before(const ArrayView& view) const {
  tensors::write_before(view);
}

const DeviceTensors& DeviceTensors::real() {
  static const DeviceTensors tensors;
  return tensors;
}

}  // namespace cohort::rl
