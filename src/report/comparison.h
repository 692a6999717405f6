/// One page that shows several runs side by side: success, curves, and the settings in which they differ.
#pragma once
#include <filesystem>
#include <vector>

#include "report/gnuplot.h"
#include "report/run_folder.h"

namespace cohort::report {

/// Writes `page`, and its charts into the folder <page without .html>_charts beside it. Evaluations are those of the
/// runs, and those in the page's folder and right below it, which compare several. Videos are where these have them.
/// Throws Error.
void write_comparison(const std::vector<RunFolder>& runs, const std::filesystem::path& page,
                      const GnuplotSettings& gnuplot = {});

}  // namespace cohort::report
