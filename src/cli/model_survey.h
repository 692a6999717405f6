/// `cohort model FOLDER`: a table of the models below a folder.
#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/host/entity.h"

namespace cohort::cli {

/// Prints a Markdown table of the models below a folder: which the batched engine runs, and what keeps it from the
/// others. `compare`: runs each beside MuJoCo's engine, and prints how far they part and what MuJoCo's own rounding and
/// its limit of solver iterations have to do with that. Throws Error for a folder without models.
int survey_models(const std::filesystem::path& folder, bool compare);

/// Prints how far a model that the batched engine runs parts from MuJoCo's engine. exclude: SceneOptions::exclude.
void compare_model(const sim::Morph& morph, const std::vector<std::array<std::string, 2>>& exclude);

}  // namespace cohort::cli
