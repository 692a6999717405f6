/// What is done to the numbers of steps, one transform behind another, as component.h lists them; and the way back, from
/// what a policy has learnt to give to the numbers that the data hold.
///
///   const StepTransforms transforms({"axis_angle->rotation_6d"}, 3, "actions[3:6] | axis_angle->rotation_6d");
///   transforms.apply(rows);     // (steps, 3) -> (steps, 6)
///   transforms.back(rows);      // (steps, 6) -> (steps, 3)
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cohort::data {

/// Values of consecutive steps, row-major (steps, width).
struct StepRows {
  std::vector<double> values;
  std::int64_t steps = 0, width = 0;
  double* row(std::int64_t t) { return values.data() + t * width; }
};

class StepTransforms {
 public:
  /// `texts`: what stands between bars; `width`: of the numbers that the first one takes; `component`: for messages.
  /// Throws Error for an unknown transform and for a rotation of another width.
  StepTransforms(std::span<const std::string> texts, std::int64_t width, const std::string& component);

  std::int64_t width_in() const { return width_in_; }
  std::int64_t width_out() const { return width_out_; }
  /// Whether one of them looks at other steps than its own: then apply() must get the whole episode.
  bool needs_episode() const { return needs_episode_; }
  void apply(StepRows& rows) const;

  /// The transform that nothing leads back from, "threshold(0.5)"; empty where back() can be called.
  const std::string& one_way() const { return one_way_; }
  /// Step by step. Rotations come back in the form that they had; what clip, wrap, binarize and next gave is in the
  /// data's units already.
  void back(StepRows& rows) const;

 private:
  struct Stage {
    std::function<void(StepRows&)> apply, back;
    bool needs_episode = false;
  };
  Stage stage_of(const std::string& text, const std::string& component, std::int64_t& width);
  std::vector<Stage> stages_;
  std::int64_t width_in_ = 0, width_out_ = 0;
  bool needs_episode_ = false;
  std::string one_way_;
};

}  // namespace cohort::data
