/// Components (component.h) as those see them who act with a policy: fields as the data hold them, side by side. What a
/// policy sees is composed of them; what it gives is taken apart, and every transform taken back.
///
///   const FieldVector actions({"actions[0:3]", "actions[3:6] | axis_angle->rotation_6d"}, {3, 6}, {{"actions", 6}},
///                             FieldVector::Use::kGiven);
///   actions.fields();                    // actions (6)
///   actions.take_apart(row, answer);     // 9 numbers -> 6
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/transforms/component.h"

namespace cohort::data {

/// A field of numbers, of one step.
struct RecordedField {
  std::string name;
  std::int64_t width = 0;
  std::vector<std::string> elements = {};  ///< what they are called, where the data say it; else empty
};

class FieldVector {
 public:
  enum class Use : std::uint8_t { kSeen, kGiven };

  /// `widths` of the components; `known`: the fields that they are of. A component of a field that is not known (a
  /// checkpoint may not say it), one seen that needs the whole episode, and one given that nothing leads back from
  /// stands for itself, under its text. So do components given that are not the whole of their field, under the field's
  /// name and slice. `answers`: a transform of each component given that is applied to what the data would hold
  /// ("rotation_6d->axis_angle"), "" for none; empty: of none.
  FieldVector(const std::vector<std::string>& components, std::span<const std::int64_t> widths,
              const std::vector<RecordedField>& known, Use use, const std::vector<std::string>& answers = {});

  const std::vector<RecordedField>& fields() const { return fields_; }
  /// The component (component.h) that reads each of them from the data.
  const std::vector<std::string>& texts() const { return texts_; }
  std::int64_t fields_width() const { return fields_width_; }
  std::int64_t components_width() const { return components_width_; }
  /// Components that stand for themselves though they are transformed, and why: "actions[6] | threshold(0): nothing leads
  /// back from threshold(0)".
  const std::vector<std::string>& kept_transformed() const { return kept_transformed_; }
  /// Whether fields and components are the same numbers in the same order.
  bool is_plain() const { return plain_; }

  /// Rows of fields -> rows of components.
  void compose(std::span<const float> rows, std::span<float> out) const;
  /// Rows of components -> rows of fields. Throws Error where numbers are no rotation.
  void take_apart(std::span<const float> rows, std::span<float> out) const;

 private:
  struct Part {
    std::int64_t at = 0, width = 0;            ///< in the row of components
    std::int64_t outer = 0, count = 0;         ///< in the row of fields
    std::optional<StepTransforms> transforms;  ///< none: copied
    std::optional<StepTransforms> answer;      ///< of what they lead back to
  };
  std::vector<RecordedField> fields_;
  std::vector<std::string> texts_;
  std::vector<Part> parts_;
  std::vector<std::string> kept_transformed_;
  std::int64_t fields_width_ = 0, components_width_ = 0;
  bool plain_ = true;
};

}  // namespace cohort::data
