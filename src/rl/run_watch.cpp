#include "rl/run_watch.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "run/rank_shares.h"
#include "train/rank_memory.h"

namespace cohort::rl {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void RunWatch::begin(std::int64_t iteration) {
  first_ = iteration_ = iteration;
  began_ = interval_began_ = Clock::now();
  exchange_before_ = exchange_before_interval_ = ranks_.exchange_seconds();
  checkpoint_s_ = checkpoint_before_interval_ = 0;
  beat(rank::Phase::kTraining);
}

IterationTimes RunWatch::iterated(std::int64_t iteration) {
  iteration_ = iteration;
  beat(rank::Phase::kTraining);
  const Clock::time_point now = Clock::now();
  const double whole = seconds_between(interval_began_, now);
  const double exchanged = ranks_.exchange_seconds(), exchange = exchanged - exchange_before_interval_;
  const double checkpoint = checkpoint_s_ - checkpoint_before_interval_;
  const double memory = std::max(train::resident_bytes(), train::peak_device_bytes(device_));
  interval_began_ = now;
  exchange_before_interval_ = exchanged;
  checkpoint_before_interval_ = checkpoint_s_;
  const at::Tensor own =
      torch::tensor({whole, exchange, checkpoint, std::max(0.0, whole - exchange - checkpoint), memory}, at::kDouble);
  const at::Tensor all = at::stack(ranks_.gather(own));
  const at::Tensor most = std::get<0>(all.max(0)), least = std::get<0>(all.min(0)), mean = all.mean(0);
  const auto *of_most = most.const_data_ptr<double>(), *of_least = least.const_data_ptr<double>();
  return {.ranks = ranks_.size(),
          .whole = of_most[0],
          .exchange = mean.const_data_ptr<double>()[1],
          .checkpoint = of_most[2],
          .compute = of_most[3],
          .least_compute = of_least[3],
          .memory = of_most[4]};
}

RunWatch::Saving::Saving(RunWatch& watch)
    : watch_(watch), begin_(Clock::now()), exchanged_(watch.ranks_.exchange_seconds()) {
  watch_.beat(rank::Phase::kCheckpoint);
}

RunWatch::Saving::~Saving() {
  const double exchanged = watch_.ranks_.exchange_seconds() - exchanged_;
  watch_.checkpoint_s_ += std::max(0.0, seconds_between(begin_, Clock::now()) - exchanged);
  watch_.beat(rank::Phase::kTraining);
}

std::vector<rank::Totals> RunWatch::of_all_ranks() {
  std::vector<rank::Totals> all;
  for (const at::Tensor& numbers : ranks_.gather(torch::tensor(run::to_numbers(totals()), at::kDouble)))
    all.push_back(run::totals_from(numbers.const_data_ptr<double>()));
  return all;
}

void RunWatch::end() {
  beat(rank::Phase::kEnd);
}

void RunWatch::beat(rank::Phase phase) {
  if (observe_)
    observe_({.phase = phase, .step = iteration_, .total_steps = settings_.total}, [this] { return totals(); });
}

rank::Totals RunWatch::totals() const {
  const std::int64_t made = iteration_ - first_;
  return {.steps = made,
          .samples = made * settings_.samples,
          .seconds = seconds_between(began_, Clock::now()),
          .data_s = std::numeric_limits<double>::quiet_NaN(),  // what it learns from is made, not read
          .exchange_s = ranks_.exchange_seconds() - exchange_before_,
          .checkpoint_s = checkpoint_s_,
          .host_bytes = train::resident_bytes(),
          .device_bytes = train::peak_device_bytes(device_)};
}

}  // namespace cohort::rl
