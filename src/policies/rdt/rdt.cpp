#include "policies/rdt/rdt.h"

#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {
namespace {

/// Layers of an adaptor: N for "mlpNx_gelu", else 0.
int layers_of(const std::string& kind) {
  const std::string end = "x_gelu";
  if (!kind.starts_with("mlp") || !kind.ends_with(end) || kind.size() != 3 + 1 + end.size()) return 0;
  return kind[3] >= '1' && kind[3] <= '9' ? kind[3] - '0' : 0;
}

/// (B, ...) -> (B·k, ...): each sample k times, beside each other.
at::Tensor each_repeated(const at::Tensor& x, std::int64_t k) {
  if (k == 1) return x;
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.insert(shape.begin() + 1, k);
  return x.unsqueeze(1).expand(shape).flatten(0, 1);
}

/// Weights norm_final, ffn_final.
class FinalLayer : public torch::nn::Module {
 public:
  FinalLayer(std::int64_t width, std::int64_t out)
      : norm_(register_module("norm_final", std::make_shared<DeviationNorm>(width))),
        ffn_(register_module("ffn_final", std::make_shared<RdtMlp>(width, out, true))) {}
  at::Tensor forward(const at::Tensor& x) const { return ffn_->forward(norm_->forward(x)); }

 private:
  std::shared_ptr<DeviationNorm> norm_;
  std::shared_ptr<RdtMlp> ffn_;
};

}  // namespace

/// Linear layers with GELU (tanh) between them. Weights 0.*, 2.*, 4.*.
class Rdt::Adaptor : public ModuleList {
 public:
  Adaptor(const std::string& kind, std::int64_t in, std::int64_t out) {
    for (int i = 0; i < layers_of(kind); ++i) {
      if (i > 0) append(std::make_shared<ModuleList>());  // GELU
      layers_.push_back(append(std::make_shared<Linear>(i == 0 ? in : out, out)));
    }
  }
  at::Tensor forward(at::Tensor x) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) x = layers_[i]->forward(i == 0 ? x : at::gelu(x, "tanh"));
    return x;
  }

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
};

class Rdt::Transformer : public torch::nn::Module, public Initialised {
 public:
  Transformer(const RdtNetworkSettings& s, std::int64_t patches) : settings_(s), patches_(patches) {
    const std::int64_t width = s.hidden_size;
    const std::int64_t images = std::int64_t{s.img_history_size} * s.num_cameras * patches;
    positions_ = register_parameter("x_pos_embed", at::empty({1, s.horizon + 3, width}));
    language_positions_ = register_parameter("lang_cond_pos_embed", at::empty({1, s.max_lang_cond_len, width}));
    image_positions_ = register_parameter("img_cond_pos_embed", at::empty({1, images, width}));
    time_ = register_module("t_embedder", std::make_shared<ScalarEmbedder>(width));
    frequency_ = register_module("freq_embedder", std::make_shared<ScalarEmbedder>(width));
    const auto list = register_module("blocks", std::make_shared<ModuleList>());
    for (int i = 0; i < s.depth; ++i) blocks_.push_back(list->append(std::make_shared<RdtBlock>(width, s.num_heads)));
    final_ = register_module("final_layer", std::make_shared<FinalLayer>(width, s.state_token_dim));
  }

  at::Tensor forward(const at::Tensor& tokens_BND, const at::Tensor& frequency_B, const at::Tensor& timesteps_B,
                     const at::Tensor& language_BLD, const at::Tensor& language_mask_BL,
                     const at::Tensor& images_BLD) const {
    at::Tensor x =
        at::cat({time_->forward(timesteps_B).unsqueeze(1), frequency_->forward(frequency_B).unsqueeze(1), tokens_BND},
                1) +
        positions_;
    const at::Tensor language = language_BLD + language_positions_.narrow(1, 0, language_BLD.size(1));
    const at::Tensor images = images_BLD + image_positions_;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const RdtBlock& block = *blocks_[i];
      const at::Tensor mask = i % 2 == 0 ? language_mask_BL : at::Tensor();
      const auto run = [&block, mask](const std::vector<at::Tensor>& in) { return block.forward(in[0], in[1], mask); };
      x = run_segment(block, run, {x, i % 2 == 0 ? language : images});
    }
    return final_->forward(x).narrow(1, 3, settings_.horizon);
  }

  void initialise(Initialiser& initialiser) override {
    const at::NoGradGuard no_grad;
    const RdtNetworkSettings& s = settings_;
    positions_.copy_(sequence_positions(s.horizon, s.hidden_size).unsqueeze(0));
    language_positions_.copy_(language_positions(s.max_lang_cond_len, s.hidden_size).unsqueeze(0));
    image_positions_.copy_(image_positions(s.img_history_size, s.num_cameras, patches_, s.hidden_size).unsqueeze(0));
    for (const at::Tensor& table : {positions_, language_positions_, image_positions_}) initialiser.keep(table);
  }

 private:
  RdtNetworkSettings settings_;
  std::int64_t patches_;
  at::Tensor positions_, language_positions_, image_positions_;
  std::shared_ptr<ScalarEmbedder> time_, frequency_;
  std::vector<std::shared_ptr<RdtBlock>> blocks_;
  std::shared_ptr<FinalLayer> final_;
};

void describe(config::Fields& fields, RdtNetworkSettings& s) {
  fields.add("hidden_size", s.hidden_size, "width of the transformer: 2048 (1B), 1024 (170M)");
  fields.add("depth", s.depth, "blocks: 28 (1B), 14 (170M)");
  fields.add("num_heads", s.num_heads, "attention heads; divides hidden_size");
  fields.add("horizon", s.horizon, "actions in a chunk (action_chunk_size)");
  fields.add("img_history_size", s.img_history_size, "frames of images that condition a chunk");
  fields.add("num_cameras", s.num_cameras, "places for cameras; those without one see the background colour");
  fields.add("lang_token_dim", s.lang_token_dim, "numbers per token of the instruction");
  fields.add("img_token_dim", s.img_token_dim, "numbers per image token: the vision encoder's width");
  fields.add("max_lang_cond_len", s.max_lang_cond_len, "longest instruction, tokens");
  fields.add("lang_adaptor", s.lang_adaptor, "mlp<N>x_gelu: N linear layers");
  fields.add("img_adaptor", s.img_adaptor, "mlp<N>x_gelu: N linear layers");
  fields.add("state_adaptor", s.state_adaptor, "mlp<N>x_gelu: N linear layers");
  fields.section("schedule", [&] { describe(fields, s.schedule); });
  fields.section("sampler", [&] { describe(fields, s.sampler); });
}

void check(const RdtNetworkSettings& s) {
  COHORT_THROW_UNLESS(s.num_heads >= 1 && s.hidden_size >= 8 && s.hidden_size % s.num_heads == 0 &&
                          s.hidden_size % 4 == 0 && s.hidden_size / s.num_heads >= 2,
                      "hidden_size = {}, but must be a multiple of 4 and of num_heads = {}, at least 8 and twice as "
                      "large as num_heads",
                      s.hidden_size, s.num_heads);
  const std::pair<const char*, int> counts[] = {{"depth", s.depth},
                                                {"horizon", s.horizon},
                                                {"img_history_size", s.img_history_size},
                                                {"num_cameras", s.num_cameras},
                                                {"state_token_dim", s.state_token_dim},
                                                {"lang_token_dim", s.lang_token_dim},
                                                {"img_token_dim", s.img_token_dim},
                                                {"max_lang_cond_len", s.max_lang_cond_len}};
  for (const auto& [name, count] : counts)
    COHORT_THROW_UNLESS(count >= 1, "{} = {}, but must be at least 1", name, count);
  const std::pair<const char*, const std::string*> adaptors[] = {
      {"lang_adaptor", &s.lang_adaptor}, {"img_adaptor", &s.img_adaptor}, {"state_adaptor", &s.state_adaptor}};
  for (const auto& [name, kind] : adaptors)
    COHORT_THROW_UNLESS(layers_of(*kind) > 0, "{} = \"{}\" is not mlp<N>x_gelu with N from 1 to 9", name, *kind);
  COHORT_THROW_UNLESS(s.schedule.prediction_type == "sample" || s.schedule.prediction_type == "epsilon",
                      "schedule.prediction_type = \"{}\" is not supported: the reference learns sample or epsilon",
                      s.schedule.prediction_type);
  check(s.schedule);
  check(s.sampler, s.schedule);
}

namespace {

const RdtNetworkSettings& checked(const RdtNetworkSettings& settings) {
  check(settings);
  return settings;
}

}  // namespace

Rdt::Rdt(const RdtNetworkSettings& s, std::int64_t patches) : settings_(checked(s)), schedule_(s.schedule) {
  model_ = register_module("model", std::make_shared<Transformer>(s, patches));
  lang_adaptor_ =
      register_module("lang_adaptor", std::make_shared<Adaptor>(s.lang_adaptor, s.lang_token_dim, s.hidden_size));
  img_adaptor_ =
      register_module("img_adaptor", std::make_shared<Adaptor>(s.img_adaptor, s.img_token_dim, s.hidden_size));
  state_adaptor_ = register_module("state_adaptor",
                                   std::make_shared<Adaptor>(s.state_adaptor, 2 * s.state_token_dim, s.hidden_size));
}

Rdt::~Rdt() = default;

Rdt::Adapted Rdt::adapt(const RdtConditions& c) const {
  return {lang_adaptor_->forward(c.language_BLE), img_adaptor_->forward(c.images_BLE),
          state_adaptor_->forward(at::cat({c.state_BS, c.state_mask_BS}, 1).unsqueeze(1))};
}

at::Tensor Rdt::denoise(const at::Tensor& noisy_BTS, const at::Tensor& timesteps_B, const RdtConditions& c,
                        const Adapted& adapted) const {
  const std::int64_t samples = c.action_mask_BS.size(0), draws = noisy_BTS.size(0) / samples;
  COHORT_CHECK(noisy_BTS.size(0) == samples * draws, "{} noisy chunks for {} samples", noisy_BTS.size(0), samples);
  const at::Tensor mask = each_repeated(c.action_mask_BS, draws).unsqueeze(1).expand({-1, noisy_BTS.size(1), -1});
  const at::Tensor actions = state_adaptor_->forward(at::cat({noisy_BTS, mask}, 2));
  return model_->forward(at::cat({each_repeated(adapted.state, draws), actions}, 1),
                         each_repeated(c.frequency_B, draws), timesteps_B, adapted.language, c.language_mask_BL,
                         adapted.images);
}

at::Tensor Rdt::forward(const at::Tensor& noisy_BTS, const at::Tensor& timesteps_B, const RdtConditions& c) const {
  return denoise(noisy_BTS, timesteps_B, c, adapt(c));
}

at::Tensor rdt_loss(const Rdt& rdt, const RdtConditions& conditions, const at::Tensor& actions_BTS,
                    const at::Tensor& noise_BTS, const at::Tensor& timesteps_B, const at::Tensor& factors_2B) {
  const at::Tensor clean = each_repeated(actions_BTS, noise_BTS.size(0) / actions_BTS.size(0));
  const at::Tensor noisy = NoiseSchedule::add_noise_by(factors_2B, clean, noise_BTS);
  const at::Tensor predicted = rdt.forward(noisy, timesteps_B, conditions);
  const at::Tensor target = rdt.settings().schedule.prediction_type == "sample" ? clean : noise_BTS;
  return at::mse_loss(predicted.to(target.scalar_type()), target);
}

at::Tensor rdt_sample(const Rdt& rdt, const RdtConditions& c, at::Tensor x, const SamplerSettings& sampler_settings) {
  const at::NoGradGuard no_grad;
  const auto sampler = make_sampler(sampler_settings, rdt.schedule());
  const Rdt::Adapted adapted = rdt.adapt(c);
  for (std::size_t i = 0; i < sampler->timesteps().size(); ++i) {
    COHORT_THROW_UNLESS(!sampler->needs_noise(i), "sampler.kind = {}: RDT acts by dpm_solver++, or ddim without noise",
                        sampler_settings.kind);
    const at::Tensor t =
        at::full({x.size(0)}, sampler->timesteps()[i], at::TensorOptions(at::kLong).device(x.device()));
    x = sampler->step(i, rdt.denoise(x, t, c, adapted).to(x.scalar_type()), x, {});
  }
  return x * c.action_mask_BS.unsqueeze(1);
}

}  // namespace cohort::models
