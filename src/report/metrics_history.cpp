#include "report/metrics_history.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/json_text.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

/// Calls use(line, parsed) for every line; `parsed` is discarded when it is no object with a step.
template <class Use>
void for_each_line(std::string_view text, Use&& use) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const bool whole = end != std::string_view::npos;  // without its end a line was cut off while it was written
    const std::string_view line = text.substr(0, end);
    Json parsed = whole ? try_json<Json>(line) : Json(Json::value_t::discarded);
    if (!parsed.is_discarded()) {
      const bool has_step = parsed.is_object() && parsed.contains("step") && parsed["step"].is_number_integer();
      if (!has_step) parsed = Json(Json::value_t::discarded);
    }
    if (!line.empty()) use(line, parsed);
    text.remove_prefix(whole ? end + 1 : text.size());
  }
}

}  // namespace

const MetricSeries& MetricsHistory::operator[](const std::string& name) const {
  static const MetricSeries kEmpty;
  const auto found = series.find(name);
  return found == series.end() ? kEmpty : found->second;
}

MetricsHistory read_metrics(const fs::path& metrics_jsonl) {
  MetricsHistory history;
  for_each_line(read_file(metrics_jsonl), [&](std::string_view, const Json& line) {
    if (line.is_discarded()) {
      ++history.damaged_lines;
      return;
    }
    const double step = line["step"].get<double>();
    for (const auto& [name, value] : line.items()) {
      if (name == "step" || name == "time" || !(value.is_number() || value.is_null())) continue;
      MetricSeries& series = history.series[name];
      series.steps.push_back(step);
      series.values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
    }
  });
  return history;
}

std::int64_t cut_metrics(const fs::path& metrics_jsonl, std::int64_t last_step) {
  std::error_code error;
  if (!fs::exists(metrics_jsonl, error)) return 0;
  std::string kept;
  std::int64_t cut = 0;
  for_each_line(read_file(metrics_jsonl), [&](std::string_view line, const Json& parsed) {
    if (parsed.is_discarded() || parsed["step"].get<std::int64_t>() > last_step)
      ++cut;
    else
      kept.append(line).push_back('\n');
  });
  if (cut > 0) write_file_atomically(metrics_jsonl, kept);
  return cut;
}

}  // namespace cohort::report
