/// The parts of the extension cohort._core; each adds its classes and functions to the module.
#pragma once
#include <nanobind/nanobind.h>

namespace cohort::python {

void bind_environments(nanobind::module_& m);  ///< batches of environments: cohort.make_vec, cohort.rsl_rl
void bind_data(nanobind::module_& m);          ///< windows of recorded episodes: cohort.data
void bind_scene(nanobind::module_& m);         ///< rigid scenes: cohort.gs

}  // namespace cohort::python
