#include "data/transforms/step_transforms.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/error.h"
#include "data/transforms/call.h"
#include "data/transforms/rotation.h"

namespace cohort::data {
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

void rotate(StepRows& rows, const RotationForm& from, const RotationForm& to) {
  StepRows out{.values = std::vector<double>(static_cast<std::size_t>(rows.steps) * to.width()),
               .steps = rows.steps,
               .width = static_cast<std::int64_t>(to.width())};
  for (std::int64_t t = 0; t < rows.steps; ++t)
    to.from_matrix(from.to_matrix({rows.row(t), from.width()}), {out.row(t), to.width()});
  rows = std::move(out);
}

/// What a network gives for a matrix is none yet: its first two rows decide, as those of rotation_6d.
void rotate_from_matrix(StepRows& rows, const RotationForm& to) {
  const RotationForm six("rotation_6d");
  StepRows out{.values = std::vector<double>(static_cast<std::size_t>(rows.steps) * to.width()),
               .steps = rows.steps,
               .width = static_cast<std::int64_t>(to.width())};
  for (std::int64_t t = 0; t < rows.steps; ++t)
    to.from_matrix(six.to_matrix({rows.row(t), six.width()}), {out.row(t), to.width()});
  rows = std::move(out);
}

void as_it_is(StepRows&) {}

}  // namespace

StepTransforms::StepTransforms(std::span<const std::string> texts, std::int64_t width, const std::string& component)
    : width_in_(width), width_out_(width) {
  for (const std::string& text : texts) {
    stages_.push_back(stage_of(text, component, width_out_));
    needs_episode_ = needs_episode_ || stages_.back().needs_episode;
    if (!stages_.back().back && one_way_.empty()) one_way_ = text;
  }
}

StepTransforms::Stage StepTransforms::stage_of(const std::string& text, const std::string& component,
                                               std::int64_t& width) {
  if (const std::size_t arrow = text.find("->"); arrow != std::string::npos) {
    const std::string target = split_text(text.substr(arrow + 2), ',').front();
    const RotationForm from(split_text(text.substr(0, arrow), ',').front()), to(target);
    COHORT_THROW_UNLESS(static_cast<std::int64_t>(from.width()) == width, "'{}': {} takes {} numbers, but there are {}",
                        component, text, from.width(), width);
    width = static_cast<std::int64_t>(to.width());
    Stage stage{.apply = [from, to](StepRows& rows) { rotate(rows, from, to); }, .back = nullptr};
    if (target == "matrix")
      stage.back = [from](StepRows& rows) { rotate_from_matrix(rows, from); };
    else
      stage.back = [from, to](StepRows& rows) { rotate(rows, to, from); };
    return stage;
  }
  const Call call = parse_call(text);
  const auto both = [](auto there, auto back) {
    return Stage{.apply = [there](StepRows& rows) { map_elements(rows, there); },
                 .back = [back](StepRows& rows) { map_elements(rows, back); }};
  };
  if (call.name == "negate") return both([](double x) { return -x; }, [](double x) { return -x; });
  if (call.name == "invert") return both([](double x) { return 1 - x; }, [](double x) { return 1 - x; });
  if (call.name == "wrap")
    return {.apply =
                [](StepRows& rows) {
                  map_elements(rows, [](double x) {
                    constexpr double pi = std::numbers::pi;
                    return x - 2 * pi * std::floor((x + pi) / (2 * pi));
                  });
                },
            .back = as_it_is};
  if (call.name == "scale" || call.name == "offset" || call.name == "threshold") {
    call.expect_arguments(1);
    const double a = call.number(0);
    if (call.name == "offset") return both([a](double x) { return x + a; }, [a](double x) { return x - a; });
    if (call.name == "scale" && a != 0) return both([a](double x) { return x * a; }, [a](double x) { return x / a; });
    if (call.name == "scale")
      return {.apply = [](StepRows& rows) { map_elements(rows, [](double) { return 0.0; }); }, .back = nullptr};
    return {.apply = [a](StepRows& rows) { map_elements(rows, [a](double x) { return x > a ? 1.0 : 0.0; }); },
            .back = nullptr};
  }
  if (call.name == "clip") {
    call.expect_arguments(2);
    const double low = call.number(0), high = call.number(1);
    COHORT_THROW_UNLESS(low <= high, "'{}': {} is above {}", component, low, high);
    return {.apply =
                [low, high](StepRows& rows) {
                  map_elements(rows, [low, high](double x) { return std::clamp(x, low, high); });
                },
            .back = as_it_is};
  }
  if (call.name == "next" || call.name == "delta") {
    const bool is_delta = call.name == "delta";
    const double keep = is_delta ? 1 : 0;
    Stage stage{.apply =
                    [keep](StepRows& rows) {
                      for (std::int64_t t = 0; t < rows.steps; ++t)
                        for (std::int64_t d = 0; d < rows.width; ++d)
                          rows.row(t)[d] = rows.row(std::min(t + 1, rows.steps - 1))[d] - keep * rows.row(t)[d];
                    },
                .back = nullptr,
                .needs_episode = true};
    if (!is_delta) stage.back = as_it_is;
    return stage;
  }
  if (call.name == "binarize") return {.apply = binarize, .back = as_it_is, .needs_episode = true};
  if (call.name == "relative_to_absolute")
    return {.apply = relative_to_absolute, .back = nullptr, .needs_episode = true};
  throw Error(
      format("'{}': unknown transform '{}'; known are A->B between rotation forms, negate, invert, scale, offset, "
             "clip, threshold, wrap, next, delta, binarize, relative_to_absolute",
             component, call.name));
}

void StepTransforms::apply(StepRows& rows) const {
  for (const Stage& stage : stages_) stage.apply(rows);
}

void StepTransforms::back(StepRows& rows) const {
  COHORT_CHECK(one_way_.empty(), "nothing leads back from {}", one_way_);
  for (auto stage = stages_.rbegin(); stage != stages_.rend(); ++stage) stage->back(rows);
}

}  // namespace cohort::data
