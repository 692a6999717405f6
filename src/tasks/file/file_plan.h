/// What a task file becomes: the scene, what is observed and judged as programs, and where episodes begin.
#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/philox.h"
#include "sim/host/compile.h"
#include "tasks/events/randomization.h"
#include "tasks/file/file_settings.h"
#include "tasks/file/quantities.h"
#include "tasks/takes_commands.h"
#include "tasks/task.h"
#include "tasks/task_contract.h"
#include "tasks/terms/graph.h"
#include "tasks/terrain/generated_terrain.h"

namespace cohort::tasks {

/// Uniform in [low, high].
struct Range {
  double low = 0, high = 0;
  double at(float share) const { return low + (high - low) * static_cast<double>(share); }
};

/// What an episode begins with, as a function of its seed.
struct ResetEvent {
  std::string name;
  enum Kind { kBase, kJointsByOffset, kJointsByScale, kOnGround, kFrame } kind = kBase;
  int entity = 0;                       ///< kBase: whose
  std::array<Range, 6> pose, velocity;  ///< kBase, kFrame: x y z (m), roll pitch yaw (rad); their rates in the world
  std::vector<int> joints;              ///< kFrame: those that put it there
  Range position, speed;                ///< of joints: added, or multiplied
  std::vector<int> links;               ///< kOnGround: those whose point is to be over the ground
  std::array<double, 3> point{};        ///< m, in the link's frame
  double clearance = 0;                 ///< m, of the lowest point
  sim::SiteInfo frame{};  ///< kFrame: what is put somewhere; pos and quat of where it is without this event
  std::array<double, 3> frame_pos{};
  std::array<double, 4> frame_quat{1, 0, 0, 0};
};

struct FilePlan {
  std::string file;
  std::string scene_key;  ///< of the content's scene and simulation, with its settings: the same has the same model
  TaskSpec spec;
  std::vector<sim::EntityDeclaration> entities;
  std::vector<sim::CameraOptions> cameras;
  sim::SceneOptions simulation;
  std::string keyframe;
  std::shared_ptr<const GeneratedTerrain> terrain;  ///< of the scene, if it has one: an episode begins on a patch of it
  std::shared_ptr<const sim::CompiledScene> compiled;
  TaskModel model;
  TaskContract contract;  ///< joint_names and default_joint_pos: of position actions with an offset of their own
  terms::Program control, judge, expert;  ///< expert: no code where the file has none
  std::vector<ArrayPlace> control_arrays, judge_arrays, expert_arrays;
  std::vector<terms::MemorySlot> control_memories, judge_memories;
  std::vector<sim::Field> leaves;
  std::vector<ResetEvent> resets;
  std::vector<Randomization> randomizations;
  /// `curriculum.terrain_levels`: the command whose distance counts; "": there is none, and levels are drawn.
  std::string terrain_levels;
  bool commands_by_hand = false;       ///< TakesCommands' functions work
  std::vector<CommandShape> commands;  ///< with commands_by_hand
  int first_levels = 0;                ///< levels that first episodes are drawn from
  std::vector<std::string> ppo;        ///< key=value of `cohort train ppo`
  std::vector<std::string> remarks;    ///< what is allowed and likely not meant
};

/// Of quaternions w x y z: first b, then a.
inline std::array<double, 4> product(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}

/// w x y z of roll about x, then pitch about y, then yaw about z, all fixed in the world.
std::array<double, 4> quat_of_rpy(double roll, double pitch, double yaw);

/// Writes the task to a folder, as STEM.json beside the compiled models of these plans: what reads that needs none of the
/// files that the content names, as long as its settings ask for one of these models.
void keep_plans(const std::vector<FilePlan>& plans, config::Json content, const std::filesystem::path& folder);

/// Reads a task file's content. horizon: control steps of an episode instead of the file's; 0: the file's. settings:
/// values of the content's own settings; none: their defaults. learning: curricula begin at their beginning; else, and with
/// play, they are where they lead to. reward_scales: SceneTaskSettings'. commands_by_hand: TakesCommands' functions work.
/// Throws Error with everything that is wrong in it.
FilePlan plan_of_file(const std::string& file, config::Json content, bool play, std::int64_t horizon = 0,
                      const std::vector<FileSetting>& settings = {}, bool learning = false,
                      const std::vector<std::string>& reward_scales = {}, bool commands_by_hand = false);

/// The content's `ppo` as key=value of `cohort train ppo`.
std::vector<std::string> ppo_words(const config::Json& content);

}  // namespace cohort::tasks
