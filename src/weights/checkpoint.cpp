#include "weights/checkpoint.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/log.h"
#include "weights/checksums.h"
#include "weights/safetensors.h"

namespace cohort::weights {
namespace fs = std::filesystem;
namespace {

SafetensorsFile read_part(const fs::path& path, std::int64_t step) {
  auto file = read_safetensors(path);
  const auto found = file.metadata.find("step");
  COHORT_THROW_UNLESS(
      found != file.metadata.end() && found->second == std::to_string(step),
      "{} does not belong to the checkpoint of step {} beside it: files of several checkpoints are mixed",
      path.string(), step);
  return file;
}

/// The files that the state lists exist and have their size.
void check_files(const fs::path& path, const config::Json& state) {
  COHORT_THROW_UNLESS(state.contains("files") && state["files"].is_object() && !state["files"].empty(),
                      "{} does not list the checkpoint's files: it is damaged", (path / kStateFile).string());
  for (const auto& [name, bytes] : state["files"].items()) {
    std::error_code error;
    const auto size = fs::file_size(path / name, error);
    COHORT_THROW_UNLESS(!error, "{}: {} is missing ({}): copy the checkpoint as a whole, or name another one",
                        path.string(), name, error.message());
    COHORT_THROW_UNLESS(bytes.is_number_unsigned() && bytes.get<std::uintmax_t>() == size,
                        "{} has {} bytes and not {} as when it was written: it is truncated or has been changed; "
                        "another checkpoint beside it may be whole",
                        (path / name).string(), size, json_text(bytes));
  }
}

/// The last whole checkpoint in the folder; nothing where it has none. Throws Error where none of those that it has is
/// whole.
std::optional<ResumePoint> last_whole(const fs::path& folder, CheckpointParts parts) {
  const CheckpointFolder checkpoints(folder);
  auto steps = checkpoints.steps();
  // `last` first, then the others from the newest on.
  if (const auto last = checkpoints.last()) {
    std::erase(steps, *last);
    steps.push_back(*last);
  }
  std::vector<fs::path> paths;
  for (const std::int64_t step : steps) paths.push_back(checkpoints.checkpoint(step));
  // A folder of this name is what a copy without links has made of the link.
  if (steps.empty() && fs::exists(folder / "last" / kStateFile)) paths.push_back(fs::canonical(folder / "last"));
  std::string passed_over;
  while (!paths.empty()) {
    const fs::path path = paths.back();
    paths.pop_back();
    try {
      auto content = read_checkpoint(path, parts);
      if (!passed_over.empty()) log::warning("{} is used instead", path.string());
      return ResumePoint{path, std::move(content)};
    } catch (const Error& e) {
      passed_over = path.string();
      log::warning("{} cannot be used: {}", path.string(), e.what());
    }
  }
  COHORT_THROW_UNLESS(passed_over.empty(),
                      "no checkpoint under {} can be read (see the warnings above); train.checkpoint.resume=none "
                      "starts from the beginning",
                      folder.string());
  return std::nullopt;
}

/// Why a path holds no checkpoint, and what to name instead.
std::string why_no_checkpoint(const fs::path& path) {
  constexpr const char* kRunFile = "config.json";
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    // ema/model.safetensors lies one deeper.
    for (const fs::path& whole : {path.parent_path(), path.parent_path().parent_path()})
      if (fs::exists(whole / kStateFile, error) || fs::exists(whole / kRunFile, error))
        return format("{} is one file of many: name the folder, {}", path.string(),
                      whole.empty() ? "." : whole.string());
    return format("{} is a file: a checkpoint is a folder with {} in it", path.string(), kStateFile);
  }
  if (fs::exists(path / kRunFile, error))
    return format(
        "{} is a run that has saved no checkpoint yet: the first comes after train.checkpoint.every steps, "
        "or at the end of the training",
        path.string());
  const std::string none =
      format("{} holds no checkpoint: there is no {} in it, and none below checkpoints", path.string(), kStateFile);
  if (fs::exists(path / "latest", error))
    return format("{}; the newest run of this name is {}", none, (path / "latest").string());
  std::vector<std::string> runs;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (fs::exists(entry.path() / "latest" / kRunFile, error)) runs.push_back((entry.path() / "latest").string());
  std::sort(runs.begin(), runs.end());
  return none + (runs.empty() ? "" : "; the newest runs of the names in it are " + join(runs, ", "));
}

}  // namespace

CheckpointContent read_checkpoint(const fs::path& path, CheckpointParts parts) {
  COHORT_THROW_UNLESS(fs::is_directory(path), "there is no checkpoint folder {}", path.string());
  const fs::path state_path = path / kStateFile;
  config::Json json;
  try {
    json = parse_json<config::Json>(read_file(state_path));
  } catch (const config::Json::exception& e) {
    throw Error(format("{} is no JSON: it is damaged ({})", state_path.string(), e.what()));
  }
  CheckpointContent content;
  content.state = trainer_state_from_json(json, state_path.string());
  check_files(path, json);
  const std::int64_t step = content.state.step;
  auto model = read_part(path / kModelFile, step);
  content.model = std::move(model.tensors);
  content.model_aliases = std::move(model.metadata);
  content.model_aliases.erase("step");
  content.model_aliases.erase("format");
  if (parts == CheckpointParts::kAll) {
    content.optimizer = read_part(path / kOptimizerFile, step).tensors;
    content.random = read_part(path / kRandomFile, step).tensors;
  }
  if (json["files"].contains(kEmaFile)) content.ema = read_part(path / kEmaFile, step).tensors;
  if (json["files"].contains(kStatisticsFile)) content.dataset_statistics = read_file(path / kStatisticsFile);
  // Last: a file of another checkpoint has been named as such by now.
  std::vector<std::string> names{kStateFile, kModelFile, kEmaFile, kStatisticsFile};
  if (parts == CheckpointParts::kAll) names.insert(names.end(), {kOptimizerFile, kRandomFile});
  verify_checksums(path, names);
  return content;
}

std::optional<ResumePoint> find_resume_point(const std::string& resume, const fs::path& folder, CheckpointParts parts) {
  if (resume == "none") return std::nullopt;
  if (resume == "auto") return folder.empty() ? std::nullopt : last_whole(folder, parts);
  const fs::path path = resume;
  if (!fs::exists(path / kStateFile))
    for (const fs::path& checkpoints : {path, path / "checkpoints"})
      if (std::optional<ResumePoint> point = last_whole(checkpoints, parts)) return point;
  COHORT_THROW_UNLESS(fs::exists(path / kStateFile) || !fs::exists(path), "{}", why_no_checkpoint(path));
  return ResumePoint{path, read_checkpoint(path, parts)};
}

}  // namespace cohort::weights
