/// Where an episode of a LIBERO task begins: one of the benchmark's initial states, or one that is like them and
/// belongs to no evaluation.
#pragma once
#include <cstdint>
#include <vector>

#include "core/philox.h"
#include "tasks/libero/frames.h"
#include "tasks/libero/scene_folder.h"

namespace cohort::tasks::libero {

/// How far a perturbed state is from the one that it came from: uniform within plus and minus these.
struct Perturbation {
  double shift = 0.02;        ///< m, across, of each object
  double turn = 0.3;          ///< rad, about the vertical, of each object
  double arm = 0.03;          ///< rad, of each of the arm's joints
  double articulation = 0.1;  ///< of a drawer's or door's way, without crossing an end of it
};

/// The benchmark's state of an episode: number seed modulo how many there are, as LIBERO's evaluation takes them.
std::vector<double> given_state(const SceneFolder& folder, std::uint64_t seed);

/// A state of the benchmark, chosen by the seed, with objects, arm and fixtures' joints moved at random: a function of
/// the seed alone.
std::vector<double> perturbed_state(const SceneFolder& folder, const Frames& frames, std::uint64_t seed,
                                    const Perturbation& perturbation = {});

}  // namespace cohort::tasks::libero
