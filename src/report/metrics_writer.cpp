#include "report/metrics_writer.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/markup.h"
#include "report/metrics_history.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFileName = "metrics.jsonl";

double now_in_whole_milliseconds() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count()) / 1000.0;
}

std::string json_line(std::int64_t step, double time, std::span<const TagValue> values) {
  nlohmann::ordered_json line;
  line["step"] = step;
  line["time"] = time;
  nlohmann::ordered_json not_finite;
  for (const TagValue& v : values) {
    const std::string tag = clean_utf8(v.tag);
    COHORT_CHECK(tag != "step" && tag != "time" && tag != "not_finite", "a metric cannot be called {}", tag);
    line[tag] = v.value;  // null when not finite
    if (!std::isfinite(v.value)) not_finite[tag] = std::isnan(v.value) ? "nan" : v.value > 0 ? "inf" : "-inf";
  }
  if (!not_finite.is_null()) line["not_finite"] = std::move(not_finite);
  return json_text(line) + "\n";
}

}  // namespace

fs::path events_folder(const fs::path& run) {
  std::error_code error;
  fs::path path = fs::weakly_canonical(run, error);
  if (error) path = run;
  if (!path.has_filename()) path = path.parent_path();
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) return run;
  if (!fs::is_symlink(path.parent_path() / "latest", error)) return run;
  return path.parent_path() / "tensorboard" / path.filename();
}

MetricsWriter::MetricsWriter(const fs::path& folder, const MetricsSettings& settings) {
  const fs::path file = folder / kFileName;
  std::error_code error;
  if (settings.resumed_step) {
    const std::int64_t cut = cut_metrics(file, *settings.resumed_step);
    if (cut > 0) log::info("{}: {} lines after step {} were cut", file.string(), cut, *settings.resumed_step);
  } else {
    const bool used = fs::exists(file, error) && fs::is_regular_file(file, error) && fs::file_size(file, error) > 0;
    COHORT_THROW_UNLESS(!used, "{} already holds the metrics of a run; choose another folder, or resume that run",
                        file.string());
  }
  lines_ = std::make_unique<AppendFile>(file);
  if (!settings.tensorboard) return;
  std::optional<std::int64_t> first_step;
  if (settings.resumed_step) first_step = *settings.resumed_step + 1;
  const fs::path events = events_folder(folder);
  fs::create_directories(events, error);
  COHORT_THROW_UNLESS(!error, "cannot create the folder {} for TensorBoard's events: {}; set tensorboard=false",
                      events.string(), error.message());
  events_ = std::make_unique<TensorboardEvents>(events, first_step);
}

void MetricsWriter::write(std::int64_t step, std::span<const TagValue> values) {
  std::lock_guard lock(mutex_);
  const double time = now_in_whole_milliseconds();
  lines_->append(json_line(step, time, values));
  if (events_) events_->scalars(step, time, values);
}

void MetricsWriter::text(const std::string& tag, std::int64_t step, const std::string& markdown) {
  std::lock_guard lock(mutex_);
  if (events_) events_->text(tag, step, now_in_whole_milliseconds(), markdown);
}

void MetricsWriter::image(const std::string& tag, std::int64_t step, const fs::path& png) {
  std::lock_guard lock(mutex_);
  if (events_) events_->image(tag, step, now_in_whole_milliseconds(), read_file(png));
}

void MetricsWriter::sync() {
  std::lock_guard lock(mutex_);
  lines_->sync();
}

}  // namespace cohort::report
