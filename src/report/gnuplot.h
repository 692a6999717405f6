/// Runs gnuplot as a program (docs/design/decisions/charts.md), without a shell.
#pragma once
#include <filesystem>
#include <string>

namespace cohort::report {

struct GnuplotSettings {
  std::string program = "gnuplot";  ///< searched in PATH unless it holds a '/'
  double timeout = 60;              ///< s; then it is killed
};

/// Full path of the program, or "" when it is not there.
std::string find_gnuplot(const GnuplotSettings& settings);

/// What to tell the user when find_gnuplot is empty: names the package.
std::string gnuplot_missing_message(const GnuplotSettings& settings);

/// Runs a script in `folder`. Throws Error with the end of gnuplot's own message when it is missing, fails or takes too
/// long.
void run_gnuplot(const std::string& script, const std::filesystem::path& folder, const GnuplotSettings& settings);

}  // namespace cohort::report
