#include "cli/train_on.h"

#include "core/error.h"
#include "data/open_episodes.h"

namespace cohort::cli {
namespace {

bool is_observed(const std::string& name) {
  return name.starts_with("observation") || name.starts_with("obs/");
}

}  // namespace

std::vector<std::string> train_on(const std::filesystem::path& data) {
  std::string action, vectors, pictures;
  bool whole_state = false;
  try {
    const auto source = data::open_episodes(data, {.index_cache = "never"});
    for (const data::StepField& field : source->fields()) {
      const bool number = field.kind == data::StepKind::kNumber;
      if (number && action.empty() && (field.name == "action" || field.name == "actions")) action = field.name;
      if (!is_observed(field.name) || !field.fault().empty()) continue;
      whole_state = whole_state || (number && field.name == "observation.state");
      if (number && field.shape.size() <= 1 && field.elements() > 0)
        vectors += (vectors.empty() ? "" : ",") + field.name;
      else if (field.kind == data::StepKind::kImage)
        pictures += (pictures.empty() ? "" : ",") + field.name;
    }
  } catch (const Error&) {
    return {};  // its own reader says why
  }
  if (whole_state) vectors = "observation.state";  // of LeRobot, of which the others are parts
  if (action.empty() || (vectors.empty() && pictures.empty())) return {};
  std::vector<std::string> words{"train", "policy", "data.paths=" + data.string(), "data.actions=" + action};
  if (!vectors.empty()) words.insert(words.end(), {"data.proprio=" + vectors, "data.proprio_normalization=bounds"});
  if (!pictures.empty()) words.push_back("data.images=" + pictures);
  words.push_back("data.constant_elements=zero");
  return words;
}

}  // namespace cohort::cli
