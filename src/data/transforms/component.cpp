#include "data/transforms/component.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "data/transforms/call.h"

namespace cohort::data {

ComponentText::ComponentText(const std::string& component) : text(component) {
  const std::vector<std::string> parts = split_text(text, '|');
  field = parts.front();
  if (field.ends_with(']')) {
    const std::size_t bracket = field.find('[');
    COHORT_THROW_UNLESS(bracket != std::string::npos, "'{}' has a ] without [", text);
    slice = field.substr(bracket + 1, field.size() - bracket - 2);
    field.resize(bracket);
    while (field.ends_with(' ')) field.pop_back();
  }
  transforms.assign(parts.begin() + 1, parts.end());
}

std::pair<std::int64_t, std::int64_t> ComponentText::range(std::int64_t width) const {
  if (slice.empty()) return {0, width};
  const std::vector<std::string> bounds = split_text(slice, ':');
  const auto bound = [&](const std::string& number, std::int64_t otherwise) {
    if (number.empty()) return otherwise;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    COHORT_THROW_UNLESS(error == std::errc() && end == number.data() + number.size(), "'{}': '{}' is no index", text,
                        number);
    return value < 0 ? value + width : value;
  };
  COHORT_THROW_UNLESS(bounds.size() <= 2, "'{}': a slice is [begin:end]", text);
  const std::int64_t low = bound(bounds[0], 0), high = bounds.size() == 2 ? bound(bounds[1], width) : low + 1;
  COHORT_THROW_UNLESS(low >= 0 && low < high && high <= width,
                      "'{}': the field {} has {} elements per step, so [{}] is outside", text, field, width, slice);
  return {low, high};
}

Component::Component(const std::string& text, const EpisodeSource& source) : text_(text) {
  const ComponentText parts(text);
  field_ = source.field_index(parts.field);
  field_name_ = parts.field;
  const StepField& spec = source.fields()[field_];
  COHORT_THROW_UNLESS(spec.kind == StepKind::kNumber, "'{}': the field {} holds {}, not numbers", text, field_name_,
                      spec.kind == StepKind::kImage ? "images" : "texts");
  field_width_ = spec.elements();
  COHORT_THROW_UNLESS(field_width_ >= 0, "'{}': the field {} has another size in every step, so it fits no batch", text,
                      field_name_);
  std::tie(low_, high_) = parts.range(field_width_);
  transforms_.emplace(parts.transforms, high_ - low_, text);
}

StepRows& Component::compute(const Episode& episode, std::int64_t begin, std::int64_t count) const {
  thread_local StepRows rows;
  thread_local std::vector<double> stored;
  rows.steps = count;
  rows.width = high_ - low_;
  stored.resize(static_cast<std::size_t>(rows.steps * field_width_));
  episode.read(field_, begin, rows.steps, std::span(stored));
  rows.values.resize(static_cast<std::size_t>(rows.steps * rows.width));
  for (std::int64_t t = 0; t < rows.steps; ++t) {
    const double* from = stored.data() + t * field_width_ + low_;
    for (std::int64_t d = 0; d < rows.width; ++d) {
      COHORT_THROW_UNLESS(std::isfinite(from[d]),
                          "{}: the field {} holds {} in step {}, element {}; leave such episodes out with the filter "
                          "finite({})",
                          episode.location(), field_name_, from[d], begin + t, low_ + d, field_name_);
      rows.row(t)[d] = from[d];
    }
  }
  transforms_->apply(rows);
  return rows;
}

void Component::read(const Episode& episode, std::int64_t begin, std::int64_t count, float* out,
                     std::int64_t stride) const {
  const bool whole = transforms_->needs_episode();
  const std::int64_t first = whole ? 0 : begin, wide = width();
  StepRows& rows = compute(episode, first, whole ? episode.steps() : count);
  const std::int64_t skip = begin - first;
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t d = 0; d < wide; ++d) out[t * stride + d] = static_cast<float>(rows.row(skip + t)[d]);
}

void Component::read_at(const Episode& episode, std::span<const std::int64_t> steps, float* out,
                        std::int64_t stride) const {
  const std::int64_t wide = width();
  if (transforms_->needs_episode()) {
    StepRows& rows = compute(episode, 0, episode.steps());
    for (const std::int64_t t : steps) {
      for (std::int64_t d = 0; d < wide; ++d) out[d] = static_cast<float>(rows.row(t)[d]);
      out += stride;
    }
    return;
  }
  for (std::size_t begin = 0, end; begin < steps.size(); begin = end) {
    // Steps that follow one another are read together, one that comes again is copied.
    for (end = begin + 1; end < steps.size() && steps[end] == steps[end - 1] + 1;) ++end;
    read(episode, steps[begin], static_cast<std::int64_t>(end - begin), out, stride);
    out += static_cast<std::int64_t>(end - begin) * stride;
    for (; end < steps.size() && steps[end] == steps[end - 1]; ++end, out += stride)
      std::copy_n(out - stride, wide, out);
  }
}

ComponentVector::ComponentVector(const std::vector<std::string>& texts, const EpisodeSource& source,
                                 const std::string& what) {
  for (const std::string& component_text : texts) {
    try {
      components_.emplace_back(component_text, source);
    } catch (const Error& e) {
      throw Error(format("{}: {}", what, e.what()));
    }
    width_ += components_.back().width();
  }
}

void ComponentVector::read(const Episode& episode, std::int64_t begin, std::int64_t count, std::span<float> out) const {
  COHORT_CHECK(out.size() == static_cast<std::size_t>(count * width_), "room for {} values, not {}", out.size(),
               count * width_);
  float* at = out.data();
  for (const Component& component : components_) {
    component.read(episode, begin, count, at, width_);
    at += component.width();
  }
}

void ComponentVector::read_at(const Episode& episode, std::span<const std::int64_t> steps, std::span<float> out) const {
  COHORT_CHECK(out.size() == steps.size() * static_cast<std::size_t>(width_), "room for {} values, not {}", out.size(),
               steps.size() * static_cast<std::size_t>(width_));
  float* at = out.data();
  for (const Component& component : components_) {
    component.read_at(episode, steps, at, width_);
    at += component.width();
  }
}

std::string ComponentVector::text() const {
  std::string joined;
  for (const Component& component : components_) joined += component.text() + "\n";
  return joined;
}

}  // namespace cohort::data
