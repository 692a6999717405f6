/// A policy server as an Actor: a connection for each environment, so that histories which a server keeps of its clients
/// are each of one environment.
///
///   RemoteActor actor("ws://10.0.0.7:8000", *task, {.exec_horizon = 5});
///   tasks::run_episodes(*task, actor, seeds);
///
/// `cohort serve` is told each episode's beginning and seed and, where its policy looks at several moments, what was seen
/// since the last answer: episodes are then those of the policy itself, bit for bit. Another server gets a new connection for
/// each episode.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "serve/remote_policy.h"
#include "serve/task_observations.h"
#include "tasks/actor.h"

namespace cohort::serve {

struct RemoteActorSettings {
  RemoteSettings server;
  std::string observations = "task";  ///< or openpi-libero (serve/task_observations.h)
  std::int64_t exec_horizon = 0;      ///< actions of an answer that are executed; 0: all that the server sends
};

/// What a server says of itself, from a connection of its own. Throws what RemotePolicy throws.
ServerInfo ask_server(const std::string& url, const RemoteSettings& settings);

class RemoteActor final : public tasks::Actor {
 public:
  /// Connects once. Throws Error where server and task do not fit.
  RemoteActor(const std::string& url, const tasks::Task& task, const RemoteActorSettings& settings);

  std::string name() const override { return url_; }
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
             const std::string& instruction) override;
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override;
  const ServerInfo& server() const { return info_; }

 private:
  struct Place {  ///< of an environment
    std::unique_ptr<RemotePolicy> policy;
    std::uint64_t seed = 0;
    std::string instruction;
    bool fresh = true;          ///< its episode's first answer is still to come
    std::int64_t left = 0;      ///< control steps until it is asked again
    std::deque<float> actions;  ///< to be executed
    std::vector<Map> moments;   ///< seen since the last answer, as many as the policy looks at
  };
  bool to_be_seen(const Place& place) const;
  void ask(Place& place);
  void take_answer(Place& place);

  std::string url_;
  RemoteActorSettings settings_;
  std::int64_t width_ = 0;
  std::shared_ptr<ClientThread> thread_;
  std::unique_ptr<RemotePolicy> first_;  ///< whose metadata were read; the first environment takes it
  ServerInfo info_;
  std::unique_ptr<ObservationWriter> writer_;
  std::vector<Place> places_;
};

}  // namespace cohort::serve
