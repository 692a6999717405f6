/// Positions that single precision loses on the way.
#pragma once
#include <cstdint>
#include <string>

namespace cohort::sim {

class Scene;

/// Where positions are lost: a coordinate so far out, or an angle turned so far, that single precision rounds what it
/// moves in a timestep, by a millimetre or milliradian in all of a centimetre or 0.01 rad or more. After `steps`
/// timesteps; the joint of which most is lost, in words, "" where none is. The engine mujoco computes in double.
std::string describe_lost_positions(Scene& scene, std::int64_t steps);

}  // namespace cohort::sim
