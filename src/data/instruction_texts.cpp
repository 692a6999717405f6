#include "data/instruction_texts.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "core/error.h"
#include "core/threads.h"

namespace cohort::data {
namespace {

bool is_metadata(const EpisodeSource& source, const std::string& name) {
  const auto& names = source.metadata_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool has_instructions(const EpisodeSource& source, const std::string& name) {
  return is_metadata(source, name) ||
         std::any_of(source.fields().begin(), source.fields().end(), [&](const StepField& field) {
           return field.name == name && field.kind == StepKind::kText && field.fault().empty();
         });
}

std::vector<std::string> episode_instructions(const EpisodeSource& source, std::span<const std::int64_t> episodes,
                                              const std::string& name, int threads) {
  const bool whole = is_metadata(source, name);
  const std::size_t field = whole ? 0 : source.field_index(name);
  if (!whole) {
    const StepField& spec = source.fields()[field];
    const std::string fault = spec.kind == StepKind::kText ? spec.fault() : "holds no texts";
    COHORT_THROW_UNLESS(fault.empty(), "instruction: the field {} of {} {}", spec.name, source.name(), fault);
  }
  std::vector<std::string> found(episodes.size());
  parallel_for(static_cast<std::int64_t>(found.size()), threads, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const auto episode = source.open(episodes[at]);
    if (whole) {
      found[at] = episode->metadata(name);
      return;
    }
    // The first step that has a text: some recorders write it from the second step on.
    for (std::int64_t step = 0; step < episode->steps() && found[at].empty(); ++step)
      found[at] = episode->text(field, step);
  });
  return found;
}

std::vector<std::string> distinct_instructions(const EpisodeSource& source, const std::string& name, int threads) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(source.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::string> texts;
  std::unordered_set<std::string> known;
  for (std::string& text : episode_instructions(source, all, name, threads))
    if (known.insert(text).second) texts.push_back(std::move(text));
  return texts;
}

}  // namespace cohort::data
