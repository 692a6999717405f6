#include "bindings.h"
#include "cohort_version.h"
#include "core/error.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The parts of Cohort that cohort's Python modules call. LibTorch is not loaded by it.";
  m.attr("__version__") = COHORT_VERSION;
  nb::exception<cohort::Error>(m, "Error", PyExc_RuntimeError);
  cohort::python::bind_environments(m);
  cohort::python::bind_scene(m);
}
