#include "data/transforms/field_vector.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::data {
namespace {

const RecordedField* find(const std::vector<RecordedField>& known, const std::string& name) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& field) { return field.name == name; });
  return found == known.end() ? nullptr : &*found;
}

/// Whether the ranges together are [0, width), each number once.
bool covers(std::vector<std::pair<std::int64_t, std::int64_t>> ranges, std::int64_t width) {
  std::sort(ranges.begin(), ranges.end());
  std::int64_t end = 0;
  for (const auto& [low, high] : ranges) {
    if (low != end) return false;
    end = high;
  }
  return end == width;
}

}  // namespace

FieldVector::FieldVector(const std::vector<std::string>& components, std::span<const std::int64_t> widths,
                         const std::vector<RecordedField>& known, Use use, const std::vector<std::string>& answers) {
  const auto answer_of = [&](std::size_t i) { return i < answers.size() ? answers[i] : std::string(); };
  COHORT_CHECK(components.size() == widths.size(), "{} components have {} widths", components.size(), widths.size());
  struct Read {
    ComponentText text;
    const RecordedField* field;
    std::pair<std::int64_t, std::int64_t> range{0, 0};
    std::optional<StepTransforms> transforms = std::nullopt;
    bool alone = true;  ///< stands for itself
  };
  std::vector<Read> read;
  for (std::size_t i = 0; i < components.size(); ++i) {
    Read& one = read.emplace_back(Read{ComponentText(components[i]), nullptr});
    one.field = find(known, one.text.field);
    if (one.field == nullptr) continue;
    one.range = one.text.range(one.field->width);
    one.transforms.emplace(one.text.transforms, one.range.second - one.range.first, components[i]);
    COHORT_THROW_UNLESS(one.transforms->width_out() == widths[i], "'{}' gives {} numbers, but {} were recorded",
                        components[i], one.transforms->width_out(), widths[i]);
    if (use == Use::kSeen && one.transforms->needs_episode())
      kept_transformed_.push_back(components[i] + ": it is made of the whole episode");
    else if (use == Use::kGiven && !one.transforms->one_way().empty())
      kept_transformed_.push_back(format("{}: nothing leads back from {}", components[i], one.transforms->one_way()));
    else
      one.alone = false;
  }
  // Given fields are whole, or their parts stand one by one.
  if (use == Use::kGiven)
    for (std::size_t r = 0; r < read.size(); ++r) {
      Read& one = read[r];
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      bool whole = one.field != nullptr;
      for (std::size_t o = 0; o < read.size(); ++o)
        if (const Read& other = read[o]; other.field == one.field && one.field != nullptr) {
          ranges.push_back(other.range);
          whole = whole && other.transforms->one_way().empty() && answer_of(o).empty();
        }
      one.alone = !whole || !covers(ranges, one.field->width);
    }
  std::vector<std::pair<const RecordedField*, std::int64_t>> placed;  // whole fields and where they begin
  for (std::size_t i = 0; i < read.size(); ++i) {
    Read& one = read[i];
    Part part{.at = components_width_, .width = widths[i]};
    components_width_ += widths[i];
    const bool comes_back = one.transforms && one.transforms->one_way().empty();
    if (one.alone) {
      part.outer = fields_width_;
      const bool own = use == Use::kGiven && comes_back;
      part.count = own ? one.transforms->width_in() : widths[i];
      std::string name = components[i];
      std::vector<std::string> elements;
      if (own) {
        name = one.text.field + (one.text.slice.empty() ? "" : "[" + one.text.slice + "]");
        if (!one.field->elements.empty())
          elements.assign(one.field->elements.begin() + one.range.first,
                          one.field->elements.begin() + one.range.second);
        if (!one.text.transforms.empty()) part.transforms = std::move(one.transforms);
      }
      texts_.push_back(name);
      if (const std::string answer = use == Use::kGiven ? answer_of(i) : ""; !answer.empty()) {
        part.answer.emplace(std::vector<std::string>{answer}, part.count, components[i] + ", answered as " + answer);
        part.count = part.answer->width_out();
        texts_.back() += " | " + answer;
        const std::size_t arrow = answer.find("->");
        name += arrow == std::string::npos ? " | " + answer : answer.substr(arrow);
        elements.clear();
      }
      fields_.push_back({std::move(name), part.count, std::move(elements)});
      fields_width_ += part.count;
    } else {
      auto found = std::find_if(placed.begin(), placed.end(), [&](const auto& p) { return p.first == one.field; });
      if (found == placed.end()) {
        placed.emplace_back(one.field, fields_width_);
        found = placed.end() - 1;
        fields_.push_back(*one.field);
        texts_.push_back(one.field->name);
        fields_width_ += one.field->width;
      }
      part.outer = found->second + one.range.first;
      part.count = one.range.second - one.range.first;
      if (!one.text.transforms.empty()) part.transforms = std::move(one.transforms);
    }
    plain_ = plain_ && !part.transforms && !part.answer && part.outer == part.at && part.count == part.width;
    parts_.push_back(std::move(part));
  }
  plain_ = plain_ && fields_width_ == components_width_;
}

void FieldVector::compose(std::span<const float> rows, std::span<float> out) const {
  StepRows one;
  for (std::size_t row = 0; row * static_cast<std::size_t>(components_width_) < out.size(); ++row) {
    const float* from = rows.data() + row * static_cast<std::size_t>(fields_width_);
    float* to = out.data() + row * static_cast<std::size_t>(components_width_);
    for (const Part& part : parts_) {
      if (!part.transforms) {
        std::copy_n(from + part.outer, part.count, to + part.at);
        continue;
      }
      one.steps = 1;
      one.width = part.count;
      one.values.assign(from + part.outer, from + part.outer + part.count);
      part.transforms->apply(one);
      std::transform(one.values.begin(), one.values.end(), to + part.at,
                     [](double x) { return static_cast<float>(x); });
    }
  }
}

void FieldVector::take_apart(std::span<const float> rows, std::span<float> out) const {
  StepRows one;
  for (std::size_t row = 0; row * static_cast<std::size_t>(components_width_) < rows.size(); ++row) {
    const float* from = rows.data() + row * static_cast<std::size_t>(components_width_);
    float* to = out.data() + row * static_cast<std::size_t>(fields_width_);
    for (const Part& part : parts_) {
      if (!part.transforms && !part.answer) {
        std::copy_n(from + part.at, part.width, to + part.outer);
        continue;
      }
      one.steps = 1;
      one.width = part.width;
      one.values.assign(from + part.at, from + part.at + part.width);
      if (part.transforms) part.transforms->back(one);
      if (part.answer) part.answer->apply(one);
      std::transform(one.values.begin(), one.values.end(), to + part.outer,
                     [](double x) { return static_cast<float>(x); });
    }
  }
}

}  // namespace cohort::data
