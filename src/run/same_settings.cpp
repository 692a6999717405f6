#include "run/same_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/error.h"
#include "core/json_text.h"
#include "dist/group.h"
#include "parallel/parameter_hash.h"

namespace cohort::run {
namespace {

/// What may differ between ranks. With a dot at the end: a whole section.
constexpr std::array<std::string_view, 27> kOfOneRank{
    // Results are rank 0's, and it tells the others where they are.
    "name", "output_dir", "resume", "tensorboard", "tensorboard_charts", "charts", "train.checkpoint.resume",
    // What a machine has; `backend` names it in several ways.
    "backend", "devices", "threads", "learner_threads", "loader.", "dist.", "data.threads", "data.csv.threads",
    "data.cache_bytes",
    // Where files lie; the models and the numbers of samples that come of them are compared.
    "task_library", "data.path", "data.paths", "data.statistics", "data.statistics_cache", "data.index_cache",
    "init_from", "model.initial_weights", "model.backbone_weights", "model.language.weights",
    "model.language.vocabulary"};

bool may_differ(const std::string& path) {
  return std::ranges::any_of(
      kOfOneRank, [&](std::string_view key) { return key.ends_with('.') ? path.starts_with(key) : path == key; });
}

/// One line for each setting: path, tab, value as JSON, which writes line ends and tabs as escapes.
void add_lines(const config::Json& json, const std::string& path, std::string& lines) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) add_lines(value, path.empty() ? key : path + "." + key, lines);
  } else if (!may_differ(path)) {
    lines += path + "\t" + json_text(json) + "\n";
  }
}

std::vector<std::pair<std::string, std::string>> read_lines(const std::string& lines) {
  std::vector<std::pair<std::string, std::string>> settings;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t tab = line.find('\t');
    settings.emplace_back(line.substr(0, tab), line.substr(tab + 1));
  }
  return settings;
}

std::string difference(std::size_t rank, const std::string& theirs, const std::string& first) {
  const auto a = read_lines(first), b = read_lines(theirs);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto& [key, value] = a[i];
    if (key != b[i].first)
      return format("rank 0 has {} where rank {} has {}: are they of one version of Cohort?", key, rank, b[i].first);
    if (value != b[i].second) return format("{} is {} on rank 0, but {} on rank {}", key, value, b[i].second, rank);
  }
  return format("rank 0 has {} of them, rank {} has {}: are they of one version of Cohort?", a.size(), rank, b.size());
}

}  // namespace

void check_same_settings(const config::Json& settings, dist::Group& group) {
  std::string lines;
  add_lines(settings, "", lines);
  // As long as all agree, 8 bytes are all that travels.
  const std::uint64_t digest = parallel::xxh64(lines.data(), lines.size());
  const auto digests = group.all_gather_bytes(std::string(reinterpret_cast<const char*>(&digest), sizeof digest));
  if (std::ranges::all_of(digests, [&](const std::string& d) { return d == digests.front(); })) return;

  const auto all = group.all_gather_bytes(lines);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    COHORT_THROW_UNLESS(all[rank] == all[0],
                        "the ranks have different settings: {}. Start all ranks with the same ones; only paths, "
                        "devices, threads and where results go may differ",
                        difference(rank, all[rank], all[0]));
}

}  // namespace cohort::run
