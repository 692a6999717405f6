#include "bench_model.h"

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/informer/informer.h"
#include "models/random_context.h"

namespace cohort::bench {
namespace {

constexpr int kColumns = 7;
constexpr int kSteps = 96;
constexpr int kAhead = 24;

/// Numbers in [-0.5, 0.5), a function of (seed, position); peer.py has the same.
at::Tensor numbers(std::uint64_t seed, at::IntArrayRef shape) {
  at::Tensor result = torch::empty(shape, at::kFloat);
  float* out = result.data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    std::uint64_t z = seed * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(i) * 0xBF58476D1CE4E5B9ULL;
    z ^= z >> 31;
    z *= 0x94D049BB133111EBULL;
    z ^= z >> 29;
    out[i] = static_cast<float>(z >> 40) / 16777216.0f - 0.5f;
  }
  return result;
}

void fill(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::uint64_t i = 0;
  for (const auto& item : model.named_parameters()) {
    at::Tensor p = item.value();
    ++i;
    if (p.dim() > 1) p.copy_(numbers(i, p.sizes()) * 0.1);
    if (item.key().ends_with("bias")) p.zero_();
  }
}

struct EncoderLayerImpl : torch::nn::Module {
  static constexpr int kWidth = 512;
  static constexpr int kHeads = 8;
  torch::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};

  EncoderLayerImpl() {
    qkv = register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", torch::nn::Linear(kWidth, kWidth));
    up = register_module("up", torch::nn::Linear(kWidth, 4 * kWidth));
    down = register_module("down", torch::nn::Linear(4 * kWidth, kWidth));
    norm1 = register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    norm2 = register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
  }
  at::Tensor forward(const at::Tensor& x_BLD) {
    const auto b = x_BLD.size(0);
    const auto l = x_BLD.size(1);
    const auto parts = qkv(norm1(x_BLD)).view({b, l, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const at::Tensor attended = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    const at::Tensor x = x_BLD + out(attended.transpose(1, 2).reshape({b, l, kWidth}));
    return x + down(torch::gelu(up(norm2(x))));
  }
};
TORCH_MODULE(EncoderLayer);

struct Encoder : torch::nn::Module {
  torch::nn::Linear embed{nullptr}, head{nullptr};
  std::vector<EncoderLayer> layers;

  Encoder() {
    embed = register_module("embed", torch::nn::Linear(kColumns, EncoderLayerImpl::kWidth));
    for (int i = 0; i < 3; ++i) layers.push_back(register_module("layer" + std::to_string(i), EncoderLayer()));
    head = register_module("head", torch::nn::Linear(EncoderLayerImpl::kWidth, kColumns));
  }
  at::Tensor forward(at::Tensor x_BLC) {
    at::Tensor x_BLD = embed(x_BLC);
    for (EncoderLayer& layer : layers) x_BLD = layer(x_BLD);
    return head(x_BLD.narrow(1, kSteps - kAhead, kAhead));
  }
};

struct Convolution : torch::nn::Module {
  torch::nn::Sequential body;
  Convolution() {
    constexpr int kWidth = 64;
    for (int i = 0; i < 5; ++i) {
      body->push_back(torch::nn::Conv1d(torch::nn::Conv1dOptions(i == 0 ? kColumns : kWidth, kWidth, 3).padding(1)));
      body->push_back(torch::nn::GELU());
    }
    body->push_back(torch::nn::Conv1d(torch::nn::Conv1dOptions(kWidth, kColumns, 1)));
    register_module("body", body);
  }
  at::Tensor forward(at::Tensor x_BLC) {
    return body->forward(x_BLC.transpose(1, 2)).transpose(1, 2).narrow(1, kSteps - kAhead, kAhead);
  }
};

template <class Model>
BenchModel make() {
  BenchModel result;
  result.make = [] {
    auto model = std::make_shared<Model>();
    fill(*model);
    return model;
  };
  result.loss = [](torch::nn::Module& model, const parallel::Batch& batch) {
    return torch::mse_loss(dynamic_cast<Model&>(model).forward(batch.at("x")), batch.at("y"));
  };
  result.batch = [](int step, int rank, int size) {
    const auto seed = static_cast<std::uint64_t>(1000 + 16 * (step % 8) + rank);
    parallel::Batch batch;
    batch.add("x", numbers(seed, {size, kSteps, kColumns}));
    batch.add("y", numbers(seed + 5000, {size, kAhead, kColumns}));
    return batch;
  };
  return result;
}

/// The default size: 11,330,055 parameters, 96 rows of 7 columns, dropout as published.
BenchModel make_informer() {
  const models::InformerSettings settings;
  BenchModel result;
  result.make = [settings] { return models::make_informer(settings, 0); };
  result.loss = [settings](torch::nn::Module& model, const parallel::Batch& batch) {
    const models::RandomContextGuard random({.seed = 0, .step = 0, .sample_ids = batch.sample_ids});
    const at::Tensor& y = batch.at("y");
    const at::Tensor forecast = models::informer_forward(
        model, {batch.at("x"), batch.at("x_mark"), models::informer_decoder_input(y, settings), batch.at("y_mark")});
    return torch::mse_loss(forecast, y.narrow(1, settings.label_len, settings.pred_len));
  };
  result.batch = [settings](int step, int rank, int size) {
    const auto seed = static_cast<std::uint64_t>(1000 + 16 * (step % 8) + rank);
    const std::int64_t rows = settings.label_len + settings.pred_len, marks = models::time_columns(settings);
    parallel::Batch batch;
    batch.add("x", numbers(seed, {size, settings.seq_len, settings.enc_in}));
    batch.add("y", numbers(seed + 5000, {size, rows, settings.dec_in}));
    batch.add("x_mark", numbers(seed + 10000, {size, settings.seq_len, marks}));
    batch.add("y_mark", numbers(seed + 15000, {size, rows, marks}));
    batch.sample_ids = torch::arange(size, at::kLong) + rank * size;
    return batch;
  };
  return result;
}

}  // namespace

BenchModel bench_model(const std::string& name) {
  if (name == "informer") return make_informer();
  if (name == "encoder") return make<Encoder>();
  if (name == "convolution") return make<Convolution>();
  throw Error(format("unknown model '{}'; there are informer, encoder and convolution", name));
}

}  // namespace cohort::bench
