#include "policy/checkpoint_folder.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"

namespace cohort::policy {
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
  replace_symlink(final_path.filename(), folder_ / "last");
  if (is_best) replace_symlink(final_path.filename(), folder_ / "best");
  sync_path(folder_);
  remove_folder(replaced);
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  std::vector<std::int64_t> result;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (!entry.is_directory() || entry.is_symlink()) continue;
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
    if (name.starts_with("last.tmp") || name.starts_with("best.tmp")) {
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

}  // namespace cohort::policy
