// A small LIBERO and a small robosuite in the forms of the real ones, made by a test: a floor, an arm of seven joints
// with two fingers, a block, a stove with a knob, and one task.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/files.h"
#include "core/format.h"
#include "formats/zip_archive.h"
#include "render/video.h"

namespace cohort::test {

/// The bytes of a file that torch.save(numpy array of float64) writes: a zip archive of one pickle of protocol 2, in
/// which an array's bytes are text, a code point for each.
inline std::string saved_array(int rows, int columns, const std::vector<double>& values) {
  const auto text = [](const std::string& s) {
    std::string bytes = "X";
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(s.size() >> (8 * i) & 255);
    return bytes + s;
  };
  std::string latin1;
  for (const double value : values) {
    const char* bytes = reinterpret_cast<const char*>(&value);
    for (std::size_t i = 0; i < sizeof value; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      if (byte >= 0x80) latin1 += static_cast<char>(0xc0 | byte >> 6);
      latin1 += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
    }
  }
  const auto encoded = [&](const std::string& s) { return "c_codecs\nencode\n" + text(s) + text("latin1") + "\x86R"; };
  const auto number = [](int n) { return std::string("K") + static_cast<char>(n); };
  const std::string pickle = "\x80\x02" + std::string("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n") +
                             number(0) + "\x85" + encoded("b") + "\x87R(" + number(1) + number(rows) + number(columns) +
                             "\x86" + "cnumpy\ndtype\n" + text("f8") + "\x89\x88\x87R(" + number(3) + text("<") +
                             "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xff" + std::string("K\0tb\x89", 5) + encoded(latin1) +
                             "tb.";
  const ZipEntry entry{"archive/data.pkl", pickle.size(), 0, zip_crc(0, pickle)};
  const std::string header = zip_local_header(entry);
  return header + pickle + zip_directory({&entry, 1}, header.size() + pickle.size());
}

struct LiberoCheckout {
  static constexpr const char* kTask = "pick_up_the_block_and_place_it_on_the_stove";

  explicit LiberoCheckout(const std::filesystem::path& folder)
      : libero(folder / "LIBERO"), robosuite(folder / "robosuite"), package(libero / "libero" / "libero") {
    write_file_atomically(
        package / "benchmark/libero_suite_task_map.py",
        format("# Suites\nlibero_task_map = {{\n    \"libero_spatial\": [],\n    \"libero_object\": "
               "[\n        \"{}\",  # the only one\n    ],\n    \"libero_goal\": [], 'libero_10': [],\n"
               "    \"libero_90\": [],\n}}\n",
               kTask));
    write_file_atomically(problem_file(), R"((define (problem LIBERO_Floor_Manipulation)
  (:domain robosuite)
  (:language Put the block on the stove)  ; said to the robot
  (:regions
    (block_region (:target floor) (:ranges ((-0.1 0.1 0.1 0.3))))
    (stove_region (:target floor) (:ranges ((-0.2 -0.3 -0.1 -0.2))) (:yaw_rotation ((0.5 1.5))))
    (cook_region (:target flat_stove_1))
  )
  (:fixtures floor - floor flat_stove_1 - flat_stove)
  (:objects block_1 - block)
  (:obj_of_interest block_1 flat_stove_1)
  (:init
    (On block_1 floor_block_region)
    (On flat_stove_1 floor_stove_region)
    (Turnoff flat_stove_1)
  )
  (:goal (And (On block_1 flat_stove_1_cook_region) (Turnon flat_stove_1)))
)
)");
    // time, 7 + 2 joints of the robot, the block's 7, the knob; then as many velocities.
    std::vector<double> state(1 + 17 + 16, 0.0);
    state[10] = 0.05, state[11] = -0.25, state[12] = 0.03, state[13] = 1;
    std::vector<double> states;
    for (int i = 0; i < 3; ++i) states.insert(states.end(), state.begin(), state.end());
    write_file_atomically(package / "init_files/libero_object" / (std::string(kTask) + ".pruned_init"),
                          saved_array(3, static_cast<int>(state.size()), states));
    write_assets();
    write_robot();
  }

  std::filesystem::path problem_file() const {
    return package / "bddl_files/libero_object" / (std::string(kTask) + ".bddl");
  }

  std::filesystem::path libero, robosuite, package;

 private:
  void write_assets() const {
    const std::filesystem::path assets = package / "assets";
    std::filesystem::create_directories(assets / "textures");
    for (const char* name : {"old.png", "light-gray-floor-tile.png", "light-gray-plaster.png"})
      render::write_png(assets / "textures" / name, std::vector<std::uint8_t>(12, name[6] == 'g' ? 200 : 90), 2, 2);
    write_file_atomically(assets / "scenes/libero_floor_base_style.xml", R"(<mujoco model="floor">
  <asset>
    <texture file="../textures/old.png" type="2d" name="texplane"/>
    <texture file="../textures/old.png" type="2d" name="tex-wall"/>
    <material name="floorplane" texture="texplane"/>
  </asset>
  <worldbody>
    <body name="floor" pos="0 0 0"><geom group="1" material="floorplane" name="floor" size="3 3 .1" type="plane"/></body>
    <light pos="1 1 4"/>
    <camera mode="fixed" name="agentview" pos="0.5 0 1.35" quat="0.653 0.271 0.271 0.653"/>
  </worldbody>
</mujoco>
)");
    write_file_atomically(assets / "stable_hope_objects/block/block.obj",
                          "v 0 0 0\nv .02 0 0\nv 0 .02 0\nv 0 0 .02\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
    write_file_atomically(assets / "stable_hope_objects/block/block.xml", R"(<mujoco model="block">
  <asset><mesh file="block.obj" name="block_vis"/></asset>
  <worldbody><body>
    <body name="object">
      <geom type="mesh" mesh="block_vis" conaffinity="0" contype="0" group="1"/>
      <geom type="box" size="0.02 0.02 0.02" group="0" density="100"/>
    </body>
    <site size="0.05" pos="0 0 -0.02" name="bottom_site"/>
    <site size="0.05" pos="0 0 0.02" name="top_site"/>
    <site size="0.05" pos="0.03 0.03 0" name="horizontal_radius_site"/>
  </body></worldbody>
</mujoco>
)");
    write_file_atomically(assets / "articulated_objects/flat_stove.xml", R"(<mujoco model="stove">
  <default><default class="plate"><geom group="0" rgba="1 0 0 1" friction="0.95 0.3 0.1"/></default></default>
  <worldbody><body>
    <body name="object" pos="0 -0.1 0">
      <body name="base">
        <geom class="plate" type="box" size="0.1 0.1 0.02" friction="0.8 0.3 0.1"/>
        <site name="cook_region" type="box" pos="0 0 0.025" quat="1 0 0 0" size="0.05 0.05 0.005" rgba="0 1 0 0.5"/>
        <site name="burner" type="cylinder" pos="0 0 0.02" size="0.05 0.002" rgba="1 0 0 0.7"/>
        <body name="knob" pos="0.08 0 0.03">
          <joint name="knob_joint" axis="0 0 1" range="-0.005 2.1" limited="true"/>
          <geom class="plate" type="cylinder" size="0.01 0.01"/>
        </body>
      </body>
    </body>
    <site size="0.05" pos="0 0 -0.02" name="bottom_site"/>
    <site size="0.05" pos="0 0 0.05" name="top_site"/>
    <site size="0.05" pos="0.1 0.1 0" name="horizontal_radius_site"/>
  </body></worldbody>
</mujoco>
)");
  }

  void write_robot() const {
    const std::filesystem::path assets = robosuite / "robosuite/models/assets";
    write_file_atomically(robosuite / "robosuite/__init__.py", "import os\n__version__ = \"1.4.0\"\n");
    write_file_atomically(assets / "base.xml", R"(<mujoco model="base">
  <compiler angle="radian" meshdir="meshes/" inertiagrouprange="0 0"/>
  <option impratio="20" cone="elliptic"/>
</mujoco>
)");
    std::string bodies, motors, ends;
    for (int i = 1; i <= 7; ++i) {
      bodies += format(
          "<body name=\"link{0}\" pos=\"0 0 0.1\"><inertial pos=\"0 0 0.05\" mass=\"1\" diaginertia=\"0.1 0.1 0.1\"/>"
          "<joint name=\"joint{0}\" axis=\"0 {1} {2}\" damping=\"9\"/><geom size=\"0.01\" contype=\"0\" "
          "conaffinity=\"0\"/>",
          i, i % 2 == 0 ? 1 : 0, i % 2);
      motors += format("<motor ctrllimited=\"true\" ctrlrange=\"-{1} {1}\" joint=\"joint{0}\" name=\"torq_j{0}\"/>", i,
                       i > 5 ? 12 : 80);
      ends += "</body>";
    }
    write_file_atomically(
        assets / "robots/panda/robot.xml",
        "<mujoco model=\"panda\"><actuator>" + motors + "</actuator><worldbody><body name=\"base\">" + bodies +
            "<body name=\"right_hand\" pos=\"0 0 0.1\"><camera mode=\"fixed\" name=\"eye_in_hand\" pos=\"0.05 0 0\" "
            "fovy=\"75\"/></body>" +
            ends + "</body></worldbody></mujoco>\n");
    write_file_atomically(assets / "mounts/null_mount.xml",
                          "<mujoco><worldbody><body name=\"base\" pos=\"0 0 0\"></body></worldbody></mujoco>\n");
    write_file_atomically(assets / "grippers/panda_gripper.xml", R"(<mujoco model="panda_hand">
  <actuator>
    <position ctrllimited="true" ctrlrange="0 0.04" joint="finger_joint1" kp="1000" name="gripper_finger_joint1"/>
    <position ctrllimited="true" ctrlrange="-0.04 0" joint="finger_joint2" kp="1000" name="gripper_finger_joint2"/>
  </actuator>
  <worldbody><body name="right_gripper">
    <inertial pos="0 0 0.1" mass="0.3" diaginertia="0.09 0.07 0.05"/>
    <body name="eef" pos="0 0 0.1"><site name="grip_site" size="0.01" rgba="1 0 0 0.5" group="1"/></body>
    <body name="leftfinger"><inertial pos="0 0 0.05" mass="0.1" diaginertia="0.01 0.01 0.01"/>
      <joint name="finger_joint1" axis="0 1 0" type="slide" limited="true" range="0 0.04"/>
      <geom size="0.008 0.004 0.008" type="box" name="finger1_pad_collision"/></body>
    <body name="rightfinger"><inertial pos="0 0 0.05" mass="0.1" diaginertia="0.01 0.01 0.01"/>
      <joint name="finger_joint2" axis="0 1 0" type="slide" limited="true" range="-0.04 0"/>
      <geom size="0.008 0.004 0.008" type="box" name="finger2_pad_collision"/></body>
  </body></worldbody>
</mujoco>
)");
  }
};

}  // namespace cohort::test
