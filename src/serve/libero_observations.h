/// What openpi's examples/libero/main.py sends of LIBERO's environment:
///   observation/image, observation/wrist_image (224, 224, 3) uint8: agentview and the hand's camera as robosuite gives
///     them at 256 x 256 px, rotated by 180 degrees, resized with padding;
///   observation/state (8) float64: the hand's place, its orientation as axis times angle, the fingers.
/// The example's ten steps of waiting are the warm-up of the task's setting protocol=lerobot.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"
#include "serve/value.h"

namespace cohort::serve {

inline constexpr int kLiberoPictures = 256;  ///< px, as openpi draws them (LIBERO_ENV_RESOLUTION)

inline constexpr int kLiberoWait = 10;  ///< steps before an episode: the example's num_steps_wait

/// What it is made of, by the names of LIBERO's tasks.
std::vector<policy::Observation> libero_observations();
/// Of the i-th environment of a frame of these observations, without the prompt.
Map libero_message(const policy::Frame& frame, std::size_t i);

/// Pillow's Image.resize(size, BILINEAR) into the middle of black, as openpi_client.image_tools.resize_with_pad does it
/// (its formulas: Pillow, src/libImaging/Resample.c): rgb (height, width, 3) -> (size, size, 3). The same bytes for pictures
/// that are not higher than wide; of high ones Pillow 13 makes the passes in the other order.
std::vector<std::uint8_t> resize_with_pad(std::span<const std::uint8_t> rgb, std::int64_t height, std::int64_t width,
                                          std::int64_t size);

/// robosuite's quat2axisangle as the example has it: x y z w -> axis times angle; 0 where there is no rotation.
std::vector<double> axis_angle(std::span<const double> xyzw);

}  // namespace cohort::serve
