#include "report/evaluation_section.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/markup.h"
#include "report/html_parts.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr const char* kEvaluationFile = "evaluation.json";

SavedEvaluation parse_evaluation(const fs::path& file) {
  const OrderedJson json = parse_json<OrderedJson>(read_file(file));
  SavedEvaluation evaluation;
  evaluation.file = file;
  evaluation.task = json.at("task").get<std::string>();
  evaluation.first_seed = json.at("first_seed").get<std::uint64_t>();
  evaluation.max_steps = json.at("max_steps").get<std::int64_t>();
  // Of a benchmark the policies' figures are over all tasks.
  if (json.contains("tasks")) evaluation.tasks = static_cast<std::int64_t>(json.at("tasks").size());
  evaluation.episodes = json.contains("episodes")     ? json.at("episodes").get<std::int64_t>()
                        : json.at("policies").empty() ? 0
                                                      : json.at("policies").at(0).at("episodes").get<std::int64_t>();
  for (const OrderedJson& p : json.at("policies")) {
    evaluation.policies.push_back({.policy = p.at("policy").get<std::string>(),
                                   .successes = p.at("successes").get<std::int64_t>(),
                                   .episodes = p.at("episodes").get<std::int64_t>(),
                                   .faults = p.at("faults").get<std::int64_t>(),
                                   .rate = p.at("success_rate").get<double>(),
                                   .low = p.at("interval").at(0).get<double>(),
                                   .high = p.at("interval").at(1).get<double>(),
                                   .mean_return = p.at("mean_return").get<double>(),
                                   .mean_max_reward = p.at("mean_max_reward").get<double>(),
                                   .mean_steps = p.at("mean_steps").get<double>(),
                                   .metrics = {}});
    if (p.contains("metrics"))
      for (const auto& [name, mean] : p.at("metrics").items())
        evaluation.policies.back().metrics.emplace_back(name, mean.is_null() ? std::nan("") : mean.get<double>());
  }
  if (json.contains("videos"))
    for (const OrderedJson& v : json.at("videos"))
      evaluation.videos.push_back({.policy = v.at("policy").get<std::string>(),
                                   .seed = v.at("seed").get<std::uint64_t>(),
                                   .success = v.at("success").get<bool>(),
                                   .file = file.parent_path() / v.at("file").get<std::string>()});
  if (json.contains("page")) evaluation.page = file.parent_path() / json.at("page").get<std::string>();
  return evaluation;
}

std::string number_cell(const std::string& text) {
  return format("<td class=\"number\">{}</td>", html_escape(text));
}

}  // namespace

std::vector<SavedEvaluation> read_evaluations(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_regular_file(folder / kEvaluationFile, error)) files.push_back(folder / kEvaluationFile);
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && fs::is_regular_file(entry.path() / kEvaluationFile, error))
      files.push_back(entry.path() / kEvaluationFile);
  std::sort(files.begin(), files.end());
  std::vector<SavedEvaluation> evaluations;
  for (const fs::path& file : files) try {
      evaluations.push_back(parse_evaluation(file));
    } catch (const std::exception& e) {
      log::warning("{} is left out of the report: {}", file.string(), e.what());
    }
  return evaluations;
}

std::string episodes_of(const SavedEvaluation& e) {
  return e.tasks == 0 ? format("{} episodes from seed {} on", e.episodes, e.first_seed)
                      : format("{} task{}, of each {} episodes from seed {} on", e.tasks, e.tasks == 1 ? "" : "s",
                               e.episodes, e.first_seed);
}

std::string success_table(const std::vector<EvaluatedPolicy>& policies, const std::vector<std::string>& runs) {
  std::string html = "<div class=\"scroll\"><table class=\"metrics\">\n<thead><tr>";
  if (!runs.empty()) html += "<th scope=\"col\">run</th>";
  for (const char* name :
       {"policy", "succeeded", "rate", "95 % interval", "return", "largest reward", "steps", "faults"})
    html += format("<th scope=\"col\">{}</th>", name);
  std::vector<std::string> metrics;
  for (const EvaluatedPolicy& p : policies)
    for (const auto& [name, mean] : p.metrics)
      if (std::find(metrics.begin(), metrics.end(), name) == metrics.end()) metrics.push_back(name);
  for (const std::string& name : metrics) html += format("<th scope=\"col\">{}</th>", html_escape(name));
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const EvaluatedPolicy& p = policies[i];
    html += "<tr>";
    if (!runs.empty()) html += format("<td>{}</td>", html_escape(runs[i]));
    html += format("<th scope=\"row\">{}</th>", html_escape(p.policy)) +
            number_cell(format("{} of {}", p.successes, p.episodes)) + number_cell(format("{:.3f}", p.rate)) +
            number_cell(format("{:.3f} to {:.3f}", p.low, p.high)) + number_cell(format("{:.3f}", p.mean_return)) +
            number_cell(format("{:.3f}", p.mean_max_reward)) + number_cell(format("{:.1f}", p.mean_steps)) +
            number_cell(format("{}", p.faults));
    for (const std::string& name : metrics) {
      const auto found =
          std::find_if(p.metrics.begin(), p.metrics.end(), [&](const auto& m) { return m.first == name; });
      html += number_cell(found == p.metrics.end() || std::isnan(found->second) ? "" : format("{:.4g}", found->second));
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string video_gallery(const std::vector<EvaluationVideo>& videos, const fs::path& page_folder) {
  if (videos.empty()) return "";
  std::string html = "<div class=\"videos\">\n";
  for (const EvaluationVideo& video : videos) {
    const std::string path = fs::absolute(video.file).lexically_relative(fs::absolute(page_folder)).generic_string();
    const std::string text = format("{}, seed {}: {}", video.policy, video.seed, video.success ? "success" : "failure");
    html += format(
        "<figure><video controls muted preload=\"metadata\" src=\"{}\" aria-label=\"{}\"></video>"
        "<figcaption>{}</figcaption></figure>\n",
        html_escape(percent_encode(path)), html_escape(text), html_escape(text));
  }
  return html + "</div>\n";
}

std::string episode_frame(const fs::path& page, const fs::path& page_folder) {
  std::error_code error;
  if (page.empty() || !fs::is_regular_file(page, error)) return "";
  const std::string path = fs::absolute(page).lexically_relative(fs::absolute(page_folder)).generic_string();
  const std::string address = html_escape(percent_encode(path));
  return format(
      "<iframe class=\"episodes\" sandbox=\"allow-scripts\" loading=\"lazy\" src=\"{}\" title=\"the best and the worst "
      "episode\"></iframe>\n<p class=\"muted\"><a href=\"{}\">The episodes on a page of their own</a></p>\n",
      address, address);
}

std::vector<std::pair<std::string, std::string>> success_tiles(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> tiles;
  const auto stands_beside = [](const EvaluatedPolicy& p) {
    return p.policy == "expert" || p.policy == "random" || p.policy == "zero" || p.policy.starts_with("replay");
  };
  for (const SavedEvaluation& e : read_evaluations(folder))
    for (const EvaluatedPolicy& p : e.policies)
      if (!stands_beside(p))
        tiles.emplace_back(format("success in {}, {} episodes", e.task, p.episodes),
                           format("{:.1f} % ({:.1f} to {:.1f})", 100 * p.rate, 100 * p.low, 100 * p.high));
  return tiles;
}

std::string evaluation_sections(const fs::path& folder, const fs::path& page_folder) {
  std::string html;
  int number = 0;
  for (const SavedEvaluation& evaluation : read_evaluations(folder)) {
    html += section(format("evaluation-{}", ++number), format("Success in {}", evaluation.task),
                    success_table(evaluation.policies) +
                        format("<p class=\"muted\">{}, at most {} steps each; the interval is Wilson's.</p>\n",
                               episodes_of(evaluation), evaluation.max_steps) +
                        episode_frame(evaluation.page, page_folder) + video_gallery(evaluation.videos, page_folder));
  }
  return html;
}

}  // namespace cohort::report
