/// The order between LibTorch's work on a device and that of an owner of memory with a stream of its own, such as the
/// simulator. Nothing waits on the host, and on a CPU both functions do nothing: work there is done when it returns.
///
///   scene.step();
///   tensors::read_after(view);   // LibTorch's next operations see what the step wrote
///   ctrl.copy_(policy(state));
///   tensors::write_before(view); // the next step sees the controls
#pragma once
#include "core/array_view.h"

namespace cohort::tensors {

/// LibTorch's current stream of the view's device waits for the work so far on the view's stream.
void read_after(const ArrayView& view);

/// The view's stream waits for the work so far on LibTorch's current stream of its device.
void write_before(const ArrayView& view);

}  // namespace cohort::tensors
