#include "models/receding_horizon.h"

#include <algorithm>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/linear.h"

namespace cohort::models {

void RecedingHorizon::begin(std::uint64_t environment) {
  Environment& e = environments_[environment];
  e.frames.clear();
  e.seen = 0;
  e.actions.clear();
  e.count = 0;
}

RecedingHorizon::Environment& RecedingHorizon::remember(std::uint64_t environment, std::size_t row,
                                                        const Observations& frame) {
  const auto horizon = static_cast<std::size_t>(source_.frames);
  Environment& e = environments_[environment];
  Observations& seen = e.frames.emplace_back();
  // A copy: a simulator's buffer will hold the next frame soon.
  for (const ObservationSettings& o : *source_.observations)
    seen[o.name] = frame.at(o.name)[static_cast<std::int64_t>(row)].clone();
  while (e.frames.size() < horizon) e.frames.push_front(e.frames.front());
  if (e.frames.size() > horizon) e.frames.pop_front();
  e.seen = std::min(e.seen + 1, horizon);
  return e;
}

void RecedingHorizon::see(const std::vector<std::uint64_t>& environments, const Observations& frame) {
  check_frame(*source_.observations, frame, static_cast<std::int64_t>(environments.size()));
  for (std::size_t i = 0; i < environments.size(); ++i) remember(environments[i], i, frame);
}

at::Tensor RecedingHorizon::take_queued(std::uint64_t environment) {
  std::deque<at::Tensor>& queued = environments_[environment].actions;
  if (queued.empty()) return {};
  const at::Tensor rows = at::stack(std::vector<at::Tensor>(queued.begin(), queued.end()));
  queued.clear();
  return rows;
}

at::Tensor RecedingHorizon::act(const std::vector<std::uint64_t>& environments, const Observations& frame) {
  const at::NoGradGuard no_grad;
  std::optional<RowsAloneGuard> rows_alone;
  if (exact()) rows_alone.emplace();
  COHORT_CHECK(!source_.policy->is_training(), "a policy acts in evaluation mode: call eval() first");
  const std::vector<ObservationSettings>& names = *source_.observations;
  const auto horizon = static_cast<std::size_t>(source_.frames);
  // Before anything is remembered: after an error, the same frame made good goes on.
  check_frame(names, frame, static_cast<std::int64_t>(environments.size()));
  std::vector<Environment*> empty;
  std::vector<SamplingKey> keys;
  for (std::size_t i = 0; i < environments.size(); ++i) {
    Environment& e = remember(environments[i], i, frame);
    if (!e.actions.empty()) continue;
    empty.push_back(&e);
    keys.push_back({.seed = seed_, .id = environments[i], .count = e.count++});
  }
  if (!empty.empty()) {
    Observations observations;
    for (const ObservationSettings& o : names) {
      std::vector<at::Tensor> frames;
      for (const Environment* e : empty)
        for (const Observations& seen : e->frames) frames.push_back(seen.at(o.name));
      observations[o.name] = padded_rows(
          at::stack(frames).unflatten(0, {static_cast<std::int64_t>(empty.size()), static_cast<std::int64_t>(horizon)}),
          block());
    }
    if (!source_.in_episode.empty()) {
      std::vector<float> of_episode;
      for (const Environment* e : empty)
        for (std::size_t f = 0; f < horizon; ++f) of_episode.push_back(f + e->seen >= horizon ? 1.0f : 0.0f);
      const at::Tensor rows = torch::tensor(of_episode).view({-1, static_cast<std::int64_t>(horizon)});
      observations[source_.in_episode] = padded_rows(rows.to(observations.begin()->second.device()), block());
    }
    const SamplingKey last = keys.back();
    keys.resize(static_cast<std::size_t>(whole_blocks(static_cast<std::int64_t>(keys.size()), block())), last);
    const at::Tensor chunks = source_.draw(observations, keys);
    for (std::size_t i = 0; i < empty.size(); ++i)
      for (std::int64_t t = 0; t < chunks.size(1); ++t)
        empty[i]->actions.push_back(chunks[static_cast<std::int64_t>(i)][t]);
    chunks_ += empty.size();
  }
  std::vector<at::Tensor> actions;
  for (const std::uint64_t environment : environments) {
    Environment& e = environments_.at(environment);
    actions.push_back(e.actions.front());
    e.actions.pop_front();
  }
  return at::stack(actions);
}

}  // namespace cohort::models
