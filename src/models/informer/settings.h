/// Settings of Informer, under the names that the reference's command line uses.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::models {

/// Zhou et al., "Informer: Beyond Efficient Transformer for Long Sequence Time-Series Forecasting", AAAI 2021. The
/// defaults are those of the reference's main_informer.py: 11,330,055 parameters.
struct InformerSettings {
  int seq_len = 96;    ///< rows the encoder sees
  int label_len = 48;  ///< known rows at the start of the decoder's input
  int pred_len = 24;   ///< rows predicted, in one shot

  int enc_in = 7;  ///< columns of the encoder's input
  int dec_in = 7;  ///< columns of the decoder's input
  int c_out = 7;   ///< columns predicted

  int d_model = 512;                ///< width; even
  int n_heads = 8;                  ///< attention heads of width d_model / n_heads, rounded down
  int e_layers = 2;                 ///< encoder layers
  int d_layers = 1;                 ///< decoder layers
  std::vector<int> s_layers;        ///< InformerStack: layers of each encoder, the i-th on the last seq_len / 2^i rows
  int d_ff = 2048;                  ///< width of the feed-forward part
  int factor = 5;                   ///< ProbSparse: factor·ceil(ln L) queries and sampled keys
  double dropout = 0.05;            ///< probability
  std::string attn = "prob";        ///< self-attention: prob or full
  std::string embed = "timeF";      ///< time features: timeF (linear), fixed (sinusoid tables), learned (tables)
  std::string freq = "h";           ///< sampling of the rows: decides how many time features there are
  std::string activation = "gelu";  ///< of the feed-forward part: gelu or relu
  bool distil = true;               ///< halve the sequence between encoder layers
  bool mix = true;                  ///< the decoder's self-attention hands on its heads one after another (a quirk of
                                    ///< the reference that its published numbers include)
  std::uint64_t eval_sampling_seed = 0;  ///< ProbSparse samples keys also at evaluation; this seed makes it repeatable
};

/// Binds the settings to names under the current section.
void describe(config::Fields& fields, InformerSettings& settings);

/// Throws Error naming the field, its value and what is allowed.
void check(const InformerSettings& settings);

/// Columns of x_mark: time features (timeF) or calendar fields (fixed, learned) of each row for this freq and embed.
int time_columns(const InformerSettings& settings);

}  // namespace cohort::models
