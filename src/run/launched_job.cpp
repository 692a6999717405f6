#include "run/launched_job.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"

namespace cohort::run {
namespace fs = std::filesystem;
namespace {

constexpr const char* kJobsFile = "jobs.jsonl";

std::string variable_or_empty(const rank::VariableLookup& lookup, const char* name) {
  return lookup(name).value_or("");
}

int count_of(const rank::VariableLookup& lookup, const char* name) {
  const std::string text = variable_or_empty(lookup, name);
  int count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  COHORT_THROW_UNLESS(text.empty() || (problem == std::errc() && end == text.data() + text.size()),
                      "{}='{}' is not a whole number", name, text);
  return count;
}

/// The part of ".../none_k3j2/attempt_0/0/error.json" that torchrun makes for one job.
std::string logs_of_job(const std::string& error_file) {
  return error_file.substr(0, error_file.rfind("/attempt_"));
}

std::string line_of(const std::string& id, const std::vector<std::string>& arguments) {
  config::Json line;
  line["id"] = id;
  line["arguments"] = arguments;
  return json_text(line, -1, BadUtf8::kReplaced);
}

bool holds(const fs::path& run, const std::string& line) {
  std::error_code error;
  if (!fs::exists(run / kJobsFile, error)) return false;
  std::istringstream lines(read_file(run / kJobsFile));
  for (std::string recorded; std::getline(lines, recorded);)
    if (recorded == line) return true;
  return false;
}

/// Folders of runs, the newest first; they are named after the time when they began.
std::vector<fs::path> runs_in(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && !entry.is_symlink(error) && fs::exists(entry.path() / "training.log", error))
      runs.push_back(entry.path());
  std::sort(runs.begin(), runs.end(), [](const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    const auto begun = [&](const fs::path& run) {
      return run.filename().string().substr(0, 19);
    };  // YYYY-MM-DD_hh-mm-ss
    if (begun(a) != begun(b)) return begun(a) > begun(b);
    return fs::last_write_time(a, ignored) > fs::last_write_time(b, ignored);
  });
  return runs;
}

std::string run_with(const std::vector<fs::path>& runs, const std::string& id,
                     const std::vector<std::string>& arguments) {
  if (id.empty()) return "";
  const std::string line = line_of(id, arguments);
  for (const fs::path& run : runs)
    if (holds(run, line)) return run.string();
  return "";
}

}  // namespace

LaunchedJob read_launched_job(const rank::VariableLookup& lookup) {
  LaunchedJob job;
  if (const std::string id = variable_or_empty(lookup, "TORCHELASTIC_RUN_ID"); !id.empty()) {
    job.elastic_id = "TORCHELASTIC_RUN_ID=" + id;
    if (id == "none") job.elastic_id += " " + logs_of_job(variable_or_empty(lookup, "TORCHELASTIC_ERROR_FILE"));
  }
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOBID"})
    if (const std::string id = variable_or_empty(lookup, name); !id.empty() && job.slurm_id.empty())
      job.slurm_id = "SLURM_JOB_ID=" + id;
  job.elastic_restarts = count_of(lookup, "TORCHELASTIC_RESTART_COUNT");
  job.slurm_restarts = count_of(lookup, "SLURM_RESTART_COUNT");
  return job;
}

void record_job(const fs::path& run, const LaunchedJob& job, const std::vector<std::string>& arguments) {
  std::error_code error;
  std::string text = fs::exists(run / kJobsFile, error) ? read_file(run / kJobsFile) : "";
  const std::size_t before = text.size();
  for (const std::string& id : {job.elastic_id, job.slurm_id})
    if (!id.empty() && !holds(run, line_of(id, arguments))) text += line_of(id, arguments) + "\n";
  if (text.size() > before) write_file_atomically(run / kJobsFile, text);
}

std::string find_run(const std::string& resume, const fs::path& runs, const LaunchedJob& job,
                     const std::vector<std::string>& arguments, bool quietly) {
  const bool asked = resume == "auto";
  if (!asked && (!resume.empty() || !job.restarted())) return resume;
  const std::vector<fs::path> all = runs_in(runs);
  std::string earlier;
  if (asked || job.elastic_restarts > 0 || job.slurm_restarts > 0) earlier = run_with(all, job.elastic_id, arguments);
  // Within one Slurm job, a launcher may have started several runs with these arguments; which is meant, only a requeue
  // says, which begins with the first of them.
  if (earlier.empty() && (asked || job.slurm_restarts > 0)) earlier = run_with(all, job.slurm_id, arguments);
  const std::string again = job.elastic_restarts > 0 ? format("restart {} of the job", job.elastic_restarts)
                            : job.slurm_restarts > 0 ? format("restart {} of the job by Slurm", job.slurm_restarts)
                                                     : "resume=auto";
  const std::string newest = asked && earlier.empty() && !all.empty() ? all.front().string() : "";
  if (!quietly) {
    if (!earlier.empty())
      log::info("{}: going on with its run {}", again, earlier);
    else if (!newest.empty())
      log::info("resume=auto: going on with the newest run in {}, {}", runs.string(), newest);
    else
      log::info("{}: there is no run of it in {} yet", again, runs.string());
  }
  return earlier.empty() ? newest : earlier;
}

std::string run_to_continue(const RunSettings& settings, const std::string& default_name,
                            const std::vector<std::string>& arguments) {
  const fs::path runs = fs::path(settings.output_dir) / (settings.name.empty() ? default_name : settings.name);
  return find_run(settings.resume, runs, read_launched_job(), arguments, true);
}

}  // namespace cohort::run
