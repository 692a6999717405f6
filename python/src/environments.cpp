#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "tasks/registry.h"

namespace nb = nanobind;

namespace cohort::python {

void bind_environments(nb::module_& m) {
  m.def(
      "task_names",
      [] {
        std::vector<std::string> names;
        for (const tasks::TaskEntry& entry : tasks::all_tasks()) names.push_back(entry.name);
        return names;
      },
      "Names of the registered tasks, those of COHORT_TASKS among them.");
}

}  // namespace cohort::python
