#include "report/comparison.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "report/charts.h"
#include "report/evaluation_section.h"
#include "report/html_parts.h"
#include "report/inline_svg.h"
#include "report/metric_names.h"
#include "report/metrics_history.h"
#include "report/saved_content.h"
#include "report/standard_figures.h"
#include "report/text.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The two last names of its path, which tell runs apart.
std::string run_label(const RunFolder& run) {
  const fs::path path = fs::weakly_canonical(run.path());
  return (path.parent_path().filename() / path.filename()).generic_string();
}

/// A chart with a line for each run that has the metric; nothing drawn where none has.
void add_curves(std::vector<Figure>& figures, const std::vector<std::string>& labels,
                const std::vector<MetricsHistory>& histories, const char* metric, const std::string& name,
                const std::string& y_label) {
  Chart chart{.title = y_label, .x_label = "step", .y_label = y_label};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const MetricSeries& series = histories[i][metric];
    if (!series.steps.empty())
      chart.series.push_back(
          {.name = labels[i], .xs = series.steps, .ys = smoothed(series.values, 10), .color = static_cast<int>(i % 6)});
  }
  if (chart.series.empty()) return;
  Figure figure{.name = name, .caption = y_label + " of the runs."};
  figure.panels.push_back(std::move(chart));
  figures.push_back(std::move(figure));
}

void flatten_settings(const OrderedJson& json, const std::string& path, std::map<std::string, std::string>& out) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [name, value] : json.items())
      flatten_settings(value, path.empty() ? name : path + "." + name, out);
    return;
  }
  out[path] = json.dump();
}

/// A row for every setting that is not the same in all runs.
std::string different_settings(const std::vector<RunFolder>& runs, const std::vector<std::string>& labels) {
  std::vector<std::map<std::string, std::string>> all(runs.size());
  std::map<std::string, int> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!fs::exists(runs[i].config_file())) continue;
    const OrderedJson json = OrderedJson::parse(read_file(runs[i].config_file()), nullptr, false);
    if (json.is_object()) flatten_settings(json, "", all[i]);
    for (const auto& [name, value] : all[i]) names[name] = 1;
  }
  std::string rows;
  for (const auto& [name, unused] : names) {
    const bool same = std::all_of(all.begin(), all.end(), [&](const auto& settings) {
      const auto found = settings.find(name);
      const auto first = all.front().find(name);
      return found != settings.end() && first != all.front().end() && found->second == first->second;
    });
    if (same) continue;
    rows += format("<tr><th scope=\"row\">{}</th>", html_escape(name));
    for (const auto& settings : all) {
      const auto found = settings.find(name);
      rows += format("<td>{}</td>", found == settings.end() ? "–" : html_escape(found->second));
    }
    rows += "</tr>\n";
  }
  if (rows.empty()) return "";
  std::string head = "<tr><th></th>";
  for (const std::string& label : labels) head += format("<th scope=\"col\">{}</th>", html_escape(label));
  return "<div class=\"scroll\"><table class=\"names code\">\n<thead>" + head + "</tr></thead>\n<tbody>\n" + rows +
         "</tbody>\n</table></div>\n";
}

std::string success_of_runs(const std::vector<RunFolder>& runs, const std::vector<std::string>& labels,
                            const fs::path& page_folder) {
  // By task and episodes: only the same episodes compare.
  struct Group {
    std::vector<EvaluatedPolicy> policies;
    std::vector<std::string> runs;
    std::vector<EvaluationVideo> videos;
  };
  std::map<std::string, Group> groups;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const SavedEvaluation& e : read_evaluations(runs[i].path())) {
      Group& group = groups[format("{}: {}, at most {} steps", e.task, episodes_of(e), e.max_steps)];
      for (const EvaluatedPolicy& p : e.policies) {
        group.policies.push_back(p);
        group.runs.push_back(labels[i]);
      }
      for (EvaluationVideo video : e.videos) {
        video.policy = labels[i] + ", " + video.policy;
        group.videos.push_back(std::move(video));
      }
    }
  std::string html;
  int number = 0;
  for (const auto& [title, group] : groups)
    html += section(format("evaluation-{}", ++number), title,
                    success_table(group.policies, group.runs) + video_gallery(group.videos, page_folder));
  return html;
}

}  // namespace

void write_comparison(const std::vector<RunFolder>& runs, const fs::path& page, const GnuplotSettings& gnuplot) {
  COHORT_THROW_UNLESS(page.extension() == ".html", "{}: a page's name ends with .html", page.string());
  std::vector<std::string> labels;
  std::vector<MetricsHistory> histories;
  std::string state = "<div class=\"scroll\"><table class=\"names\">\n";
  for (const RunFolder& run : runs) {
    labels.push_back(run_label(run));
    histories.push_back(fs::exists(run.metrics_file()) ? read_metrics(run.metrics_file()) : MetricsHistory{});
    const auto content = load_content(run);
    std::vector<std::string> highlights;
    if (content)
      for (const auto& [name, value] : content->highlights) highlights.push_back(format("{} {}", name, value));
    state += format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n", html_escape(labels.back()),
                    html_escape(content ? content->title : ""), html_escape(content ? content->status : "no report"),
                    html_escape(join(highlights, ", ")));
  }
  state += "</table></div>\n";
  std::vector<Figure> figures;
  add_curves(figures, labels, histories, metric::kMeanReturn, "return", "mean return");
  add_curves(figures, labels, histories, metric::kRolloutSuccess, "success", "success of rollouts");
  add_curves(figures, labels, histories, metric::kValidationLoss, "validation_loss", "validation loss");
  add_curves(figures, labels, histories, metric::kTrainLoss, "training_loss", "training loss");
  fs::path chart_folder = page.parent_path() / page.stem();
  chart_folder += "_charts";
  std::string charts;
  if (!figures.empty())
    for (const DrawnFigure& figure : draw_all(figures, chart_folder, gnuplot)) {
      if (figure.svg.empty()) continue;
      charts += "<figure>\n" + inline_svg(read_file(figure.svg), figure.name + "-", figure.caption) + "\n<figcaption>" +
                html_escape(figure.caption) + "</figcaption>\n</figure>\n";
    }
  std::string html = page_head(format("{} runs", runs.size()));
  html += format("<body>\n<main>\n<header>\n<h1>{} runs side by side</h1>\n<p class=\"muted\">{}</p>\n</header>\n",
                 runs.size(), now_text());
  html += section("runs", "Runs", state) + success_of_runs(runs, labels, page.parent_path()) +
          section("charts", "Charts", charts) +
          section("settings", "Settings in which they differ", different_settings(runs, labels));
  write_file_atomically(page, html + "</main>\n</body>\n</html>\n");
}

}  // namespace cohort::report
