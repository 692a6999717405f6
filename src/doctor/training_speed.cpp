#include "doctor/training_speed.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::doctor {
namespace {

constexpr double kWaitingShare = 0.10;  // as run-loader

}  // namespace

TrainingSpeed parse_training_speed(const std::string& text) {
  const auto json = try_json<nlohmann::json>(text);
  TrainingSpeed speed;
  try {
    speed = {.job = json.at("job").get<std::string>(),
             .device = json.at("device").get<std::string>(),
             .batch_size = json.at("batch_size").get<std::int64_t>(),
             .workers = json.at("loader_workers").get<int>(),
             .loader_s = json.at("loader_s_per_batch").get<double>(),
             .step_s = json.at("step_s_per_batch").get<double>()};
  } catch (const nlohmann::json::exception& e) {
    throw Error(format("the measurement of loader and step said something else than figures: {}", e.what()));
  }
  COHORT_THROW_UNLESS(speed.batch_size > 0 && speed.loader_s > 0 && speed.step_s > 0,
                      "the measurement of loader and step gave {} s and {} s for a batch of {}", speed.loader_s,
                      speed.step_s, speed.batch_size);
  return speed;
}

void judge(const TrainingSpeed& s, const Case& c, Examination& found) {
  found.looked_at.emplace_back(kMeasuredLoader);
  if (s.waits() <= kWaitingShare) return;
  found.findings.push_back(
      {.check = kMeasuredLoader,
       .severity = Severity::kWarning,
       .title = "the loader is the bottleneck",
       .evidence =
           format("alone, the loader needs {:.3g} s for a batch of {} with loader.workers={} ({:.0f} samples/s), "
                  "and a step on {} {:.3g} s ({:.0f} samples/s): a step waits at least {:.0f} % of its time",
                  s.loader_s, s.batch_size, s.workers, s.loader_samples_per_s(), s.device, s.step_s,
                  s.step_samples_per_s(), 100 * s.waits()),
       .remedy = loader_remedy(c)});
  std::stable_sort(found.findings.begin(), found.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

}  // namespace cohort::doctor
