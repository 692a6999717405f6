#include "cli/check_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actor/policy_actor.h"
#include "cli/check_rows.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/usage_error.h"
#include "onnx/contract.h"
#include "onnx/model.h"
#include "onnx/onnx_policy.h"
#include "onnx/translation.h"
#include "tasks/actor.h"
#include "tasks/registry.h"
#include "tasks/rollout.h"

namespace cohort::cli {
namespace {

/// Which of the task's fields the policy is shown: those that its contract names, where the task has all of them; else
/// as many as it sees numbers of, all or all that a robot measures. The others' names; nothing where none fit.
std::optional<std::vector<std::string>> unseen_fields(const tasks::TaskSpec& spec, const onnx::Contract& policy,
                                                      std::int64_t width) {
  const auto named = [&](const std::string& name) {
    return std::any_of(policy.observations.begin(), policy.observations.end(),
                       [&](const onnx::Contract::Observation& one) { return one.name == name; });
  };
  const auto others = [&](const auto& is_seen) -> std::optional<std::vector<std::string>> {
    std::vector<std::string> unseen;
    std::int64_t seen = 0;
    for (const tasks::FieldSpec& field : spec.observations)
      is_seen(field) ? void(seen += field.elements()) : unseen.push_back(field.name);
    if (seen != width) return std::nullopt;
    return unseen;
  };
  if (auto by_name = others([&](const tasks::FieldSpec& field) { return named(field.name); })) return by_name;
  if (auto all = others([](const tasks::FieldSpec&) { return true; })) return all;
  return others([](const tasks::FieldSpec& field) { return !field.privileged; });
}

std::int64_t width_of(const onnx::Model& model) {
  // The widest of the inputs (n, width) is what it sees; onnx_policy() says what is wrong where it is not.
  std::int64_t width = 0;
  for (const onnx::Port& port : model.inputs)
    if (port.shape.size() == 2) width = std::max(width, port.shape[1].size);
  return width;
}

/// "return 812 +- 3, success 19 of 20, 500 steps".
std::string outcome_text(const std::vector<tasks::EpisodeOutcome>& outcomes) {
  double sum = 0, squares = 0;
  std::int64_t solved = 0, failed = 0, steps = 0;
  for (const tasks::EpisodeOutcome& outcome : outcomes) {
    sum += outcome.total_reward;
    squares += outcome.total_reward * outcome.total_reward;
    solved += outcome.success;
    failed += outcome.failed;
    steps += outcome.steps;
  }
  const auto n = static_cast<double>(outcomes.size());
  const double mean = sum / n, deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
  return format("return {:.4g} +- {:.2g}, success in {} of {} episodes, {:.0f} steps{}", mean, deviation, solved,
                outcomes.size(), static_cast<double>(steps) / n, failed > 0 ? format(", {} failed", failed) : "");
}

}  // namespace

bool print_policy_check(const std::string& name, tasks::TaskSettings settings, const PolicyCheck& check) {
  if (!check.file.ends_with(".onnx"))
    throw UsageError(
        format("--check-policy {}: an ONNX file, NAME.onnx; `cohort export RUN NAME.onnx` writes one", check.file));
  settings.n_envs = std::min(check.episodes, 64);
  settings.threads = available_cores();
  const std::unique_ptr<tasks::Task> task = tasks::make_task(name, settings);
  const tasks::TaskSpec& spec = task->spec();
  const onnx::Model model = onnx::read_model(check.file);
  onnx::Contract contract = onnx::read_contract(model.metadata, check.file);
  const std::int64_t width = width_of(model);
  const std::optional<std::vector<std::string>> unseen = unseen_fields(spec, contract, width);
  const onnx::Contract there = onnx::contract_of(*task, unseen.value_or(std::vector<std::string>{}));
  std::int64_t all = 0;
  std::vector<policy::Observation> shown;
  for (const onnx::Contract::Observation& one : there.observations) {
    all += one.width();
    shown.push_back({.name = one.name, .shape = {one.width()}});
    for (onnx::Contract::Observation& seen : contract.observations)
      if (seen.name == one.name && seen.shape.empty() && unseen) seen.shape = one.shape;
  }
  std::vector<tasks::CheckRow> rows = onnx::check_contract(contract, there);
  using Outcome = tasks::CheckRow::Outcome;
  const auto load = [&](const onnx::Contract& of) { return onnx::onnx_policy(model, of, check.file); };
  const std::int64_t actions = load({})->spec().action_width;
  const bool fits = unseen && actions == spec.action.width();
  rows.push_back({.name = "numbers",
                  .outcome = fits ? Outcome::kPass : Outcome::kFail,
                  .found = format("it sees {} and gives {}{}", width, actions,
                                  fits ? "" : format("; the task has {} and takes {}", all, spec.action.width())),
                  .remedy = fits ? "" : "a task with as many observations and actions: its settings may have them"});
  const bool passed =
      print_check_rows(rows, format("{} fits {}", check.file, spec.name), format("{} in {}", check.file, spec.name));
  if (!fits) return false;
  const std::vector<std::uint64_t> seeds = tasks::consecutive_seeds(check.seed, check.episodes);
  const auto play = [&](const std::string& how, const std::string& what, tasks::Actor& actor) {
    std::puts(format("{:<12}  {}{}", how, outcome_text(tasks::run_episodes(*task, actor, seeds)), what).c_str());
    std::fflush(stdout);
  };
  const auto play_policy = [&](const std::string& how, const std::string& what, onnx::Translation translation) {
    const auto policy = onnx::translated(load({}), shown, std::move(translation));
    actor::PolicyActor actor(*policy, *task, check.file);
    play(how, what, actor);
  };
  play_policy("as it stands", "",
              onnx::untranslated(static_cast<std::size_t>(width), static_cast<std::size_t>(actions)));
  try {
    onnx::Translation translation = onnx::translation(contract, there);
    if (!translation.steps.empty() && std::ssize(translation.actions) == actions)
      play_policy("by contract", format("; put right: {}", join(translation.steps, ", ")), translation);
  } catch (const Error& e) {
    std::puts(format("{:<12}  not played: {}", "by contract", e.what()).c_str());
  }
  const std::unique_ptr<tasks::Actor> random = tasks::make_random_actor(check.seed);
  play("random", "", *random);
  return passed;
}

}  // namespace cohort::cli
