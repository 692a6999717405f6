#include "models/informer/embedding.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/informer/embedding_tables.h"
#include "models/linear.h"
#include "models/module_group.h"

namespace cohort::models {
namespace {

/// A table of embeddings as nn.Embedding names it: weight (rows, width).
class Table : public torch::nn::Module, public Initialised {
 public:
  /// fixed: a sinusoid that is not trained.
  Table(std::int64_t rows, std::int64_t width, bool fixed) : fixed_(fixed) {
    weight_ = register_parameter("weight", fixed ? sinusoid_table(rows, width) : at::empty({rows, width}),
                                 /*requires_grad=*/!fixed);
  }
  const at::Tensor& weight() const { return weight_; }
  void initialise(Initialiser& initialiser) override {
    if (fixed_)
      initialiser.keep(weight_);
    else
      initialiser.normal(weight_, 1.0);
  }

 private:
  bool fixed_;
  at::Tensor weight_;
};

}  // namespace

DataEmbedding::DataEmbedding(std::string mark_name, int c_in, const InformerSettings& settings, LayerIds& ids)
    : mark_name_(std::move(mark_name)),
      linear_time_(settings.embed == "timeF"),
      dropout_layer_{settings.dropout, ids.next()} {
  const int width = settings.d_model;
  auto value = register_module("value_embedding", std::make_shared<ModuleGroup>());
  token_conv_ = value->register_module(
      "tokenConv", std::make_shared<CircularConv>(c_in, width, CircularConv::Start::kKaimingNormal));
  auto position = register_module("position_embedding", std::make_shared<ModuleGroup>());
  positions_ = position->register_buffer("pe", sinusoid_table(kPositions, width).unsqueeze(0));
  auto temporal = register_module("temporal_embedding", std::make_shared<ModuleGroup>());
  if (linear_time_) {
    time_linear_ = temporal->register_module("embed", std::make_shared<Linear>(time_columns(settings), width));
    return;
  }
  const bool fixed = settings.embed == "fixed";
  const auto add_table = [&](const std::string& field, int rows, int column) {
    auto table = std::make_shared<Table>(rows, width, fixed);
    if (fixed)
      temporal->register_module(field + "_embed", std::make_shared<ModuleGroup>())->register_module("emb", table);
    else
      temporal->register_module(field + "_embed", table);
    tables_.push_back({field, column, table->weight()});
  };
  if (settings.freq == "t") add_table("minute", kMinutes, 4);
  add_table("hour", kHours, 3);
  add_table("weekday", kWeekdays, 2);
  add_table("day", kDays, 1);
  add_table("month", kMonths, 0);
}

at::Tensor DataEmbedding::time_of(const at::Tensor& mark) const {
  const at::Tensor fields = mark.to(at::kLong);
  at::Tensor sum;
  for (const CalendarTable& table : tables_) {
    const at::Tensor values = fields.select(-1, table.column).contiguous();
    if (values.device().is_cpu() && values.numel() > 0) {
      const auto [least, most] = at::aminmax(values);
      COHORT_THROW_UNLESS(
          least.item<std::int64_t>() >= 0 && most.item<std::int64_t>() < table.rows.size(0),
          "informer: {} column {} ({}) holds values from {} to {}, but embed = fixed or learned has a table "
          "of {} rows, 0 to {}: give calendar fields, not the scaled features of embed = timeF",
          mark_name_, table.column, table.field, least.item<std::int64_t>(), most.item<std::int64_t>(),
          table.rows.size(0), table.rows.size(0) - 1);
    }
    const at::Tensor rows = at::embedding(table.rows, values);
    sum = sum.defined() ? sum + rows : rows;
  }
  return sum;
}

at::Tensor DataEmbedding::forward(const at::Tensor& x, const at::Tensor& mark) const {
  const at::Tensor positions = positions_.narrow(1, 0, x.size(1));
  at::Tensor embedded;
  if (linear_time_) {
    // Token convolution and time features are linear in the same positions: one product of (B·L, 3·c_in + features).
    embedded = linear(at::cat({ring_neighbours(x), mark.to(x.scalar_type())}, -1),
                      at::cat({token_conv_->flat_weight(), time_linear_->weight()}, 1),
                      token_conv_->bias() + time_linear_->bias());
    embedded = embedded.scalar_type() == positions.scalar_type() ? embedded.add_(positions) : embedded + positions;
  } else {
    embedded = token_conv_->forward(x) + positions + time_of(mark);
  }
  return dropout_(embedded.contiguous(), dropout_layer_, is_training());
}

}  // namespace cohort::models
