/// Texts as numbers of tokens, padded to one length.
#pragma once
#include <ATen/core/Tensor.h>

namespace cohort::models {

struct TokenBatch {
  at::Tensor ids;   ///< (B, L) int64, the padding's number behind the shorter ones
  at::Tensor mask;  ///< (B, L) int64: 1 for tokens, 0 for padding
};

}  // namespace cohort::models
