/// What the benchmark trains. Another model is added as one more entry of bench_model() and of MODELS in peer.py.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "parallel/batch.h"
#include "parallel/replicas.h"
#include "parallel/strategy.h"

namespace cohort::bench {

struct BenchModel {
  parallel::ModuleFactory make;  ///< the same weights every time
  parallel::LossFunction loss;
  std::function<parallel::Batch(int step, int rank, int size)> batch;
};

/// "informer": the default size. "encoder": three pre-norm attention layers of width 512 over 96 time steps of 7
/// columns, 24 steps ahead (the sizes of Informer's default). "convolution": five 1-D convolutions of width 64. Throws
/// Error naming the models.
BenchModel bench_model(const std::string& name);

}  // namespace cohort::bench
