#include "models/informer/attention.h"

#include <cmath>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/informer/prob_sparse.h"

namespace cohort::models {

AttentionLayer::AttentionLayer(const AttentionSettings& settings, LayerIds& ids)
    : settings_(settings),
      head_width_(settings.d_model / settings.n_heads),
      dropout_layer_{settings.dropout, ids.next()},
      query_(register_module("query_projection",
                             std::make_shared<Linear>(settings.d_model, head_width_ * settings.n_heads))),
      key_(register_module("key_projection",
                           std::make_shared<Linear>(settings.d_model, head_width_ * settings.n_heads))),
      value_(register_module("value_projection",
                             std::make_shared<Linear>(settings.d_model, head_width_ * settings.n_heads))),
      out_(register_module("out_projection",
                           std::make_shared<Linear>(head_width_ * settings.n_heads, settings.d_model))) {
  settings_.prob.id = dropout_layer_.id;
}

at::Tensor AttentionLayer::full_attention(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD,
                                          const at::Tensor& v_BSHD) const {
  const at::Tensor q = q_BLHD.transpose(1, 2), k = k_BSHD.transpose(1, 2), v = v_BSHD.transpose(1, 2);
  if (!is_training() || dropout_layer_.p == 0.0)
    return at::scaled_dot_product_attention(q, k, v, std::nullopt, 0.0, settings_.masked);
  at::Tensor scores = at::matmul(q * (1.0 / std::sqrt(static_cast<double>(head_width_))), k.transpose(2, 3));
  if (settings_.masked) {
    const at::Tensor hidden = at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(dropout(scores.softmax(-1), dropout_layer_, true), v);
}

at::Tensor AttentionLayer::forward(const at::Tensor& queries_BLM, const at::Tensor& keys_BSM, std::int64_t keep) {
  const std::int64_t batch = queries_BLM.size(0), length = queries_BLM.size(1), heads = settings_.n_heads;
  COHORT_CHECK(keep >= 1 && keep <= length, "attention cannot keep {} of {} rows", keep, length);
  // mix lays the heads end to end, (H, L, D), and cuts that into rows of H·D: the last rows come from the last heads
  // alone.
  const std::int64_t first_row = length - keep;
  const std::int64_t first_head = settings_.mix ? first_row * heads / length : 0;
  const std::int64_t used = heads - first_head;
  const auto project = [&](const Linear& projection, const at::Tensor& x) {
    return projection.forward_rows(x, first_head * head_width_, used * head_width_)
        .view({batch, x.size(1), used, head_width_});
  };
  // Full attention without mixing needs the queries of the rows to keep alone; the mask counts positions from the
  // first.
  const bool cut_queries = !settings_.prob_sparse && !settings_.mix && !settings_.masked;
  const at::Tensor queries = cut_queries ? queries_BLM.narrow(1, first_row, keep) : queries_BLM;
  const at::Tensor q = project(*query_, queries), k = project(*key_, keys_BSM), v = project(*value_, keys_BSM);

  const HeadOrder order = settings_.mix ? HeadOrder::kOutside : HeadOrder::kInside;
  at::Tensor context;
  if (settings_.prob_sparse) {
    context = prob_sparse_attention(q, k, v, settings_.masked, order, settings_.prob, is_training());
  } else {
    const at::Tensor attended_BHLD = full_attention(q, k, v);
    context = settings_.mix ? attended_BHLD.contiguous() : attended_BHLD.transpose(1, 2).contiguous();
  }
  if (settings_.mix) {
    const std::int64_t offset = first_row * heads * head_width_ - first_head * length * head_width_;
    context = context.view({batch, used * length * head_width_}).narrow(1, offset, keep * heads * head_width_);
    context = context.reshape({batch, keep, heads * head_width_});
  } else {
    context = context.view({batch, context.size(1), heads * head_width_});
    if (!cut_queries) context = context.narrow(1, first_row, keep);
  }
  return out_->forward(context);
}

}  // namespace cohort::models
