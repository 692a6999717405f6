/// Informer, the forecasting model of Zhou et al. (AAAI 2021), with the reference implementation's behaviour and weight
/// names, so that weight files exchange with it.
///
///   InformerSettings settings{.seq_len = 48, .label_len = 48, .factor = 3};
///   std::shared_ptr<torch::nn::Module> model = make_informer(settings, /*seed=*/1);
///   const RandomContextGuard guard({.seed = 1, .step = step, .sample_ids = ids});  // training only
///   at::Tensor y = informer_forward(*model, {x_enc, x_mark_enc, x_dec, x_mark_dec});  // (B, pred_len, c_out)
///
/// What the reference does and one may not expect, kept because its published numbers include it:
/// - ProbSparse attention drops none of its weights; full attention does.
/// - Its measurement divides the sum over sampled keys by the number of all keys.
/// - Masked ProbSparse attention ranks queries by sampled keys behind the mask, too, and gives the unranked ones a
///   running sum.
/// - mix: the decoder's self-attention hands on its heads one after another.
/// - Batch norm in the distilling layers works on the rows of one replica's share of a batch.
/// - It samples keys at evaluation as well. Here that draw is keyed by eval_sampling_seed, so that evaluation is
///   repeatable. Left out: attention maps as an output, and masks given from outside (the reference takes them and
///   looks at neither).
#pragma once
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "models/informer/settings.h"

namespace torch::nn {
class Module;
}

namespace cohort::models {

/// B samples, all on the model's device.
struct InformerInput {
  at::Tensor x_enc;       ///< (B, seq_len, enc_in)
  at::Tensor x_mark_enc;  ///< (B, seq_len, time_columns(settings))
  at::Tensor x_dec;       ///< (B, label_len + pred_len, dec_in): known rows, then zeros; see informer_decoder_input
  at::Tensor x_mark_dec;  ///< (B, label_len + pred_len, time_columns(settings))
};

/// A model in training mode on the CPU, its weights drawn from `seed` (models/initialise.h). Throws Error for settings
/// that check() refuses.
std::shared_ptr<torch::nn::Module> make_informer(const InformerSettings& settings, std::uint64_t seed);

/// (B, pred_len, c_out). Throws Error naming the field, its shape and the one that the settings want, and where `model`
/// is no Informer. In training mode a RandomContext must be set.
at::Tensor informer_forward(torch::nn::Module& model, const InformerInput& input);

/// The decoder's input: the first label_len rows of y (B, label_len + pred_len, columns), then pred_len rows of `fill`.
at::Tensor informer_decoder_input(const at::Tensor& y, const InformerSettings& settings, double fill = 0.0);

}  // namespace cohort::models
