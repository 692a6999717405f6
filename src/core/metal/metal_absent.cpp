// Built wherever the Metal framework is not: everywhere but on macOS.
#include "core/devices_probe.h"

namespace cohort {

MetalReport probe_metal() {
  return {"Metal exists on macOS only", {}};
}

}  // namespace cohort
