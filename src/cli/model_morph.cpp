#include "cli/model_morph.h"

#include "sim/model_file.h"

namespace cohort::cli {

sim::Morph morph_of(const std::string& file, bool fixed_base) {
  if (sim::is_urdf(file)) return sim::Urdf{.file = file, .fixed = fixed_base};
  return sim::Mjcf{file};
}

}  // namespace cohort::cli
