/// Models that were written in other units than metres and kilograms: they load, and nothing of them moves as it should.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "sim/host/import/library.h"

namespace cohort::sim::mj {

/// A line for what of the links that move is longer than 10 m (meshes in millimetres or inches), and where together they
/// are denser than any metal (masses in grams). from: what the lines begin with; links: of one entity; scale: how its meshes
/// are scaled, as it is written.
std::vector<std::string> remarks_on_units(const mjModel& m, const std::string& from, std::span<const int> links,
                                          const std::string& scale);

}  // namespace cohort::sim::mj
