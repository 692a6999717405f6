/// The figures of every training run. `of`: what predictions and windows were taken from, in captions.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "report/chart.h"
#include "report/metrics_history.h"

namespace cohort::report {

/// Truth and prediction of a test set, in the data's own units.
struct Predictions {
  std::vector<std::string> targets;  ///< names, best with unit: "elbow torque (N m)"
  ArrayView truth;                   ///< (..., n_target) float32 or float64, contiguous, host memory
  ArrayView prediction;              ///< of the same shape and type
  std::size_t first = 0;             ///< the target that is shown before all others
};

/// One window of a forecast: what was known, what came, what was predicted. All in the data's own units.
struct ForecastWindow {
  std::string title;               ///< "OT, 2018-02-20 23:00"
  std::string y_label;             ///< "OT (°C)"
  std::vector<double> history;     ///< the last value is the newest; empty: truth and prediction stand alone
  std::vector<double> truth;       ///< the first value follows the history
  std::vector<double> prediction;  ///< as many as truth
};

/// "loss": training and validation by step, the best validation marked; logarithmic where it falls by more than a
/// factor of 20. loss_name: the label of its axis, "mean squared error". Every value is drawn; many get a second line
/// that is smoothed, which the legend says.
Figure loss_figure(const MetricsHistory& history, const std::string& loss_name);

/// "success": of rollouts by step, as it was measured. Only where series of that name were recorded.
Figure rollout_figure(const MetricsHistory& history);

/// "speed": learning rate, throughput and gradient norm by step, as far as they were recorded.
Figure speed_figure(const MetricsHistory& history);

/// "return": return, success and length of the last episodes by iteration, for reinforcement learning.
Figure return_figure(const MetricsHistory& history);

/// "reward_terms": the mean of each term of the reward by iteration, the first twelve. No panels where there are fewer
/// than two.
Figure reward_terms_figure(const MetricsHistory& history);
Figure task_metrics_figure(const MetricsHistory& history);  ///< of the task's own metrics; empty where it has none

/// "learning": what a learner of PPO did: losses of value and policy, the actions' noise, entropy, KL divergence, as far
/// as they were recorded.
Figure learning_figure(const MetricsHistory& history);

/// "prediction": a cloud per target with the line of perfect prediction; `first` and the five first of the others.
Figure prediction_figure(const Predictions& predictions, const std::string& of = "test set");

/// "residuals": per target (`first` and three others) their histogram, and residual against prediction.
Figure residual_figure(const Predictions& predictions, const std::string& of = "test set");

/// "forecast": windows with history, truth and prediction (the first six). time_label: "hours from the forecast".
Figure forecast_figure(std::span<const ForecastWindow> windows, const std::string& time_label,
                       const std::string& of = "test set");

/// Mean of the `window` values around each, itself in the middle, so that the line does not lag; towards both ends of
/// fewer, the first and the last value stand alone. Values that are not drawable stay gaps and do not enter it.
std::vector<double> smoothed(const std::vector<double>& values, std::size_t window);

}  // namespace cohort::report
