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

/// The page as one of another folder: what it links to and plays lies in the run's.
std::string with_links_from(const std::string& page, const fs::path& folder, const fs::path& run) {
  const std::string way = fs::proximate(run, folder).generic_string() + "/";
  std::string text;
  std::size_t begin = 0;
  for (std::size_t at; (at = page.find_first_of("hs", begin)) != std::string::npos;) {
    const bool link = page.compare(at, 6, "href=\"") == 0, source = page.compare(at, 5, "src=\"") == 0;
    const std::size_t end = at + (link ? 6 : source ? 5 : 1);
    text += page.substr(begin, end - begin);
    begin = end;
    const auto starts = [&](std::string_view what) { return page.compare(begin, what.size(), what) == 0; };
    if ((link || source) && !starts("#") && !starts("data:") && !starts("http") && !starts("/")) text += way;
  }
  return text + page.substr(begin);
}

int run_report(const std::vector<std::string>& words) {
  CLI::App app("Writes a run's report.html anew, with its evaluations; of several runs, one page that compares them.",
               "cohort report");
  std::vector<std::string> paths;
  std::string out;
  app.add_option("RUN", paths, "folders of runs, e.g. outputs/NAME/latest")->required();
  app.add_option("--out", out, "the page; else RUN/report.html, of several runs comparison.html");
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
    report::write_html_report(run, *content);
  } else {
    // A run of an earlier version, or one without charts.
    report::RunResults results;
    results.content.title = run.path().parent_path().filename().string();
    results.content.machine = report::describe_machine();
    COHORT_THROW_UNLESS(report::write_run_report(run, std::move(results), 0), "{}: no report was written", paths[0]);
  }
  const fs::path page = out.empty() ? run.report_file() : fs::path(out);
  if (!out.empty())
    write_file_atomically(page,
                          with_links_from(read_file(run.report_file()), fs::absolute(page).parent_path(), run.path()));
  std::printf("%s\n", page.c_str());
  return 0;
}

const Register kReport({"report", "write a run's report anew, or compare runs on one page", run_report, ""});

}  // namespace
}  // namespace cohort::cli
