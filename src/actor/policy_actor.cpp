#include "actor/policy_actor.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/typed_text.h"
#include "tasks/task.h"

namespace cohort::actor {
namespace {

constexpr double kSameFrequency = 0.01;  // control periods are sums of time steps

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A setting's value for comparing what was typed: "[1, 2]" and "1,2" are the same.
std::string without_brackets(std::string text) {
  std::erase(text, ' ');
  return text.starts_with('[') && text.ends_with(']') ? text.substr(1, text.size() - 2) : text;
}
std::string plain_typed(const std::string& text) {
  if (text == "True" || text == "False") return text == "True" ? "true" : "false";
  const config::Json json = try_json<config::Json>(text);
  return without_brackets(json.is_discarded() ? text : typed_text(json));
}

}  // namespace

PolicyActor::PolicyActor(policy::Policy& policy, const tasks::Task& task, std::string name)
    : spec_(policy.spec()), name_(std::move(name)), width_(task.spec().action.width()) {
  const tasks::TaskSpec& there = task.spec();
  policy::SessionSettings settings{
      .control_period = there.control_period, .observations = {}, .action_width = width_, .task = there.name};
  for (const policy::Observation& seen : spec_.observations)
    seen.picture ? add_pictures(there, seen) : add_numbers(there, seen);
  for (std::size_t i = 0; spec_.all_numbers && i < there.observations.size(); ++i) {
    const tasks::FieldSpec& field = there.observations[i];
    if (contains(spec_.unseen, field.name)) continue;
    observations_.push_back({i, 0, field.elements()});
    settings.observations.push_back({.name = field.name, .shape = {field.elements()}});
  }
  if (spec_.all_pictures)
    for (const std::string& camera : there.cameras) {
      cameras_.push_back(camera);
      settings.observations.push_back({.name = camera, .shape = {-1, -1, 3}, .picture = true});
    }
  pictures_.resize(cameras_.size());
  check_action(there);
  try {
    session_ = policy.session(settings);
  } catch (const Error& e) {
    throw Error(format("{} does not fit {}: {}", name_, there.name, e.what()));
  }
  const double hertz = 1 / there.control_period;
  if (spec_.control_frequency > 0 && std::abs(spec_.control_frequency / hertz - 1) > kSameFrequency)
    log::warning("{} acts at {:.4g} Hz, {} at {:.4g} Hz: its actions are held for another time here", name_,
                 spec_.control_frequency, there.name, hertz);
}

void PolicyActor::add_numbers(const tasks::TaskSpec& task, const policy::Observation& seen) {
  std::vector<tasks::FieldPlace> places;
  try {
    places = tasks::places_of_field(task, seen.name, seen.elements);
  } catch (const Error& e) {
    throw Error(format("{} does not fit the task: it sees '{}', but {}{}", name_, seen.name, e.what(), spec_.lacking));
  }
  std::int64_t width = 0;
  for (const tasks::FieldPlace& place : places) width += place.count;
  COHORT_THROW_UNLESS(width == seen.shape.at(0),
                      "{} does not fit the task: its '{}' has {} numbers, but {}'s observation of that name has {}",
                      name_, seen.name, seen.shape[0], task.name, width);
  observations_.insert(observations_.end(), places.begin(), places.end());
}

void PolicyActor::add_pictures(const tasks::TaskSpec& task, const policy::Observation& seen) {
  cameras_.push_back(tasks::camera_of_field(task, seen.name));
  COHORT_THROW_UNLESS(!cameras_.back().empty(), "{} does not fit the task: it sees the pictures {}, but {} has {}{}",
                      name_, seen.name, task.name,
                      task.cameras.empty() ? "no cameras" : "the cameras " + join(task.cameras, ", ") + " only",
                      spec_.lacking);
}

void PolicyActor::check_action(const tasks::TaskSpec& task) const {
  COHORT_THROW_UNLESS(spec_.action_width == 0 || spec_.action_width == width_,
                      "{} does not fit the task: its actions have {} numbers, those of {} have {}", name_,
                      spec_.action_width, task.name, width_);
  const std::string& field = task.action.field;
  const std::vector<std::string>& learnt = spec_.action_fields;
  // Slices of the one action, in their order, are that action too: data::FieldVector has put them together.
  if (learnt.empty() || (learnt.size() == 1 && (learnt.front() == field || learnt.front() == field + "s"))) return;
  throw Error(format("{} does not fit the task: it learnt {}, but the actions of {} as it is set are {}; {}", name_,
                     join(learnt, ", "), task.name, field,
                     spec_.one_way_actions.empty()
                         ? "another setting of the task may have them (`cohort tasks " + task.name + "`)"
                         : join(spec_.one_way_actions, "; ")));
}

void PolicyActor::begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
                        const std::string& instruction) {
  for (const std::int32_t env : envs) {
    const auto at = static_cast<std::size_t>(env);
    if (at >= environments_.size()) environments_.resize(at + 1);
    environments_[at] = {};
  }
  session_->begin(envs, seeds, instruction);
}

void PolicyActor::act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) {
  std::vector<std::int32_t> seeing, asking;
  for (const std::int32_t env : envs) {
    const std::int64_t left = environments_.at(static_cast<std::size_t>(env)).left;
    if (left == 0)
      asking.push_back(env);
    else if (left % spec_.stride == 0 && (spec_.remembers || left < spec_.frames * spec_.stride))
      seeing.push_back(env);
  }
  if (!seeing.empty()) session_->see(seeing, look(task, seeing));
  if (!asking.empty()) {
    std::vector<std::vector<float>> chunks = session_->act(asking, look(task, asking));
    for (std::size_t i = 0; i < asking.size(); ++i) {
      Environment& environment = environments_[static_cast<std::size_t>(asking[i])];
      environment.actions = std::move(chunks.at(i));
      environment.left = std::ssize(environment.actions) / width_;
      COHORT_CHECK(environment.left > 0 && environment.left * width_ == std::ssize(environment.actions),
                   "an answer of {} numbers, but an action has {}", environment.actions.size(), width_);
    }
  }
  const auto rows = actions.span<float>();
  for (const std::int32_t env : envs) {
    Environment& environment = environments_[static_cast<std::size_t>(env)];
    std::copy_n(environment.actions.end() - environment.left * width_, width_, rows.begin() + env * width_);
    --environment.left;
  }
}

policy::Frame PolicyActor::look(tasks::Task& task, std::span<const std::int32_t> envs) {
  low_dim_.clear();
  for (const std::int32_t env : envs)
    for (const tasks::FieldPlace& place : observations_) {
      const std::int64_t width = task.spec().observations[place.field].elements();
      const auto row =
          task.observation(place.field)
              .span<float>()
              .subspan(static_cast<std::size_t>(env * width + place.begin), static_cast<std::size_t>(place.count));
      low_dim_.insert(low_dim_.end(), row.begin(), row.end());
    }
  images_.clear();
  for (std::size_t c = 0; c < cameras_.size(); ++c) {
    const ArrayView all = task.picture(cameras_[c], envs);
    const auto pixels = all.span<std::uint8_t>();
    const auto bytes = static_cast<std::size_t>(all.shape[1] * all.shape[2] * all.shape[3]);
    pictures_[c].resize(envs.size() * bytes);
    for (std::size_t i = 0; i < envs.size(); ++i)
      std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(envs[i]) * bytes), bytes,
                  pictures_[c].begin() + static_cast<std::ptrdiff_t>(i * bytes));
    images_.push_back(make_view(pictures_[c].data(),
                                {static_cast<std::int64_t>(envs.size()), all.shape[1], all.shape[2], all.shape[3]}));
  }
  return {.low_dim = low_dim_, .images = images_};
}

std::vector<std::string> differences(const policy::Spec& policy, const tasks::Task& task) {
  const policy::LearntTask& learnt = policy.learnt;
  if (!learnt.name.empty() && learnt.name != task.spec().name)
    return {format("it has learnt {} and acts in {}: as many observations and actions, which may mean something else",
                   learnt.name, task.spec().name)};
  const config::Json here = try_json<config::Json>(task.description());
  if (!here.is_object()) return {};
  const config::Json of_task = here.value("settings", config::Json::object());
  std::vector<std::string> lines;
  for (const auto& [key, typed] : learnt.settings) {
    const std::string value = plain_typed(typed);
    const config::Json& holder = here.contains(key) ? here : of_task;
    if (!holder.contains(key)) continue;
    const std::string there = typed_text(holder.at(key));
    if (without_brackets(there) == value) continue;
    lines.push_back(format("it has learnt with {}={}; here {}={}{}", key,
                           holder.at(key).is_array() ? "[" + value + "]" : value, key, there,
                           learnt.remedy.empty() ? "" : ": " + learnt.remedy));
  }
  return lines;
}

}  // namespace cohort::actor
