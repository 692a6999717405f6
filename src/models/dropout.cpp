#include "models/dropout.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/log.h"
#include "models/cpu/kernels.h"
#include "models/cuda/dropout.h"
#include "models/device_ids.h"
#include "models/dropout_mask.h"
#include "models/host_values.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

/// Everything that decides a mask, so that backward can draw it again.
struct MaskKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t threshold = 0;
  at::Tensor sample_ids;  // (n_sample) int64 on the CPU
};

MaskKey mask_key(const at::Tensor& x, const DropoutLayer& layer) {
  refuse_recording("dropout: its kernels take the step's number as an argument");
  const RandomContext& context = random_context();
  COHORT_CHECK(x.dim() >= 1, "dropout wants (n_sample, ...), not a scalar");
  MaskKey key{context.seed, context.step, layer.id, dropout_threshold(layer.p), context.sample_ids};
  if (!key.sample_ids.defined()) {
    key.sample_ids = at::arange(x.size(0), at::kLong);
  } else {
    COHORT_CHECK(
        key.sample_ids.scalar_type() == at::kLong && key.sample_ids.device().is_cpu() && key.sample_ids.dim() == 1 &&
            key.sample_ids.size(0) == x.size(0),
        "RandomContext::sample_ids must be ({}) int64 on the CPU, one for each sample of the batch, but has {} "
        "elements of type {} on {}",
        x.size(0), key.sample_ids.numel(), c10::toString(key.sample_ids.scalar_type()), key.sample_ids.device().str());
    key.sample_ids = key.sample_ids.contiguous();
  }
  return key;
}

cpu::Element cpu_element(at::ScalarType type) {
  return type == at::kBFloat16 ? cpu::Element::kBFloat16 : cpu::Element::kFloat32;
}

/// All tensors contiguous float32 or bfloat16 on the CPU; residual may be undefined.
void run_on_cpu(const MaskKey& key, const at::Tensor& x, const at::Tensor& residual, at::Tensor& out) {
  const std::int64_t n_sample = x.size(0);
  const std::int64_t per_sample = n_sample == 0 ? 0 : x.numel() / n_sample;
  if (per_sample == 0) return;
  const std::int64_t tiles = (per_sample + kDropoutTile - 1) / kDropoutTile;
  const auto* ids = key.sample_ids.const_data_ptr<std::int64_t>();
  const auto* in = static_cast<const char*>(x.const_data_ptr());
  const auto* base = residual.defined() ? static_cast<const char*>(residual.const_data_ptr()) : nullptr;
  auto* result = static_cast<char*>(out.mutable_data_ptr());
  const auto in_bytes = per_sample * static_cast<std::int64_t>(x.element_size());
  const auto base_bytes = base == nullptr ? 0 : per_sample * static_cast<std::int64_t>(residual.element_size());
  const auto out_bytes = per_sample * static_cast<std::int64_t>(out.element_size());
  const cpu::Kernels& kernels = cpu::kernels();
  // A tile costs about 50 ns; threads are worth their start from some ten microseconds on.
  constexpr std::int64_t kTilesPerThread = 256;
  at::parallel_for(0, n_sample * tiles, kTilesPerThread, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t sample = begin / tiles;
      const std::int64_t first = begin % tiles;
      const std::int64_t last = std::min(tiles, first + end - begin);
      cpu::DropoutTiles t{};
      t.stream =
          RandomStream(key.seed, RandomPurpose::kDropout, static_cast<std::uint64_t>(ids[sample]), key.step).fixed();
      t.layer = key.layer;
      t.threshold = key.threshold;
      t.scale = dropout_scale(key.threshold);
      t.in_type = cpu_element(x.scalar_type());
      t.residual_type = residual.defined() ? cpu_element(residual.scalar_type()) : cpu::Element::kFloat32;
      t.out_type = cpu_element(out.scalar_type());
      t.first_tile = first;
      t.last_tile = last;
      t.count = per_sample;
      t.in = in + sample * in_bytes;
      t.residual = base == nullptr ? nullptr : base + sample * base_bytes;
      t.out = result + sample * out_bytes;
      kernels.dropout(t);
      begin += last - first;
    }
  });
}

cuda::Element cuda_element(at::ScalarType type) {
  return type == at::kBFloat16 ? cuda::Element::kBFloat16
         : type == at::kHalf   ? cuda::Element::kFloat16
                               : cuda::Element::kFloat32;
}

void run_on_cuda(const MaskKey& key, const at::Tensor& x, const at::Tensor& residual, at::Tensor& out) {
  const c10::DeviceGuard guard(x.device());
  const at::Tensor ids = ids_on_device(key.sample_ids, x.device());
  cuda::DropoutBatch batch{};
  batch.n_sample = x.size(0);
  batch.per_sample = batch.n_sample == 0 ? 0 : x.numel() / batch.n_sample;
  batch.sample_ids = ids.const_data_ptr<std::int64_t>();
  batch.seed = key.seed;
  batch.step = key.step;
  batch.layer = key.layer;
  batch.threshold = key.threshold;
  batch.scale = dropout_scale(key.threshold);
  batch.in_type = cuda_element(x.scalar_type());
  batch.residual_type = residual.defined() ? cuda_element(residual.scalar_type()) : cuda::Element::kFloat32;
  batch.out_type = cuda_element(out.scalar_type());
  batch.in = x.const_data_ptr();
  batch.residual = residual.defined() ? residual.const_data_ptr() : nullptr;
  batch.out = out.mutable_data_ptr();
  const char* failure = cuda::dropout(batch, current_stream(x.device()));
  COHORT_CHECK(failure == nullptr, "dropout on {}: {}", x.device().str(), failure);
}

/// A mask of 0 and scale from ATen's own generator, the same whenever the same key and device ask.
at::Tensor factors_by_generator(const MaskKey& key, const at::Tensor& like) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    log::warning(
        "dropout on {} ({}): this build has no kernel for it, ATen's generator draws the masks; they are reproducible, "
        "but "
        "depend "
        "on how a batch is split over devices",
        like.device().str(), c10::toString(like.scalar_type()));
  const RandomStream stream(
      key.seed, RandomPurpose::kDropout,
      key.sample_ids.numel() == 0 ? 0 : static_cast<std::uint64_t>(key.sample_ids[0].item<std::int64_t>()), key.step);
  const Philox4 word = stream.at(static_cast<std::uint64_t>(key.layer) << 32);
  at::Generator generator = at::globalContext().defaultGenerator(like.device()).clone();
  generator.set_current_seed((static_cast<std::uint64_t>(word.v[1]) << 32) | word.v[0]);
  const double keep = 1.0 - static_cast<double>(key.threshold) / 65536.0;
  return at::empty_like(like).bernoulli_(keep, generator).mul_(dropout_scale(key.threshold));
}

bool has_kernel(const at::Tensor& x) {
  return x.device().is_cpu() || (x.device().is_cuda() && cuda::available());
}

/// out = residual + dropout(x); all contiguous; residual may be undefined; out may be x.
void run(const MaskKey& key, const at::Tensor& x, const at::Tensor& residual, at::Tensor& out) {
  if (x.device().is_cuda()) return run_on_cuda(key, x, residual, out);
  const bool half = x.scalar_type() == at::kHalf || out.scalar_type() == at::kHalf ||
                    (residual.defined() && residual.scalar_type() == at::kHalf);
  if (!half) return run_on_cpu(key, x, residual, out);
  // float16 on a CPU is rare: by way of float32.
  at::Tensor wide = at::empty_like(out, out.options().dtype(at::kFloat));
  run_on_cpu(key, x.to(at::kFloat), residual.defined() ? residual.to(at::kFloat) : residual, wide);
  out.copy_(wide);
}

bool supported(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
}

class KeyedDropout : public torch::autograd::Function<KeyedDropout> {
 public:
  /// x contiguous; residual absent, or of x's shape and contiguous.
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor x,
                            const std::optional<at::Tensor>& residual, const MaskKey& key, bool in_place) {
    context->saved_data["seed"] = static_cast<std::int64_t>(key.seed);
    context->saved_data["step"] = static_cast<std::int64_t>(key.step);
    context->saved_data["layer"] = static_cast<std::int64_t>(key.layer);
    context->saved_data["threshold"] = static_cast<std::int64_t>(key.threshold);
    context->saved_data["ids"] = key.sample_ids;
    context->saved_data["type"] = x.scalar_type();
    context->saved_data["adds"] = residual.has_value();
    if (residual) context->saved_data["residual_type"] = residual->scalar_type();
    if (in_place) {
      run(key, x, {}, x);
      context->mark_dirty({x});
      return x;
    }
    at::Tensor out = residual ? at::empty_like(*residual) : at::empty_like(x);
    run(key, x, residual.value_or(at::Tensor()), out);
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    COHORT_CHECK(!at::GradMode::is_enabled(), "dropout of the models can be differentiated once only");
    MaskKey key{static_cast<std::uint64_t>(context->saved_data["seed"].toInt()),
                static_cast<std::uint64_t>(context->saved_data["step"].toInt()),
                static_cast<std::uint32_t>(context->saved_data["layer"].toInt()),
                static_cast<std::uint32_t>(context->saved_data["threshold"].toInt()),
                context->saved_data["ids"].toTensor()};
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor grad_x, grad_residual;
    if (context->needs_input_grad(0)) {
      grad_x = at::empty_like(gradient, gradient.options().dtype(context->saved_data["type"].toScalarType()));
      run(key, gradient, {}, grad_x);
    }
    if (context->saved_data["adds"].toBool() && context->needs_input_grad(1))
      grad_residual = gradients[0].to(context->saved_data["residual_type"].toScalarType());
    return {grad_x, grad_residual, {}, {}};
  }
};

}  // namespace

at::Tensor dropout(const at::Tensor& x, const DropoutLayer& layer, bool training) {
  if (!training || layer.p == 0.0) return x;
  const MaskKey key = mask_key(x, layer);
  if (!has_kernel(x) || !supported(x)) return x * factors_by_generator(key, x);
  return KeyedDropout::apply(x.contiguous(), std::optional<at::Tensor>(), key, false);
}

at::Tensor dropout_(at::Tensor x, const DropoutLayer& layer, bool training) {
  if (!training || layer.p == 0.0) return x;
  COHORT_CHECK(x.is_contiguous(), "dropout_ works in place on contiguous tensors only");
  const MaskKey key = mask_key(x, layer);
  if (!has_kernel(x) || !supported(x)) return x.mul_(factors_by_generator(key, x));
  return KeyedDropout::apply(std::move(x), std::optional<at::Tensor>(), key, true);
}

at::Tensor add_dropout(const at::Tensor& residual, const at::Tensor& x, const DropoutLayer& layer, bool training) {
  COHORT_CHECK(residual.sizes() == x.sizes(), "add_dropout adds tensors of one shape");
  if (!training || layer.p == 0.0) return residual + x;
  const MaskKey key = mask_key(x, layer);
  const bool typed = residual.scalar_type() == x.scalar_type() || residual.scalar_type() == at::kFloat;
  if (!has_kernel(x) || !supported(x) || !typed) return residual + dropout(x, layer, training);
  return KeyedDropout::apply(x.contiguous(), std::optional<at::Tensor>(residual.contiguous()), key, false);
}

}  // namespace cohort::models
