#include "cli/train_on.h"

#include "core/error.h"
#include "core/observation_names.h"
#include "data/conversion.h"
#include "data/open_episodes.h"

namespace cohort::cli {

std::vector<std::string> train_on(const std::filesystem::path& data) {
  bool acts = false, sees = false;
  try {
    const auto source = data::open_episodes(data, {.index_cache = "never"});
    for (const data::StepField& field : source->fields()) {
      if (!field.fault().empty()) continue;
      const bool vector = field.kind == data::StepKind::kNumber && data::is_float(field.type) &&
                          field.shape.size() <= 1 && field.elements() > 0;
      acts = acts || (vector && (field.name == "action" || field.name == "actions"));
      sees = sees || (is_observation(field.name) && (vector || field.kind == data::StepKind::kImage));
    }
  } catch (const Error&) {
    return {};  // its own reader says why
  }
  if (!acts || !sees) return {};
  return {"train", "policy", "data.paths=" + data.string()};
}

}  // namespace cohort::cli
