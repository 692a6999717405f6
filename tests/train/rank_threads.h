/// Several ranks as threads of one process, each with its own model and strategy: what they exchange goes through
/// shared memory.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "train/tiny_training.h"

namespace cohort::train {

/// Where ranks meet. A rank that ends with an error lets the others' next meeting fail instead of waiting for ever.
class Meeting {
 public:
  explicit Meeting(int world) : world_(world), gifts_(static_cast<std::size_t>(world)) {}

  /// Every rank gives a tensor and gets all of them, in the order of ranks.
  std::vector<at::Tensor> exchange(int rank, const at::Tensor& gift) {
    std::unique_lock lock(mutex_);
    gifts_[static_cast<std::size_t>(rank)] = gift.clone();
    const std::uint64_t round = round_;
    if (++arrived_ == world_) {
      result_ = gifts_;
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round || broken_; });
      if (round_ == round) throw std::runtime_error("another rank has gone");
    }
    std::vector<at::Tensor> copies;
    for (const auto& tensor : result_) copies.push_back(tensor.clone());
    return copies;
  }

  void leave() {
    const std::scoped_lock lock(mutex_);
    broken_ = true;
    changed_.notify_all();
  }

 private:
  int world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  bool broken_ = false;
  std::vector<at::Tensor> gifts_, result_;
};

class ThreadStrategy final : public parallel::Strategy {
 public:
  ThreadStrategy(std::shared_ptr<torch::nn::Module> model, int rank, int world, Meeting& meeting)
      : model_(std::move(model)), rank_(rank), world_(world), meeting_(meeting) {}
  at::Tensor forward_backward(const parallel::Batch& batch, const parallel::LossFunction& loss,
                              const parallel::BackwardOptions& options) override {
    const at::Tensor value = loss(*model_, batch);
    at::Tensor scaled = options.weight == 1.0 ? value : value * options.weight;
    if (options.loss_scale.defined()) scaled = scaled * options.loss_scale;
    scaled.backward();
    if (options.synchronise) {
      for (auto& parameter : model_->parameters()) {
        if (parameter.grad().defined()) parameter.mutable_grad() = mean(parameter.grad());
      }
    }
    return value.detach();
  }
  torch::nn::Module& module() override { return *model_; }
  void zero_grad() override {
    for (auto& parameter : model_->parameters()) parameter.mutable_grad().reset();
  }
  void parameters_changed() override {}
  int rank() const override { return rank_; }
  int world_size() const override { return world_; }
  int replicas() const override { return 1; }
  void mean_over_ranks(at::Tensor& values) override { values = mean(values); }
  void max_over_ranks(at::Tensor& values) override {
    values = std::get<0>(torch::stack(meeting_.exchange(rank_, values)).max(0));
  }
  void barrier() override { meeting_.exchange(rank_, torch::zeros(1)); }

 private:
  at::Tensor mean(const at::Tensor& value) { return torch::stack(meeting_.exchange(rank_, value)).mean(0); }

  std::shared_ptr<torch::nn::Module> model_;
  int rank_, world_;
  Meeting& meeting_;
};

/// Runs body(rank, meeting) on `world` threads; returns each rank's error text, "" where there was none.
inline std::vector<std::string> run_ranks(int world, const std::function<void(int rank, Meeting& meeting)>& body) {
  Meeting meeting(world);
  std::vector<std::string> errors(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank, meeting);
      } catch (const std::exception& e) {
        errors[static_cast<std::size_t>(rank)] = e.what();
        meeting.leave();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

}  // namespace cohort::train
