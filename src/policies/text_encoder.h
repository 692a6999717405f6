/// T5 as people have it: a folder in the hub's layout (config.json, spiece.model, weights as weight_files.h reads them),
/// and texts through it.
///
///   TextEncoder encoder({.model = "google/t5-v1_1-xxl", .type = at::kBFloat16});   // looks at config.json and tokenizer
///   log::info("{}", encoder.memory_text());                                        // before anything large happens
///   encoder.load();
///   at::Tensor tokens = encoder.embed("open the drawer");                          // (tokens, width)
///
/// Weights are mapped and converted one tensor at a time: at any moment there are those that are done and one more, so
/// that T5-v1.1-XXL in bf16 takes 9 GiB. Where the file has the wanted type on the CPU, its own pages are used.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

#include "models/language/sentence_piece.h"
#include "models/language/t5.h"

namespace cohort::policies {

struct TextEncoderSettings {
  std::string model = "google/t5-v1_1-xxl";  ///< a folder, or a name of the hub (hub_models.h)
  std::string flag = "--text-encoder";       ///< that named it, for messages
  at::ScalarType type = at::kBFloat16;       ///< of weights and results: kBFloat16, kFloat
  std::string device = "cpu";                ///< what dist::check_device() has found to be there
  int max_tokens = 1024;                     ///< of a text; the rest is cut off (the reference's tokenizer_max_length)
};

class TextEncoder {
 public:
  /// Throws Error naming what is wrong: the model is not there (with the command that downloads it), its folder lacks
  /// config.json or spiece.model, it is another kind of model, the vocabulary does not fit.
  explicit TextEncoder(const TextEncoderSettings& settings);
  ~TextEncoder();

  const models::T5Settings& settings() const;
  std::int64_t parameters() const;
  /// Bytes of weights, and of the work on the longest text.
  std::int64_t bytes() const;
  /// "T5 of 24 layers, width 4096: 4.7e9 parameters, 8.9 GiB as bfloat16 and 0.3 GiB of work on cpu"
  std::string memory_text() const;
  /// The weights. Throws Error naming the file and what does not fit, a config.json of another size among it.
  void load();
  /// (tokens, width) on the CPU: T5's last hidden state of this text alone, </s> included. Throws Error where load() was
  /// not called.
  at::Tensor embed(const std::string& text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::policies
