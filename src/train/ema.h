/// Exponential moving average of weights, with the warm-up of the decay that diffusion policies use.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/config.h"
#include "weights/named_tensors.h"

namespace cohort::parallel {
class ParameterShards;
}

namespace cohort::train {

struct EmaSettings {
  bool enabled = false;
  /// Which of the published countings the n-th update (n = 1, 2, ...) follows; both are
  ///   decay = clamp(1 - (1 + k / inv_gamma)^-power, min_decay, max_decay), and 0 as long as k <= 0:
  ///   diffusion_policy  k = n - 2 - update_after_step: Diffusion Policy, RDT, robomimic (diffusers 0.11, which it
  ///   uses) diffusers         k = n - 1 - update_after_step: EMAModel of diffusers since 0.12, with use_ema_warmup
  std::string counting = "diffusion_policy";
  double power = 0.75;
  double inv_gamma = 1.0;
  double min_decay = 0.0;
  double max_decay = 0.9999;
  std::int64_t update_after_step = 0;  ///< updates during which the average is a copy of the weights
  /// The affine weights of BatchNorm are copied, as Diffusion Policy and RDT do; false averages them, as diffusers
  /// does.
  bool copy_batch_norm = true;

  void validate() const;
};

void describe(config::Fields& fields, EmaSettings& settings);

/// The decay of update number `update` (from 1).
double ema_decay(const EmaSettings& settings, std::int64_t update);

/// What is averaged, where it is not the module's own parameters, all of them on this process.
struct EmaOrigin {
  /// A parameter's exact value: the optimizer's master of a 16-bit one. Empty: the parameter.
  std::function<at::Tensor(const at::Tensor& parameter)> exact;
  /// Each process averages the parameters that it owns; null: all of them.
  const parallel::ParameterShards* shards = nullptr;
};

/// Averages the trainable floating-point parameters of a module. Frozen parameters, buffers and what copy_batch_norm
/// names need no memory here: their "average" is the module's own value.
class Ema {
 public:
  /// Starts with a copy of the module's weights. The module must outlive this.
  Ema(const torch::nn::Module& module, EmaSettings settings, EmaOrigin origin = {});

  /// To be called after each optimizer step, also after one that changed nothing because of an overflow.
  void update();
  std::int64_t updates() const { return updates_; }

  /// Everything that module_state() names, with the averages in place of the averaged parameters: what
  /// ema/model.safetensors holds. The tensors are live. Where processes own parameters it is collective, and whole on
  /// rank 0; empty elsewhere.
  weights::NamedTensors state() const;
  /// Takes over averages by name; other names are ignored (they come with the model). `source` names the file in
  /// messages. Throws Error for a missing or misshapen average; then nothing has changed.
  void load_state(const weights::NamedTensors& state, std::int64_t updates, const std::string& source);

  /// Exchanges the module's weights and the averages, without copying. Twice is the identity. Where processes own
  /// parameters, or averages are of another type than these, the module gets copies, until the second call. Collective.
  void exchange();
  /// Of the averages of this process, bytes.
  std::int64_t bytes() const;

 private:
  const torch::nn::Module& module_;
  EmaSettings settings_;
  EmaOrigin origin_;
  bool swaps_ = true;  // averages can stand in the parameters' place
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_, averages_;  // averages_: undefined where another process has it
  std::vector<at::Tensor> own_exact_, own_averages_;
  std::vector<at::Tensor> replaced_;  // the module's weights while it has averages
  std::int64_t updates_ = 0;
};

/// Lets the module hold the averages for a scope. Null: does nothing.
class EmaWeightsGuard {
 public:
  explicit EmaWeightsGuard(Ema* ema) : ema_(ema) {
    if (ema_) ema_->exchange();
  }
  ~EmaWeightsGuard() {
    if (ema_) ema_->exchange();
  }
  EmaWeightsGuard(const EmaWeightsGuard&) = delete;
  EmaWeightsGuard& operator=(const EmaWeightsGuard&) = delete;

 private:
  Ema* ema_;
};

}  // namespace cohort::train
