#include "weights/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"

namespace cohort::weights {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kName = "checkpoint-";

/// The step of "checkpoint-<step>", or nothing.
std::optional<std::int64_t> parse_step(std::string_view name) {
  if (!name.starts_with(kName)) return std::nullopt;
  name.remove_prefix(kName.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0 || name.empty()) return std::nullopt;
  return step;
}

void remove_folder(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  COHORT_THROW_UNLESS(!error, "cannot remove {}: {}", path.string(), error.message());
}

void rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  COHORT_THROW_UNLESS(!error, "cannot rename {} to {}: {}", from.string(), to.filename().string(), error.message());
}

}  // namespace

fs::path CheckpointFolder::checkpoint(std::int64_t step) const {
  return folder_ / format("{}{}", kName, step);
}

fs::path CheckpointFolder::aside(std::int64_t step, const char* purpose) const {
  return folder_ / format(".{}{}.{}", kName, step, purpose);
}

fs::path CheckpointFolder::begin(std::int64_t step) const {
  const fs::path path = aside(step, "tmp");
  std::error_code error;
  fs::create_directories(folder_, error);
  COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", folder_.string(), error.message());
  remove_folder(path);
  fs::create_directory(path, error);
  COHORT_THROW_UNLESS(!error, "cannot create the folder {}: {}", path.string(), error.message());
  return path;
}

void CheckpointFolder::commit(std::int64_t step, bool is_best) const {
  const fs::path built = aside(step, "tmp"), final_path = checkpoint(step), replaced = aside(step, "old");
  for (const auto& entry : fs::recursive_directory_iterator(built)) {
    if (entry.is_directory()) sync_path(entry.path());
  }
  sync_path(built);
  if (fs::exists(final_path)) {
    // Two renames and not one exchange: clean() undoes the first if the machine stops between them.
    remove_folder(replaced);
    rename_folder(final_path, replaced);
  }
  rename_folder(built, final_path);
  sync_path(folder_);
  // The checkpoint is whole. What follows is convenience, and ends no training.
  try {
    point("last", step);
    if (is_best) point("best", step);
    sync_path(folder_);
    remove_folder(replaced);
  } catch (const Error& e) {
    log::warning("checkpoint-{} is saved, but: {}", step, e.what());
  }
}

void CheckpointFolder::point(const char* link, std::int64_t step) const {
  replace_symlink(checkpoint(step).filename(), folder_ / link);
}

void CheckpointFolder::restore_links() const {
  for (const char* link : {"last", "best"}) {
    const fs::path path = folder_ / link;
    std::error_code error;
    if (fs::symlink_status(path, error).type() != fs::file_type::directory) continue;
    try {
      const auto json = try_json<config::Json>(read_file(path / kStateFile));
      COHORT_THROW_UNLESS(json.is_object() && json.contains("step") && json.at("step").is_number_integer(),
                          "{} holds no step", (path / kStateFile).string());
      const auto step = json.at("step").get<std::int64_t>();
      if (!fs::exists(checkpoint(step))) {
        rename_folder(path, checkpoint(step));
      } else {
        COHORT_THROW_UNLESS(read_file(checkpoint(step) / kStateFile) == read_file(path / kStateFile),
                            "it is no copy of checkpoint-{}", step);
        remove_folder(path);
      }
      point(link, step);
      log::info("{} was a folder, as copies without links are; it is a link to checkpoint-{} again", path.string(),
                step);
    } catch (const Error& e) {
      log::warning(
          "{} is a folder and no link, and stays as it is, whatever is saved: {}. Continuing goes from the "
          "checkpoint of the highest step",
          path.string(), e.what());
    }
  }
  // What the first save would find.
  std::error_code error;
  if (!fs::is_directory(folder_, error)) return;
  const fs::path trial = folder_ / format(".link.tmp{}", ::getpid());
  fs::create_symlink("checkpoint-0", trial, error);
  if (error)
    log::warning(
        "{}: no links can be made here ({}), so that there will be no `last`; continuing goes from the "
        "checkpoint of the highest step",
        folder_.string(), error.message());
  fs::remove(trial, error);
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> result;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.is_symlink(error) || !entry.is_directory(error)) continue;
    if (const auto step = parse_step(entry.path().filename().string())) result.push_back(*step);
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::optional<std::int64_t> CheckpointFolder::step_of_link(const char* link) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(folder_ / link, error);
  if (error) return std::nullopt;
  const auto step = parse_step(target.filename().string());
  return step && fs::is_directory(checkpoint(*step)) ? step : std::nullopt;
}

int CheckpointFolder::clean() const {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder_, error)) found.push_back(entry.path());
  int removed = 0;
  for (const auto& path : found) {
    const std::string name = path.filename().string();
    // What write_file_atomically and replace_symlink leave behind when they are killed ends in .tmp<process id>.
    if (name.starts_with("last.tmp") || name.starts_with("best.tmp") || name.starts_with(".link.tmp")) {
      fs::remove(path, error);
      continue;
    }
    if (!name.starts_with(".checkpoint-")) continue;
    const auto dot = name.rfind('.');
    const auto step = parse_step(std::string_view(name).substr(1, dot - 1));
    if (!step) continue;
    const std::string purpose = name.substr(dot + 1);
    if (purpose == "old" && !fs::exists(checkpoint(*step))) {
      rename_folder(path, checkpoint(*step));
      log::warning("{}: checkpoint-{} was being replaced when the former run ended; the old one is back",
                   folder_.string(), *step);
    } else if (purpose == "old" || purpose == "tmp") {
      remove_folder(path);
      ++removed;
    }
  }
  return removed;
}

void CheckpointFolder::prune(std::int64_t keep) const {
  if (keep <= 0) return;
  auto all = steps();
  const auto newest = last(), chosen = best();
  if (newest) std::rotate(all.begin(), std::upper_bound(all.begin(), all.end(), *newest), all.end());
  std::int64_t to_remove = static_cast<std::int64_t>(all.size()) - keep;
  // A best checkpoint that is older than the kept ones is kept in addition to them.
  for (std::size_t i = 0; i < all.size() && to_remove > 0; ++i, --to_remove) {
    if (all[i] == newest || all[i] == chosen) continue;
    const fs::path doomed = aside(all[i], "tmp");
    remove_folder(doomed);
    rename_folder(checkpoint(all[i]), doomed);  // killed in between, it does not look whole
    remove_folder(doomed);
  }
}

}  // namespace cohort::weights
