/// Ranks that are threads of one process.
#pragma once
#include <vector>

#include <torch/types.h>

#include "rl/ranks.h"
#include "train/rank_threads.h"

namespace cohort::rl {

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(int rank, int size, train::Meeting& meeting) : rank_(rank), size_(size), meeting_(meeting) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void mean(at::Tensor& tensor) override { tensor = at::stack(meeting_.exchange(rank_, tensor)).mean(0); }
  std::shared_ptr<parallel::Strategy> strategy(std::shared_ptr<torch::nn::Module> model, DeviceId) override {
    return std::make_shared<train::ThreadStrategy>(std::move(model), rank_, size_, meeting_);
  }
  std::vector<at::Tensor> gather(const at::Tensor& tensor) override { return meeting_.exchange(rank_, tensor); }

 private:
  int rank_, size_;
  train::Meeting& meeting_;
};

}  // namespace cohort::rl
