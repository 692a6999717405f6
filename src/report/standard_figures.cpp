#include "report/standard_figures.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "report/metric_names.h"

namespace cohort::report {
namespace {

constexpr std::size_t kMostClouds = 6;
constexpr std::size_t kMostResidualTargets = 4;
constexpr std::size_t kMostWindows = 6;
constexpr std::size_t kMostTerms = 12;
constexpr std::size_t kSmoothFrom = 100;  // fewer values are shown as they are
constexpr double kSmoothShare = 0.02;     // of all values: the window of the smoothed line
constexpr double kLogFrom = 20;           // ratio of largest to smallest loss

int columns_for(std::size_t panels) {
  return panels == 1 ? 1 : panels <= 4 ? 2 : 3;
}

double value_at(const ArrayView& view, std::size_t i) {
  return view.type == ElementType::kFloat64 ? view.span<double>()[i] : static_cast<double>(view.span<float>()[i]);
}

/// Column `target` of (..., n_target).
std::vector<double> column(const ArrayView& view, std::size_t target, std::size_t n_target) {
  std::vector<double> values;
  const auto size = static_cast<std::size_t>(view.size());
  values.reserve(size / n_target);
  for (std::size_t i = target; i < size; i += n_target) values.push_back(value_at(view, i));
  return values;
}

void check(const Predictions& p) {
  COHORT_CHECK(
      p.truth.shape == p.prediction.shape && p.truth.rank == p.prediction.rank && p.truth.type == p.prediction.type,
      "truth and prediction differ in shape or type");
  COHORT_CHECK(p.first < p.targets.size() && p.truth.size() % std::ssize(p.targets) == 0, "{} values of {} targets",
               p.truth.size(), p.targets.size());
}

/// At most `most` of the targets, in the order in which they are shown.
std::vector<std::size_t> shown_targets(const Predictions& p, std::size_t most) {
  std::vector<std::size_t> shown{p.first};
  for (std::size_t t = 0; t < p.targets.size() && shown.size() < most; ++t)
    if (t != p.first) shown.push_back(t);
  return shown;
}

/// What a caption says where targets are left out.
std::string which_targets(const Predictions& p, std::size_t shown) {
  const std::size_t all = p.targets.size();
  if (shown == all) return "";
  if (p.first == 0) return format(" The first {} of {} targets.", shown, all);
  return format(" {} and the first {} of {} other targets.", p.targets[p.first], shown - 1, all - 1);
}

/// How many values around each a smoothed line is the mean of; 0: so few are shown as they are, without one.
std::size_t smoothing_window(std::size_t values) {
  if (values < kSmoothFrom) return 0;
  return std::max<std::size_t>(11, static_cast<std::size_t>(kSmoothShare * static_cast<double>(values)) | 1);
}

/// Every value, and where there are many a second line that is smoothed and says so.
void add_smoothed(Chart& chart, const MetricSeries& series, const std::string& name, int color) {
  const std::size_t window = smoothing_window(series.values.size());
  chart.series.push_back({.name = name.empty() && window > 0 ? "every value" : name,
                          .xs = series.steps,
                          .ys = series.values,
                          .style = window > 0 ? SeriesStyle::kFaintLine : SeriesStyle::kLine,
                          .color = color});
  if (window == 0) return;
  chart.series.push_back({.name = format("{}mean of {}", name.empty() ? "" : name + ", ", window),
                          .xs = series.steps,
                          .ys = smoothed(series.values, window),
                          .color = color});
}

Chart plain_chart(const MetricSeries& series, const std::string& title, const std::string& y_label,
                  const std::string& x_label = "iteration") {
  Chart chart{.title = title, .x_label = x_label, .y_label = y_label};
  chart.series.push_back({.xs = series.steps, .ys = series.values, .color = 0});
  return chart;
}

Chart line_chart(const MetricSeries& series, const std::string& title, const std::string& y_label) {
  Chart chart{.title = title, .x_label = "step", .y_label = y_label};
  add_smoothed(chart, series, "", 0);
  return chart;
}

bool falls_far(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const double v : values) {
    if (!drawable(v)) continue;
    if (v <= 0) return false;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  return high > kLogFrom * low;
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void add(const std::vector<double>& values) {
    for (const double v : values)
      if (drawable(v)) {
        low = std::min(low, v);
        high = std::max(high, v);
      }
  }
  std::vector<double> ends() const { return low <= high ? std::vector<double>{low, high} : std::vector<double>{}; }
};

}  // namespace

std::vector<double> smoothed(const std::vector<double>& values, std::size_t window) {
  // Sums over blocks of `length` values, forwards and backwards: of a window, the end of one block and the beginning of
  // the next. Nothing is subtracted, so that a single huge value does not spoil those behind it.
  struct Sum {
    double of = 0;
    std::size_t count = 0;
    void add(double v) {
      if (drawable(v)) of += v, ++count;
    }
    Sum plus(const Sum& other) const { return {of + other.of, count + other.count}; }
  };
  const std::size_t n = values.size(), half = window / 2, length = 2 * half + 1;
  std::vector<Sum> from_begin(n), to_end(n), to_last(n);  // of the value's block; to_last: up to the last of all
  for (std::size_t i = 0; i < n; ++i) {
    if (i % length != 0) from_begin[i] = from_begin[i - 1];
    from_begin[i].add(values[i]);
  }
  for (std::size_t i = n; i-- > 0;) {
    if (i + 1 < n) to_last[i] = to_last[i + 1];
    if (i + 1 < n && (i + 1) % length != 0) to_end[i] = to_end[i + 1];
    to_last[i].add(values[i]);
    to_end[i].add(values[i]);
  }
  std::vector<double> out(n, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < n; ++i) {
    if (!drawable(values[i])) continue;
    const std::size_t before = i, behind = n - 1 - i;
    Sum sum;
    if (before <= half && before <= behind)
      sum = from_begin[2 * i];  // within the first block
    else if (behind <= half && behind < before)
      sum = to_last[i - behind];
    else
      sum = (i - half) % length == 0 ? from_begin[i + half] : to_end[i - half].plus(from_begin[i + half]);
    out[i] = sum.of / static_cast<double>(sum.count);
  }
  return out;
}

Figure loss_figure(const MetricsHistory& history, const std::string& loss_name) {
  const MetricSeries& training = history[metric::kTrainLoss];
  const MetricSeries& validation = history[metric::kValidationLoss];
  Chart chart{.title = "Loss", .x_label = "step", .y_label = loss_name};
  add_smoothed(chart, training, "training", 0);
  chart.series.push_back({.name = "validation", .xs = validation.steps, .ys = validation.values, .color = 1});
  std::size_t best = validation.values.size();
  for (std::size_t i = 0; i < validation.values.size(); ++i)
    if (drawable(validation.values[i]) &&
        (best == validation.values.size() || validation.values[i] < validation.values[best]))
      best = i;
  if (best < validation.values.size())
    chart.series.push_back({.name = format("best ({:.4g})", validation.values[best]),
                            .xs = {validation.steps[best]},
                            .ys = {validation.values[best]},
                            .style = SeriesStyle::kPoints,
                            .color = 1});
  std::vector<double> all = training.values;
  all.insert(all.end(), validation.values.begin(), validation.values.end());
  chart.log_y = falls_far(all);
  std::string caption = "Loss by training step";
  if (const std::size_t window = smoothing_window(training.values.size()); window > 0)
    caption += format(": every value pale, and in front of them the mean of the {} around each", window);
  return {.name = "loss", .caption = caption + ".", .panels = {std::move(chart)}};
}

Figure rollout_figure(const MetricsHistory& history) {
  Figure figure{.name = "success", .caption = "Rollouts of the policy in its task while it was trained."};
  Chart success{.title = "success", .x_label = "step", .y_label = "share of the episodes", .share = true};
  const MetricSeries& rates = history[metric::kRolloutSuccess];
  success.series.push_back({.xs = rates.steps, .ys = rates.values});
  figure.panels.push_back(std::move(success));
  if (const MetricSeries& returns = history[metric::kRolloutReturn]; !returns.steps.empty())
    figure.panels.push_back(plain_chart(returns, "return", "mean of the episodes", "step"));
  figure.columns = columns_for(figure.panels.size());
  return figure;
}

Figure speed_figure(const MetricsHistory& history) {
  Figure figure{.name = "speed", .caption = "Learning rate and throughput by training step."};
  const MetricSeries& rate = history[metric::kLearningRate];
  Chart rates{.title = "Learning rate", .x_label = "step", .y_label = "learning rate"};
  rates.series.push_back({.xs = rate.steps, .ys = rate.values, .color = 0});
  figure.panels.push_back(std::move(rates));
  figure.panels.push_back(line_chart(history[metric::kSamplesPerSecond], "Throughput", "samples/s"));
  const MetricSeries& norm = history[metric::kGradientNorm];
  if (!norm.values.empty()) {
    figure.caption = "Learning rate, throughput, and norm of the gradient before clipping, by training step.";
    figure.panels.push_back(line_chart(norm, "Gradient norm", "L2 norm"));
    figure.panels.back().log_y = falls_far(norm.values);
  }
  if (history.series.contains(metric::kComputeTime)) {
    Chart parts{.title = "Parts of a step", .x_label = "step", .y_label = "s"};
    int color = 0;
    for (const auto& [name, label] :
         {std::pair(metric::kComputeTime, "compute"), std::pair(metric::kDataTime, "data"),
          std::pair(metric::kExchangeTime, "communication"), std::pair(metric::kCheckpointTime, "checkpoints")}) {
      const MetricSeries& series = history[name];
      if (!series.values.empty()) add_smoothed(parts, series, label, color);
      ++color;
    }
    figure.panels.push_back(std::move(parts));
  }
  return figure;
}

Figure return_figure(const MetricsHistory& history) {
  Figure figure{.name = "return", .caption = "Mean return of the last hundred episodes by iteration."};
  figure.panels.push_back(plain_chart(history[metric::kMeanReturn], "Return", "mean return"));
  const MetricSeries &success = history[metric::kSuccess], &length = history[metric::kEpisodeLength];
  // Of a task without a goal there is none.
  if (std::any_of(success.values.begin(), success.values.end(), [](double v) { return v > 0; })) {
    figure.panels.push_back(plain_chart(success, "Success", "share of the episodes"));
    figure.panels.back().share = true;
  }
  if (!length.values.empty()) figure.panels.push_back(plain_chart(length, "Episode length", "control steps"));
  if (figure.panels.size() == 2) figure.caption = "Mean return and length of the last hundred episodes by iteration.";
  if (figure.panels.size() == 3)
    figure.caption = "Mean return, success and length of the last hundred episodes by iteration.";
  figure.columns = figure.panels.size() < 3 ? static_cast<int>(figure.panels.size()) : 3;
  return figure;
}

Figure reward_terms_figure(const MetricsHistory& history) {
  Figure figure{.name = "reward_terms", .caption = "Mean of each reward term in a control step, by iteration."};
  const std::string prefix = metric::kRewardTerms;
  std::size_t terms = 0;
  for (auto it = history.series.lower_bound(prefix); it != history.series.end() && it->first.starts_with(prefix); ++it)
    if (terms++ < kMostTerms)
      figure.panels.push_back(plain_chart(it->second, it->first.substr(prefix.size()), "mean of a step"));
  if (terms > kMostTerms) figure.caption += format(" The first {} of {} terms.", kMostTerms, terms);
  if (terms < 2) figure.panels.clear();
  figure.columns = columns_for(std::max<std::size_t>(1, figure.panels.size()));
  return figure;
}

Figure task_metrics_figure(const MetricsHistory& history) {
  Figure figure{.name = "task_metrics", .caption = "The task's own metrics, by iteration."};
  const std::string prefix = metric::kTaskMetrics;
  for (auto it = history.series.lower_bound(prefix); it != history.series.end() && it->first.starts_with(prefix); ++it)
    if (figure.panels.size() < kMostTerms)
      figure.panels.push_back(plain_chart(it->second, it->first.substr(prefix.size()), "mean"));
  figure.columns = columns_for(std::max<std::size_t>(1, figure.panels.size()));
  return figure;
}

Figure learning_figure(const MetricsHistory& history) {
  Figure figure{.name = "learning",
                .caption =
                    "What the learner did, by iteration: losses, noise of the actions, entropy, and how far an "
                    "update moves the policy."};
  struct Panel {
    const char *metric, *title, *y_label;
  };
  for (const Panel& p :
       {Panel{metric::kValueLoss, "Value loss", "mean squared error"},
        Panel{metric::kSurrogateLoss, "Surrogate loss", "loss"}, Panel{metric::kNoiseStd, "Action noise", "mean std"},
        Panel{metric::kEntropy, "Entropy", "nats"}, Panel{metric::kKl, "KL divergence", "nats"}}) {
    const MetricSeries& series = history[p.metric];
    if (series.values.empty()) continue;
    figure.panels.push_back(plain_chart(series, p.title, p.y_label));
    figure.panels.back().log_y = p.metric == metric::kValueLoss && falls_far(series.values);
  }
  figure.columns = columns_for(std::max<std::size_t>(1, figure.panels.size()));
  return figure;
}

Figure prediction_figure(const Predictions& predictions, const std::string& of) {
  check(predictions);
  const std::size_t n = predictions.targets.size();
  const std::vector<std::size_t> shown = shown_targets(predictions, kMostClouds);
  Figure figure{.name = "prediction",
                .caption = "Prediction against truth on the " + of + ". On the dashed line, both are equal." +
                           which_targets(predictions, shown.size()),
                .columns = columns_for(shown.size())};
  for (const std::size_t t : shown) {
    Series cloud{.xs = column(predictions.truth, t, n),
                 .ys = column(predictions.prediction, t, n),
                 .style = SeriesStyle::kPoints};
    Extent extent;
    extent.add(cloud.xs);
    extent.add(cloud.ys);
    Series line{.xs = extent.ends(), .ys = extent.ends(), .style = SeriesStyle::kReference};
    figure.panels.push_back({.title = predictions.targets[t],
                             .x_label = "truth",
                             .y_label = "prediction",
                             .series = {std::move(cloud), std::move(line)},
                             .same_axes = true});
  }
  return figure;
}

Figure residual_figure(const Predictions& predictions, const std::string& of) {
  check(predictions);
  const std::size_t n = predictions.targets.size();
  const std::vector<std::size_t> shown = shown_targets(predictions, kMostResidualTargets);
  Figure figure{.name = "residuals",
                .caption = "Residuals, truth minus prediction, on the " + of +
                           ": how they are spread, and whether they depend on the prediction." +
                           which_targets(predictions, shown.size()),
                .columns = 2};
  for (const std::size_t t : shown) {
    const std::vector<double> truth = column(predictions.truth, t, n);
    std::vector<double> prediction = column(predictions.prediction, t, n);
    std::vector<double> residual(truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) residual[i] = truth[i] - prediction[i];
    Extent extent;
    extent.add(prediction);
    figure.panels.push_back({.title = predictions.targets[t],
                             .x_label = "truth − prediction",
                             .y_label = "values",
                             .series = {{.ys = residual, .style = SeriesStyle::kHistogram}}});
    Series zero{.xs = extent.ends(), .style = SeriesStyle::kReference};
    zero.ys.assign(zero.xs.size(), 0.0);
    figure.panels.push_back(
        {.title = predictions.targets[t],
         .x_label = "prediction",
         .y_label = "truth − prediction",
         .series = {{.xs = std::move(prediction), .ys = std::move(residual), .style = SeriesStyle::kPoints},
                    std::move(zero)}});
  }
  return figure;
}

Figure forecast_figure(std::span<const ForecastWindow> windows, const std::string& time_label, const std::string& of) {
  const std::size_t shown = std::min(windows.size(), kMostWindows);
  const bool continued =
      std::any_of(windows.begin(), windows.end(), [](const ForecastWindow& w) { return !w.history.empty(); });
  Figure figure{.name = "forecast",
                .caption = continued ? "Forecasts from the " + of + ". The dashed line is the moment of the forecast."
                                     : "Predicted and true courses from the " + of + ".",
                .columns = shown == 1 ? 1 : 2,
                .shared_legend = true};
  for (const ForecastWindow& w : windows.first(shown)) {
    COHORT_CHECK(w.truth.size() == w.prediction.size(), "window {}: {} true and {} predicted values", w.title,
                 w.truth.size(), w.prediction.size());
    Series history{.name = "history", .ys = w.history, .color = 5};
    for (std::size_t i = 0; i < w.history.size(); ++i)
      history.xs.push_back(static_cast<double>(i) + 1 - static_cast<double>(w.history.size()));
    Series truth{.name = "truth", .color = 2}, prediction{.name = "prediction", .color = 1};
    for (Series* s : {&truth, &prediction}) {
      const std::vector<double>& values = s == &truth ? w.truth : w.prediction;
      if (!w.history.empty()) {  // joined with the last value that was known
        s->xs.push_back(0);
        s->ys.push_back(w.history.back());
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        s->xs.push_back(static_cast<double>(i) + 1);
        s->ys.push_back(values[i]);
      }
    }
    Extent extent;
    for (const auto* values : {&w.history, &w.truth, &w.prediction}) extent.add(*values);
    Series now{.ys = extent.ends(), .style = SeriesStyle::kReference};
    now.xs.assign(now.ys.size(), 0.0);
    figure.panels.push_back({.title = w.title,
                             .x_label = time_label,
                             .y_label = w.y_label,
                             .series = continued ? std::vector<Series>{std::move(history), std::move(truth),
                                                                       std::move(prediction), std::move(now)}
                                                 : std::vector<Series>{std::move(truth), std::move(prediction)}});
  }
  return figure;
}

}  // namespace cohort::report
