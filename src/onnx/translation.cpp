#include "onnx/translation.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace cohort::onnx {
namespace {

using Number = Translation::Number;

std::string joint_part(const std::string& name) {
  return name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1);
}

/// Of each of `names` its place among `there`; empty where they are not the same names.
std::vector<std::size_t> places_among(const std::vector<std::string>& names, const std::vector<std::string>& there) {
  std::vector<std::size_t> places;
  if (names.size() != there.size()) return places;
  for (const std::string& name : names) {
    const auto at = std::find_if(there.begin(), there.end(),
                                 [&](const std::string& other) { return joint_part(other) == joint_part(name); });
    if (at == there.end()) return {};
    places.push_back(static_cast<std::size_t>(at - there.begin()));
  }
  return places;
}

bool in_order(const std::vector<std::size_t>& places) {
  return std::is_sorted(places.begin(), places.end());
}

/// The i-th of a list that may have one number for all; `otherwise` of an empty one.
double value_of(const std::vector<double>& all, std::size_t i, double otherwise) {
  return all.empty() ? otherwise : all.size() == 1 ? all.front() : i < all.size() ? all[i] : otherwise;
}

class TranslatedSession final : public policy::Session {
 public:
  TranslatedSession(std::unique_ptr<policy::Session> session, const Translation& translation)
      : session_(std::move(session)), translation_(translation) {}

  void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t> seeds,
             const std::string& instruction) override {
    session_->begin(environments, seeds, instruction);
  }
  void see(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    session_->see(environments, shown(environments.size(), frame));
  }
  std::vector<std::vector<float>> act(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    std::vector<std::vector<float>> actions = session_->act(environments, shown(environments.size(), frame));
    for (std::vector<float>& row : actions) row = of_numbers(row, translation_.actions);
    return actions;
  }

 private:
  static std::vector<float> of_numbers(std::span<const float> row, const std::vector<Number>& numbers) {
    std::vector<float> out;
    for (const Number& number : numbers) {
      const double value = number.factor * static_cast<double>(row[number.from]) + number.shift;
      out.push_back(static_cast<float>(std::clamp(value, number.low, number.high)));
    }
    return out;
  }
  policy::Frame shown(std::size_t n, const policy::Frame& frame) {
    low_dim_.clear();
    const std::size_t width = n == 0 ? 0 : frame.low_dim.size() / n;
    for (std::size_t row = 0; row < n; ++row) {
      const std::vector<float> numbers = of_numbers(frame.low_dim.subspan(row * width, width), translation_.seen);
      low_dim_.insert(low_dim_.end(), numbers.begin(), numbers.end());
    }
    return {.low_dim = low_dim_, .images = frame.images, .instructions = frame.instructions};
  }

  std::unique_ptr<policy::Session> session_;
  const Translation& translation_;
  std::vector<float> low_dim_;
};

class TranslatedPolicy final : public policy::Policy {
 public:
  TranslatedPolicy(std::unique_ptr<policy::Policy> policy, std::vector<policy::Observation> there,
                   Translation translation)
      : policy_(std::move(policy)), translation_(std::move(translation)), spec_(policy_->spec()) {
    inner_ = spec_.all_numbers ? there : spec_.observations;
    spec_.observations = std::move(there);
    spec_.all_numbers = false;
    spec_.action_names.clear();
    spec_.action_width = std::ssize(translation_.actions);
    spec_.learnt = {};
    spec_.control_frequency = 0;
  }

  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings& settings) override {
    policy::SessionSettings inside = settings;
    inside.observations = inner_;
    return std::make_unique<TranslatedSession>(policy_->session(inside), translation_);
  }

 private:
  std::unique_ptr<policy::Policy> policy_;
  const Translation translation_;
  policy::Spec spec_;
  std::vector<policy::Observation> inner_;
};

}  // namespace

Translation untranslated(std::size_t seen, std::size_t actions) {
  Translation translation;
  for (std::size_t i = 0; i < seen; ++i) translation.seen.push_back({.from = i});
  for (std::size_t i = 0; i < actions; ++i) translation.actions.push_back({.from = i});
  return translation;
}

Translation translation(const Contract& policy, const Contract& task) {
  using Observation = Contract::Observation;
  Translation out;
  const auto note = [&out](bool done, const char* step) {
    if (done && std::find(out.steps.begin(), out.steps.end(), step) == out.steps.end()) out.steps.emplace_back(step);
  };
  COHORT_THROW_UNLESS(!policy.observations.empty(), "the file does not name its observations");
  COHORT_THROW_UNLESS(policy.observations.size() == task.observations.size(),
                      "it sees {} observations, the task has {}", policy.observations.size(), task.observations.size());
  const std::vector<std::size_t> joints = places_among(policy.joint_names, task.joint_names);
  const bool moves_joints = !joints.empty() && !in_order(joints);
  const auto pose = [](const Contract& of, std::size_t joint) { return value_of(of.default_joint_pos, joint, 0); };
  const bool posed = !policy.default_joint_pos.empty() && !task.default_joint_pos.empty();
  std::size_t next = 0;
  for (const Observation& seen : policy.observations) {
    std::size_t begin = 0;
    const auto there = std::find_if(task.observations.begin(), task.observations.end(), [&](const Observation& one) {
      if (one.name == seen.name) return true;
      begin += static_cast<std::size_t>(one.width());
      return false;
    });
    COHORT_THROW_UNLESS(there != task.observations.end(), "the task does not observe {}", seen.name);
    COHORT_THROW_UNLESS((seen.shape.empty() || seen.width() == there->width()) &&
                            std::max(seen.history, 1) == std::max(there->history, 1),
                        "{} has {} numbers of {} moments, and in the task {} of {}", seen.name, seen.width(),
                        std::max(seen.history, 1), there->width(), std::max(there->history, 1));
    const auto width = static_cast<std::size_t>(there->width());
    note(begin != next, "observations by name");
    next += width;
    const bool of_joints = !joints.empty() && width == joints.size();
    const bool positions = of_joints && posed && seen.name.find("joint_pos") != std::string::npos;
    for (std::size_t k = 0; k < width; ++k) {
      const std::size_t from = of_joints ? joints[k] : k;
      const double scale = value_of(seen.scale, k, 1), scale_there = value_of(there->scale, from, 1);
      // Clipped before it is scaled.
      Number number{.from = begin + from,
                    .low = scale > 0 ? scale * seen.low : scale * seen.high,
                    .high = scale > 0 ? scale * seen.high : scale * seen.low};
      if (scale != scale_there && scale_there != 0) number.factor = scale / scale_there;
      if (positions && pose(policy, k) != pose(task, from)) number.shift = scale * (pose(task, from) - pose(policy, k));
      note(of_joints && from != k, "joints by name");
      note(number.factor != 1, "scales of observations");
      note(number.shift != 0, "the policy's pose");
      note(seen.low != there->low || seen.high != there->high, "limits of observations");
      out.seen.push_back(number);
    }
  }
  const std::size_t actions = std::max(task.action_names.size(), policy.action_names.size());
  const std::vector<std::size_t> by_name = places_among(task.action_names, policy.action_names),
                                 by_joint = places_among(task.joint_names, policy.joint_names);
  const bool joint_actions = moves_joints && by_joint.size() == actions;
  for (std::size_t k = 0; k < actions; ++k) {
    Number number{.from = joint_actions ? by_joint[k] : by_name.empty() ? k : by_name[k]};
    note(joint_actions && number.from != k, "joints by name");
    note(!joint_actions && number.from != k, "actions by name");
    const double scale = value_of(policy.action_scale, number.from, 0), scale_there = value_of(task.action_scale, k, 0);
    if (scale != 0 && scale_there != 0) {
      if (scale != scale_there) number.factor = scale / scale_there;
      // A joint's target is its default position plus scale times action, in both.
      if (posed && joints.size() == actions) number.shift = (pose(policy, number.from) - pose(task, k)) / scale_there;
      note(number.factor != 1, "scale of actions");
      note(number.shift != 0, "the policy's pose");
    }
    out.actions.push_back(number);
  }
  return out;
}

std::unique_ptr<policy::Policy> translated(std::unique_ptr<policy::Policy> policy,
                                           std::vector<policy::Observation> there, Translation translation) {
  return std::make_unique<TranslatedPolicy>(std::move(policy), std::move(there), std::move(translation));
}

}  // namespace cohort::onnx
