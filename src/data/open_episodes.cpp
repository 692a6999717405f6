#include "data/open_episodes.h"

#include <algorithm>
#include <vector>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "data/format.h"
#include "data/kept_steps.h"
#include "data/local_path.h"
#include "data/other_formats.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

/// What lies at a path. Throws Error saying what is missing, or what the path is instead.
const DataFormat& format_at(const fs::path& path) {
  const DataFormat* best = nullptr;
  for (const DataFormat& known : formats())
    if ((best == nullptr || known.precedence > best->precedence) && known.probe(path)) best = &known;
  if (best != nullptr) return *best;
  if (const std::string other = other_format(path); !other.empty()) throw Error(other);
  std::vector<const DataFormat*> near;
  for (const DataFormat& known : formats()) near.push_back(&known);
  std::stable_sort(near.begin(), near.end(),
                   [](const auto* a, const auto* b) { return a->precedence > b->precedence; });
  std::vector<std::string> contents;
  for (const DataFormat* known : near) {
    contents.push_back(known->contents);
    if (const std::string hint = known->hint ? known->hint(path) : ""; !hint.empty()) throw Error(hint);
  }
  throw Error(format("{} is no robot data that is known: {}", path.string(), join(contents, ", ")));
}

}  // namespace

std::unique_ptr<EpisodeSource> open_episodes(const fs::path& path, const OpenSettings& settings) {
  const DataFormat* named = nullptr;
  if (settings.format != "auto") named = &find_format(settings.format, "the format of robot data is auto,");
  need_local_path(path);
  return keep_steps((named != nullptr ? *named : format_at(path)).open(path, settings), settings.step_filter,
                    settings.threads > 0 ? settings.threads : available_cores());
}

}  // namespace cohort::data
