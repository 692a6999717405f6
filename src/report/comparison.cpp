#include "report/comparison.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/markup.h"
#include "core/typed_text.h"
#include "report/charts.h"
#include "report/evaluation_section.h"
#include "report/gnuplot_script.h"
#include "report/html_parts.h"
#include "report/inline_svg.h"
#include "report/metric_names.h"
#include "report/metrics_history.h"
#include "report/saved_content.h"
#include "report/standard_figures.h"

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kColors = static_cast<int>(std::size(kPalette));

/// The two last names of its path, which tell runs apart.
std::string run_label(const RunFolder& run) {
  const fs::path path = fs::weakly_canonical(run.path());
  return (path.parent_path().filename() / path.filename()).generic_string();
}

/// Runs that differ in nothing but their seed, and where they write.
struct SeedGroup {
  std::string label;
  std::vector<std::size_t> runs;
};

/// The mean over the runs of a group, at the steps that all of them have, from their lowest to their highest value.
/// Nothing of runs without a common step.
struct MeanOfSeeds {
  std::vector<double> steps, mean, low, high;
};

MeanOfSeeds mean_of_seeds(const std::vector<const MetricSeries*>& runs) {
  std::map<double, std::vector<double>> by_step;
  for (const MetricSeries* run : runs)
    for (std::size_t i = 0; i < run->steps.size(); ++i)
      if (drawable(run->values[i])) by_step[run->steps[i]].push_back(run->values[i]);
  MeanOfSeeds result;
  for (const auto& [step, values] : by_step) {
    if (values.size() != runs.size()) continue;
    result.steps.push_back(step);
    result.mean.push_back(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    result.low.push_back(*low), result.high.push_back(*high);
  }
  return result;
}

struct Curve {
  const char* metric;
  std::string name, y_label;
  bool share = false;  ///< of episodes

  bool shows(const MetricsHistory& history) const {
    const std::string_view which = metric;
    // Of a task without a goal success is 0 for ever; the loss of PPO is a sum that says nothing.
    if (which == metric::kSuccess) {
      const std::vector<double>& rates = history[metric].values;
      return std::any_of(rates.begin(), rates.end(), [](double v) { return v > 0; });
    }
    return which != metric::kTrainLoss || !history.series.contains(metric::kSurrogateLoss);
  }
};

/// A chart with a line for each run that has the metric, as it was measured; of runs of several seeds pale, in front of
/// them their mean, behind them a band from the lowest to the highest. Nothing drawn where none has the metric.
void add_curves(std::vector<Figure>& figures, const std::vector<std::string>& labels,
                const std::vector<SeedGroup>& groups, const std::vector<MetricsHistory>& histories,
                const Curve& curve) {
  Chart chart{.title = curve.y_label, .x_label = "step", .y_label = curve.y_label, .share = curve.share};
  bool with_seeds = false;
  int color = 0;
  for (const SeedGroup& group : groups) {
    std::vector<const MetricSeries*> runs;
    std::vector<std::size_t> of_runs;
    for (const std::size_t i : group.runs)
      if (const MetricSeries& series = histories[i][curve.metric]; !series.steps.empty() && curve.shows(histories[i]))
        runs.push_back(&series), of_runs.push_back(i);
    const MeanOfSeeds mean = runs.size() > 1 ? mean_of_seeds(runs) : MeanOfSeeds{};
    const bool together = !mean.steps.empty();
    if (together)
      chart.series.push_back({.xs = mean.steps,
                              .ys = mean.low,
                              .ys_high = mean.high,
                              .style = SeriesStyle::kBand,
                              .color = color % kColors});
    for (std::size_t i = 0; i < runs.size(); ++i) {
      chart.series.push_back({.name = together ? "" : labels[of_runs[i]],
                              .xs = runs[i]->steps,
                              .ys = runs[i]->values,
                              .style = together ? SeriesStyle::kFaintLine : SeriesStyle::kLine,
                              .color = color % kColors});
      if (!together) ++color;
    }
    if (!together) continue;
    chart.series.push_back({.name = format("{}, mean of {} seeds", group.label, runs.size()),
                            .xs = mean.steps,
                            .ys = mean.mean,
                            .color = color++ % kColors});
    with_seeds = true;
  }
  if (chart.series.empty()) return;
  Figure figure{.name = curve.name, .caption = curve.y_label + " of the runs."};
  if (with_seeds)
    figure.caption +=
        " Of runs that differ in their seed alone: each pale, their mean, and a band from the lowest to "
        "the highest.";
  figure.panels.push_back(std::move(chart));
  figures.push_back(std::move(figure));
}

void flatten_settings(const OrderedJson& json, const std::string& path, std::map<std::string, std::string>& out) {
  if (json.is_object() && !json.empty()) {
    for (const auto& [name, value] : json.items())
      flatten_settings(value, path.empty() ? name : path + "." + name, out);
    return;
  }
  out[path] = typed_text(json, BadUtf8::kReplaced);
}

using Settings = std::map<std::string, std::string>;

/// Of every run, empty where there is no configuration.
std::vector<Settings> settings_of(const std::vector<RunFolder>& runs) {
  std::vector<Settings> all(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!fs::exists(runs[i].config_file())) continue;
    const OrderedJson json = try_json<OrderedJson>(read_file(runs[i].config_file()));
    if (json.is_object()) flatten_settings(json, "", all[i]);
  }
  return all;
}

/// Runs of one configuration with several seeds together, in the order of their first ones.
std::vector<SeedGroup> seed_groups(const std::vector<Settings>& settings, const std::vector<std::string>& labels) {
  // Settings that make no other experiment: which random numbers, and where results go.
  const auto counts = [](const std::string& path) {
    return path != "name" && path != "output_dir" && path != "resume" && path.substr(path.rfind('.') + 1) != "seed";
  };
  std::vector<SeedGroup> groups;
  std::map<Settings, std::size_t> found;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Settings kept;
    for (const auto& [path, value] : settings[i])
      if (counts(path)) kept[path] = value;
    const auto [place, is_new] =
        kept.empty() ? std::pair(found.end(), true) : found.try_emplace(std::move(kept), groups.size());
    if (is_new)
      groups.push_back({.label = "", .runs = {i}});
    else
      groups[place->second].runs.push_back(i);
  }
  std::map<std::string, int> uses;
  for (SeedGroup& group : groups) {
    // The folder of runs that lie beside each other ("ppo" of ppo/2026-11-28_09-30-07), else the first run's name.
    const auto folder = [&](std::size_t run) { return fs::path(labels[run]).parent_path().generic_string(); };
    const bool beside = std::all_of(group.runs.begin(), group.runs.end(),
                                    [&](std::size_t run) { return folder(run) == folder(group.runs.front()); });
    group.label = beside ? folder(group.runs.front()) : labels[group.runs.front()];
    if (const int use = ++uses[group.label]; use > 1) group.label += format(" ({})", use);
  }
  return groups;
}

/// A row for every setting that is not the same in all runs.
std::string different_settings(const std::vector<Settings>& all, const std::vector<std::string>& labels) {
  std::map<std::string, int> names;
  for (const Settings& settings : all)
    for (const auto& [name, value] : settings) names[name] = 1;
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
  std::set<fs::path> known;
  const auto add = [&](const std::string& label, const fs::path& folder) {
    for (const SavedEvaluation& e : read_evaluations(folder)) {
      if (!known.insert(fs::weakly_canonical(e.file)).second) continue;
      const std::string place = label.empty() ? e.file.parent_path().filename().string() : label;
      Group& group = groups[format("{}: {}, at most {} steps", e.task, episodes_of(e), e.max_steps)];
      for (const EvaluatedPolicy& p : e.policies) {
        group.policies.push_back(p);
        group.runs.push_back(place);
      }
      for (EvaluationVideo video : e.videos) {
        video.policy = place + ", " + video.policy;
        group.videos.push_back(std::move(video));
      }
    }
  };
  for (std::size_t i = 0; i < runs.size(); ++i) add(labels[i], runs[i].path());
  // One evaluation of several runs belongs to none of them: it lies beside the page.
  add("", page_folder.empty() ? fs::path(".") : page_folder);
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
  std::string state = "<div class=\"scroll\"><table class=\"names runs\">\n";
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
  const std::vector<Settings> settings = settings_of(runs);
  const std::vector<SeedGroup> groups = seed_groups(settings, labels);
  for (const Curve& curve : {Curve{metric::kRolloutSuccess, "success", "success of rollouts", true},
                             Curve{metric::kSuccess, "training_success", "success of the last hundred episodes", true},
                             Curve{metric::kMeanReturn, "return", "mean return"},
                             Curve{metric::kValidationLoss, "validation_loss", "validation loss"},
                             Curve{metric::kTrainLoss, "training_loss", "training loss"},
                             Curve{metric::kValueLoss, "value_loss", "value loss"}})
    add_curves(figures, labels, groups, histories, curve);
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
          section("settings", "Settings in which they differ", different_settings(settings, labels));
  write_file_atomically(page, html + "</main>\n</body>\n</html>\n");
}

}  // namespace cohort::report
