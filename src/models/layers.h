/// Layers that several models share. Parameter names and shapes are PyTorch's, so that weight files exchange; data is
/// always (n_sample, length, channels), also where PyTorch's layer of that name wants (n_sample, channels, length).
///
/// Shape suffixes: B samples, L length, C / D channels.
#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/initialise.h"

namespace cohort::models {

/// y = x Wᵀ + b over the last dimension. weight (out, in), bias (out).
class Linear : public torch::nn::Module, public Initialised {
 public:
  Linear(std::int64_t in, std::int64_t out);
  at::Tensor forward(const at::Tensor& x) const;
  /// Rows [first, first + count) of the output only.
  at::Tensor forward_rows(const at::Tensor& x, std::int64_t first, std::int64_t count) const;
  const at::Tensor& weight() const { return weight_; }
  const at::Tensor& bias() const { return bias_; }
  void initialise(Initialiser& initialiser) override;

 private:
  at::Tensor weight_, bias_;
};

/// A 1×1 convolution, computed as a linear map of each position. weight (out, in, 1), bias (out): Conv1d's.
class PointwiseConv : public torch::nn::Module, public Initialised {
 public:
  PointwiseConv(std::int64_t in, std::int64_t out);
  at::Tensor forward(const at::Tensor& x_BLC) const;
  void initialise(Initialiser& initialiser) override;

 private:
  at::Tensor weight_, bias_;
};

/// A convolution of kernel 3 over a sequence closed to a ring, length kept. weight (out, in, 3), bias (out): those of
/// Conv1d(kernel_size 3, padding 1, padding_mode circular).
class CircularConv : public torch::nn::Module, public Initialised {
 public:
  enum class Start { kFanInUniform, kKaimingNormal };
  CircularConv(std::int64_t in, std::int64_t out, Start start);
  at::Tensor forward(const at::Tensor& x_BLC) const;
  void initialise(Initialiser& initialiser) override;

  /// (out, 3·in) with tap 0 (the position before) first, to be multiplied with ring_neighbours(x).
  at::Tensor flat_weight() const;
  const at::Tensor& bias() const { return bias_; }

 private:
  Start start_;
  at::Tensor weight_, bias_;
};

/// (B, L, 3·C): for each position its left neighbour on the ring, itself, its right neighbour.
at::Tensor ring_neighbours(const at::Tensor& x_BLC);

/// Normalisation over the last dimension. weight (d), bias (d).
class LayerNorm : public torch::nn::Module, public Initialised {
 public:
  explicit LayerNorm(std::int64_t width, double eps = 1e-5);
  at::Tensor forward(const at::Tensor& x) const;
  void initialise(Initialiser& initialiser) override;

 private:
  double eps_;
  at::Tensor weight_, bias_;
};

/// BatchNorm1d over samples and positions; eps 1e-5, momentum 0.1. weight, bias, running_mean, running_var (c),
/// num_batches_tracked. In training it normalises by the statistics of the batch part that this replica sees, as
/// PyTorch does; the running ones are left alone while RandomContext::recomputing.
class BatchNorm : public torch::nn::Module, public Initialised {
 public:
  explicit BatchNorm(std::int64_t channels);
  /// x (B, C, L, 1) in channels-last memory.
  at::Tensor forward(const at::Tensor& x_BCL1) const;
  void initialise(Initialiser& initialiser) override;

 private:
  at::Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};

/// (length, width) float32: sin(p / 10000^(2i/width)) in the even columns, cos in the odd ones (Vaswani et al.
/// 2017, 3.5). Throws Error for an odd width.
at::Tensor sinusoid_table(std::int64_t length, std::int64_t width);

}  // namespace cohort::models
