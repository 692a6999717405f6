/// Random states of any model, and such states moved by about the rounding of single precision.
#pragma once
#include <cstdint>

#include <mujoco/mujoco.h>

namespace cohort::sim::test {

/// Resets d and fills in coordinates, velocities, forces, controls, activations, mocap poses and the warm start: single
/// precision's numbers. What an element gets is a function of the seed, the state's number and its name (its index
/// where it has none), so that it stays when other elements are taken out of the model. States 0, 1, 2 are near the
/// default pose, farther and far from it; and so on in turn.
void random_state(const mjModel& m, std::uint64_t seed, int state, mjData& d);

/// Moves coordinates, velocities, controls and activations of d by up to 2e-7 of themselves (of 0.3 at least), about
/// twice what rounding to single precision does.
void move_by_rounding(const mjModel& m, std::uint64_t sample, mjData& d);

}  // namespace cohort::sim::test
