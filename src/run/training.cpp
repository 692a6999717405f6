#include "run/training.h"

#include "core/error.h"

namespace cohort::run {
void refuse_unknown_training(const std::string& name, const std::vector<std::string>& names,
                             const std::string& instead) {
  if (!instead.empty()) throw Error(format("there is nothing called '{}' to train: {}", name, instead));
  const std::string near = config::nearest(name, names);
  throw Error(format("there is nothing called '{}' to train{}; there are {}", name,
                     near.empty() ? "" : format(", did you mean '{}'?", near), join(names, ", ")));
}

}  // namespace cohort::run
