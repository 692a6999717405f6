/// Instructions of robot data as numbers that a policy is conditioned on: a frozen DistilBERT's embedding of each text.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "data/robot_windows.h"
#include "models/language/distilbert.h"

namespace cohort::policies {

struct LanguageSettings {
  /// What the network calls the observation; the DROID package's name.
  std::string name = "lang_fixed/language_distilbert";
  std::string weights;     ///< safetensors file of a DistilBERT; empty: instructions are no observation
  std::string vocabulary;  ///< its vocab.txt
  models::DistilBertSettings encoder;
  bool required = false;  ///< a policy that must see instructions: refused without weights

  bool enabled() const { return !weights.empty(); }
};

void describe(config::Fields& fields, LanguageSettings& settings);

/// One row of encoder.dim numbers per text, as the text alone gives it. Throws Error naming the file that is missing or
/// does not fit the encoder.
std::vector<std::vector<float>> embed_instructions(const LanguageSettings& settings,
                                                   const std::vector<std::string>& texts);

/// Windows whose field "instruction", a number, is replaced by "language", the embedding (dim) float32 of that
/// instruction.
class LanguageWindows final : public data::Dataset {
 public:
  /// `embeddings`: one row per instruction of `windows`.
  LanguageWindows(std::shared_ptr<const data::RobotWindows> windows, std::vector<std::vector<float>> embeddings);
  std::int64_t size() const override { return windows_->size(); }
  std::vector<data::FieldSpec> fields() const override;
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override;

 private:
  std::shared_ptr<const data::RobotWindows> windows_;
  std::vector<std::vector<float>> embeddings_;
  std::size_t place_ = 0;  // of the field
};

}  // namespace cohort::policies
