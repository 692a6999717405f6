/// A LIBERO task as a Task. Its folder is read when it is made (scene_folder.h); the engine is `mujoco` unless another
/// is asked for, pictures are MuJoCo's own unless the ray caster is.
///
/// An episode begins as LIBERO's evaluation begins one: reset(), the initial state of its seed, then warm-up steps with
/// a constant action. Observations have robosuite's names and those of LIBERO's data sets; the cameras agentview_rgb and
/// eye_in_hand_rgb give pictures upside down, as LIBERO stores them, all others upright.
#pragma once
#include <cstdint>
#include <string>

#include "core/config.h"
#include "tasks/libero/start_state.h"
#include "tasks/task.h"

namespace cohort::tasks::libero {

/// key=value of the task.
struct LiberoSettings {
  std::string protocol = "libero";  ///< or lerobot: whose warm-up and limit of steps
  std::string start = "given";      ///< or perturbed
  std::int64_t warmup_steps = -1;   ///< below 0: the protocol's
  std::int64_t horizon = 0;         ///< control steps; 0: the protocol's
  bool end_on_success = true;
};
void describe(config::Fields& fields, LiberoSettings& settings);

/// What a protocol says.
struct Protocol {
  std::int64_t warmup_steps = 0;
  float warmup_grip = 0;  ///< of the warm-up's action, whose other numbers are zero
  std::int64_t horizon = 0;
};
/// Of "libero" (libero/lifelong/evaluate.py) or "lerobot" (lerobot/envs/libero.py).
Protocol protocol_of(const std::string& name, const std::string& suite);

/// Throws Error for what is wrong with the folder or the settings.
std::unique_ptr<Task> make_libero_task(const std::filesystem::path& folder, const TaskSettings& settings);

/// Registers every task below libero_folder().
void register_libero_tasks();

}  // namespace cohort::tasks::libero
