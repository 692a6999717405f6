/// What tests of scenes share: where their models lie, and what equal states are.
#pragma once
#include <cstring>
#include <string>
#include <vector>

namespace cohort::sim {

inline const std::string kModels = COHORT_SOURCE_DIR "/tests/sim/models/";

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace cohort::sim
