// `cohort doctor`: what is wrong with this machine, or with a run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/child_command.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/train_measure.h"
#include "core/json_text.h"
#include "doctor/disk_speed.h"
#include "doctor/examination.h"
#include "doctor/training_speed.h"

namespace cohort::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorArguments {
  std::string run, root = "/", config;
  std::vector<std::string> overrides;  ///< key.path=value, of the training that is measured
  int nodes = 0;
  std::vector<int> ports;
  bool json = false, measure = false;
};

/// Nodes that a job takes: as said, or as the environment or the run's ranks tell.
int nodes_of(const DoctorArguments& arguments, const doctor::Case& c) {
  if (arguments.nodes > 0) return arguments.nodes;
  int nodes = 1;
  for (const char* name : {"GROUP_WORLD_SIZE", "SLURM_NNODES", "PET_NNODES"})
    if (const auto value = c.variable(name)) nodes = std::max(nodes, std::atoi(value->c_str()));
  if (c.run) {
    std::set<std::string> hosts;
    for (const rank::Status& rank : c.run->ranks) hosts.insert(rank.host);
    nodes = std::max(nodes, static_cast<int>(hosts.size()));
  }
  return nodes;
}

/// What --measure found.
struct Measured {
  std::optional<doctor::MachineSpeed> machine;
  std::optional<doctor::TrainingSpeed> training;
};

bool sets(const std::vector<std::string>& overrides, const std::string& key) {
  return std::any_of(overrides.begin(), overrides.end(),
                     [&](const std::string& text) { return text.starts_with(key + "="); });
}

/// Loader alone and step alone, by cohort-torch. Throws Error where that fails.
doctor::TrainingSpeed measure_training(const DoctorArguments& arguments, const doctor::Case& c) {
  std::vector<std::string> words;
  if (!arguments.config.empty()) {
    words.push_back("--config=" + arguments.config);
  } else {
    const std::filesystem::path config = c.run->path / "config.json";
    COHORT_THROW_UNLESS(std::filesystem::exists(config), "{} is not there", config.string());
    words.push_back("--config=" + config.string());
    // Of its ranks each has a part of a global batch.
    if (!c.run->ranks.empty() && c.run->ranks[0].batch_size > 0 && c.run->setting("job") != "ppo" &&
        !sets(arguments.overrides, "train.batch_size") && !sets(arguments.overrides, "train.global_batch_size"))
      words.insert(words.begin(), format("--batch-of-rank={}", c.run->ranks[0].batch_size));
  }
  words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
  const ChildOutput child = run_and_read(sibling(kMeasureParts), words);
  std::string said = child.err;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  COHORT_THROW_UNLESS(child.code == 0, "loader and step were not measured: {}",
                      said.empty() ? format("the measurement ended with code {}", child.code) : said);
  return doctor::parse_training_speed(child.out);
}

Measured measure_all(const DoctorArguments& arguments, const doctor::Case& c, doctor::Examination& examination) {
  Measured measured;
  try {
    measured.machine = doctor::measure_machine(c.run ? c.run->path : std::filesystem::path("."));
  } catch (const Error& e) {
    examination.left_out.emplace_back("measured-machine",
                                      e.what());  // another user's run, a read-only folder, a full disk
  }
  const bool named = !arguments.config.empty() || !arguments.overrides.empty();
  if (!named && !c.run) {
    examination.left_out.emplace_back(doctor::kMeasuredLoader, "no run and no --config was named");
    return measured;
  }
  try {
    measured.training = measure_training(arguments, c);
    doctor::judge(*measured.training, c, examination);
  } catch (const Error& e) {
    if (named) throw;
    examination.left_out.emplace_back(doctor::kMeasuredLoader, e.what());  // a run's data may be gone
  }
  return measured;
}

Json json_of(const doctor::Examination& examination, const std::optional<Measured>& measured) {
  Json json;
  json["errors"] = examination.count(doctor::Severity::kError);
  json["warnings"] = examination.count(doctor::Severity::kWarning);
  json["findings"] = Json::array();
  for (const doctor::Finding& f : examination.findings)
    json["findings"].push_back({{"check", f.check},
                                {"severity", doctor::severity_name(f.severity)},
                                {"title", f.title},
                                {"evidence", f.evidence},
                                {"remedy", f.remedy}});
  json["looked_at"] = examination.looked_at;
  json["left_out"] = Json::object();
  for (const auto& [check, reason] : examination.left_out) json["left_out"][check] = reason;
  if (!measured) return json;
  json["measured"] = Json::object();
  if (const auto& machine = measured->machine)
    json["measured"] = {{"disk_write_bytes_per_s", machine->disk_write},
                        {"disk_folder", machine->disk_folder.string()},
                        {"memory_copy_bytes_per_s", machine->memory_copy}};
  if (const auto& t = measured->training)
    json["measured"]["training"] = {{"job", t->job},
                                    {"device", t->device},
                                    {"batch_size", t->batch_size},
                                    {"loader_workers", t->workers},
                                    {"loader_s_per_batch", t->loader_s},
                                    {"step_s_per_batch", t->step_s},
                                    {"waits_for_data", t->waits()}};
  return json;
}

void print_measured(const Measured& measured) {
  if (const auto& machine = measured.machine)
    std::printf("measured  writing to %s: %s/s; copying memory: %s/s\n", machine->disk_folder.c_str(),
                format_bytes(machine->disk_write).c_str(), format_bytes(machine->memory_copy).c_str());
  if (const auto& t = measured.training)
    std::printf(
        "measured  %s, batch %d: loader alone (%d workers) %.2f ms a batch, %.0f samples/s; step alone on %s %.2f ms, "
        "%.0f samples/s\n",
        t->job.c_str(), static_cast<int>(t->batch_size), t->workers, t->loader_s * 1e3, t->loader_samples_per_s(),
        t->device.c_str(), t->step_s * 1e3, t->step_samples_per_s());
}

void print_text(const doctor::Examination& examination, const std::optional<Measured>& measured) {
  for (const doctor::Finding& f : examination.findings)
    std::printf("%-8s %s  (%s)\n         shown by: %s\n         do:       %s\n\n", doctor::severity_name(f.severity),
                f.title.c_str(), f.check.c_str(), f.evidence.c_str(), f.remedy.c_str());
  if (measured) print_measured(*measured);
  std::printf("looked at %d things: %d error(s), %d warning(s), %d note(s)\n",
              static_cast<int>(examination.looked_at.size()), examination.count(doctor::Severity::kError),
              examination.count(doctor::Severity::kWarning), examination.count(doctor::Severity::kNote));
  // The same reason is said once.
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const auto& [check, reason] : examination.left_out) {
    const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
    if (same == reasons.end())
      reasons.emplace_back(reason, check);
    else
      same->second += ", " + check;
  }
  for (const auto& [reason, checks] : reasons) std::printf("left out  %s: %s\n", checks.c_str(), reason.c_str());
}

/// Puts settings where they belong, also without a run before them. Throws UsageError.
void take_settings(DoctorArguments& arguments) {
  if (arguments.run.find('=') != std::string::npos && !std::filesystem::exists(arguments.run)) {
    arguments.overrides.insert(arguments.overrides.begin(), arguments.run);
    arguments.run.clear();
  }
  for (const std::string& text : arguments.overrides)
    if (text.find('=') == std::string::npos || text.starts_with("-"))
      throw UsageError(format("'{}' is no setting of the form key.path=value; one run is examined at a time", text));
  if (!arguments.measure && !(arguments.config.empty() && arguments.overrides.empty()))
    throw UsageError("--config and settings say what --measure measures: add --measure");
  if (arguments.config.empty() && arguments.run.empty() && !arguments.overrides.empty())
    throw UsageError(format("{}: a setting of which training? Name a run, or --config FILE", arguments.overrides[0]));
}

int run_doctor(const std::vector<std::string>& words) {
  std::string checks;
  for (const doctor::Check& check : doctor::all_checks()) checks += format("  {:<18} {}\n", check.name, check.looks_at);
  CLI::App app(
      "Looks for what keeps jobs from starting, makes them slow or ends them: on this machine, and in a run that is\n"
      "going on or has ended. Says what is wrong, what shows it, and what to do.\n"
      "Exit code: 1 with at least one finding that is an error, else 0; 2 for a wrong command line.",
      "cohort doctor");
  app.footer("Checks:\n" + checks);
  DoctorArguments arguments;
  app.add_option("run", arguments.run, "folder of a run, or of a launcher's logs");
  app.add_option("--root", arguments.root,
                 "folder that stands before /proc, /sys, /dev and /etc: a recorded machine in place of this one");
  app.add_option("--nodes", arguments.nodes, "machines that the job shall take")->check(CLI::Range(1, 100000));
  app.add_option("--port", arguments.ports, "a port that the job shall use")->check(CLI::Range(1, 65535));
  app.add_flag("--json", arguments.json, "findings as JSON");
  app.add_flag(
      "--measure", arguments.measure,
      "also measure how fast the run's disk (or this folder's) writes checkpoints, and memory is copied; of a run or "
      "--config, the loader alone and the step alone (measured-loader); in the ranks of a job (cohort launch ... "
      "doctor --measure) how fast they exchange sums");
  app.add_option("--config", arguments.config, "a training's settings, whose loader and step --measure measures")
      ->check(CLI::ExistingFile);
  app.add_option("settings", arguments.overrides, "with --measure: key.path=value, other than the run's or the file's");
  if (const auto code = parse_arguments(app, words)) return *code;
  take_settings(arguments);
  if (const char* ranks = std::getenv("WORLD_SIZE"); arguments.measure && ranks && std::atoi(ranks) > 1)
    become(kMeasureRanks, arguments.json ? std::vector<std::string>{"--json"} : std::vector<std::string>());
  COHORT_THROW_UNLESS(std::filesystem::is_directory(arguments.root), "--root={}: there is no such folder",
                      arguments.root);
  doctor::Case c = doctor::this_machine(arguments.root);
  if (!arguments.run.empty()) c.run = doctor::read_run(arguments.run);
  c.ports = arguments.ports;
  c.nodes = nodes_of(arguments, c);
  doctor::Examination examination = doctor::examine(c);
  std::optional<Measured> measured;
  if (arguments.measure) measured = measure_all(arguments, c, examination);
  if (arguments.json)
    std::puts(json_text(json_of(examination, measured), 2, BadUtf8::kReplaced).c_str());
  else
    print_text(examination, measured);
  return examination.count(doctor::Severity::kError) > 0 ? 1 : 0;
}

const Register kDoctor({"doctor", "what is wrong with this machine or a run, what shows it, and what to do", run_doctor,
                        ""});

}  // namespace
}  // namespace cohort::cli
