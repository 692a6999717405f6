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

namespace cohort::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct TrainLoop::Impl {
  Impl(TrainSettings settings, TrainJob job);

  // loop.cpp
  TrainResult run();
  TrainResult without_more(TrainStatus status) const;
  void train(bool just_resumed);
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
  bool done() const;
  bool is_best_now() const;
  bool compares_ranks() const;
  at::Tensor replica_loss(torch::nn::Module& replica, const parallel::Batch& batch);

  void say(launch::RankPhase phase) const;
  void set_part(launch::StepPart part) const;

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
  RankTotals totals() const;
  std::vector<RankTotals> totals_of_ranks();

  // loop_recovery.cpp: when another rank has died
  bool recovers() const;
  bool can_recover() const;
  void keep_own(std::int64_t step, const weights::LossSums& sums, double samples);
  void take_place();
  void recover();  // or park()
  void agree_on_state();
  void restore_own();
  std::string common_state(weights::NamedTensors& tensors);
  void load_common_state(const std::string& state, const weights::NamedTensors& tensors);

  // loop_parking.cpp: when the job goes on with other ranks
  void park();
  bool resume_parked();

  // loop_checkpoint.cpp
  void say_change_of_rate(const weights::TrainerState& saved) const;
  void resume();
  void save_checkpoint(bool is_best);
  void write_checkpoint(bool is_best);
  bool restore_best();
  weights::TrainerState present_state(const StepMonitor::Reading& reading);

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
  double lr = 0.0;  // of the last step
  weights::TrainerState state;
  std::int64_t step_epoch = 0;     // the epoch of the last step
  std::int64_t earlier_skips = 0;  // before this process
  std::optional<std::int64_t> resumed_from;
  std::int64_t saved_step = -1;
  std::int64_t validated_step = -1;
  std::int64_t compared_step = -1;  // when all ranks' parameters were last found equal
  bool early_stop = false;
  bool stop_agreed = false;
  std::string bad_input;               // what was wrong with the batch whose loss is NaN, where that is known
  weights::NamedTensors best_weights;  // host copies, where there are no checkpoints

  // Since the last report.
  Clock::time_point run_begin, interval_begin;
  std::int64_t first_step = 0;  // of this process
  std::int64_t interval_steps = 0;
  double interval_data_s = 0.0;
  double interval_samples = 0.0;  // of this process
  double interval_checkpoint_s = 0.0;
  double interval_exchange_begin = 0.0;  // strategy.exchange_seconds() when it began
  // Since the first step of this process.
  double total_data_s = 0.0, total_checkpoint_s = 0.0, total_validation_s = 0.0, exchange_begin = 0.0;
  std::int64_t total_samples = 0;
  double agreed_step_s = 0.0;  // of the last interval, the same on all ranks; 0: unknown

  // What a step has behind it, in order; a recovered rank does the rest (loop_recovery.cpp).
  enum AfterStep : int { kStepMade, kReported, kCompared, kValidated, kSaved, kFinishedStep };
  int after = kFinishedStep;
  bool ended_epoch = false;          // the last step did
  bool validation_improved = false;  // after the last step
  // A step that has been begun and not finished: what it changes before it ends, as it was.
  struct {
    bool is = false;
    std::int64_t samples_in_epoch = 0, samples = 0;
  } unfinished;
  // The micro-batch that is being run, for keep_own().
  double micro_weight = 1.0;
  bool last_micro = true;
  std::string own_bytes;
  bool parked = false;      // its state, for the next round of the job; this process has nothing more to do
  bool took_place = false;  // a process in a dead rank's place has the state by now
};

}  // namespace cohort::train
