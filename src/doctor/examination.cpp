#include "doctor/examination.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace cohort::doctor {

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "unknown";
}

Case this_machine(const std::filesystem::path& root) {
  Case c;
  c.root = root;
  c.live = root == "/";
  c.variable = [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  // NVML speaks of the machine that this runs on, whatever is recorded below `root`.
  const auto watcher = std::make_shared<monitor::Watcher>(root, c.live ? "libnvidia-ml.so.1" : "");
  c.machine = watcher->read();
  if (!c.live) {
    c.machine.no_gpu = "a recorded machine has no driver to ask";
    c.machine.host = "";
    return c;
  }
  c.devices = list_devices({.egl = false});
  c.peer_access = [watcher](int from, int to) { return watcher->gpus().peer_access(from, to); };
  return c;
}

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& part :
       {gpu_checks(), network_checks(), host_checks(), rank_checks(), speed_checks(), message_checks()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

int Examination::count(Severity severity) const {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(),
                                        [&](const Finding& finding) { return finding.severity == severity; }));
}

Examination examine(const Case& c) {
  Examination result;
  for (const Check& check : all_checks()) {
    Findings found(check.name);
    check.look(c, found);
    result.findings.insert(result.findings.end(), found.all().begin(), found.all().end());
    if (found.left_out().empty())
      result.looked_at.emplace_back(check.name);
    else
      result.left_out.emplace_back(check.name, found.left_out());
  }
  std::stable_sort(result.findings.begin(), result.findings.end(), [](const Finding& a, const Finding& b) {
    return static_cast<int>(a.severity) > static_cast<int>(b.severity);
  });
  return result;
}

}  // namespace cohort::doctor
