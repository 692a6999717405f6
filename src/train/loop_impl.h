/// The inside of TrainLoop, shared by its source files.
#pragma once
#include <chrono>
#include <optional>

#include "dist/recovery.h"
#include "models/segment.h"
#include "parallel/parameter_shards.h"
#include "train/batches_in_flight.h"
#include "train/checkpoint_writer.h"
#include "train/finite_buffers.h"
#include "train/grad_scaler.h"
#include "train/loop.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/step_graph.h"
#include "train/step_monitor.h"
#include "train/train_state.h"

namespace cohort::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What a step tells whoever follows it (memory_recovery.h); empty: nobody does.
struct StepEvents {
  std::function<void(rank::StepPart part)> part;  ///< begins
  /// This process's last loss of the step, by its weight, and the batch's samples; before the backward pass in which
  /// gradients are exchanged.
  std::function<void(double loss, std::int64_t samples)> last_loss;
};

struct TrainLoop::Impl {
  Impl(TrainSettings settings, TrainJob job);
  ~Impl();

  // loop.cpp
  TrainResult run();
  TrainResult make_result(TrainStatus status) const;
  bool train(bool just_resumed);
  void train_epoch(bool& just_resumed);
  void train_step(std::int64_t micro_batches);
  void eager_step(std::int64_t micro_batches);
  bool graph_step();
  parallel::Batch next_batch();
  void consumed(parallel::Batch batch);
  void micro_step(const parallel::Batch& batch, double weight, bool last);
  template <class Rate>
  void update(const Rate& rate);
  std::string against_graph() const;
  void prepare_graph();
  void after_step(bool end_of_epoch);
  void finish_step();
  void report_if_due();
  void compare_if_due();
  void validate_if_due();
  void save_if_due();
  bool done() const;
  bool is_best_now() const;
  bool compares_ranks() const;
  at::Tensor replica_loss(torch::nn::Module& replica, const parallel::Batch& batch);

  void say(rank::Phase phase) const;
  void begin(rank::StepPart part) const {
    if (events.part) events.part(part);
  }

  // loop_shards.cpp: where ranks look after parts of the parameters
  std::vector<ParameterGroup> own_groups() const;
  EmaOrigin ema_origin() const;
  void prepare_shards();
  void agree_on_overflow();
  weights::NamedTensors own_part(const weights::NamedTensors& whole) const;

  // loop_report.cpp: what ranks tell each other and the observers
  void report();
  void validate(bool end_of_epoch);
  void agree_on_stop();
  void agree_on_health(const StepMonitor::Reading& reading);
  void compare_parameters();
  rank::Totals totals() const;
  std::vector<rank::Totals> totals_of_ranks();

  // loop_state.cpp: the state as values, and back
  weights::TrainerState present_state(const StepMonitor::Reading& reading) const;
  StateImage image();
  void load(const StateImage& image);
  RankState rank_state(const weights::LossSums& sums, double samples) const;
  void restore(const RankState& own);

  // loop_checkpoint.cpp
  void say_change_of_rate(const weights::TrainerState& saved) const;
  /// What train.checkpoint.resume names, the same on every rank; nothing where "auto" finds none.
  std::optional<weights::ResumePoint> choose_resume_point();
  void say_other_settings(const weights::ResumePoint& point) const;
  void warn_of_other_run(const weights::ResumePoint& point) const;
  void resume();
  void save_checkpoint(bool is_best);
  void write_checkpoint(bool is_best);
  /// Before an error of the data ends the training: what has been learnt since the last checkpoint.
  void save_before_end();
  bool restore_best();

  const TrainSettings settings;
  TrainJob job;
  parallel::Strategy& strategy;
  const parallel::ParameterShards* const shards;  // null: this process updates all parameters
  BatchSource& batches;
  torch::nn::Module& module;
  const c10::Device device;
  const Precision precision;
  const bool writes_files;  // this process writes the checkpoints

  Optimizer optimizer;
  std::optional<GradScaler> scaler;
  std::optional<Ema> ema;
  StepMonitor monitor;
  std::optional<FiniteBuffers> buffers;  // where bad steps are skipped
  BatchesInFlight in_flight;
  std::optional<CheckpointWriter> writer;
  std::optional<StepGraph> graph;
  std::optional<parallel::Batch> kept_batch;  // read for a graph that could not take it
  parallel::LossFunction loss;                // job.loss under precision, randomness and the guard against NaN

  std::int64_t total_steps = 0;
  double base_lr = 0.0;
  TrainState state;
  StepEvents events;
  std::unique_ptr<MemoryRecovery> recovery;  // null: nobody started this process who could offer it
  std::int64_t earlier_skips = 0;            // before this process
  std::int64_t step_samples = 0;             // of this process, of the step that is not whole yet
  bool data_failed = false;                  // the source of batches threw
  std::string bad_input;                     // what was wrong with the batch whose loss is NaN, where that is known
  weights::NamedTensors best_weights;        // host copies, where there are no checkpoints

  // Since the last report.
  Clock::time_point run_begin, interval_begin;
  double interval_data_s = 0.0;
  double interval_samples = 0.0;  // of this process
  double interval_checkpoint_s = 0.0;
  double interval_exchange_begin = 0.0;  // strategy.exchange_seconds() when it began
  // Since the first step of this process.
  double total_data_s = 0.0, total_checkpoint_s = 0.0, total_validation_s = 0.0, exchange_begin = 0.0;
  std::int64_t total_samples = 0;
};

}  // namespace cohort::train
