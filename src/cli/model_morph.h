/// A model's file on the command line.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "sim/host/entity.h"

namespace CLI {
class App;
}

namespace cohort::cli {

/// What is said of a model's file beside its name.
struct FileOptions {
  bool fixed_base = false;             ///< Urdf::fixed
  bool repair_inertia = false;         ///< ModelEdits::repair_inertia
  std::string srdf{};                  ///< Urdf::srdf
  std::vector<std::string> exclude{};  ///< LINK:LINK
  bool any() const { return fixed_base || repair_inertia || !srdf.empty() || !exclude.empty(); }
};
void add_file_options(CLI::App& app, FileOptions& options);
/// Throws UsageError for what does not go with `file`: it is no URDF, or compiled.
void check_file_options(const std::string& file, const FileOptions& options);

/// What the file is added to a scene as: Urdf where its content is URDF, whatever its name, otherwise Mjcf.
sim::Morph morph_of(const std::string& file, const FileOptions& options);

/// FileOptions::exclude as SceneOptions::exclude has it; throws UsageError for another text.
std::vector<std::array<std::string, 2>> exclusions(const std::vector<std::string>& texts);

}  // namespace cohort::cli
