/// The encoder of T5 v1.1 (Raffel et al. 2020; Shazeer 2020 for its gated GELU): tokens of a text as vectors, weight
/// for weight transformers' T5EncoderModel.
///
///   T5Encoder encoder({.d_model = 512, .d_kv = 64, .d_ff = 1024, .num_layers = 8, .num_heads = 6});   // small
///   at::Tensor tokens = encoder.forward(ids, mask);       // (texts, length, d_model)
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "core/config.h"

namespace cohort::models {

/// The defaults are t5-v1_1-xxl's.
struct T5Settings {
  int vocab_size = 32128;
  int d_model = 4096;  ///< numbers per token
  int d_kv = 64;       ///< of a head
  int d_ff = 10240;    ///< width inside the feed-forward part
  int num_layers = 24;
  int num_heads = 64;  ///< num_heads · d_kv need not be d_model
  int relative_attention_num_buckets = 32;
  int relative_attention_max_distance = 128;  ///< tokens; farther ones are alike
};

void describe(config::Fields& fields, T5Settings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const T5Settings& settings);

class T5Encoder : public torch::nn::Module {
 public:
  /// with_memory false: the parameters have their shapes and no memory, for tensors of a file to take their place
  /// (Tensor::set_data) one after the other; they do not learn.
  explicit T5Encoder(const T5Settings& settings, bool with_memory = true);
  ~T5Encoder() override;
  /// ids, mask (texts, length) int64, mask 0 where a text has ended -> (texts, length, d_model): last_hidden_state.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& mask) const;
  const T5Settings& settings() const { return settings_; }

 private:
  struct Layers;
  T5Settings settings_;
  std::unique_ptr<Layers> layers_;
};

/// (length, length) int64: the bucket of the place of a key (column) as a query (row) sees it, in both directions: one
/// each for near distances, logarithmic ones for far (T5Attention._relative_position_bucket).
at::Tensor t5_position_buckets(std::int64_t length, int buckets, int max_distance);

/// Our name of a tensor of a T5 file: those of the decoder and of the head are left out (empty), and the encoder's own
/// copy of the table of words is the shared one.
std::string t5_name(const std::string& key);

}  // namespace cohort::models
