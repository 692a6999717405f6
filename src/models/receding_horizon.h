/// Acting with a policy that predicts chunks: keeps each environment's last observations, draws a chunk when its queue
/// is empty, and hands out one action at a time (receding-horizon control).
///
///   RecedingHorizon control(chunk_source, /*seed=*/1);
///   control.begin(env);                                    // a new episode
///   at::Tensor actions = control.act({0, 1, 2}, frame);    // (3, A), frame: name -> (3, ...), one frame per
///   environment
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/diffusion/noise.h"
#include "models/policy_network.h"

namespace cohort::models {

/// A policy that draws chunks, as RecedingHorizon needs it. What it points to must outlive the control.
struct ChunkSource {
  const torch::nn::Module* policy = nullptr;
  const std::vector<ObservationSettings>* observations = nullptr;
  int frames = 1;  ///< of observations per chunk
  int rows = 1;    ///< of actions that draw() gives
  /// draw() gets an observation of this name, (B, frames): 1 for frames of the episode, 0 for its first one where it
  /// stands for those before it. Empty: none.
  std::string in_episode;
  /// (B, rows, A): the actions to execute, from observations with a frame dimension and one key per sample.
  std::function<at::Tensor(const Observations&, const std::vector<SamplingKey>&)> draw;
};

class RecedingHorizon final : public PolicyControl {
 public:
  /// The policy must outlive this, and be in evaluation mode when it acts. Random numbers are keyed by (seed, the
  /// environment's id, its chunks since begin()): they do not depend on which environments act together, and an episode
  /// that is played again under its id is the same.
  RecedingHorizon(ChunkSource source, std::uint64_t seed) : source_(std::move(source)), seed_(seed) {}

  /// Forgets the environment's observations and queued actions, as at the start of an episode.
  void begin(std::uint64_t environment) override;
  void end(std::uint64_t environment) override { environments_.erase(environment); }
  std::size_t environments() const override { return environments_.size(); }

  /// One normalised action for each of the environments, (n, A), on the device of the frames. `frame`: name -> (n, ...)
  /// without a time dimension. An environment that has seen fewer frames than observation_horizon repeats its first
  /// one. Throws Error naming a missing or misshapen observation; then nothing has changed.
  at::Tensor act(const std::vector<std::uint64_t>& environments, const Observations& frame) override;

  std::int64_t frames() const override { return source_.frames; }
  std::int64_t chunk() const override { return source_.rows; }
  void see(const std::vector<std::uint64_t>& environments, const Observations& frame) override;
  at::Tensor take_queued(std::uint64_t environment) override;

  /// Chunks drawn so far, for all environments together.
  std::uint64_t chunks() const { return chunks_; }

 private:
  struct Environment {
    std::deque<Observations> frames;  // oldest first; tensors without batch and time dimension
    std::deque<at::Tensor> actions;   // (A) each
    std::size_t seen = 0;             // of the frames, the newest ones: those of the episode
    std::uint64_t count = 0;          // of chunks in this episode
  };

  /// Adds the i-th row of the frame to what the environment has seen.
  Environment& remember(std::uint64_t environment, std::size_t row, const Observations& frame);

  ChunkSource source_;
  std::uint64_t seed_;
  std::map<std::uint64_t, Environment> environments_;
  std::uint64_t chunks_ = 0;
};

}  // namespace cohort::models
