/// A model's file on the command line.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "sim/entity.h"

namespace CLI {
class App;
}

namespace cohort::cli {

/// What the file is added to a scene as: Urdf where its content is URDF, whatever its name, otherwise Mjcf.
/// srdf: Urdf::srdf.
sim::Morph morph_of(const std::string& file, bool fixed_base, const std::string& srdf = "");

/// --fixed-base, --srdf and --exclude.
void add_morph_options(CLI::App& app, bool& fixed_base, std::string& srdf, std::vector<std::string>& exclude);

/// What --srdf and --exclude are given with: throws UsageError where `file` is no URDF, or compiled.
void check_exclusions(const std::string& file, const std::string& srdf, const std::vector<std::string>& exclude);
/// "LINK:LINK" as SceneOptions::exclude has it; throws UsageError for another text.
std::vector<std::array<std::string, 2>> exclusions(const std::vector<std::string>& texts);

}  // namespace cohort::cli
