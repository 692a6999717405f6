/// A network that acts: what training, checkpoints and rollouts need of it, whatever it learns by. What it sees and
/// gives is normalised as its training data were.
///
///   std::shared_ptr<PolicyNetwork> network = make_diffusion_policy(settings, /*seed=*/1);    // or make_bc_policy
///   network->loss(observations, actions).backward();
///   network->eval();
///   std::unique_ptr<PolicyControl> control = network->control(/*seed=*/1);
///   control->begin(7);                                        // environment 7 begins an episode
///   at::Tensor actions = control->act({7}, frame);            // (1, A)
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/vision/observation_encoder.h"

namespace cohort::models {

/// Acts with a policy, one action per environment and frame, and keeps what each environment needs from frame to frame:
/// former frames and queued actions (receding horizon), or a recurrent network's memory.
///
/// An environment's actions are the same bits whichever others act with it: what is drawn is keyed by the environment,
/// and every forward pass has a multiple of kActingRows rows (unless set_exact(false)).
class PolicyControl {
 public:
  virtual ~PolicyControl() = default;
  /// false: forward passes have no rows more than there are environments. One robot is answered several times quicker,
  /// and what others act with it changes the last bits.
  void set_exact(bool exact) { exact_ = exact; }
  /// Forgets what the environment has seen and what it was about to do, as at the start of an episode.
  virtual void begin(std::uint64_t environment) = 0;
  /// Its episode is over: nothing is kept of it. Without this an environment costs the memory of its last frames.
  virtual void end(std::uint64_t environment) = 0;
  /// Of which something is kept.
  virtual std::size_t environments() const = 0;
  /// One normalised action for each of the environments, (n, A), on the device of the frames. `frame`: name -> (n, ...)
  /// without a time dimension. Throws Error naming a missing or misshapen observation; then nothing has changed.
  virtual at::Tensor act(const std::vector<std::uint64_t>& environments, const Observations& frame) = 0;

  // For who is asked now and then rather than at every frame (policy/policy.h).

  /// Frames that a decision looks at: the last ones.
  virtual std::int64_t frames() const { return 1; }
  /// Whether what it saw before those matters too, as to a recurrent network.
  virtual bool remembers() const { return false; }
  /// Actions that a decision gives, of which act() hands out one at a time.
  virtual std::int64_t chunk() const { return 1; }
  /// A frame at which nothing is decided. Those that remember by acting act.
  virtual void see(const std::vector<std::uint64_t>& environments, const Observations& frame) {
    act(environments, frame);
  }
  /// The actions that the environment would be given at its next frames, (rows, A), which are then no longer to be
  /// given; undefined where there are none.
  virtual at::Tensor take_queued(std::uint64_t /*environment*/) { return {}; }

 protected:
  bool exact() const { return exact_; }
  /// Rows that forward passes have a multiple of.
  std::int64_t block() const;

 private:
  bool exact_ = true;
};

class PolicyNetwork : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  /// What it sees, in the order of its joined vector.
  virtual const std::vector<ObservationSettings>& observations() const = 0;
  /// A scalar with a graph. observations: as many frames as a sample has; actions (B, rows, A). What is random is drawn
  /// by this thread's RandomContext.
  virtual at::Tensor loss(const Observations& observations, const at::Tensor& actions) const = 0;
  /// (B, rows, A): the actions that it would take in each sample, without a graph, drawn by (seed, id). In evaluation
  /// mode.
  virtual at::Tensor draw(const Observations& observations, const std::vector<std::uint64_t>& ids,
                          std::uint64_t seed) = 0;
  /// Acts in environments; what is drawn is keyed by (seed, environment, how often it has drawn). The network must
  /// outlive it, and be in evaluation mode when it acts.
  virtual std::unique_ptr<PolicyControl> control(std::uint64_t seed) = 0;

  // For acting, of networks that can (policies/algorithm.h: frequencies, carried_instructions).

  /// Hz of samples that do not say it.
  virtual void set_frequency(double hz);
  /// One more embedded instruction (tokens, width) beside those that the network carries; it is no part of its weights.
  /// Gives its number. Throws Error for a wrong shape.
  virtual std::int64_t add_instruction(const at::Tensor& embedding);
};

/// The module as a policy. A module that is none is a programmer's error.
PolicyNetwork& as_policy(torch::nn::Module& module);
const PolicyNetwork& as_policy(const torch::nn::Module& module);

/// Forward passes that act have a multiple of so many rows: BLAS takes other kernels for a few rows, and for those
/// beyond the last whole block of a kernel (16 floats fill a register of AVX-512), and gives the same row other bits
/// there. Linear layers need RowsAloneGuard (linear.h) beside it.
inline constexpr std::int64_t kActingRows = 16;

inline std::int64_t PolicyControl::block() const {
  return exact_ ? kActingRows : 1;
}

/// `n` rounded up to a multiple of `block`.
std::int64_t whole_blocks(std::int64_t n, std::int64_t block);
/// x (n, ...) with its last row repeated, (whole_blocks(n, block), ...); dimension `dim` holds the rows.
at::Tensor padded_rows(const at::Tensor& x, std::int64_t block, std::int64_t dim = 0);

/// Throws Error where the frame of `n` environments lacks one of the observations or has one of another shape.
void check_frame(const std::vector<ObservationSettings>& observations, const Observations& frame, std::int64_t n);

}  // namespace cohort::models
