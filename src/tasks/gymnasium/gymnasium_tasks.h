/// Gymnasium's tasks: each file of this folder registers its own.
#pragma once

namespace cohort::tasks {

void register_planar_tasks();  ///< HalfCheetah-v5, Hopper-v5, Walker2d-v5, Swimmer-v5, InvertedPendulum-v5
void register_ant();
void register_humanoid();
void register_inverted_double_pendulum();
void register_pusher();
void register_reacher();

}  // namespace cohort::tasks
