/// The state of a simulated scene as a part of a task's.
#pragma once
#include "sim/engine.h"
#include "tasks/state_visitor.h"

namespace cohort::tasks {

/// Adds the engine's state as "scene.qpos" and so on, and the parameters in which environments may differ, as
/// "scene.link_mass". Loading leaves an engine that continues bit for bit.
void visit_engine(StateVisitor& state, sim::Engine& engine);

}  // namespace cohort::tasks
