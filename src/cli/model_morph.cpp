#include "cli/model_morph.h"

#include <CLI/CLI.hpp>

#include "cli/subcommand.h"
#include "core/format.h"
#include "sim/host/model_file.h"

namespace cohort::cli {

void add_file_options(CLI::App& app, FileOptions& options) {
  app.add_flag("--fixed-base", options.fixed_base, "URDF: the base link is part of the world");
  app.add_flag("--repair-inertia", options.repair_inertia,
               "inertias that no body can have become their mean, and no link has less than 1 g and 1e-6 kg m^2");
  app.add_option("--srdf", options.srdf,
                 "URDF: the SRDF file whose disable_collisions are left out; without it the one beside MODEL, if any");
  app.add_option("--exclude", options.exclude, "LINK:LINK, two links that do not collide; several times for more")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void check_file_options(const std::string& file, const FileOptions& options) {
  const bool compiled = file.ends_with(".cohort");
  const auto is_urdf = [&] { return !compiled && sim::is_urdf(file); };
  if (options.fixed_base && !is_urdf()) {
    throw UsageError(format("--fixed-base: {} is no URDF file; an MJCF file says itself what is fixed", file));
  }
  if (compiled && !options.exclude.empty()) {
    throw UsageError(
        format("--exclude: {} is compiled, and its pairs are fixed; give --exclude to cohort model --compile", file));
  }
  if (compiled && options.repair_inertia) {
    throw UsageError(format("--repair-inertia: {} is compiled, and so were its links' inertias", file));
  }
  if (!options.srdf.empty() && !is_urdf()) {
    throw UsageError(format("--srdf: {} is no URDF file; --exclude LINK:LINK is for all models", file));
  }
  exclusions(options.exclude);
}

sim::Morph morph_of(const std::string& file, const FileOptions& options) {
  sim::ModelEdits edits;
  edits.repair_inertia = options.repair_inertia;
  if (!sim::is_urdf(file)) return sim::Mjcf{.file = file, .edits = edits};
  return sim::Urdf{.file = file, .fixed = options.fixed_base, .srdf = options.srdf, .edits = edits};
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
