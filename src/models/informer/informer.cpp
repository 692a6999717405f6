#include "models/informer/informer.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/informer/decoder.h"
#include "models/informer/embedding.h"
#include "models/informer/encoder.h"

namespace cohort::models {
namespace {

AttentionSettings attention_settings(const InformerSettings& s) {
  AttentionSettings a;
  a.d_model = s.d_model;
  a.n_heads = s.n_heads;
  a.prob_sparse = s.attn == "prob";
  a.dropout = s.dropout;
  a.prob.factor = s.factor;
  a.prob.eval_seed = s.eval_sampling_seed;
  return a;
}

EncoderSettings encoder_settings(const InformerSettings& s) {
  return {.attention = attention_settings(s),
          .d_ff = s.d_ff,
          .layers = s.e_layers,
          .distil = s.distil,
          .gelu = s.activation == "gelu",
          .final_norm = true,
          .dropout = s.dropout};
}

DecoderSettings decoder_settings(const InformerSettings& s) {
  DecoderSettings d;
  d.self_attention = attention_settings(s);
  d.self_attention.masked = true;
  d.self_attention.mix = s.mix;
  d.self_attention.prob.position = s.e_layers;
  if (!s.s_layers.empty()) {
    d.self_attention.prob.position = 0;
    for (const int layers : s.s_layers) d.self_attention.prob.position += layers;
  }
  d.cross_attention = attention_settings(s);
  d.cross_attention.prob_sparse = false;
  d.d_ff = s.d_ff;
  d.layers = s.d_layers;
  d.gelu = s.activation == "gelu";
  d.dropout = s.dropout;
  return d;
}

void check_input(const char* name, const at::Tensor& x, std::int64_t batch, std::int64_t length,
                 const char* length_name, std::int64_t columns, const char* columns_name) {
  COHORT_THROW_UNLESS(x.defined(), "informer: {} is missing", name);
  const bool fits = x.dim() == 3 && x.size(0) == batch && x.size(1) == length && x.size(2) == columns;
  COHORT_THROW_UNLESS(fits, "informer: {} has shape {}, but must be ({}, {}, {}): samples, {}, {}", name,
                      c10::str(x.sizes()), batch, length, columns, length_name, columns_name);
}

class Informer : public torch::nn::Module {
 public:
  explicit Informer(const InformerSettings& settings) : torch::nn::Module("Informer"), settings_(settings) {
    LayerIds ids;
    enc_embedding_ =
        register_module("enc_embedding", std::make_shared<DataEmbedding>("x_mark_enc", settings.enc_in, settings, ids));
    dec_embedding_ =
        register_module("dec_embedding", std::make_shared<DataEmbedding>("x_mark_dec", settings.dec_in, settings, ids));
    if (settings.s_layers.empty())
      encoder_ = register_module("encoder", std::make_shared<Encoder>(encoder_settings(settings), ids));
    else
      stack_ = register_module("encoder",
                               std::make_shared<EncoderStack>(encoder_settings(settings), settings.s_layers, ids));
    decoder_ = register_module("decoder", std::make_shared<Decoder>(decoder_settings(settings), ids));
    projection_ = register_module("projection", std::make_shared<Linear>(settings.d_model, settings.c_out));
  }

  at::Tensor forward(const InformerInput& in) const {
    const InformerSettings& s = settings_;
    COHORT_THROW_UNLESS(in.x_enc.defined() && in.x_enc.dim() == 3,
                        "informer: x_enc must be (samples, seq_len, enc_in), not {}",
                        in.x_enc.defined() ? c10::str(in.x_enc.sizes()) : std::string("undefined"));
    const std::int64_t batch = in.x_enc.size(0), dec_len = s.label_len + s.pred_len, marks = time_columns(s);
    check_input("x_enc", in.x_enc, batch, s.seq_len, "seq_len", s.enc_in, "enc_in");
    check_input("x_mark_enc", in.x_mark_enc, batch, s.seq_len, "seq_len", marks, "time features of embed and freq");
    check_input("x_dec", in.x_dec, batch, dec_len, "label_len + pred_len", s.dec_in, "dec_in");
    check_input("x_mark_dec", in.x_mark_dec, batch, dec_len, "label_len + pred_len", marks,
                "time features of embed and freq");
    const at::Tensor embedded = enc_embedding_->forward(in.x_enc, in.x_mark_enc);
    const at::Tensor encoded = encoder_ ? encoder_->forward(embedded) : stack_->forward(embedded);
    return projection_->forward(
        decoder_->forward(dec_embedding_->forward(in.x_dec, in.x_mark_dec), encoded, s.pred_len));
  }

 private:
  InformerSettings settings_;
  std::shared_ptr<DataEmbedding> enc_embedding_, dec_embedding_;
  std::shared_ptr<Encoder> encoder_;
  std::shared_ptr<EncoderStack> stack_;
  std::shared_ptr<Decoder> decoder_;
  std::shared_ptr<Linear> projection_;
};

const Informer& as_informer(const torch::nn::Module& model) {
  const auto* informer = dynamic_cast<const Informer*>(&model);
  COHORT_CHECK(informer != nullptr, "this module ({}) is no Informer", model.name());
  return *informer;
}

}  // namespace

std::shared_ptr<torch::nn::Module> make_informer(const InformerSettings& settings, std::uint64_t seed) {
  check(settings);
  auto model = std::make_shared<Informer>(settings);
  initialise(*model, seed);
  return model;
}

at::Tensor informer_forward(torch::nn::Module& model, const InformerInput& input) {
  return as_informer(model).forward(input);
}

at::Tensor informer_decoder_input(const at::Tensor& y, const InformerSettings& settings, double fill) {
  COHORT_THROW_UNLESS(y.dim() == 3 && y.size(1) == settings.label_len + settings.pred_len,
                      "informer: y has shape {}, but must be (samples, {}, columns): label_len + pred_len rows",
                      c10::str(y.sizes()), settings.label_len + settings.pred_len);
  at::Tensor input = at::full({y.size(0), y.size(1), y.size(2)}, fill, y.options());
  input.narrow(1, 0, settings.label_len).copy_(y.narrow(1, 0, settings.label_len));
  return input;
}

}  // namespace cohort::models
