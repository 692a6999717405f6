#include "policies/algorithm.h"

#include "core/error.h"
#include "data/robot_windows.h"
#include "policies/reference_weights.h"
#include "weights/weight_files.h"
#include "weights/weights.h"

namespace cohort::policies {

void Algorithm::load_files(models::PolicyNetwork& network, const PolicySettings& s) const {
  if (s.initial_weights.empty()) return;
  const weights::SafetensorsFile file = weights::read_weights(s.initial_weights);
  weights::load_weights(network, from_reference(network, file.tensors, s.initial_weights), {}, s.initial_weights);
}

std::string Algorithm::instruction_field(const PolicySettings&, const data::RobotDataSettings& data, bool) const {
  return data.instruction;
}

ForeignWords Algorithm::read_foreign(const std::vector<std::string>& words) const {
  return {.overrides = words};
}

const Algorithm& algorithm_of(const PolicySettings& settings) {
  std::string names;
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->name() == settings.algorithm) return *algorithm;
    names += (names.empty() ? "" : ", ") + algorithm->name();
  }
  throw Error(format("model.algorithm = \"{}\" is none of {}", settings.algorithm, names));
}

const Algorithm* algorithm_of_job(std::string_view name) {
  for (const Algorithm* algorithm : algorithms())
    if (const auto job = algorithm->job(); job && job->name == name) return algorithm;
  return nullptr;
}

}  // namespace cohort::policies
