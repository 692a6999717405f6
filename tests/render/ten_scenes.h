/// Ten scenes that the ray caster draws beside something else: MuJoCo's renderer, a CUDA device.
#pragma once
#include <array>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "scenes.h"

namespace cohort::render::test {

struct SceneCase {
  const char* name;
  const char* file;  ///< relative to `where`
  enum class Where { kHere, kWheels, kShared } where;
  std::vector<const char*> cameras;  ///< empty: one that sees all
  int width, height;
  bool shadows = false;
  int steps = 0;
  bool visual_groups_only = false;  ///< of robosuite's models: group 0 collides and is hidden

  std::filesystem::path path() const {
    if (where == Where::kHere) return model_file(file);
    return (where == Where::kWheels ? wheels() : shared_data()) / file;
  }
  friend void PrintTo(const SceneCase& c, std::ostream* os) { *os << c.name; }
};

inline std::array<SceneCase, 10> ten_scenes() {
  using Where = SceneCase::Where;
  return {SceneCase{"Shapes", "shapes.xml", Where::kHere, {"front", "side", "flat"}, 320, 240},
          SceneCase{"ShapesThatFell", "shapes.xml", Where::kHere, {"front", "side"}, 160, 120, false, 300},
          SceneCase{"Mappings", "mapped.xml", Where::kHere, {"front", "back"}, 400, 300},
          SceneCase{"Mirror", "lights.xml", Where::kHere, {"front", "lead"}, 320, 240},
          SceneCase{"Humanoid", "mujoco/mjx/test_data/humanoid/humanoid.xml", Where::kWheels, {}, 256, 256},
          SceneCase{"Panda", "genesis/assets/xml/franka_emika_panda/panda.xml", Where::kWheels, {}, 256, 256},
          SceneCase{"LiberoStove",
                    "libero/scene3_turn_on_stove/scene.xml",
                    Where::kShared,
                    {"agentview", "frontview", "robot0_eye_in_hand"},
                    128,
                    128,
                    false,
                    0,
                    true},
          SceneCase{"LiberoDrawer",
                    "libero/goal_open_middle_drawer/scene.xml",
                    Where::kShared,
                    {"agentview", "robot0_eye_in_hand"},
                    128,
                    128,
                    false,
                    0,
                    true},
          SceneCase{"LiberoBasket",
                    "libero/long_soup_and_sauce_in_basket/scene.xml",
                    Where::kShared,
                    {"agentview", "robot0_eye_in_hand"},
                    128,
                    128,
                    false,
                    0,
                    true},
          SceneCase{"Hills", "../../sim/models/hills.xml", Where::kHere, {}, 256, 192}};
}

}  // namespace cohort::render::test
