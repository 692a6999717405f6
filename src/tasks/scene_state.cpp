#include "tasks/scene_state.h"

#include <string>
#include <vector>

#include "core/real_at.h"

namespace cohort::tasks {

void visit_engine(StateVisitor& state, sim::Engine& engine) {
  const sim::Access access = state.loads() ? sim::Access::kWrite : sim::Access::kRead;
  for (const std::string& name : engine.state_names()) state.add("scene." + name, engine.state_array(name, access));
  for (int p = 0; p < sim::kParameterCount; ++p) {
    const auto parameter = static_cast<sim::Parameter>(p);
    const std::string name = std::string("scene.") + sim::parameter_name(parameter);
    const bool in_use = engine.parameters_in_use().test(static_cast<std::size_t>(p));
    if (state.loads() ? state.has(name) : in_use) {
      state.add(name, engine.parameter(parameter));
    } else if (in_use) {
      // This task has changed it, the saved one had not: the model's values again.
      const std::vector<float> values = engine.model_values(parameter);
      const ArrayView rows = engine.parameter(parameter);
      for (std::int64_t env = 0; env < rows.shape[0]; ++env)
        for (std::int64_t i = 0; i < rows.shape[1]; ++i)
          set_real_at(rows, env, i, static_cast<double>(values[static_cast<std::size_t>(i)]));
    }
  }
  if (state.loads()) engine.state_written();
}

}  // namespace cohort::tasks
