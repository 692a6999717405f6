/// AdamW, Adam and SGD on LibTorch's fused kernels: one kernel call per device and element type, on the CPU and on
/// CUDA, with the results of torch.optim(fused=True). AdamW also with moments of 8 bits (quantized_state.h), and any of
/// them with weights of 16 bits whose float32 masters it keeps.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "weights/named_tensors.h"

namespace cohort::train {

/// Defaults are those of torch.optim.
struct OptimizerSettings {
  std::string kind = "adamw";  ///< adamw | adam | sgd | adamw8bit
  double beta1 = 0.9;          ///< adam, adamw: decay of the mean of gradients
  double beta2 = 0.999;        ///< adam, adamw: decay of the mean of squared gradients
  double eps = 1e-8;           ///< adam, adamw: added to the denominator
  /// adamw: decoupled (Loshchilov and Hutter 2019); adam, sgd: added to the gradient. Unset: 0.01 for adamw, else 0.
  std::optional<double> weight_decay;
  bool decay_vectors = true;  ///< false: one-dimensional parameters (biases, norms) are not decayed
  bool amsgrad = false;       ///< adam, adamw
  double momentum = 0.0;      ///< sgd
  bool nesterov = false;      ///< sgd; needs a momentum

  /// weight_decay with its default filled in.
  double resolved_weight_decay() const;
  /// Throws Error for values outside their range, naming the field.
  void validate() const;
};

void describe(config::Fields& fields, OptimizerSettings& settings);

/// Parameters that share settings. Names are those under which state is saved; they are unique over all groups.
struct ParameterGroup {
  weights::NamedTensors parameters;
  double lr_factor = 1.0;  ///< multiplies the learning rate that step() is given
  double weight_decay = 0.0;
};

/// The groups that `settings` asks for: all trainable parameters, split by decay_vectors where it is off.
std::vector<ParameterGroup> parameter_groups(const torch::nn::Module& module, const OptimizerSettings& settings);

class Optimizer {
 public:
  /// State is created in the first step, so that an optimizer that only loads a checkpoint allocates it once.
  /// master_weights: parameters of 16 bits have a float32 copy here, which is what steps change; the parameters are
  /// rounded from it. Their gradients may be of either type.
  Optimizer(std::vector<ParameterGroup> groups, OptimizerSettings settings, bool master_weights = false);

  /// Updates every parameter that has a gradient.
  /// found_inf: undefined, or a float32 scalar; where it is 1, nothing changes (no host synchronisation is needed).
  /// grad_scale: undefined, or a float32 scalar by which the gradients are divided, in place.
  void step(double lr, const at::Tensor& found_inf = {}, const at::Tensor& grad_scale = {});
  /// The same with the learning rate read on the device when the kernels run: a scalar there, float32 (on a CPU any
  /// floating-point type), so that a recorded step follows its schedule.
  void step(const at::Tensor& lr, const at::Tensor& found_inf = {}, const at::Tensor& grad_scale = {});

  /// The gradients that exist now, in the order of parameters(). The vector is reused by the next call.
  const std::vector<at::Tensor>& gradients();
  /// All parameters, group after group.
  const weights::NamedTensors& parameters() const { return parameters_; }

  /// Positions in parameters() of the tensors that gradients() returned last.
  const std::vector<std::size_t>& gradient_positions() const { return gradient_positions_; }

  /// What a parameter of parameters() is rounded from: its master, or itself.
  at::Tensor exact(const at::Tensor& parameter) const;

  /// "state.<parameter>.exp_avg", ".exp_avg_sq", ".step", ".max_exp_avg_sq" or ".momentum_buffer": PyTorch's state
  /// names in the form of torch.distributed.checkpoint's flattened optimizer state. adamw8bit: exp_avg and exp_avg_sq
  /// are uint8 where the parameter has 4,096 elements or more, with ".exp_avg_absmax" and ".exp_avg_sq_absmax", one for
  /// each 256. ".master" where there are masters. The tensors are live. Parameters that have never had a gradient have
  /// no moments.
  weights::NamedTensors state() const;
  /// Of all that, bytes.
  std::int64_t state_bytes() const;

  /// Takes over a state that state() of an optimizer of the same kind returned. Tensors are copied. `source` names the
  /// file in messages. Throws Error naming the parameter for a missing, superfluous or misshapen tensor; then nothing
  /// has changed.
  void load_state(const weights::NamedTensors& state, const std::string& source);

  const OptimizerSettings& settings() const { return settings_; }

 private:
  /// Parameters that one kernel call updates: one group, one device, one element type. The lists run parallel.
  struct Partition {
    std::size_t group = 0;
    std::vector<std::size_t> positions;  // in parameters_
    std::vector<at::Tensor> parameters, gradients;
    /// exp_avg or momentum_buffer; exp_avg_sq; max_exp_avg_sq; step. Undefined tensors until the first gradient.
    std::vector<at::Tensor> firsts, seconds, largests, steps;
    /// adamw8bit: scales of the blocks; undefined tensors where moments stay in 32 bits. Else empty.
    std::vector<at::Tensor> first_scales, second_scales;
    std::vector<at::Tensor> masters;  // of all parameters, or empty
    bool complete = false;            // all parameters have state
    /// All entries of `steps` are one tensor: parameters that have always been stepped together count together, so that
    /// counting costs one small kernel and not one per parameter.
    bool counts_together = false;
  };

  /// PyTorch's names for the states of a kind; null: it has no such state.
  struct StateNames {
    const char* first = nullptr;
    const char* second = nullptr;
    const char* largest = nullptr;
    const char* step = nullptr;
    const char* first_scale = nullptr;
    const char* second_scale = nullptr;
  };
  static StateNames state_names(const OptimizerSettings& settings);
  /// A state tensor and what it must be like.
  struct StateSlot {
    const char* kind = nullptr;
    std::vector<at::Tensor>* list = nullptr;
    std::vector<std::int64_t> sizes;
    at::ScalarType type{};
    bool is_master = false;
  };
  std::vector<StateSlot> slots_of(Partition& partition, std::size_t i) const;
  bool is_quantized(const at::Tensor& parameter) const;
  static const at::Tensor& target(const Partition& p, std::size_t i) {
    return p.masters.empty() ? p.parameters[i] : p.masters[i];
  }

  void create_state(Partition& partition, std::size_t i, const at::Tensor& step) const;
  /// Entry i of `from`, all but its gradient.
  static void append(Partition& to, const Partition& from, std::size_t i);
  /// Rate: double, or a scalar tensor.
  template <class Rate>
  void step_partition(Partition& partition, const Rate& lr, const at::Tensor& found_inf, const at::Tensor& grad_scale);
  template <class Rate>
  void step_part_of(Partition& partition, const Rate& lr, const at::Tensor& found_inf, const at::Tensor& grad_scale);
  template <class Rate>
  void run_kernel(const Partition& lists, const Rate& lr, at::TensorList distinct_steps, const at::Tensor& found_inf,
                  const at::Tensor& grad_scale) const;
  /// The kernels alone, on parameters of their own; steps have been counted.
  template <class Rate>
  void update(const Partition& lists, const Rate& lr, const std::optional<at::Tensor>& found_inf,
              const std::optional<at::Tensor>& grad_scale) const;
  template <class Rate>
  void update_masters(const Partition& lists, const Rate& lr, const std::optional<at::Tensor>& found_inf,
                      const std::optional<at::Tensor>& grad_scale) const;
  template <class Rate>
  void update_8bit(const Partition& lists, const Rate& lr, const std::optional<at::Tensor>& found_inf,
                   const std::optional<at::Tensor>& grad_scale) const;

  OptimizerSettings settings_;
  std::vector<ParameterGroup> groups_;
  weights::NamedTensors parameters_;
  std::vector<Partition> partitions_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> masters_;  // by parameter
  std::vector<at::Tensor> gradients_;
  std::vector<std::size_t> gradient_positions_;
};

}  // namespace cohort::train
