/// A folder of one LIBERO task: the composed scene, the benchmark's initial states, the goal, and what the predicates
/// need to know of the things in it. `cohort export-libero` (compose/export.h) writes such folders from the files of
/// LIBERO (Lifelong-Robot-Learning/LIBERO) and robosuite 1.4, scripts/export_libero.py from an installed one.
///
///   scene.xml         the MJCF; meshes and textures lie in ../assets
///   task.json         names, goal, objects, fixtures, sites, robot, controller
///   init_states.npy   float64 (states, 1 + nq + nv): time, qpos, qvel
///
/// A task of LIBERO-Plus that changes another's is a task.json alone, which names the other's folder (`scene_of`) and
/// what it changes: agentview's pose (`agentview`), the arm at the environment's reset (`init_qpos`), noise in
/// agentview's pictures (`picture_noise`), the instruction (`language`).
///
///   const SceneFolder scene = read_scene_folder("libero/scene10_close_top_drawer");
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/controllers/operational_space.h"

namespace cohort::tasks::libero {

/// An object that can be moved, or a fixture.
struct Thing {
  std::string category;                    ///< "akita_black_bowl"
  std::string body;                        ///< its root in the model
  bool fixture = false;                    ///< stands still; its pose is part of the model
  std::string burner;                      ///< of a stove: the site that is shown while it is on
  std::vector<std::string> joints;         ///< of a fixture: drawers, doors, knobs; of an object: its free joint
  std::vector<std::string> contact_geoms;  ///< those that count when a predicate asks whether it is touched
};

/// A region that goals name: a drawer's inside, a stove's plate, a place on the table.
struct Site {
  std::string site;                 ///< in the model
  std::string parent;               ///< the thing that it belongs to; empty: the arena
  std::vector<std::string> joints;  ///< direct children of the body that holds it
  Vec3 half_size{};                 ///< m
};

/// A predicate with its arguments, as goals have them: {"in", "akita_black_bowl_1", "wooden_cabinet_1_top_region"}.
using PredicateWords = std::vector<std::string>;

struct SceneFolder {
  std::filesystem::path path;
  std::string task;                     ///< LIBERO's name: "KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet"
  std::string suite;                    ///< "libero_90"
  std::string language;                 ///< the instruction, as LIBERO takes it from the file's name
  std::string perturbation;             ///< what a variant changes: "camera", "swap", ...; empty: LIBERO's own
  std::vector<PredicateWords> goal;     ///< all must hold
  std::vector<PredicateWords> watched;  ///< others that the folder's maker looked at
  std::map<std::string, Thing> things;
  std::map<std::string, Site> sites;
  std::vector<std::string> objects;   ///< the movable things, in LIBERO's order
  std::vector<std::string> cameras;   ///< of the model, those that LIBERO observes first
  std::array<bool, 6> geom_groups{};  ///< that are drawn

  /// agentview's pose in place of the scene's.
  struct CameraPose {
    std::array<double, 3> pos{};             ///< m
    std::array<double, 4> quat{1, 0, 0, 0};  ///< w, x, y, z
  };
  std::optional<CameraPose> agentview;
  int picture_noise = 0;  ///< of agentview's pictures (picture_noise.h); 0: none

  std::string hand_body;  ///< whose orientation is observed
  std::string grip_site;  ///< whose position is observed and controlled
  std::vector<std::string> arm_joints, arm_actuators, finger_joints, finger_actuators;
  std::array<double, kArmJoints> reset_joints{};  ///< rad: the arm at the environment's reset
  std::vector<double> finger_sign;                ///< of each finger for a closing action
  double finger_speed = 0.01;                     ///< of half a finger's range, in each timestep
  OperationalSpaceSettings controller;

  int substeps = 25;            ///< timesteps of a control step
  double timestep = 0.002;      ///< s
  std::int64_t longest = 1000;  ///< control steps that LIBERO's environment allows
  std::int64_t states = 0;      ///< initial states
  std::size_t state_width = 0;  ///< 1 + nq + nv
  std::vector<double> initial;  ///< (states, state_width)
  std::span<const double> initial_state(std::int64_t i) const {
    return std::span(initial).subspan(static_cast<std::size_t>(i) * state_width, state_width);
  }
};

/// What a list of tasks needs.
struct SceneHead {
  std::filesystem::path path;
  std::string task, suite, language, perturbation;
};
/// Throws Error naming the file and what is wrong with it.
SceneHead read_scene_head(const std::filesystem::path& folder);

/// Throws Error naming the file and what is wrong: a file that is missing, a task.json without something, initial
/// states of another shape, meshes or textures that are not there (which, and where they come from).
SceneFolder read_scene_folder(const std::filesystem::path& folder);

}  // namespace cohort::tasks::libero
