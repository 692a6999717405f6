/// The encoder-only Informer of the beginners' guide: a table's columns, read as a short sequence, predict other
/// columns.
///
///   std::shared_ptr<torch::nn::Module> model = make_regressor({}, /*seed=*/1);   // 88,130 parameters
///   at::Tensor y = regressor_forward(*model, x);                                 // (B, 10) -> (B, 2)
///
/// Each input column is one position: Linear(1 -> d_model) + sinusoid, encoder layers with ProbSparse attention and
/// distilling between them, the mean over positions, then an MLP d_model -> hidden -> outputs. There is no norm behind
/// the last layer. Weights: value_embedding, position_embedding.pe, encoder.* (as Informer's), head.0, head.2.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/config.h"

namespace torch::nn {
class Module;
}

namespace cohort::models {

struct RegressorSettings {
  int inputs = 10;                       ///< columns read, the length of the sequence
  int outputs = 2;                       ///< columns predicted
  int d_model = 64;                      ///< width; even
  int n_heads = 4;                       ///< attention heads
  int e_layers = 2;                      ///< encoder layers, with a distilling layer between two
  int d_ff = 128;                        ///< width of the feed-forward part
  int hidden = 128;                      ///< width of the MLP
  int factor = 5;                        ///< ProbSparse: factor·ceil(ln L) queries; 5 lets all of 10 positions attend
  double dropout = 0.05;                 ///< probability
  std::string activation = "gelu";       ///< gelu or relu, of the feed-forward part and the MLP
  bool distil = true;                    ///< halve the sequence between encoder layers
  std::uint64_t eval_sampling_seed = 0;  ///< ProbSparse samples keys also at evaluation; this seed makes it repeatable
};

/// Binds the settings to names under the current section.
void describe(config::Fields& fields, RegressorSettings& settings);

/// Throws Error naming the field, its value and what is allowed.
void check(const RegressorSettings& settings);

/// A model in training mode on the CPU, its weights drawn from `seed` (models/initialise.h).
std::shared_ptr<torch::nn::Module> make_regressor(const RegressorSettings& settings, std::uint64_t seed);

/// x (B, inputs) -> (B, outputs). Throws Error naming shape and field where they do not fit, and where `model` is no
/// regressor. In training mode a RandomContext must be set.
at::Tensor regressor_forward(torch::nn::Module& model, const at::Tensor& x);

}  // namespace cohort::models
