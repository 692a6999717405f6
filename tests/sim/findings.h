/// What the comparison with MuJoCo found, and what it left out.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cohort::sim::test {

/// Times what rounding of the state does to MuJoCo's own answer: the roundings of a step are more than one.
inline constexpr double kNoise = 30;

/// A quantity that is not MuJoCo's.
struct Finding {
  std::string what;   ///< its kind, such as "row of a contact"
  std::string where;  ///< state and place in it
  double ours = 0, mujoco = 0;
  double excess = 0;   ///< the difference over what is allowed: above 1
  std::string detail;  ///< lines that tell more, or empty
};

/// Of one model.
class Findings {
 public:
  /// on_finding, if any, gets every finding as it is made.
  explicit Findings(std::function<void(const Finding&)> on_finding) : on_finding_(std::move(on_finding)) {}

  /// What follows is of this state.
  void begin_state(int state);
  /// Nothing was found in this state.
  bool clean() const { return clean_; }

  void find(Finding finding);
  /// A finding where `difference` is more than `tolerance`, or not finite.
  void expect(const std::string& what, const std::string& where, double ours, double mujoco, double difference,
              double tolerance);
  /// By relative_difference.
  void expect_vectors(const std::string& what, const std::vector<double>& ours, const std::vector<double>& theirs,
                      double tolerance);
  /// Something is not compared for this reason.
  void excuse(const std::string& reason) { ++excused_[reason]; }

  /// The worst of each kind.
  std::vector<Finding> worst() const;
  /// How often for each reason.
  const std::map<std::string, int>& excused() const { return excused_; }

 private:
  std::function<void(const Finding&)> on_finding_;
  std::map<std::string, Finding> worst_;
  std::map<std::string, int> excused_;
  int state_ = 0;
  bool clean_ = true;
};

/// Largest |ours - theirs| over the larger of 1 and |theirs|, and where; 1e9 for what is not finite.
double relative_difference(const std::vector<double>& ours, const std::vector<double>& theirs, int& at);

}  // namespace cohort::sim::test
