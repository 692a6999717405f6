#include "models/informer/prob_sparse.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/cpu/kernels.h"

namespace cohort::models {
namespace {

/// On a CPU sampled products are taken one by one, from a packed copy of each head's keys: no (B, H, L, U, D) gather,
/// as the reference makes it (157 MB at the default size), and no full (L, S) product, which long sequences could not
/// afford.
at::Tensor measure_on_cpu(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD, const at::Tensor& samples) {
  const at::Tensor q = q_BLHD.to(at::kFloat).contiguous(), k = k_BSHD.to(at::kFloat).contiguous();
  const std::int64_t batch = q.size(0), n_query = q.size(1), heads = q.size(2), width = q.size(3), n_key = k.size(1);
  at::Tensor out = at::empty({batch, heads, n_query}, at::kFloat);
  const auto* q_data = q.const_data_ptr<float>();
  const auto* k_data = k.const_data_ptr<float>();
  const auto* sample_data = samples.const_data_ptr<std::int64_t>();
  auto* out_data = out.mutable_data_ptr<float>();
  const cpu::Kernels& kernels = cpu::kernels();
  at::parallel_for(0, batch * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> keys(static_cast<std::size_t>(n_key * width));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t b = i / heads, h = i % heads;
      for (std::int64_t s = 0; s < n_key; ++s)
        std::copy_n(k_data + ((b * n_key + s) * heads + h) * width, width, keys.data() + s * width);
      cpu::SparsityRows rows{};
      rows.q = q_data + (b * n_query * heads + h) * width;
      rows.q_stride = heads * width;
      rows.k = keys.data();
      rows.k_stride = width;
      rows.samples = sample_data;
      rows.n_query = n_query;
      rows.n_key = n_key;
      rows.n_sample = samples.size(1);
      rows.width = width;
      rows.out = out_data + i * n_query;
      kernels.sparsity(rows);
    }
  });
  return out;
}

/// softmax(q kᵀ / sqrt(D)) v for (B, H, ., D) views, mask true where a query sees a key (undefined: everywhere).
at::Tensor attend(const at::Tensor& q_BHUD, const at::Tensor& k_BHSD, const at::Tensor& v_BHSD,
                  const at::Tensor& mask_BHUS) {
  return at::scaled_dot_product_attention(q_BHUD, k_BHSD, v_BHSD,
                                          mask_BHUS.defined() ? std::optional<at::Tensor>(mask_BHUS) : std::nullopt);
}

at::Tensor in_order(const at::Tensor& context_BHLD, HeadOrder order) {
  return order == HeadOrder::kOutside ? context_BHLD.contiguous() : context_BHLD.transpose(1, 2).contiguous();
}

}  // namespace

at::Tensor sparsity_measurement_by_product(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD,
                                           const at::Tensor& samples_LU) {
  const at::NoGradGuard no_grad;
  // As many samples of the batch at a time as fit a bound.
  constexpr std::int64_t kScoresAtOnce = std::int64_t{1} << 26;  // elements: 256 MiB of float32
  const std::int64_t batch = q_BLHD.size(0), n_query = q_BLHD.size(1), heads = q_BLHD.size(2), n_key = k_BSHD.size(1);
  const at::Tensor q = q_BLHD.transpose(1, 2), k_T = k_BSHD.permute({0, 2, 3, 1});
  const at::Tensor index = samples_LU.to(q.device());
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kScoresAtOnce / std::max<std::int64_t>(1, heads * n_query * n_key));
  std::vector<at::Tensor> parts;
  for (std::int64_t first = 0; first < batch; first += at_once) {
    const std::int64_t count = std::min(at_once, batch - first);
    const at::Tensor scores = at::matmul(q.narrow(0, first, count), k_T.narrow(0, first, count)).to(at::kFloat);
    const at::Tensor sampled = scores.gather(3, index.expand({count, heads, n_query, index.size(1)}));
    parts.push_back(sampled.amax(3) - sampled.sum(3) / static_cast<double>(n_key));
  }
  return at::cat(parts, 0);
}

at::Tensor sparsity_measurement(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD, const at::Tensor& samples_LU) {
  const at::NoGradGuard no_grad;
  if (q_BLHD.device().is_cpu()) return measure_on_cpu(q_BLHD, k_BSHD, samples_LU);
  return sparsity_measurement_by_product(q_BLHD, k_BSHD, samples_LU);
}

at::Tensor prob_sparse_attention(const at::Tensor& q_BLHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD,
                                 bool masked, HeadOrder order, const ProbSparseLayer& layer, bool training) {
  const std::int64_t batch = q_BLHD.size(0), n_query = q_BLHD.size(1), heads = q_BLHD.size(2), width = q_BLHD.size(3);
  const std::int64_t n_key = k_BSHD.size(1);
  COHORT_CHECK(!masked || n_query == n_key, "masked attention is self-attention: {} queries, {} keys", n_query, n_key);
  const at::Tensor q_BHLD = q_BLHD.transpose(1, 2), k_BHSD = k_BSHD.transpose(1, 2), v_BHSD = v_BSHD.transpose(1, 2);
  const std::int64_t n_sample = prob_sparse_count(layer.factor, n_key);
  const std::int64_t n_top = prob_sparse_count(layer.factor, n_query);
  // Short sequences: every query attends, whatever the measurement says. A single key leaves nothing to choose.
  if (n_top == n_query || n_key == 1)
    return in_order(at::scaled_dot_product_attention(q_BHLD, k_BHSD, v_BHSD, std::nullopt, 0.0, masked), order);

  const at::Tensor samples = draw_key_samples(layer, n_query, n_sample, n_key, training);
  const at::Tensor top_BHU = std::get<1>(
      at::topk(sparsity_measurement(q_BLHD, k_BSHD, samples), n_top, -1, /*largest=*/true, /*sorted=*/false));

  // Rows of (B·L·H, D) for the picked queries; rows of the context, whose layout is `order`.
  const at::Tensor b = at::arange(batch, top_BHU.options()).view({batch, 1, 1});
  const at::Tensor h = at::arange(heads, top_BHU.options()).view({1, heads, 1});
  const at::Tensor rows_inside = ((b * n_query + top_BHU) * heads + h).flatten();
  const at::Tensor q_top_BHUD =
      q_BLHD.reshape({batch * n_query * heads, width}).index_select(0, rows_inside).view({batch, heads, n_top, width});
  at::Tensor mask;
  if (masked) mask = at::arange(n_key, top_BHU.options()).le(top_BHU.unsqueeze(-1));
  const at::Tensor attended = attend(q_top_BHUD, k_BHSD, v_BHSD, mask);  // (B, H, n_top, D)

  at::Tensor context;
  const at::Tensor& v = order == HeadOrder::kInside ? v_BSHD : v_BHSD;
  const std::int64_t length_dim = order == HeadOrder::kInside ? 1 : 2;
  if (masked) {
    context = v.cumsum(length_dim);
  } else {
    std::vector<std::int64_t> shape = v.sizes().vec();
    shape[static_cast<std::size_t>(length_dim)] = n_query;
    context = v.mean(length_dim, /*keepdim=*/true).expand(shape);
  }
  const std::vector<std::int64_t> shape = context.sizes().vec();
  const at::Tensor rows = order == HeadOrder::kInside ? rows_inside : ((b * heads + h) * n_query + top_BHU).flatten();
  return context.reshape({-1, width})
      .index_copy(0, rows, attended.to(context.scalar_type()).reshape({-1, width}))
      .view(shape);
}

}  // namespace cohort::models
