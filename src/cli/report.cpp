// `cohort report`: a run's report with what has come since, or several runs side by side.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/files.h"
#include "core/near_file.h"
#include "report/comparison.h"
#include "report/run_report.h"
#include "report/saved_content.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

/// Throws Error for a folder that no training has made.
report::RunFolder open_run(const std::string& path) {
  COHORT_THROW_UNLESS(fs::is_directory(path), "{}: there is no such run{}", path, near_file(path));
  const report::RunFolder run = report::RunFolder::open(fs::canonical(path));
  COHORT_THROW_UNLESS(fs::exists(run.config_file()) && fs::exists(run.metrics_file()),
                      "{} is no run: it has no config.json and metrics.jsonl{}", path,
                      fs::exists(fs::path(path) / "latest")
                          ? format("; the newest run of this name is {}", (fs::path(path) / "latest").string())
                          : "");
  return run;
}

int run_report(const std::vector<std::string>& words) {
  CLI::App app("Writes a run's report.html anew, with its evaluations; of several runs, one page that compares them.",
               "cohort report");
  std::vector<std::string> paths;
  std::string out;
  app.add_option("RUN", paths, "folders of runs, e.g. outputs/NAME/latest")->required();
  app.add_option("--out", out, "the page; else RUN/report.html, and of several runs comparison.html");
  if (const auto code = parse_arguments(app, words)) return *code;
  std::vector<report::RunFolder> runs;
  for (const std::string& path : paths) runs.push_back(open_run(path));
  if (runs.size() > 1) {
    if (out.empty()) out = "comparison.html";
    report::write_comparison(runs, out);
    std::printf("%s\n", out.c_str());
    return 0;
  }
  const report::RunFolder& run = runs.front();
  if (const auto content = report::load_content(run)) {
    if (out.empty()) report::write_html_report(run, *content);
  } else {
    // A run of an earlier version, or one without charts.
    report::RunResults results;
    results.content.title = run.path().parent_path().filename().string();
    results.content.machine = report::describe_machine();
    COHORT_THROW_UNLESS(report::write_run_report(run, std::move(results), 0), "{}: no report was written", paths[0]);
  }
  if (!out.empty()) {
    COHORT_THROW_UNLESS(fs::path(out).extension() == ".html", "--out {}: a page's name ends with .html", out);
    const auto content = report::load_content(run);
    COHORT_THROW_UNLESS(content.has_value(), "{}: no report was written", paths[0]);
    write_file_atomically(out, report::html_report(run, *content, fs::absolute(out).parent_path()));
  }
  std::printf("%s\n", out.empty() ? run.report_file().c_str() : out.c_str());
  return 0;
}

const Register kReport({"report", "write a run's report anew, or compare runs on one page", run_report, ""});

}  // namespace
}  // namespace cohort::cli
