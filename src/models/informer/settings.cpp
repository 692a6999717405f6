#include "models/informer/settings.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/check_choice.h"
#include "models/informer/embedding_tables.h"

namespace cohort::models {
namespace {

const std::vector<std::string> kAttentions{"prob", "full"};
const std::vector<std::string> kEmbeddings{"timeF", "fixed", "learned"};
const std::vector<std::string> kFrequencies{"s", "t", "h", "d", "b", "w", "m", "a"};
const std::vector<std::string> kActivations{"gelu", "relu"};

/// Time features per row for embed = timeF.
const std::map<std::string, int>& timef_columns() {
  static const std::map<std::string, int> columns{{"h", 4}, {"t", 5}, {"s", 6}, {"m", 1},
                                                  {"a", 1}, {"w", 2}, {"d", 3}, {"b", 3}};
  return columns;
}

void check_at_least(const char* name, int value, int least) {
  COHORT_THROW_UNLESS(value >= least, "informer: {} = {}, but must be at least {}", name, value, least);
}

}  // namespace

void describe(config::Fields& fields, InformerSettings& s) {
  fields.add("seq_len", s.seq_len, "rows the encoder sees");
  fields.add("label_len", s.label_len, "known rows at the start of the decoder's input");
  fields.add("pred_len", s.pred_len, "rows predicted, in one shot");
  fields.add("enc_in", s.enc_in, "columns of the encoder's input");
  fields.add("dec_in", s.dec_in, "columns of the decoder's input");
  fields.add("c_out", s.c_out, "columns predicted");
  fields.add("d_model", s.d_model, "width; even");
  fields.add("n_heads", s.n_heads, "attention heads");
  fields.add("e_layers", s.e_layers, "encoder layers");
  fields.add("d_layers", s.d_layers, "decoder layers");
  fields.add(
      "s_layers", s.s_layers,
      "InformerStack: layers of each encoder, e.g. 3,2,1, the i-th on the last seq_len / 2^i rows; empty: one encoder "
      "of e_layers");
  fields.add("d_ff", s.d_ff, "width of the feed-forward part");
  fields.add("factor", s.factor,
             "ProbSparse: factor*ceil(ln L) queries and sampled keys; larger is nearer to full attention");
  fields.add("dropout", s.dropout, "probability of dropping an element while training");
  fields.add_choice("attn", s.attn, kAttentions, "self-attention");
  fields.add_choice("embed", s.embed, kEmbeddings,
                    "time of a row: linear in its features, sinusoid tables, or learned tables of its calendar fields");
  fields.add_choice("freq", s.freq, kFrequencies,
                    "distance of the rows: seconds, minutes, hours, days, business days, weeks, months, years");
  fields.add_choice("activation", s.activation, kActivations, "of the feed-forward part");
  fields.add("distil", s.distil, "halve the sequence between encoder layers");
  fields.add("mix", s.mix, "decoder self-attention hands on its heads one after another, as the published results did");
  fields.add("eval_sampling_seed", s.eval_sampling_seed,
             "seed of the keys that ProbSparse attention samples at evaluation");
}

int time_columns(const InformerSettings& settings) {
  if (settings.embed == "timeF") return timef_columns().at(settings.freq);
  return settings.freq == "t" ? 5 : 4;
}

void check(const InformerSettings& s) {
  check_at_least("seq_len", s.seq_len, 1);
  check_at_least("label_len", s.label_len, 0);
  check_at_least("pred_len", s.pred_len, 1);
  check_at_least("enc_in", s.enc_in, 1);
  check_at_least("dec_in", s.dec_in, 1);
  check_at_least("c_out", s.c_out, 1);
  check_at_least("d_model", s.d_model, 2);
  check_at_least("n_heads", s.n_heads, 1);
  check_at_least("e_layers", s.e_layers, 1);
  check_at_least("d_layers", s.d_layers, 1);
  check_at_least("d_ff", s.d_ff, 1);
  check_at_least("factor", s.factor, 1);
  COHORT_THROW_UNLESS(s.d_model % 2 == 0,
                      "informer: d_model = {}, but must be even: position tables pair sines and cosines", s.d_model);
  COHORT_THROW_UNLESS(s.n_heads <= s.d_model, "informer: n_heads = {}, but must be at most d_model = {}", s.n_heads,
                      s.d_model);
  // The reference's mixing reshapes (n_heads, L, d_model / n_heads) into (L, d_model).
  COHORT_THROW_UNLESS(s.seq_len <= kPositions, "informer: seq_len = {}, but the position table ends at {}", s.seq_len,
                      kPositions);
  COHORT_THROW_UNLESS(s.label_len + s.pred_len <= kPositions,
                      "informer: label_len + pred_len = {}, but the position table ends at {}",
                      s.label_len + s.pred_len, kPositions);
  COHORT_THROW_UNLESS(s.dropout >= 0.0 && s.dropout < 1.0, "informer: dropout = {}, but must be in [0, 1)", s.dropout);
  check_choice("informer", "attn", s.attn, kAttentions);
  check_choice("informer", "embed", s.embed, kEmbeddings);
  check_choice("informer", "freq", s.freq, kFrequencies);
  check_choice("informer", "activation", s.activation, kActivations);
  for (std::size_t i = 0; i < s.s_layers.size(); ++i) {
    COHORT_THROW_UNLESS(s.s_layers[i] >= 1, "informer: s_layers[{}] = {}, but must be at least 1", i, s.s_layers[i]);
    COHORT_THROW_UNLESS(i < 31 && (s.seq_len >> i) >= 1,
                        "informer: s_layers has {} encoders, but the encoder {} would see seq_len / 2^{} = 0 rows",
                        s.s_layers.size(), i, i);
  }
}

}  // namespace cohort::models
