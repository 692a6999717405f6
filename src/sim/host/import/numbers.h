/// Numbers of a compiled model that no simulation can use. MuJoCo reads `nan` and `inf` where it reads a number.
#pragma once
#include <string>
#include <vector>

#include "sim/host/import/library.h"

namespace cohort::sim::mj {

/// The first few numbers that are no numbers, or infinite where no range begins or ends there, each with its field and
/// element: "geom `floor`: its margin is nan". Pictures and user data are not looked at.
std::vector<std::string> impossible_numbers(const mjModel& m);
/// Likewise what single precision does not hold: above 3.4e38, or masses and inertias that become zero.
std::vector<std::string> numbers_beyond_single(const mjModel& m);

}  // namespace cohort::sim::mj
