/// Informer's input embedding: token + position + time.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "models/dropout.h"
#include "models/informer/settings.h"
#include "models/layers.h"

namespace cohort::models {

/// What the three parts of the embedding are called in weight files: value_embedding.tokenConv.*,
/// position_embedding.pe, temporal_embedding.*.
class DataEmbedding : public torch::nn::Module {
 public:
  /// c_in: columns of x. `mark_name` stands in error messages: "x_mark_enc" or "x_mark_dec".
  DataEmbedding(std::string mark_name, int c_in, const InformerSettings& settings, LayerIds& ids);

  /// x (B, L, c_in) floating point; mark (B, L, time_columns): features in [-0.5, 0.5] for timeF, else calendar fields
  /// month, day, weekday, hour[, minute] in the ranges of the tables. Returns (B, L, d_model).
  at::Tensor forward(const at::Tensor& x, const at::Tensor& mark) const;

 private:
  at::Tensor time_of(const at::Tensor& mark) const;

  std::string mark_name_;
  bool linear_time_;
  std::shared_ptr<CircularConv> token_conv_;
  at::Tensor positions_;                 // (1, kPositions, d_model)
  std::shared_ptr<Linear> time_linear_;  // timeF
  struct CalendarTable {
    std::string field;  // "hour", ...
    int column;         // of mark
    at::Tensor rows;    // (values of the field, d_model)
  };
  std::vector<CalendarTable> tables_;  // fixed and learned
  DropoutLayer dropout_layer_;
};

}  // namespace cohort::models
