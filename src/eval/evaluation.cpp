#include "eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"
#include "core/progress.h"
#include "core/stop_signal.h"
#include "dist/group.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace cohort::eval {
namespace {

using config::Json;
using tasks::EpisodeOutcome;

template <class Figure>
double mean(const std::vector<EpisodeOutcome>& episodes, Figure figure) {
  double sum = 0;
  for (const EpisodeOutcome& e : episodes) sum += figure(e);
  return episodes.empty() ? 0 : sum / static_cast<double>(episodes.size());
}

/// Counts episodes on the progress bar, and control steps: episodes that run side by side end late, and together.
class Counter final : public tasks::RolloutObserver {
 public:
  Counter(const std::string& policy, std::int64_t episodes, bool silent)
      : progress_(episodes, {.label = policy, .unit = "episode", .silent = silent, .ticks = true, .keep = false}) {}
  void stepped(tasks::Task&, std::span<const tasks::RunningEpisode> running) override {
    steps_ += std::ssize(running);
    if (progress_.due(ended_)) show();
  }
  void ended(const tasks::RunningEpisode&, const EpisodeOutcome& outcome) override {
    ++ended_;
    if (outcome.success) ++successes_;
    show();
  }
  void finish() { progress_.finish(); }
  std::string how_far(std::size_t of) const {
    return format(
        "stopped after {} of {} episodes, {} of them successes; a figure needs all of them, so none is written", ended_,
        of, successes_);
  }

 private:
  void show() {
    progress_.update(ended_, {{"success", format("{}/{}", successes_, ended_)}, {"steps", format("{}", steps_)}});
  }

  Progress progress_;
  std::int64_t ended_ = 0, successes_ = 0, steps_ = 0;
};

/// What the reward is made of, in tasks that say how large a term can be: what counts there is how well it is followed,
/// not success alone. In all others the table stays a table.
std::string terms_lines(const PolicyResult& r, std::size_t indent) {
  std::string shares, means;
  for (std::size_t i = 0; i < r.terms.size(); ++i) {
    if (r.share_of_term(i) != 0)
      shares += format("{}{} {:.3f}", shares.empty() ? "" : ", ", r.terms[i], r.share_of_term(i));
    means += format("{}{} {:.5f}", means.empty() ? "" : ", ", r.terms[i], r.mean_of_term(i));
  }
  if (shares.empty()) return "";
  std::string text = format("{:<{}}  share of the most that a term can be: {}\n", "", indent, shares);
  text += format("{:<{}}  mean of a step: {}\n", "", indent, means);
  return text +
         format("{:<{}}  ended early without success: {} of {}\n", "", indent, r.ended_early(), r.episodes.size());
}

/// The numbers that a task shows beside the reward.
std::string metrics_line(const PolicyResult& r, std::size_t indent) {
  if (r.metrics.empty()) return "";
  std::string text;
  for (std::size_t i = 0; i < r.metrics.size(); ++i)
    text += format("{}{} {:.4g}", text.empty() ? "" : ", ", r.metrics[i].name, r.mean_of_metric(i));
  return format("{:<{}}  metrics: {}\n", "", indent, text);
}

}  // namespace

Json to_json(const EpisodeOutcome& e) {
  Json row = {{"seed", e.seed},           {"success", e.success},       {"steps", e.steps},
              {"return", e.total_reward}, {"max_reward", e.max_reward}, {"terminated", e.terminated}};
  if (!e.terms.empty()) row["terms"] = e.terms;
  if (!e.metrics.empty()) row["metrics"] = e.metrics;
  if (e.success_step > 0) row["success_step"] = e.success_step;
  if (e.failed) row["fault"] = e.fault;
  return row;
}

EpisodeOutcome episode_from_json(const Json& row) {
  EpisodeOutcome e;
  e.seed = row.at("seed").get<std::uint64_t>();
  e.success = row.at("success").get<bool>();
  e.steps = row.at("steps").get<std::int64_t>();
  e.total_reward = row.at("return").get<double>();
  e.max_reward = row.at("max_reward").get<double>();
  e.terminated = row.at("terminated").get<bool>();
  if (row.contains("success_step")) e.success_step = row.at("success_step").get<std::int64_t>();
  if (row.contains("terms")) e.terms = row.at("terms").get<std::vector<double>>();
  // JSON has null for a number that is none, as a formula's 0 / 0 is.
  if (row.contains("metrics"))
    for (const Json& value : row.at("metrics"))
      e.metrics.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  e.failed = row.contains("fault");
  if (e.failed) e.fault = row.at("fault").get<std::string>();
  return e;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::int64_t PolicyResult::successes() const {
  return std::count_if(episodes.begin(), episodes.end(), [](const EpisodeOutcome& e) { return e.success; });
}
std::int64_t PolicyResult::faults() const {
  return std::count_if(episodes.begin(), episodes.end(), [](const EpisodeOutcome& e) { return e.failed; });
}
double PolicyResult::success_rate() const {
  return mean(episodes, [](const EpisodeOutcome& e) { return e.success ? 1.0 : 0.0; });
}
Interval PolicyResult::interval() const {
  return wilson_interval(successes(), static_cast<std::int64_t>(episodes.size()));
}
double PolicyResult::mean_return() const {
  return mean(episodes, [](const EpisodeOutcome& e) { return e.total_reward; });
}
double PolicyResult::mean_max_reward() const {
  return mean(episodes, [](const EpisodeOutcome& e) { return e.max_reward; });
}
double PolicyResult::mean_steps() const {
  return mean(episodes, [](const EpisodeOutcome& e) { return static_cast<double>(e.steps); });
}
double PolicyResult::mean_of_term(std::size_t term) const {
  double sum = 0, steps = 0;
  for (const EpisodeOutcome& e : episodes)
    if (term < e.terms.size()) sum += e.terms[term], steps += static_cast<double>(e.steps);
  return steps > 0 ? sum / steps : 0;
}
double PolicyResult::share_of_term(std::size_t term) const {
  const double best = term < best_of_term.size() ? static_cast<double>(best_of_term[term]) : 0;
  return best > 0 ? mean_of_term(term) / best : 0;
}
double PolicyResult::mean_of_metric(std::size_t metric) const {
  double sum = 0, weight = 0;
  for (const EpisodeOutcome& e : episodes) {
    if (metric >= e.metrics.size()) continue;
    const double counts = metrics[metric].at_end ? 1 : static_cast<double>(e.steps);
    sum += counts * e.metrics[metric], weight += counts;
  }
  return weight > 0 ? sum / weight : 0;
}
std::int64_t PolicyResult::ended_early() const {
  return std::count_if(episodes.begin(), episodes.end(),
                       [](const EpisodeOutcome& e) { return e.terminated && !e.success && !e.failed; });
}

PolicyResult rollout(tasks::Task& task, tasks::Actor& actor, std::span<const std::uint64_t> seeds,
                     const EvaluationSettings& settings) {
  const auto rank = static_cast<std::size_t>(settings.group ? settings.group->rank() : 0),
             world = static_cast<std::size_t>(settings.group ? settings.group->world_size() : 1);
  std::vector<std::uint64_t> own;
  for (std::size_t i = rank; i < seeds.size(); i += world) own.push_back(seeds[i]);
  const auto begin = std::chrono::steady_clock::now();
  const tasks::RolloutSettings rules{
      .max_steps = settings.max_steps, .end_at_success = settings.end_at_success, .instruction = ""};
  PolicyResult result;
  result.policy = actor.name();
  result.terms = task.spec().reward_terms;
  result.best_of_term = task.spec().reward_best;
  result.metrics = task.spec().metrics;
  // More ranks than episodes: the others only take part in the exchange. No seed at all is refused by all ranks alike.
  if (!own.empty() || seeds.empty()) {
    Counter counter(result.policy, static_cast<std::int64_t>(own.size()), settings.silent || rank != 0);
    try {
      result.episodes = tasks::run_episodes(task, actor, own, rules, &counter);
    } catch (const Stopped& stopped) {
      throw Stopped(stopped.signal(), counter.how_far(own.size()));
    }
    counter.finish();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!settings.group || world == 1) return result;

  Json rows = Json::array();
  for (const EpisodeOutcome& outcome : result.episodes) rows.push_back(to_json(outcome));
  const std::vector<std::string> all =
      settings.group->all_gather_bytes(json_text(Json{{"rows", rows}, {"seconds", result.seconds}}));
  result.episodes.assign(seeds.size(), {});
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Json of_rank = parse_json<Json>(all[r]);
    result.seconds = std::max(result.seconds, of_rank.at("seconds").get<double>());
    std::size_t i = r;
    for (const Json& row : of_rank.at("rows")) {
      result.episodes.at(i) = episode_from_json(row);
      i += world;
    }
  }
  return result;
}

std::string text_table(std::span<const PolicyResult> results) {
  std::size_t longest = 6;
  for (const PolicyResult& r : results) longest = std::max(longest, r.policy.size());
  std::string text = format("{:<{}}  {:>12}  {:>7}  {:>15}  {:>9}  {:>10}  {:>7}  {:>6}\n", "policy", longest,
                            "succeeded", "rate", "95 % interval", "return", "max reward", "steps", "faults");
  for (const PolicyResult& r : results) {
    const Interval interval = r.interval();
    text += format("{:<{}}  {:>12}  {:>7.3f}  {:>15}  {:>9.3f}  {:>10.3f}  {:>7.1f}  {:>6}\n", r.policy, longest,
                   format("{} of {}", r.successes(), r.episodes.size()), r.success_rate(),
                   format("{:.3f} to {:.3f}", interval.low, interval.high), r.mean_return(), r.mean_max_reward(),
                   r.mean_steps(), r.faults());
    if (r.terms.size() > 1) text += terms_lines(r, longest);
    text += metrics_line(r, longest);
    // A table that hides why episodes failed is of no use: the first fault stands below.
    for (const EpisodeOutcome& e : r.episodes)
      if (e.failed) {
        text +=
            format("{:<{}}  {} episodes failed by a fault; seed {}: {}\n", "", longest, r.faults(), e.seed, e.fault);
        break;
      }
  }
  return text;
}

std::string csv_table(std::span<const PolicyResult> results) {
  std::string text = "policy,seed,success,steps,return,max_reward,fault";
  if (!results.empty())
    for (const tasks::MetricSpec& metric : results.front().metrics) text += "," + csv_field(metric.name);
  text += "\n";
  for (const PolicyResult& r : results)
    for (const EpisodeOutcome& e : r.episodes) {
      text += format("{},{},{},{},{},{},{}", csv_field(r.policy), e.seed, e.success ? 1 : 0, e.steps, e.total_reward,
                     e.max_reward, csv_field(e.fault));
      // An episode that failed at once has none.
      for (std::size_t i = 0; i < r.metrics.size(); ++i)
        text += i < e.metrics.size() ? format(",{}", e.metrics[i]) : ",";
      text += "\n";
    }
  return text;
}

Json to_json(const EvaluationHead& head, std::span<const PolicyResult> results) {
  Json json = {{"task", head.task},
               {"settings", try_json<Json>(head.description)},
               {"first_seed", head.first_seed},
               {"max_steps", head.max_steps},
               {"policies", Json::array()}};
  for (const PolicyResult& r : results) {
    const Interval interval = r.interval();
    Json rows = Json::array();
    for (const EpisodeOutcome& e : r.episodes) rows.push_back(to_json(e));
    Json terms = Json::object();
    for (std::size_t i = 0; i < r.terms.size(); ++i)
      terms[r.terms[i]] = {{"mean_of_step", r.mean_of_term(i)}, {"share_of_best", r.share_of_term(i)}};
    Json metrics = Json::object();
    for (std::size_t i = 0; i < r.metrics.size(); ++i) metrics[r.metrics[i].name] = r.mean_of_metric(i);
    json["policies"].push_back({{"policy", r.policy},
                                {"successes", r.successes()},
                                {"episodes", r.episodes.size()},
                                {"success_rate", r.success_rate()},
                                {"interval", {interval.low, interval.high}},
                                {"mean_return", r.mean_return()},
                                {"mean_max_reward", r.mean_max_reward()},
                                {"mean_steps", r.mean_steps()},
                                {"faults", r.faults()},
                                {"ended_early", r.ended_early()},
                                {"reward_terms", std::move(terms)},
                                {"metrics", std::move(metrics)},
                                {"table", std::move(rows)}});
  }
  return json;
}

}  // namespace cohort::eval
