// `cohort doctor`: what is wrong with this machine, or with a run.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include <unistd.h>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "doctor/disk_speed.h"
#include "doctor/examination.h"

namespace cohort::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorArguments {
  std::string run, root = "/";
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
    for (const monitor::RankStatus& rank : c.run->ranks) hosts.insert(rank.host);
    nodes = std::max(nodes, static_cast<int>(hosts.size()));
  }
  return nodes;
}

Json json_of(const doctor::Examination& found, const std::optional<doctor::MachineSpeed>& speed) {
  Json json;
  json["errors"] = found.count(doctor::Severity::kError);
  json["warnings"] = found.count(doctor::Severity::kWarning);
  json["findings"] = Json::array();
  for (const doctor::Finding& f : found.findings)
    json["findings"].push_back({{"check", f.check},
                                {"severity", doctor::severity_name(f.severity)},
                                {"title", f.title},
                                {"evidence", f.evidence},
                                {"remedy", f.remedy}});
  json["looked_at"] = found.looked_at;
  json["left_out"] = Json::object();
  for (const auto& [check, reason] : found.left_out) json["left_out"][check] = reason;
  if (speed)
    json["measured"] = {{"disk_write_bytes_per_s", speed->disk_write},
                        {"disk_folder", speed->disk_folder.string()},
                        {"memory_copy_bytes_per_s", speed->memory_copy}};
  return json;
}

void print_text(const doctor::Examination& found, const std::optional<doctor::MachineSpeed>& speed) {
  for (const doctor::Finding& f : found.findings)
    std::printf("%-8s %s  (%s)\n         shown by: %s\n         do:       %s\n\n", doctor::severity_name(f.severity),
                f.title.c_str(), f.check.c_str(), f.evidence.c_str(), f.remedy.c_str());
  if (speed)
    std::printf("measured  writing to %s: %s/s; copying memory: %s/s\n", speed->disk_folder.c_str(),
                format_bytes(speed->disk_write).c_str(), format_bytes(speed->memory_copy).c_str());
  std::printf("looked at %d things: %d error(s), %d warning(s), %d note(s)\n", static_cast<int>(found.looked_at.size()),
              found.count(doctor::Severity::kError), found.count(doctor::Severity::kWarning),
              found.count(doctor::Severity::kNote));
  // The same reason is said once.
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const auto& [check, reason] : found.left_out) {
    const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == reason; });
    if (same == reasons.end())
      reasons.emplace_back(reason, check);
    else
      same->second += ", " + check;
  }
  for (const auto& [reason, checks] : reasons) std::printf("left out  %s: %s\n", checks.c_str(), reason.c_str());
}

/// As a rank of a job, the speed of what is between the ranks is measured; it is cohort-train that has it.
[[noreturn]] void become_rank_measurement(bool json) {
  const std::string path = sibling("cohort-train");
  std::vector<std::string> words{path, "--measure-ranks"};
  if (json) words.push_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  throw Error(format("cannot execute {}: {}", path, std::strerror(errno)));
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
      "also measure how fast the run's disk (or this folder's) writes checkpoints, and memory is copied; in the "
      "ranks of a job (cohort launch ... doctor --measure) how fast they exchange sums");
  if (const auto code = parse_arguments(app, words)) return *code;
  if (const char* ranks = std::getenv("WORLD_SIZE"); arguments.measure && ranks && std::atoi(ranks) > 1)
    become_rank_measurement(arguments.json);
  COHORT_THROW_UNLESS(std::filesystem::is_directory(arguments.root), "--root={}: there is no such folder",
                      arguments.root);
  doctor::Case c = doctor::this_machine(arguments.root);
  if (!arguments.run.empty()) c.run = doctor::read_run(arguments.run);
  c.ports = arguments.ports;
  c.nodes = nodes_of(arguments, c);
  const doctor::Examination found = doctor::examine(c);
  std::optional<doctor::MachineSpeed> speed;
  if (arguments.measure) speed = doctor::measure_machine(c.run ? c.run->path : std::filesystem::path("."));
  if (arguments.json)
    std::puts(json_of(found, speed).dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  else
    print_text(found, speed);
  return found.count(doctor::Severity::kError) > 0 ? 1 : 0;
}

const Register kDoctor({"doctor", "what is wrong with this machine or a run, what shows it, and what to do", run_doctor,
                        ""});

}  // namespace
}  // namespace cohort::cli
