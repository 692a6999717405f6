#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "cohort_version.h"
#include "core/devices.h"
#include "core/error.h"

namespace nb = nanobind;

namespace {

/// Python keeps an extension's symbols to itself; a library of a user's own tasks (COHORT_TASKS) calls those of this one.
void lend_symbols() {
  const char* libraries = std::getenv("COHORT_TASKS");
  Dl_info here{};
  if (libraries == nullptr || *libraries == '\0' || ::dladdr(reinterpret_cast<const void*>(&lend_symbols), &here) == 0)
    return;
  ::dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The parts of Cohort that cohort's Python modules call. LibTorch is not loaded by it.";
  m.attr("__version__") = COHORT_VERSION;
  m.attr("torch_minor") = COHORT_TORCH_MINOR;  // of the library that _policy is linked with
  nb::exception<cohort::Error>(m, "Error", PyExc_RuntimeError);
  lend_symbols();
  m.def(
      "rank_device",
      [](const std::string& backend) {
        const nb::gil_scoped_release others_run;
        const cohort::DeviceListing listing = cohort::list_devices({.egl = false});
        return cohort::to_string(cohort::choose_device(listing, {.backend = cohort::parse_backend(backend)}).device);
      },
      nb::arg("backend"),
      "The device of this rank, e.g. cuda:1: that of LOCAL_RANK, or the one that its mask leaves it. backend: cuda, or "
      "gpu, which "
      "is the processor where no GPU can be used. Raises Error where there is none, or fewer than ranks.");
  cohort::python::bind_environments(m);
  cohort::python::bind_data(m);
  cohort::python::bind_scene(m);
}
