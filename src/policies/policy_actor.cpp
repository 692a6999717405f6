#include "policies/policy_actor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "tasks/recorded_names.h"
#include "tasks/task.h"

namespace cohort::policies {
namespace {

/// The task's camera whose pictures a recording has under that field.
std::string camera_of(const tasks::TaskSpec& spec, const std::string& field) {
  std::string name = tasks::camera_of_field(spec, field);
  COHORT_THROW_UNLESS(!name.empty(), "the policy sees the pictures {}, but {} has {}", field, spec.name,
                      spec.cameras.empty() ? "no cameras" : "the cameras " + join(spec.cameras, ", ") + " only");
  return name;
}

}  // namespace

PolicyActor::PolicyActor(TrainedPolicy& policy, tasks::Task& task, std::string name)
    : policy_(policy), name_(std::move(name)) {
  const tasks::TaskSpec& spec = task.spec();
  for (const data::RecordedField& field : policy.low_dim_fields()) {
    std::vector<tasks::FieldPlace> places;
    try {
      places = tasks::places_of_field(spec, field.name, field.elements);
    } catch (const Error& e) {
      throw Error(format("{} does not fit the task: it sees '{}', but {}", name_, field.name, e.what()));
    }
    std::int64_t width = 0;
    for (const tasks::FieldPlace& place : places) width += place.count;
    COHORT_THROW_UNLESS(width == field.width,
                        "{} does not fit the task: its '{}' has {} numbers, but {}'s observation of that name has {}",
                        name_, field.name, field.width, spec.name, width);
    observations_.insert(observations_.end(), places.begin(), places.end());
  }
  for (const std::string& camera : policy.cameras()) cameras_.push_back(camera_of(spec, camera));
  pictures_.resize(cameras_.size());
  check_action(task);
  try {
    policy.act_every(spec.control_period);
  } catch (const Error& e) {
    throw Error(format("{} does not fit {}: {}", name_, spec.name, e.what()));
  }
}

void PolicyActor::check_action(const tasks::Task& task) const {
  const tasks::TaskSpec& spec = task.spec();
  const std::vector<data::RecordedField>& given = policy_.action_fields();
  COHORT_THROW_UNLESS(policy_.action_width() == spec.action.width(),
                      "{} does not fit the task: its actions have {} numbers, those of {} have {}", name_,
                      policy_.action_width(), spec.name, spec.action.width());
  const std::string& field = spec.action.field;
  const auto is_it = [&](const std::string& learnt) { return learnt == field || learnt == field + "s"; };
  // Slices of the one action, in their order, are that action too: fields() has put them together.
  if (given.size() == 1 && is_it(given.front().name)) return;
  std::vector<std::string> names;
  for (const data::RecordedField& one : given) names.push_back(one.name);
  const std::vector<std::string>& one_way = policy_.one_way_actions();
  throw Error(format("{} does not fit the task: it learnt {}, but the actions of {} as it is set are {}; {}", name_,
                     join(names, ", "), spec.name, field,
                     one_way.empty() ? "another setting of the task may have them (`cohort tasks " + spec.name + "`)"
                                     : join(one_way, "; ")));
}

void PolicyActor::begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
                        const std::string& instruction) {
  const auto width = static_cast<std::size_t>(policy_.action_width());
  for (const std::int32_t at : envs) {
    const auto env = static_cast<std::size_t>(at);
    if (env >= seeds_.size()) seeds_.resize(env + 1), steps_.resize(env + 1), held_.resize((env + 1) * width);
    if (seeds_[env]) policy_.end(*seeds_[env]);
  }
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const auto env = static_cast<std::size_t>(envs[i]);
    seeds_[env] = seeds[i];
    steps_[env] = 0;
    policy_.begin(seeds[i], policy_.takes_instructions() ? instruction : "");
  }
}

void PolicyActor::act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) {
  std::vector<std::int32_t> deciding;
  for (const std::int32_t env : envs)
    if (steps_.at(static_cast<std::size_t>(env))++ % policy_.stride() == 0) deciding.push_back(env);
  if (!deciding.empty()) decide(task, deciding);
  const auto width = static_cast<std::ptrdiff_t>(policy_.action_width());
  const auto rows = actions.span<float>();
  for (const std::int32_t env : envs) std::copy_n(held_.begin() + env * width, width, rows.begin() + env * width);
}

void PolicyActor::decide(tasks::Task& task, std::span<const std::int32_t> envs) {
  std::vector<std::uint64_t> episodes;
  std::vector<float> low_dim;
  for (const std::int32_t env : envs) {
    episodes.push_back(seeds_[static_cast<std::size_t>(env)].value());
    for (const tasks::FieldPlace& place : observations_) {
      const std::int64_t width = task.spec().observations[place.field].elements();
      const auto row =
          task.observation(place.field)
              .span<float>()
              .subspan(static_cast<std::size_t>(env * width + place.begin), static_cast<std::size_t>(place.count));
      low_dim.insert(low_dim.end(), row.begin(), row.end());
    }
  }
  std::vector<ArrayView> images;
  for (std::size_t c = 0; c < cameras_.size(); ++c) {
    const ArrayView all = task.picture(cameras_[c], envs);
    const auto pixels = all.span<std::uint8_t>();
    const auto bytes = static_cast<std::size_t>(all.shape[1] * all.shape[2] * all.shape[3]);
    pictures_[c].resize(envs.size() * bytes);
    for (std::size_t i = 0; i < envs.size(); ++i)
      std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(envs[i]) * bytes), bytes,
                  pictures_[c].begin() + static_cast<std::ptrdiff_t>(i * bytes));
    images.push_back(make_view(pictures_[c].data(),
                               {static_cast<std::int64_t>(envs.size()), all.shape[1], all.shape[2], all.shape[3]}));
  }
  const std::vector<float> chosen = policy_.act(episodes, {.low_dim = low_dim, .images = images});
  const auto width = static_cast<std::ptrdiff_t>(policy_.action_width());
  auto from = chosen.begin();
  for (const std::int32_t env : envs) {
    std::copy_n(from, width, held_.begin() + env * width);
    from += width;
  }
}

}  // namespace cohort::policies
