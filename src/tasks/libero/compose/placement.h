/// Where LIBERO's fixtures stand after numpy.random.seed(0) and one reset() of a fresh environment. Its initial states
/// do not hold that, and every reset draws it anew.
///
/// The draws of such a reset, in this order: noise of the arm's seven joints (of size 0, but drawn), the joints that the
/// problem says to be open, closed, on or off (twice: their list grows at each construction), then a place for one
/// thing after the other, until nothing overlaps. Things that stand on others come last, which fixtures never do: they
/// are not drawn here.
///
/// Sources: libero/libero/envs/bddl_base_domain.py (_add_placement_initializer, _reset_internal), envs/regions;
/// robosuite/robots/robot.py, utils/placement_samplers.py.
#pragma once
#include <array>
#include <map>
#include <string>

#include "tasks/libero/compose/scene.h"

namespace cohort::tasks::libero::compose {

struct FixturePose {
  std::array<double, 3> pos{};             ///< m
  std::array<double, 4> quat{1, 0, 0, 0};  ///< w, x, y, z
};

/// Of the fixtures that the problem places; the others stay where their models are. Throws Error for a predicate about
/// something that is not there, and where no place is free.
std::map<std::string, FixturePose> place_fixtures(const ComposedScene& scene);

}  // namespace cohort::tasks::libero::compose
