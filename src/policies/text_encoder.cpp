#include "policies/text_encoder.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "tensors/convert.h"
#include "tensors/processor.h"
#include "weights/file_mapping.h"
#include "weights/foreign_weights.h"
#include "weights/hub_models.h"
#include "weights/named_tensors.h"
#include "weights/weight_files.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;

/// Whole number `key` of a config.json; what it lacks has the value that transformers' T5Config gives it.
int whole(const nlohmann::json& config, const fs::path& file, const char* key, int standard) {
  if (!config.contains(key)) return standard;
  COHORT_THROW_UNLESS(config[key].is_number_integer() && config[key] >= 1 && config[key] <= 1'000'000'000,
                      "{}: {} = {} is no size", file.string(), key, json_text(config[key]));
  return config[key].get<int>();
}

models::T5Settings read_t5_config(const fs::path& file) {
  const nlohmann::json config = try_json<nlohmann::json>(read_file(file));
  COHORT_THROW_UNLESS(config.is_object(), "{}: is no JSON object", file.string());
  const std::string kind =
      config.contains("model_type") && config["model_type"].is_string() ? config["model_type"].get<std::string>() : "";
  COHORT_THROW_UNLESS(kind == "t5" || kind == "mt5", "{}: model_type is \"{}\": the text encoder is a T5 v1.1 (t5)",
                      file.string(), kind);
  const std::string feed = config.contains("feed_forward_proj") && config["feed_forward_proj"].is_string()
                               ? config["feed_forward_proj"]
                               : "relu";
  COHORT_THROW_UNLESS(feed == "gated-gelu",
                      "{}: feed_forward_proj is \"{}\", as the first T5 has it; T5 v1.1 with gated-gelu is read, e.g. "
                      "google/t5-v1_1-small to google/t5-v1_1-xxl",
                      file.string(), feed);
  const double eps = config.contains("layer_norm_epsilon") && config["layer_norm_epsilon"].is_number()
                         ? config["layer_norm_epsilon"].get<double>()
                         : 1e-6;
  COHORT_THROW_UNLESS(eps == 1e-6, "{}: layer_norm_epsilon = {}, but T5's is 1e-6", file.string(), eps);
  models::T5Settings s{.vocab_size = whole(config, file, "vocab_size", 32128),
                       .d_model = whole(config, file, "d_model", 512),
                       .d_kv = whole(config, file, "d_kv", 64),
                       .d_ff = whole(config, file, "d_ff", 2048),
                       .num_layers = whole(config, file, "num_layers", 6),
                       .num_heads = whole(config, file, "num_heads", 8),
                       .relative_attention_num_buckets = whole(config, file, "relative_attention_num_buckets", 32),
                       .relative_attention_max_distance = whole(config, file, "relative_attention_max_distance", 128)};
  try {
    models::check(s);
  } catch (const Error& e) {
    throw Error(format("{}: {}", file.string(), e.what()));
  }
  return s;
}

fs::path part(const fs::path& folder, const char* name, const std::string& model) {
  std::error_code error;
  COHORT_THROW_UNLESS(fs::is_regular_file(folder / name, error),
                      "{}: has no {}: a text encoder is a folder with config.json, spiece.model and weights, as "
                      "`hf download {}` makes it",
                      folder.string(), name, fs::exists(model, error) ? "google/t5-v1_1-xxl" : model);
  return folder / name;
}

std::string extents_text(at::IntArrayRef shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

}  // namespace

struct TextEncoder::Impl {
  explicit Impl(const TextEncoderSettings& wanted)
      : settings(wanted),
        folder(weights::find_hub_model(wanted.flag, wanted.model)),
        config(read_t5_config(part(folder, "config.json", wanted.model))),
        tokenizer(part(folder, "spiece.model", wanted.model).string()),
        encoder(config, /*with_memory=*/false) {
    COHORT_THROW_UNLESS(settings.type == at::kBFloat16 || settings.type == at::kFloat,
                        "a text encoder runs in bf16 or fp32, not in {}", c10::toString(settings.type));
    COHORT_THROW_UNLESS(tokenizer.size() <= config.vocab_size,
                        "{}: has {} pieces, but config.json says vocab_size = {}: they are of two models",
                        (folder / "spiece.model").string(), tokenizer.size(), config.vocab_size);
    for (const at::Tensor& p : encoder.parameters()) parameters += p.numel();
  }

  void load() {
    const at::NoGradGuard no_grad;
    std::map<std::string, at::Tensor> file;
    for (auto& [key, tensor] : weights::read_weights(folder).tensors)
      if (const std::string name = models::t5_name(key); !name.empty()) file.emplace(name, std::move(tensor));
    std::string faults;
    int count = 0;
    for (const auto& item : encoder.named_parameters()) {
      const auto found = file.find(item.key());
      std::string fault;
      if (found == file.end())
        fault = format("{} is missing", item.key());
      else if (found->second.sizes() != item.value().sizes())
        fault = format("{} is {} in the file and {} by config.json", item.key(), extents_text(found->second.sizes()),
                       extents_text(item.value().sizes()));
      else if (!weights::may_convert(found->second.scalar_type(), settings.type))
        fault = weights::type_difference(item.key(), found->second.scalar_type(), settings.type);
      if (!fault.empty() && ++count <= 4) faults += (faults.empty() ? "" : "; ") + fault;
    }
    const std::string last = format("encoder.block.{}.", config.num_layers);
    for (const auto& [name, tensor] : file)
      if (name.starts_with(last) && ++count <= 4)
        faults +=
            (faults.empty() ? "" : "; ") + format("{} is a layer more than num_layers = {}", name, config.num_layers);
    COHORT_THROW_UNLESS(count == 0, "{}: the weights are not those of config.json, a model of another size: {}{}",
                        folder.string(), faults, count > 4 ? format("; and {} more", count - 4) : "");
    const at::Device device = tensors::to_torch_device(parse_device(settings.device));
    for (auto& item : encoder.named_parameters()) {
      const auto found = file.find(item.key());
      item.value().set_data(found->second.to(device, settings.type).contiguous());
      // The next one's pages may take the place of this one's.
      if (item.value().const_data_ptr() != found->second.const_data_ptr())
        weights::page_out(found->second.const_data_ptr(), found->second.nbytes());
      file.erase(found);
    }
    encoder.eval();
    ready = true;
  }

  TextEncoderSettings settings;
  fs::path folder;
  models::T5Settings config;
  models::SentencePiece tokenizer;
  models::T5Encoder encoder;
  std::int64_t parameters = 0;
  bool ready = false;
};

TextEncoder::TextEncoder(const TextEncoderSettings& settings) : impl_(std::make_unique<Impl>(settings)) {}
TextEncoder::~TextEncoder() = default;

const models::T5Settings& TextEncoder::settings() const {
  return impl_->config;
}
std::int64_t TextEncoder::parameters() const {
  return impl_->parameters;
}

std::int64_t TextEncoder::bytes() const {
  const models::T5Settings& s = impl_->config;
  const std::int64_t size = static_cast<std::int64_t>(at::elementSize(impl_->settings.type));
  // Scores and their softmax, the layer's widest products; the largest tensor twice while it is converted.
  const std::int64_t length = impl_->settings.max_tokens;
  const std::int64_t work = size * (3 * s.num_heads * length * length + length * (4 * s.d_ff + 8 * s.d_model));
  const std::int64_t largest =
      4 * std::max<std::int64_t>(std::int64_t{s.vocab_size} * s.d_model, std::int64_t{s.d_ff} * s.d_model);
  return size * impl_->parameters + std::max(work, largest);
}

std::string TextEncoder::memory_text() const {
  const std::int64_t weights = static_cast<std::int64_t>(at::elementSize(impl_->settings.type)) * impl_->parameters;
  return format("{}: T5 of {} layers, width {}, {:.4g} million parameters: {} as {} and up to {} of work on {}",
                impl_->folder.string(), impl_->config.num_layers, impl_->config.d_model,
                static_cast<double>(impl_->parameters) / 1e6, format_bytes(static_cast<double>(weights)),
                weights::type_name(impl_->settings.type), format_bytes(static_cast<double>(bytes() - weights)),
                impl_->settings.device);
}

void TextEncoder::load() {
  tensors::prepare_arithmetic();
  impl_->load();
}

at::Tensor TextEncoder::embed(const std::string& text) const {
  COHORT_CHECK(impl_->ready, "the encoder's weights are not loaded");
  const at::NoGradGuard no_grad;
  const models::TokenBatch batch = impl_->tokenizer.encode({text}, impl_->settings.max_tokens);
  const at::Device device = impl_->encoder.parameters().front().device();
  return impl_->encoder.forward(batch.ids.to(device), batch.mask.to(device))[0].to(at::kCPU).contiguous();
}

}  // namespace cohort::policies
