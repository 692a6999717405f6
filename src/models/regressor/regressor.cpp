#include "models/regressor/regressor.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/informer/encoder.h"
#include "models/module_group.h"
#include "models/module_list.h"

namespace cohort::models {
namespace {

class Regressor : public torch::nn::Module {
 public:
  explicit Regressor(const RegressorSettings& settings) : torch::nn::Module("Regressor"), settings_(settings) {
    LayerIds ids;
    embedding_ = register_module("value_embedding", std::make_shared<Linear>(1, settings.d_model));
    positions_ = register_module("position_embedding", std::make_shared<ModuleGroup>())
                     ->register_buffer("pe", sinusoid_table(settings.inputs, settings.d_model).unsqueeze(0));
    embedding_dropout_ = {settings.dropout, ids.next()};
    EncoderSettings encoder;
    encoder.attention.d_model = settings.d_model;
    encoder.attention.n_heads = settings.n_heads;
    encoder.attention.dropout = settings.dropout;
    encoder.attention.prob.factor = settings.factor;
    encoder.attention.prob.eval_seed = settings.eval_sampling_seed;
    encoder.d_ff = settings.d_ff;
    encoder.layers = settings.e_layers;
    encoder.distil = settings.distil;
    encoder.gelu = settings.activation == "gelu";
    encoder.final_norm = false;
    encoder.dropout = settings.dropout;
    encoder_ = register_module("encoder", std::make_shared<Encoder>(encoder, ids));
    auto head = register_module("head", std::make_shared<ModuleGroup>());
    expand_ = head->register_module("0", std::make_shared<Linear>(settings.d_model, settings.hidden));
    contract_ = head->register_module("2", std::make_shared<Linear>(settings.hidden, settings.outputs));
  }

  at::Tensor forward(const at::Tensor& x) const {
    COHORT_THROW_UNLESS(x.dim() == 2 && x.size(1) == settings_.inputs,
                        "regressor: x has shape {}, but must be (samples, {}): inputs columns", c10::str(x.sizes()),
                        settings_.inputs);
    at::Tensor embedded = embedding_->forward(x.unsqueeze(-1)) + positions_;
    embedded = dropout_(embedded, embedding_dropout_, is_training());
    const at::Tensor pooled = encoder_->forward(embedded).mean(1);
    const at::Tensor hidden = expand_->forward(pooled);
    return contract_->forward(settings_.activation == "gelu" ? at::gelu(hidden) : at::relu(hidden));
  }

 private:
  RegressorSettings settings_;
  std::shared_ptr<Linear> embedding_, expand_, contract_;
  at::Tensor positions_;  // (1, inputs, d_model)
  std::shared_ptr<Encoder> encoder_;
  DropoutLayer embedding_dropout_;
};

}  // namespace

void describe(config::Fields& fields, RegressorSettings& s) {
  fields.add("inputs", s.inputs, "columns read, the length of the sequence");
  fields.add("outputs", s.outputs, "columns predicted");
  fields.add("d_model", s.d_model, "width; even");
  fields.add("n_heads", s.n_heads, "attention heads");
  fields.add("e_layers", s.e_layers, "encoder layers, with a distilling layer between two");
  fields.add("d_ff", s.d_ff, "width of the feed-forward part");
  fields.add("hidden", s.hidden, "width of the MLP behind the encoder");
  fields.add("factor", s.factor, "ProbSparse: factor*ceil(ln L) queries and sampled keys");
  fields.add("dropout", s.dropout, "probability of dropping an element while training");
  fields.add_choice("activation", s.activation, {"gelu", "relu"}, "of the feed-forward part and the MLP");
  fields.add("distil", s.distil, "halve the sequence between encoder layers");
  fields.add("eval_sampling_seed", s.eval_sampling_seed,
             "seed of the keys that ProbSparse attention samples at evaluation");
}

void check(const RegressorSettings& s) {
  const auto at_least = [](const char* name, int value, int least) {
    COHORT_THROW_UNLESS(value >= least, "regressor: {} = {}, but must be at least {}", name, value, least);
  };
  at_least("inputs", s.inputs, 1);
  at_least("outputs", s.outputs, 1);
  at_least("d_model", s.d_model, 2);
  at_least("n_heads", s.n_heads, 1);
  at_least("e_layers", s.e_layers, 1);
  at_least("d_ff", s.d_ff, 1);
  at_least("hidden", s.hidden, 1);
  at_least("factor", s.factor, 1);
  COHORT_THROW_UNLESS(s.d_model % 2 == 0,
                      "regressor: d_model = {}, but must be even: position tables pair sines and cosines", s.d_model);
  COHORT_THROW_UNLESS(s.n_heads <= s.d_model, "regressor: n_heads = {}, but must be at most d_model = {}", s.n_heads,
                      s.d_model);
  COHORT_THROW_UNLESS(s.dropout >= 0.0 && s.dropout < 1.0, "regressor: dropout = {}, but must be in [0, 1)", s.dropout);
  COHORT_THROW_UNLESS(s.activation == "gelu" || s.activation == "relu",
                      "regressor: activation = \"{}\", but must be gelu or relu", s.activation);
}

std::shared_ptr<torch::nn::Module> make_regressor(const RegressorSettings& settings, std::uint64_t seed) {
  check(settings);
  auto model = std::make_shared<Regressor>(settings);
  initialise(*model, seed);
  return model;
}

at::Tensor regressor_forward(torch::nn::Module& model, const at::Tensor& x) {
  const auto* regressor = dynamic_cast<const Regressor*>(&model);
  COHORT_CHECK(regressor != nullptr, "this module ({}) is no regressor", model.name());
  return regressor->forward(x);
}

}  // namespace cohort::models
