#include "eval/benchmark.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "dist/group.h"

namespace cohort::eval {
namespace {

using config::Json;

double mean_of_tasks(std::span<const TaskResult> results, std::size_t policy) {
  double sum = 0;
  for (const TaskResult& r : results) sum += r.policies.at(policy).success_rate();
  return results.empty() ? 0 : sum / static_cast<double>(results.size());
}

std::string name_of(const BenchmarkHead& head, std::span<const TaskResult> results) {
  return format("{}, {} of {} tasks", head.benchmark, results.size(), head.tasks_of_benchmark);
}

std::string line_of(const std::string& task, std::size_t task_width, const PolicyResult& r, std::size_t policy_width) {
  const Interval interval = r.interval();
  return format("{:<{}}  {:<{}}  {:>12}  {:>7.3f}  {:>15}  {:>7.1f}  {:>6}\n", task, task_width, r.policy, policy_width,
                format("{} of {}", r.successes(), r.episodes.size()), r.success_rate(),
                format("{:.3f} to {:.3f}", interval.low, interval.high), r.mean_steps(), r.faults());
}

Json policies_of(std::span<const TaskResult> results) {
  Json policies = Json::array();
  for (std::size_t p = 0; !results.empty() && p < results.front().policies.size(); ++p) {
    const PolicyResult all = over_all(results, p);
    const Interval interval = all.interval();
    policies.push_back({{"policy", all.policy},
                        {"successes", all.successes()},
                        {"episodes", all.episodes.size()},
                        {"success_rate", all.success_rate()},
                        {"interval", {interval.low, interval.high}},
                        {"mean_of_tasks", mean_of_tasks(results, p)},
                        {"mean_return", all.mean_return()},
                        {"mean_max_reward", all.mean_max_reward()},
                        {"mean_steps", all.mean_steps()},
                        {"faults", all.faults()}});
  }
  return policies;
}

std::string group_name(const std::string& perturbation, std::size_t tasks) {
  return format("{}, {} {}", perturbation, tasks, tasks == 1 ? "task" : "tasks");
}

}  // namespace

std::vector<std::pair<std::string, std::vector<TaskResult>>> by_perturbation(std::span<const TaskResult> results) {
  std::vector<std::pair<std::string, std::vector<TaskResult>>> groups;
  for (const TaskResult& r : results) {
    if (r.perturbation.empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == r.perturbation; });
    if (group == groups.end()) group = groups.insert(groups.end(), {r.perturbation, {}});
    group->second.push_back(r);
  }
  return groups;
}

std::vector<std::uint64_t> share_of(std::span<const std::uint64_t> seeds, std::size_t task, int rank, int world_size) {
  const auto world = static_cast<std::size_t>(world_size);
  std::vector<std::uint64_t> own;
  for (std::size_t i = 0; i < seeds.size(); ++i)
    if ((task * seeds.size() + i) % world == static_cast<std::size_t>(rank)) own.push_back(seeds[i]);
  return own;
}

void merge_ranks(std::vector<TaskResult>& results, std::span<const std::uint64_t> seeds, dist::Group& group) {
  Json own = Json::array();
  for (const TaskResult& r : results) {
    Json policies = Json::array();
    for (const PolicyResult& p : r.policies) {
      Json rows = Json::array();
      for (const tasks::EpisodeOutcome& e : p.episodes) rows.push_back(to_json(e));
      policies.push_back({{"policy", p.policy}, {"seconds", p.seconds}, {"rows", rows}});
    }
    own.push_back({{"instruction", r.instruction}, {"description", r.description}, {"policies", policies}});
  }
  std::map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < seeds.size(); ++i) place[seeds[i]] = i;
  std::vector<Json> ranks;
  for (const std::string& text : group.all_gather_bytes(json_text(own))) ranks.push_back(parse_json<Json>(text));
  for (const Json& of_rank : ranks) results.resize(std::min(results.size(), of_rank.size()));
  std::vector<TaskResult> merged(results.size());
  for (std::size_t t = 0; t < results.size(); ++t)
    merged[t].task = results[t].task, merged[t].perturbation = results[t].perturbation;
  for (const Json& of_rank : ranks) {
    for (std::size_t t = 0; t < merged.size(); ++t) {
      const Json& from = of_rank.at(t);
      TaskResult& to = merged[t];
      if (to.description.empty()) {
        to.description = from.at("description").get<std::string>();
        to.instruction = from.at("instruction").get<std::string>();
      }
      const Json& policies = from.at("policies");
      if (to.policies.size() < policies.size()) to.policies.resize(policies.size());
      for (std::size_t p = 0; p < policies.size(); ++p) {
        PolicyResult& policy = to.policies[p];
        policy.policy = policies[p].at("policy").get<std::string>();
        policy.seconds = std::max(policy.seconds, policies[p].at("seconds").get<double>());
        policy.episodes.resize(seeds.size());
        for (const Json& row : policies[p].at("rows")) {
          tasks::EpisodeOutcome episode = episode_from_json(row);
          policy.episodes.at(place.at(episode.seed)) = std::move(episode);
        }
      }
    }
  }
  results = std::move(merged);
}

PolicyResult over_all(std::span<const TaskResult> results, std::size_t policy) {
  PolicyResult all;
  for (const TaskResult& r : results) {
    const PolicyResult& p = r.policies.at(policy);
    all.policy = p.policy;
    all.seconds += p.seconds;
    all.episodes.insert(all.episodes.end(), p.episodes.begin(), p.episodes.end());
  }
  return all;
}

std::string text_table(const BenchmarkHead& head, std::span<const TaskResult> results) {
  COHORT_CHECK(!results.empty() && !results.front().policies.empty(), "a table of no results");
  const std::string whole = name_of(head, results);
  const auto groups = by_perturbation(results);
  std::size_t task_width = whole.size(), policy_width = 6;
  for (const auto& [perturbation, group] : groups)
    task_width = std::max(task_width, group_name(perturbation, group.size()).size());
  for (const TaskResult& r : results) {
    task_width = std::max(task_width, r.task.size());
    for (const PolicyResult& p : r.policies) policy_width = std::max(policy_width, p.policy.size());
  }
  std::string text = format("{:<{}}  {:<{}}  {:>12}  {:>7}  {:>15}  {:>7}  {:>6}\n", "task", task_width, "policy",
                            policy_width, "succeeded", "rate", "95 % interval", "steps", "faults");
  std::string fault;
  for (const TaskResult& r : results)
    for (const PolicyResult& p : r.policies) {
      text += line_of(r.task, task_width, p, policy_width);
      // A table that hides why episodes failed is of no use: the first fault stands below.
      for (const tasks::EpisodeOutcome& e : p.episodes)
        if (e.failed && fault.empty())
          fault = format("first fault: {} of {}, seed {}: {}\n", p.policy, r.task, e.seed, e.fault);
    }
  for (const auto& [perturbation, group] : groups)
    for (std::size_t p = 0; p < group.front().policies.size(); ++p)
      text += line_of(group_name(perturbation, group.size()), task_width, over_all(group, p), policy_width);
  for (std::size_t p = 0; p < results.front().policies.size(); ++p)
    text += line_of(whole, task_width, over_all(results, p), policy_width);
  return text + fault;
}

std::string csv_table(const BenchmarkHead& head, std::span<const TaskResult> results) {
  std::string text = "benchmark,task,policy,seed,success,steps,return,max_reward,fault\n";
  for (const TaskResult& r : results)
    for (const PolicyResult& p : r.policies)
      for (const tasks::EpisodeOutcome& e : p.episodes)
        text +=
            format("{},{},{},{},{},{},{},{},{}\n", csv_field(head.benchmark), csv_field(r.task), csv_field(p.policy),
                   e.seed, e.success ? 1 : 0, e.steps, e.total_reward, e.max_reward, csv_field(e.fault));
  return text;
}

Json to_json(const BenchmarkHead& head, std::span<const TaskResult> results) {
  // `task` and the policies' fields are those of a single task's file, so that `cohort report` shows this one, too.
  Json json = {
      {"task", name_of(head, results)}, {"benchmark", head.benchmark}, {"tasks_of_benchmark", head.tasks_of_benchmark},
      {"first_seed", head.first_seed},  {"episodes", head.episodes},   {"max_steps", head.max_steps},
      {"policies", Json::array()},      {"tasks", Json::array()}};
  json["policies"] = policies_of(results);
  for (const auto& [perturbation, group] : by_perturbation(results))
    json["perturbations"].push_back(
        {{"perturbation", perturbation}, {"tasks", group.size()}, {"policies", policies_of(group)}});
  for (const TaskResult& r : results) {
    Json task = to_json(EvaluationHead{r.task, r.description, head.first_seed, head.max_steps}, r.policies);
    task["instruction"] = r.instruction;
    if (!r.perturbation.empty()) task["perturbation"] = r.perturbation;
    json["tasks"].push_back(std::move(task));
  }
  return json;
}

}  // namespace cohort::eval
