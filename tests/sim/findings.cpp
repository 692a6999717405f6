#include "findings.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace cohort::sim::test {

void Findings::begin_state(int state) {
  state_ = state;
  clean_ = true;
}

void Findings::find(Finding finding) {
  finding.where = format("state {}{}{}", state_, finding.where.empty() ? "" : ", ", finding.where);
  clean_ = false;
  if (on_finding_) on_finding_(finding);
  Finding& worst = worst_[finding.what];
  if (finding.excess > worst.excess) worst = finding;
}

void Findings::expect(const std::string& what, const std::string& where, double ours, double mujoco, double difference,
                      double tolerance) {
  if (!(difference <= tolerance)) find({what, where, ours, mujoco, difference / tolerance, ""});
}

void Findings::expect_vectors(const std::string& what, const std::vector<double>& ours,
                              const std::vector<double>& theirs, double tolerance) {
  if (theirs.empty()) return;
  int at = 0;
  const double difference = relative_difference(ours, theirs, at);
  const std::size_t i = static_cast<std::size_t>(at);
  expect(what, format("index {}", at), ours[i], theirs[i], difference, tolerance);
}

std::vector<Finding> Findings::worst() const {
  std::vector<Finding> list;
  for (const auto& [what, finding] : worst_) list.push_back(finding);
  return list;
}

double relative_difference(const std::vector<double>& ours, const std::vector<double>& theirs, int& at) {
  double scale = 1, most = 0;
  at = 0;
  for (double x : theirs) scale = std::max(scale, std::abs(x));
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double difference = std::isfinite(ours[i]) ? std::abs(ours[i] - theirs[i]) / scale : 1e9;
    if (difference > most) most = difference, at = static_cast<int>(i);
  }
  return most;
}

}  // namespace cohort::sim::test
