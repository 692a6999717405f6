/// Links that overlap where a simulation starts: its first steps throw them apart.
#pragma once
#include <span>
#include <string>

#include "sim/engine.h"

namespace cohort::sim {

/// Deeper than this, m, links count as overlapping: feet stand in a floor by less.
inline constexpr double kOverlap = 1e-3;

/// Names the pairs of links that overlap by more, the deepest first, and what can be done; "" where none does.
std::string describe_overlaps(const ModelInfo& info, std::span<const Contact> contacts);

}  // namespace cohort::sim
