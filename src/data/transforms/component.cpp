#include "data/transforms/component.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numbers>

#include "core/error.h"
#include "data/transforms/call.h"
#include "data/transforms/rotation.h"

namespace cohort::data {

/// Values of consecutive steps, row-major (steps, width).
struct StepRows {
  std::vector<double> values;
  std::int64_t steps = 0, width = 0;
  double* row(std::int64_t t) { return values.data() + t * width; }
};

namespace {

void map_elements(StepRows& rows, const std::function<double(double)>& f) {
  for (double& value : rows.values) value = f(value);
}

void binarize(StepRows& rows) {
  for (std::int64_t d = 0; d < rows.width; ++d) {
    double carry = rows.row(rows.steps - 1)[d];
    for (std::int64_t t = rows.steps - 1; t >= 0; --t) {
      double& value = rows.row(t)[d];
      if (value > 0.95)
        carry = 1;
      else if (value < 0.05)
        carry = 0;
      value = carry;
    }
  }
}

void relative_to_absolute(StepRows& rows) {
  for (std::int64_t d = 0; d < rows.width; ++d) {
    // -1 closes, +1 opens, 0 holds; before the first command the opposite of what it asks for.
    const auto command = [&](std::int64_t t) {
      const double value = rows.row(t)[d];
      return value < -0.1 ? 1 : value > 0.1 ? -1 : 0;
    };
    std::int64_t first = 0;
    while (first < rows.steps && command(first) == 0) ++first;
    int state = first < rows.steps ? -command(first) : 1;
    for (std::int64_t t = 0; t < rows.steps; ++t) {
      if (const int c = command(t); c != 0) state = c;
      rows.row(t)[d] = state / 2.0 + 0.5;
    }
  }
}

}  // namespace

struct Component::Stage {
  std::function<void(StepRows&)> apply;
  bool needs_episode = false;
};

Component::~Component() = default;
Component::Component(Component&&) noexcept = default;
Component& Component::operator=(Component&&) noexcept = default;

Component::Component(const std::string& text, const EpisodeSource& source) : text_(text) {
  const std::vector<std::string> parts = split_text(text, '|');
  std::string field = parts.front();
  std::string slice;
  if (field.ends_with(']')) {
    const std::size_t bracket = field.find('[');
    COHORT_THROW_UNLESS(bracket != std::string::npos, "'{}' has a ] without [", text);
    slice = field.substr(bracket + 1, field.size() - bracket - 2);
    field.resize(bracket);
    while (field.ends_with(' ')) field.pop_back();
  }
  field_ = source.field_index(field);
  field_name_ = field;
  const StepField& spec = source.fields()[field_];
  COHORT_THROW_UNLESS(spec.kind == StepKind::kNumber, "'{}': the field {} holds {}, not numbers", text, field,
                      spec.kind == StepKind::kImage ? "images" : "texts");
  field_width_ = spec.elements();
  COHORT_THROW_UNLESS(field_width_ >= 0, "'{}': the field {} has another size in every step, so it fits no batch", text,
                      field);
  high_ = field_width_;
  if (!slice.empty()) {
    const std::vector<std::string> bounds = split_text(slice, ':');
    const auto bound = [&](const std::string& number, std::int64_t otherwise) {
      if (number.empty()) return otherwise;
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
      COHORT_THROW_UNLESS(error == std::errc() && end == number.data() + number.size(), "'{}': '{}' is no index", text,
                          number);
      return value < 0 ? value + field_width_ : value;
    };
    COHORT_THROW_UNLESS(bounds.size() <= 2, "'{}': a slice is [begin:end]", text);
    low_ = bound(bounds[0], 0);
    high_ = bounds.size() == 2 ? bound(bounds[1], field_width_) : low_ + 1;
    COHORT_THROW_UNLESS(low_ >= 0 && low_ < high_ && high_ <= field_width_,
                        "'{}': the field {} has {} elements per step, so [{}] is outside", text, field, field_width_,
                        slice);
  }
  width_ = high_ - low_;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    auto stage = std::make_unique<Stage>();
    const std::size_t arrow = parts[i].find("->");
    if (arrow != std::string::npos) {
      const RotationForm from(split_text(parts[i].substr(0, arrow), ',').front());
      const RotationForm to(split_text(parts[i].substr(arrow + 2), ',').front());
      COHORT_THROW_UNLESS(static_cast<std::int64_t>(from.width()) == width_,
                          "'{}': {} takes {} numbers, but there are {}", text, parts[i], from.width(), width_);
      width_ = static_cast<std::int64_t>(to.width());
      stage->apply = [from, to](StepRows& rows) {
        StepRows out{.values = std::vector<double>(static_cast<std::size_t>(rows.steps) * to.width()),
                     .steps = rows.steps,
                     .width = static_cast<std::int64_t>(to.width())};
        for (std::int64_t t = 0; t < rows.steps; ++t)
          to.from_matrix(from.to_matrix({rows.row(t), from.width()}), {out.row(t), to.width()});
        rows = std::move(out);
      };
      stages_.push_back(std::move(stage));
      continue;
    }
    const Call call = parse_call(parts[i]);
    if (call.name == "negate") {
      stage->apply = [](StepRows& rows) { map_elements(rows, [](double x) { return -x; }); };
    } else if (call.name == "invert") {
      stage->apply = [](StepRows& rows) { map_elements(rows, [](double x) { return 1 - x; }); };
    } else if (call.name == "wrap") {
      stage->apply = [](StepRows& rows) {
        map_elements(rows, [](double x) {
          constexpr double pi = std::numbers::pi;
          return x - 2 * pi * std::floor((x + pi) / (2 * pi));
        });
      };
    } else if (call.name == "scale" || call.name == "offset" || call.name == "threshold") {
      call.expect_arguments(1);
      const double a = call.number(0);
      if (call.name == "scale")
        stage->apply = [a](StepRows& rows) { map_elements(rows, [a](double x) { return x * a; }); };
      else if (call.name == "offset")
        stage->apply = [a](StepRows& rows) { map_elements(rows, [a](double x) { return x + a; }); };
      else
        stage->apply = [a](StepRows& rows) { map_elements(rows, [a](double x) { return x > a ? 1.0 : 0.0; }); };
    } else if (call.name == "clip") {
      call.expect_arguments(2);
      const double low = call.number(0), high = call.number(1);
      COHORT_THROW_UNLESS(low <= high, "'{}': {} is above {}", text, low, high);
      stage->apply = [low, high](StepRows& rows) {
        map_elements(rows, [low, high](double x) { return std::clamp(x, low, high); });
      };
    } else if (call.name == "next" || call.name == "delta") {
      stage->needs_episode = true;
      const double keep = call.name == "delta" ? 1 : 0;
      stage->apply = [keep](StepRows& rows) {
        for (std::int64_t t = 0; t < rows.steps; ++t)
          for (std::int64_t d = 0; d < rows.width; ++d)
            rows.row(t)[d] = rows.row(std::min(t + 1, rows.steps - 1))[d] - keep * rows.row(t)[d];
      };
    } else if (call.name == "binarize") {
      stage->needs_episode = true;
      stage->apply = binarize;
    } else if (call.name == "relative_to_absolute") {
      stage->needs_episode = true;
      stage->apply = relative_to_absolute;
    } else {
      throw Error(
          format("'{}': unknown transform '{}'; known are A->B between rotation forms, negate, invert, scale, offset, "
                 "clip, threshold, wrap, next, delta, binarize, relative_to_absolute",
                 text, call.name));
    }
    needs_episode_ = needs_episode_ || stage->needs_episode;
    stages_.push_back(std::move(stage));
  }
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
  for (const auto& stage : stages_) stage->apply(rows);
  return rows;
}

void Component::read(const Episode& episode, std::int64_t begin, std::int64_t count, float* out,
                     std::int64_t stride) const {
  const std::int64_t first = needs_episode_ ? 0 : begin;
  StepRows& rows = compute(episode, first, needs_episode_ ? episode.steps() : count);
  const std::int64_t skip = begin - first;
  for (std::int64_t t = 0; t < count; ++t)
    for (std::int64_t d = 0; d < width_; ++d) out[t * stride + d] = static_cast<float>(rows.row(skip + t)[d]);
}

void Component::read_at(const Episode& episode, std::span<const std::int64_t> steps, float* out,
                        std::int64_t stride) const {
  if (needs_episode_) {
    StepRows& rows = compute(episode, 0, episode.steps());
    for (const std::int64_t t : steps) {
      for (std::int64_t d = 0; d < width_; ++d) out[d] = static_cast<float>(rows.row(t)[d]);
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
      std::copy_n(out - stride, width_, out);
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
