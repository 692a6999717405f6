/// A component of an action or observation vector: a field of the steps, a slice of it, and what is done to it, written
/// as one text:
///
///   action_dict/cartesian_position[3:6] | euler_xyz->rotation_6d
///   action_dict/gripper_position | invert
///
/// What stands between bars is applied from left to right, to every step:
///   A->B                rotations.h's forms
///   negate, invert (1 - x), scale(f), offset(d), clip(low, high), threshold(t) (1 where x > t, else 0)
///   wrap                angles into [-pi, pi)
/// and, which needs the whole episode:
///   next                the value of the following step (relabelling by what was reached); the last one repeats itself
///   delta               the following step's value minus this one's; 0 in the last step
///   binarize            of a gripper in [0, 1]: above 0.95 is 1, below 0.05 is 0, what lies between takes the value
///   that
///                       comes next (octo, data/utils/data_utils.py, binarize_gripper_actions)
///   relative_to_absolute  of a gripper's relative commands, positive closes: the state they lead to, 1 open, 0 closed
///                       (octo, rel2abs_gripper_actions)
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"
#include "data/transforms/step_transforms.h"

namespace cohort::data {

/// The parts of a component's text.
struct ComponentText {
  std::string text, field;
  std::string slice;                    ///< "3:6"; empty: the whole field
  std::vector<std::string> transforms;  ///< what stands between bars
  /// Throws Error for a bracket that is not closed.
  explicit ComponentText(const std::string& component);
  /// Which elements of a field of that width it takes, [begin, end). Throws Error for a slice that lies outside.
  std::pair<std::int64_t, std::int64_t> range(std::int64_t width) const;
};

class Component {
 public:
  /// Throws Error naming the text at fault: an unknown field, a slice beyond it, an unknown transform.
  Component(const std::string& text, const EpisodeSource& source);

  const std::string& text() const { return text_; }
  std::int64_t width() const { return transforms_->width_out(); }
  const StepTransforms& transforms() const { return *transforms_; }
  /// Index of the field that it reads.
  std::size_t field() const { return field_; }
  /// Writes steps [begin, begin + count) to out[i * stride .. + width()). Throws Error naming episode, field and step
  /// where a value is not finite.
  void read(const Episode& episode, std::int64_t begin, std::int64_t count, float* out, std::int64_t stride) const;
  /// The same for single steps, in any order: row i is steps[i]. Transforms that need the whole episode run once.
  void read_at(const Episode& episode, std::span<const std::int64_t> steps, float* out, std::int64_t stride) const;

 private:
  /// All transforms over steps [begin, begin + count), which are the whole episode where one needs it. Valid until the
  /// thread's next call.
  StepRows& compute(const Episode& episode, std::int64_t begin, std::int64_t count) const;
  std::string text_;
  std::string field_name_;
  std::size_t field_ = 0;
  std::int64_t field_width_ = 1, low_ = 0, high_ = 1;
  std::optional<StepTransforms> transforms_;
};

/// Several components side by side.
class ComponentVector {
 public:
  /// `what` names it in messages: "actions".
  ComponentVector(const std::vector<std::string>& texts, const EpisodeSource& source, const std::string& what);
  std::int64_t width() const { return width_; }
  const std::vector<Component>& components() const { return components_; }
  /// (count, width())
  void read(const Episode& episode, std::int64_t begin, std::int64_t count, std::span<float> out) const;
  /// (steps.size(), width()), as Component::read_at
  void read_at(const Episode& episode, std::span<const std::int64_t> steps, std::span<float> out) const;
  /// The texts, joined: a key for caches.
  std::string text() const;

 private:
  std::vector<Component> components_;
  std::int64_t width_ = 0;
};

}  // namespace cohort::data
