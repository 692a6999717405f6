#include "cli/model_morph.h"

#include <CLI/CLI.hpp>

#include "cli/subcommand.h"
#include "core/format.h"
#include "sim/model_file.h"

namespace cohort::cli {

sim::Morph morph_of(const std::string& file, bool fixed_base, const std::string& srdf) {
  if (sim::is_urdf(file)) {
    sim::Urdf urdf{.file = file, .fixed = fixed_base};
    urdf.srdf = srdf;
    return urdf;
  }
  return sim::Mjcf{file};
}

void add_morph_options(CLI::App& app, bool& fixed_base, std::string& srdf, std::vector<std::string>& exclude) {
  app.add_flag("--fixed-base", fixed_base, "URDF: the base link is part of the world");
  app.add_option("--srdf", srdf,
                 "URDF: the SRDF file whose disable_collisions are left out; without it the one beside MODEL, if any");
  app.add_option("--exclude", exclude, "LINK:LINK, two links that do not collide; several times for more")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void check_exclusions(const std::string& file, const std::string& srdf, const std::vector<std::string>& exclude) {
  const bool compiled = file.ends_with(".cohort");
  if (compiled && !exclude.empty()) {
    throw UsageError(
        format("--exclude: {} is compiled, and its pairs are fixed; give --exclude to cohort model --compile", file));
  }
  if (!srdf.empty() && (compiled || !sim::is_urdf(file))) {
    throw UsageError(format("--srdf: {} is no URDF file; --exclude LINK:LINK is for all models", file));
  }
  exclusions(exclude);
}

std::vector<std::array<std::string, 2>> exclusions(const std::vector<std::string>& texts) {
  std::vector<std::array<std::string, 2>> pairs;
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size() ||
        text.find(':', colon + 1) != std::string::npos) {
      throw UsageError(format("--exclude {}: two links with a colon between, LINK:LINK, are needed", text));
    }
    pairs.push_back({text.substr(0, colon), text.substr(colon + 1)});
  }
  return pairs;
}

}  // namespace cohort::cli
