/// What is wrong with a machine, or with a run on it: findings with what shows them and what to do.
///
///   doctor::Case c = doctor::this_machine();
///   c.run = doctor::read_run("outputs/regressor/latest");
///   for (const doctor::Finding& f : doctor::examine(c).findings) ...
///
/// Every check reads facts that were gathered before (Case) or files below Case::root, so that a recorded /proc and
/// /sys can be examined elsewhere. Sources: docs/guide/troubleshooting.md; NCCL's user guide (environment variables,
/// troubleshooting); proc(5), sysfs ABI documents (class/net, class/infiniband).
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/devices.h"
#include "core/format.h"
#include "doctor/run_record.h"
#include "monitor/snapshot.h"

namespace cohort::doctor {

/// kError: the job cannot work so, or has failed. kWarning: it is slow or will fail under load. kNote: worth knowing.
enum class Severity { kNote, kWarning, kError };

/// "note", "warning", "error".
const char* severity_name(Severity severity);

struct Finding {
  std::string check;  ///< the check's name
  Severity severity = Severity::kNote;
  std::string title;     ///< what is wrong
  std::string evidence;  ///< what shows it: a file and its content, a figure
  std::string remedy;    ///< what to do
};

/// Facts for the checks.
struct Case {
  std::filesystem::path root = "/";  ///< stands before /proc, /sys, /dev, /etc
  bool live = true;                  ///< `root` is this machine as it is now
  /// Variables of the environment in which the job is, or would be, started.
  std::function<std::optional<std::string>(const std::string&)> variable;
  monitor::Snapshot machine;
  std::optional<DeviceListing> devices;  ///< of the live machine
  /// Whether one GPU reads another's memory, by NVML's indices; empty function or optional: not known.
  std::function<std::optional<bool>(int, int)> peer_access;
  int minimum_cuda_version = kMinimumCudaVersion;  ///< 13000 is 13.0; 0: this build has no LibTorch
  int nodes = 1;                                   ///< machines that the job takes or shall take
  std::vector<int> ports;                          ///< which the job is meant to use, beside the customary ones
  std::optional<RunRecord> run;
};

/// The facts of this machine and of this process's environment, or of the files below `root`.
Case this_machine(const std::filesystem::path& root = "/");

/// What a check found.
class Findings {
 public:
  explicit Findings(std::string check) : check_(std::move(check)) {}
  void error(std::string title, std::string evidence, std::string remedy) {
    add(Severity::kError, std::move(title), std::move(evidence), std::move(remedy));
  }
  void warning(std::string title, std::string evidence, std::string remedy) {
    add(Severity::kWarning, std::move(title), std::move(evidence), std::move(remedy));
  }
  void note(std::string title, std::string evidence, std::string remedy) {
    add(Severity::kNote, std::move(title), std::move(evidence), std::move(remedy));
  }
  void add(Severity severity, std::string title, std::string evidence, std::string remedy) {
    all_.push_back({check_, severity, std::move(title), std::move(evidence), std::move(remedy)});
  }
  /// The check says nothing here, because ...
  void leave_out(std::string reason) { left_out_ = std::move(reason); }

  const std::vector<Finding>& all() const { return all_; }
  const std::string& left_out() const { return left_out_; }

 private:
  std::string check_, left_out_;
  std::vector<Finding> all_;
};

struct Check {
  const char* name;
  const char* looks_at;
  void (*look)(const Case&, Findings&);
};

std::vector<Check> gpu_checks();
std::vector<Check> network_checks();
std::vector<Check> host_checks();
std::vector<Check> rank_checks();
std::vector<Check> speed_checks();
/// What makes a loader faster, for this machine and run.
std::string loader_remedy(const Case& c);
std::vector<Check> message_checks();
/// All of them.
std::vector<Check> all_checks();

struct Examination {
  std::vector<Finding> findings;                              ///< errors first
  std::vector<std::string> looked_at;                         ///< checks that could say something
  std::vector<std::pair<std::string, std::string>> left_out;  ///< the others, and why

  int count(Severity severity) const;
};

Examination examine(const Case& c);

}  // namespace cohort::doctor
