#include "bindings.h"
#include "sim/mujoco/library.h"

namespace cohort::python {

void bind_scene(nanobind::module_& m) {
  m.def(
      "mujoco_version", [] { return sim::mj::mj_versionString(); },
      "The version of the MuJoCo library that reads models, e.g. `4.0.1`.");
}

}  // namespace cohort::python
