#include "serve/remote_actor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "tasks/task.h"

namespace cohort::serve {
namespace {

constexpr double kSameFrequency = 0.01;  // control periods are sums of time steps

}  // namespace

ServerInfo ask_server(const std::string& url, const RemoteSettings& settings) {
  return RemotePolicy(make_client_thread(), url, settings).info();
}

RemoteActor::RemoteActor(const std::string& url, const tasks::Task& task, const RemoteActorSettings& settings)
    : url_(url),
      settings_(settings),
      width_(task.spec().action.width()),
      thread_(make_client_thread()),
      first_(std::make_unique<RemotePolicy>(thread_, url, settings.server)),
      info_(first_->info()),
      writer_(make_observation_writer(settings.observations, task, info_, url)) {
  const PolicyInfo& policy = info_.policy;
  COHORT_THROW_UNLESS(!info_.cohort || policy.action_width == width_,
                      "{} does not fit the task: its actions have {} numbers, those of {} have {}", url,
                      policy.action_width, task.spec().name, width_);
  const double hertz = 1 / task.spec().control_period;
  if (policy.control_frequency > 0 && std::abs(policy.control_frequency / hertz - 1) > kSameFrequency)
    log::warning("{} acts at {:.4g} Hz, {} at {:.4g} Hz: its actions are held for another time here", url,
                 policy.control_frequency, task.spec().name, hertz);
  COHORT_THROW_UNLESS(!info_.cohort || settings.exec_horizon <= policy.chunk,
                      "--exec-horizon {}: {} gives {} actions at a time; take no more, or start the server with more "
                      "(`cohort serve --exec-horizon`)",
                      settings.exec_horizon, url, policy.chunk);
}

void RemoteActor::begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
                        const std::string& instruction) {
  for (std::size_t i = 0; i < envs.size(); ++i) {
    const auto env = static_cast<std::size_t>(envs[i]);
    if (env >= places_.size()) places_.resize(env + 1);
    Place& place = places_[env];
    // A new connection is a new episode, whatever the server.
    if (place.policy && !info_.cohort && !place.fresh) place.policy.reset();
    if (!place.policy)
      place.policy = first_ ? std::move(first_) : std::make_unique<RemotePolicy>(thread_, url_, settings_.server);
    place.seed = seeds[i];
    place.instruction = instruction;
    place.fresh = true;
    place.left = 0;
    place.actions.clear();
    place.moments.clear();
  }
}

bool RemoteActor::to_be_seen(const Place& place) const {
  const std::int64_t stride = info_.policy.stride;
  return place.left % stride == 0 && place.left < info_.policy.frames * stride;
}

void RemoteActor::ask(Place& place) {
  Map message = place.moments.size() == 1 ? std::move(place.moments.front()) : stack(place.moments);
  place.moments.clear();
  message.push_back({"prompt", {place.instruction}});
  if (info_.cohort && place.fresh) {
    message.push_back({"reset", {true}});
    message.push_back({"seed", {place.seed}});
  }
  place.policy->ask(message);
}

void RemoteActor::take_answer(Place& place) {
  const Chunk chunk = place.policy->answer(width_);
  place.fresh = false;
  const std::int64_t rows = settings_.exec_horizon > 0 ? settings_.exec_horizon : chunk.rows;
  COHORT_THROW_UNLESS(rows <= chunk.rows, "--exec-horizon {}: {} has answered with {} actions; take no more", rows,
                      url_, chunk.rows);
  place.actions.assign(chunk.actions.begin(), chunk.actions.begin() + rows * width_);
  place.left = rows;
}

void RemoteActor::act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) {
  std::vector<std::int32_t> seeing;
  for (const std::int32_t env : envs)
    if (to_be_seen(places_.at(static_cast<std::size_t>(env)))) seeing.push_back(env);
  if (!seeing.empty()) {
    std::vector<Map> seen = writer_->write(task, seeing);
    for (std::size_t i = 0; i < seeing.size(); ++i)
      places_[static_cast<std::size_t>(seeing[i])].moments.push_back(std::move(seen[i]));
  }
  // All questions first: servers with several devices answer side by side.
  for (const std::int32_t env : envs)
    if (Place& place = places_[static_cast<std::size_t>(env)]; place.left == 0) ask(place);
  const auto rows = actions.span<float>();
  for (const std::int32_t env : envs) {
    Place& place = places_[static_cast<std::size_t>(env)];
    if (place.left == 0) take_answer(place);
    std::copy_n(place.actions.begin(), width_, rows.begin() + env * width_);
    place.actions.erase(place.actions.begin(), place.actions.begin() + width_);
    --place.left;
  }
}

}  // namespace cohort::serve
