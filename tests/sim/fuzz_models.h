/// Damaged copies of model files, each a function of a seed: flipped bits, cuts, doubled pieces, hostile numbers,
/// attributes and elements that belong elsewhere.
#pragma once
#include <cstdint>
#include <string>

namespace cohort::sim {

/// One to three injuries; the same for the same text and sample.
std::string mutant(const std::string& text, std::uint64_t sample);

}  // namespace cohort::sim
