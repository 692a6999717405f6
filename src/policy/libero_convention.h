/// LIBERO's observations as other stacks name and form them: what a policy that learnt there must be shown here, and what
/// their clients send to a policy that learnt here (policy/convention_policy.h).
///
///   const LiberoConvention c = libero_convention("openpi-libero:crop=0.9");
///   convention_picture(c, agentview, 256, 256);                  // (224, 224, 3)
///   convention_state(c, eef_pos, eef_quat, gripper_qpos);        // (8): place, axis times angle, fingers
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cohort::policy {

struct LiberoConvention {
  std::string name;                           ///< "openpi-libero"
  std::string source;                         ///< where its defaults stand
  std::string picture, wrist_picture, state;  ///< names
  bool with_wrist = true, with_state = true;
  std::int64_t drawn = 256;   ///< px of the square pictures as they are drawn
  std::int64_t size = 0;      ///< px that they are resized to with padding; 0: as drawn
  std::string turn = "half";  ///< half, rows or none: what is done to robosuite's pictures, whose last row comes first
  double crop = 1;            ///< share of the area that is kept, of the middle
  std::string rotation = "axis-angle";  ///< or quaternion, x y z w
  std::string quaternion = "as-is";     ///< its sign as robosuite gives it, or positive: w is not negative
  std::string fingers = "both";         ///< or first
  std::string gripper = "robosuite";  ///< of actions: robosuite (1 closed, -1 open), rlds (0 closed, 1 open), inverted
  bool doubles = false;               ///< numbers are sent as float64

  std::int64_t state_width() const;
  /// The name, and what is otherwise than its defaults: "openpi-libero:crop=0.9".
  std::string text() const;
};

inline constexpr int kLiberoWait = 10;  ///< steps that all of them wait before an episode (num_steps_wait)

/// NAME or NAME:KEY=VALUE,KEY=VALUE. `wishes`: what a server of vla-eval asks for (observation_params), which its convention
/// follows where the text does not say otherwise. Throws Error naming the word that is wrong, and those that are known.
LiberoConvention libero_convention(const std::string& text, const std::map<std::string, bool>& wishes = {});

/// The table of all, for --help.
std::string libero_conventions_help();

/// raw: a picture as LIBERO stores it, the last row first (height, width, 3) -> (size, size, 3).
std::vector<std::uint8_t> convention_picture(const LiberoConvention& convention, std::span<const std::uint8_t> raw,
                                             std::int64_t height, std::int64_t width);
/// The other way, but for size and crop, which cannot be taken back.
std::vector<std::uint8_t> raw_picture(const LiberoConvention& convention, std::span<const std::uint8_t> sent,
                                      std::int64_t height, std::int64_t width);
/// pos (3) m, xyzw (4), fingers (2) m -> (state_width()).
std::vector<float> convention_state(const LiberoConvention& convention, std::span<const float> pos,
                                    std::span<const float> xyzw, std::span<const float> fingers);

/// A policy's gripper action as robosuite takes it; rlds as vla-eval's model_servers/oft.py turns it: its sign alone.
float robosuite_gripper(const LiberoConvention& convention, float action);
/// robosuite's as the convention has it.
float convention_gripper(const LiberoConvention& convention, float action);

/// Pillow's Image.resize(size, BILINEAR) into the middle of black, as openpi_client.image_tools.resize_with_pad does it
/// (its formulas: Pillow, src/libImaging/Resample.c): rgb (height, width, 3) -> (size, size, 3). The same bytes for pictures
/// that are not higher than wide; of high ones Pillow 13 makes the passes in the other order.
std::vector<std::uint8_t> resize_with_pad(std::span<const std::uint8_t> rgb, std::int64_t height, std::int64_t width,
                                          std::int64_t size);

/// robosuite's quat2axisangle as openpi's example has it: x y z w -> axis times angle; 0 where there is no rotation.
std::vector<double> axis_angle(std::span<const double> xyzw);
/// Its inverse for angles from 0 to 2 pi: x y z w.
std::array<double, 4> quaternion_of(std::span<const double> axis_angle);

}  // namespace cohort::policy
