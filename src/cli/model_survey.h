/// `cohort model FOLDER`: a table of the models below a folder.
#pragma once
#include <filesystem>

namespace cohort::cli {

/// Prints a Markdown table of the models below a folder: which the batched engine runs, and what keeps it from the
/// others. `compare`: runs each beside MuJoCo's engine, and prints how far they part and what MuJoCo's own rounding and
/// its limit of solver iterations have to do with that. Throws Error for a folder without models.
int survey_models(const std::filesystem::path& folder, bool compare);

}  // namespace cohort::cli
