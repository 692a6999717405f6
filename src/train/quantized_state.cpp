#include "train/quantized_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "core/error.h"
#include "train/quantized_blocks.h"

namespace cohort::train {
namespace {

constexpr int kExponents = 7;  // bitsandbytes' max_exponent_bits
/// Elements that the tensor operations take at a time: bounds what they allocate.
constexpr std::int64_t kElementsAtATime = kStateBlock * 16384;

/// bitsandbytes' dynamic map: decades from 1e-6 to 1, each with the middles of equal parts of [0.1, 1]; in float32, as
/// bitsandbytes computes them.
std::array<float, kMapValues> dynamic_values(bool is_signed) {
  std::vector<float> all{0.0f, 1.0f};
  for (int i = 0; i < kExponents; ++i) {
    const std::int64_t items = (std::int64_t{1} << (is_signed ? i : i + 1)) + 1;
    const at::Tensor bounds = at::linspace(0.1, 1.0, items);
    const at::Tensor means = (bounds.narrow(0, 0, items - 1) + bounds.narrow(0, 1, items - 1)) / 2.0;
    const at::Tensor scaled = means * std::pow(10.0, i - (kExponents - 1));
    const auto* numbers = scaled.const_data_ptr<float>();
    for (std::int64_t k = 0; k + 1 < items; ++k) {
      all.push_back(numbers[k]);
      if (is_signed) all.push_back(-numbers[k]);
    }
  }
  COHORT_CHECK(all.size() == kMapValues, "a dynamic map of {} values", all.size());
  std::sort(all.begin(), all.end());
  std::array<float, kMapValues> values;
  std::copy(all.begin(), all.end(), values.begin());
  return values;
}

const CodeMap& map_of(bool is_signed) {
  static const CodeMap with_sign(dynamic_values(true)), without(dynamic_values(false));
  return is_signed ? with_sign : without;
}

std::int64_t blocks_of(std::int64_t elements) {
  return (elements + kStateBlock - 1) / kStateBlock;
}

/// The map and its middles on a device.
struct DeviceMap {
  DeviceMap(bool is_signed, at::Device device) : zero(map_of(is_signed).zero), has_sign(is_signed) {
    const CodeMap& map = map_of(is_signed);
    const auto whole = [&](const float* data, std::int64_t n) {
      return torch::from_blob(const_cast<float*>(data), {n}, at::kFloat).clone().to(device);
    };
    values = whole(map.values.data(), kMapValues);
    middles = whole(map.middles.data(), kMapValues - 1);
  }
  /// (blocks, 256) numbers of codes (blocks · 256).
  at::Tensor decode(const at::Tensor& codes, const at::Tensor& scales) const {
    return values.index_select(0, codes.to(at::kInt)).view({-1, kStateBlock}).mul_(scales.unsqueeze(1));
  }
  at::Tensor encode(const at::Tensor& x, const at::Tensor& scales) const {
    const at::Tensor divided = at::where(scales.unsqueeze(1) > 0, x / scales.unsqueeze(1), at::zeros({}, x.options()));
    at::Tensor codes = at::bucketize(divided, middles, /*out_int32=*/true);
    if (has_sign) codes = at::where((x < 0).logical_and(codes == int{zero}), codes - 1, codes);
    return codes.to(at::kByte).view({-1});
  }
  at::Tensor values, middles;
  std::uint8_t zero;
  bool has_sign;
};

/// Made once for each device: the copies wait for the device, and can be no part of a recorded step. Kept until the
/// process ends, when the device may be gone before.
const DeviceMap& map_on(at::Device device, bool is_signed) {
  static std::mutex mutex;
  static auto* const maps = new std::map<std::tuple<at::DeviceType, at::DeviceIndex, bool>, DeviceMap>;
  const std::scoped_lock lock(mutex);
  const auto key = std::tuple(device.type(), device.index(), is_signed);
  const auto found = maps->find(key);
  return found != maps->end() ? found->second : maps->try_emplace(key, is_signed, device).first->second;
}

/// In the order of memory, as a vector that shares it.
at::Tensor in_memory_order(const at::Tensor& dense) {
  return dense.as_strided({dense.numel()}, {1}, dense.storage_offset());
}

at::Tensor laid_out_as(const at::Tensor& tensor, const at::Tensor& parameter) {
  if (tensor.strides() == parameter.strides() && tensor.scalar_type() == at::kFloat) return tensor;
  return at::empty_like(parameter, at::MemoryFormat::Preserve).copy_(tensor);
}

void check_arguments(const at::Tensor& parameter, const at::Tensor& gradient, const QuantizedState& mean,
                     const QuantizedState& variance) {
  COHORT_THROW_UNLESS(
      parameter.scalar_type() == at::kFloat && parameter.is_non_overlapping_and_dense() && !gradient.is_sparse(),
      "8-bit AdamW updates dense float32 parameters, not {}; train.optimizer=adamw takes any", parameter.toString());
  COHORT_CHECK(mean.codes.strides() == parameter.strides() && variance.codes.strides() == parameter.strides() &&
                   mean.scales.numel() == blocks_of(parameter.numel()) &&
                   variance.scales.numel() == mean.scales.numel(),
               "states that do not belong to the parameter");
}

}  // namespace

at::Tensor dynamic_map(bool is_signed) {
  return torch::from_blob(const_cast<float*>(map_of(is_signed).values.data()), {kMapValues}, at::kFloat).clone();
}

QuantizedState zero_state(const at::Tensor& parameter) {
  return {at::zeros_like(parameter, parameter.options().dtype(at::kByte), at::MemoryFormat::Preserve),
          at::zeros({blocks_of(parameter.numel())}, parameter.options().dtype(at::kFloat))};
}

QuantizedState quantize_state(const at::Tensor& values, bool is_signed) {
  COHORT_CHECK(values.is_contiguous() && values.is_cpu() && values.scalar_type() == at::kFloat,
               "quantize_state takes a contiguous float32 tensor of the CPU");
  const at::NoGradGuard no_grad;
  const QuantizedState state = zero_state(values);
  const CodeMap& map = map_of(is_signed);
  const auto* x = values.const_data_ptr<float>();
  auto* codes = state.codes.mutable_data_ptr<std::uint8_t>();
  auto* scales = state.scales.mutable_data_ptr<float>();
  const std::int64_t count = values.numel();
  for (std::int64_t b = 0; b < blocks_of(count); ++b) {
    const std::int64_t begin = b * kStateBlock, n = std::min(kStateBlock, count - begin);
    scales[b] = largest_of(x + begin, n);
    encode_block(map, is_signed, x + begin, n, scales[b], codes + begin);
  }
  return state;
}

void adamw_8bit(const at::Tensor& parameter, const at::Tensor& gradient, const QuantizedState& mean,
                const QuantizedState& variance, const AdamW8bitStep& s) {
  if (!parameter.is_cpu()) return adamw_8bit_by_tensors(parameter, gradient, mean, variance, s);
  const at::NoGradGuard no_grad;
  check_arguments(parameter, gradient, mean, variance);
  if (s.found_inf && s.found_inf->item<float>() != 0.0f) return;
  const at::Tensor laid_out = laid_out_as(gradient, parameter);
  const double lr = s.lr_on_device.defined() ? s.lr_on_device.item<double>() : s.lr;
  const double number = s.step.item<double>();
  const float unscale = s.grad_scale ? 1.0f / s.grad_scale->item<float>() : 1.0f;
  const AdamWFactors factors{.beta1 = static_cast<float>(s.beta1),
                             .rest1 = static_cast<float>(1.0 - s.beta1),
                             .beta2 = static_cast<float>(s.beta2),
                             .rest2 = static_cast<float>(1.0 - s.beta2),
                             .unscale = unscale,
                             .keep = static_cast<float>(1.0 - lr * s.weight_decay),
                             .size = static_cast<float>(lr / (1.0 - std::pow(s.beta1, number))),
                             .root = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(s.beta2, number))),
                             .eps = static_cast<float>(s.eps)};
  const CodeMap &with_sign = map_of(true), &without = map_of(false);
  auto* p = parameter.mutable_data_ptr<float>();
  const auto* g = laid_out.const_data_ptr<float>();
  auto* mean_codes = mean.codes.mutable_data_ptr<std::uint8_t>();
  auto* variance_codes = variance.codes.mutable_data_ptr<std::uint8_t>();
  auto* mean_scales = mean.scales.mutable_data_ptr<float>();
  auto* variance_scales = variance.scales.mutable_data_ptr<float>();
  const std::int64_t count = parameter.numel();
  at::parallel_for(0, blocks_of(count), 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      const std::int64_t begin = b * kStateBlock, n = std::min(kStateBlock, count - begin);
      update_block(factors, with_sign, without, n, p + begin, g + begin, mean_codes + begin, mean_scales[b],
                   variance_codes + begin, variance_scales[b]);
    }
  });
}

void adamw_8bit_by_tensors(const at::Tensor& parameter, const at::Tensor& gradient, const QuantizedState& mean,
                           const QuantizedState& variance, const AdamW8bitStep& s) {
  const at::NoGradGuard no_grad;
  check_arguments(parameter, gradient, mean, variance);
  const at::Device device = parameter.device();
  // 1 - 0.999 loses digits in float32.
  const auto scalar = at::TensorOptions().dtype(device.is_mps() ? at::kFloat : at::kDouble).device(device);
  const at::Tensor lr = s.lr_on_device.defined() ? s.lr_on_device.to(scalar) : at::full({}, s.lr, scalar);
  const at::Tensor number = s.step.to(scalar);
  const at::Tensor keep = 1.0 - lr * s.weight_decay;
  const at::Tensor size = lr / (1.0 - at::pow(at::Scalar(s.beta1), number));
  const at::Tensor root = at::rsqrt(1.0 - at::pow(at::Scalar(s.beta2), number));
  at::Tensor skip;
  if (s.found_inf) skip = s.found_inf->to(device) != 0;
  const auto kept = [&](const at::Tensor& old, const at::Tensor& now) {
    return skip.defined() ? at::where(skip, old, now) : now;
  };
  const DeviceMap &with_sign = map_on(device, true), &without = map_on(device, false);
  const at::Tensor p_all = in_memory_order(parameter), g_all = in_memory_order(laid_out_as(gradient, parameter));
  const at::Tensor m_all = in_memory_order(mean.codes), v_all = in_memory_order(variance.codes);
  const std::int64_t count = parameter.numel();
  for (std::int64_t begin = 0; begin < count; begin += kElementsAtATime) {
    const std::int64_t n = std::min(kElementsAtATime, count - begin), blocks = blocks_of(n),
                       padding = blocks * kStateBlock - n, block = begin / kStateBlock;
    const auto padded = [&](const at::Tensor& all) {
      const at::Tensor part = all.narrow(0, begin, n);
      return padding > 0 ? at::constant_pad_nd(part, {0, padding}, 0) : part;
    };
    const at::Tensor m_scales = mean.scales.narrow(0, block, blocks),
                     v_scales = variance.scales.narrow(0, block, blocks);
    at::Tensor g = padded(g_all).view({-1, kStateBlock});
    if (s.grad_scale) g = g / s.grad_scale->to(device);
    at::Tensor m = with_sign.decode(padded(m_all), m_scales).mul_(s.beta1).add_(g, 1.0 - s.beta1);
    at::Tensor v = without.decode(padded(v_all), v_scales).mul_(s.beta2).addcmul_(g, g, 1.0 - s.beta2);
    // What was padded holds nothing: its gradient is 0, its code that of some number.
    if (padding > 0) {
      m.view({-1}).narrow(0, n, padding).zero_();
      v.view({-1}).narrow(0, n, padding).zero_();
    }
    const at::Tensor update = (m / (v.sqrt().mul_(root).add_(s.eps))).mul_(size).view({-1}).narrow(0, 0, n);
    at::Tensor p = p_all.narrow(0, begin, n);
    p.copy_(kept(p, p * keep - update));
    const at::Tensor m_largest = m.abs().amax(1), v_largest = v.amax(1);
    m_all.narrow(0, begin, n).copy_(kept(m_all.narrow(0, begin, n), with_sign.encode(m, m_largest).narrow(0, 0, n)));
    v_all.narrow(0, begin, n).copy_(kept(v_all.narrow(0, begin, n), without.encode(v, v_largest).narrow(0, 0, n)));
    m_scales.copy_(kept(m_scales, m_largest));
    v_scales.copy_(kept(v_scales, v_largest));
  }
}

}  // namespace cohort::train
