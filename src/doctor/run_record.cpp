#include "doctor/run_record.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/typed_text.h"
#include "report/metric_names.h"

namespace cohort::doctor {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

constexpr std::uintmax_t kMostBytes = 1 << 20;  // of a log
constexpr std::size_t kMostTexts = 256;
constexpr std::uint64_t kMostHeader = 100 << 20;  // safetensors' own limit

void flatten_settings(const Json& json, const std::string& path, std::map<std::string, std::string>& to) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) flatten_settings(value, path.empty() ? name : path + "." + name, to);
    return;
  }
  to[path] = typed_text(json);
}

std::string end_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!file || error) return "";
  const std::uintmax_t from = size > kMostBytes ? size - kMostBytes : 0;
  file.seekg(static_cast<std::streamoff>(from));
  std::string text(static_cast<std::size_t>(size - from), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

bool is_text_of_a_run(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".log" || name == "error.json" || name == "stdout" || name == "stderr" ||
         (path.extension() == ".txt" && name != "overrides.txt" && !name.starts_with("test_metrics"));
}

std::vector<TextFile> read_texts(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename() == "checkpoints" || it.depth() > 6) it.disable_recursion_pending();
    if (it->is_regular_file(ignored) && is_text_of_a_run(it->path())) paths.push_back(it->path());
    if (paths.size() >= kMostTexts) break;
  }
  std::sort(paths.begin(), paths.end());
  std::vector<TextFile> texts;
  for (const fs::path& path : paths) texts.push_back({.path = path, .text = end_of(path)});
  return texts;
}

}  // namespace

std::string RunRecord::setting(const std::string& name) const {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

std::optional<double> RunRecord::steady(const std::string& metric) const {
  const std::vector<double>& values = metrics[metric].values;
  if (values.size() < 2) return {};
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = values.size() / 2; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    sum += values[i];
    ++count;
  }
  return count == 0 ? std::optional<double>() : sum / static_cast<double>(count);
}

std::optional<double> RunRecord::share(const std::string& metric) const {
  // Sums over the same steps: a step that is ten times as long weighs ten times as much.
  const std::vector<double>& parts = metrics[metric].values;
  const std::vector<double>& rates = metrics[report::metric::kStepsPerSecond].values;
  if (parts.size() < 2 || parts.size() != rates.size()) return {};
  double part = 0, whole = 0;
  for (std::size_t i = parts.size() / 2; i < parts.size(); ++i) {
    if (!std::isfinite(parts[i]) || !(rates[i] > 0)) continue;
    part += parts[i];
    whole += 1 / rates[i];
  }
  return whole > 0 ? std::optional<double>(part / whole) : std::nullopt;
}

bool RunRecord::finished() const {
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(),
                                       [](const rank::Status& rank) { return rank.phase == rank::Phase::kFinished; });
}

RunRecord read_run(const fs::path& folder) {
  COHORT_THROW_UNLESS(fs::is_directory(folder), "{}: there is no such run", folder.string());
  RunRecord run;
  run.path = fs::canonical(folder);
  std::error_code error;
  if (fs::exists(run.path / "config.json", error)) {
    const Json json = try_json<Json>(end_of(run.path / "config.json"));
    if (!json.is_discarded()) flatten_settings(json, "", run.settings);
  }
  if (fs::exists(run.path / "metrics.jsonl", error)) run.metrics = report::read_metrics(run.path / "metrics.jsonl");
  run.ranks = rank::read_statuses(run.path / rank::kRanksFolder);
  run.texts = read_texts(run.path);
  COHORT_THROW_UNLESS(!run.settings.empty() || !run.metrics.series.empty() || !run.ranks.empty() || !run.texts.empty(),
                      "{}: there is neither a run (config.json, metrics.jsonl, ranks) nor a launcher's log in it",
                      folder.string());
  return run;
}

std::optional<SingleRun> single_run_beside(const RunRecord& run) {
  std::vector<fs::path> others;
  std::error_code error;
  for (fs::directory_iterator it(run.path.parent_path(), error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored) && it->path() != run.path) others.push_back(it->path());
  }
  std::sort(others.rbegin(), others.rend());
  for (const fs::path& path : others) {
    const auto ranks = rank::read_statuses(path / rank::kRanksFolder);
    std::error_code ignored;
    if (ranks.size() != 1 || ranks[0].world_size != 1 || !fs::exists(path / "metrics.jsonl", ignored)) continue;
    // Of the same work on the same kind of device: a speed-up is of that.
    if (run.ranks.empty() || ranks[0].batch_size != run.ranks[0].batch_size || ranks[0].job != run.ranks[0].job ||
        ranks[0].device.substr(0, 3) != run.ranks[0].device.substr(0, 3))
      continue;
    RunRecord other;
    other.metrics = report::read_metrics(path / "metrics.jsonl");
    if (const auto speed = other.steady(report::metric::kSamplesPerSecond)) return SingleRun{path, *speed};
  }
  return {};
}

std::vector<std::string> tensor_names(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  unsigned char bytes[8] = {};
  if (!in.read(reinterpret_cast<char*>(bytes), sizeof bytes)) return {};
  std::uint64_t size = 0;
  for (int i = 7; i >= 0; --i) size = size << 8 | bytes[i];
  std::error_code error;
  if (size > kMostHeader || size > fs::file_size(file, error) || error) return {};
  std::string header(static_cast<std::size_t>(size), '\0');
  if (!in.read(header.data(), static_cast<std::streamsize>(size))) return {};
  const Json json = try_json<Json>(header);
  std::vector<std::string> names;
  if (json.is_object())
    for (const auto& [name, value] : json.items())
      if (name != "__metadata__") names.push_back(name);
  return names;
}

}  // namespace cohort::doctor
