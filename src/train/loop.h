/// The training loop: everything between a model with a loss and a trained model, on one device or on many.
///
///   train::TrainSettings settings;                         // or from a configuration, see describe()
///   train::TrainJob job{.strategy = &strategy, .loss = loss, .batches = &source};
///   job.checkpoints = run_folder / "checkpoints";
///   job.step_observers.push_back([](const train::StepStats& s) { ... });
///   const train::TrainResult result = train::TrainLoop(settings, std::move(job)).run();
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/cuda_plugin.h"
#include "parallel/strategy.h"
#include "train/batch_source.h"
#include "train/ema.h"
#include "train/step_stats.h"
#include "train/train_settings.h"
#include "train/validation.h"

namespace cohort::dist {
class Group;
class Recovery;
}  // namespace cohort::dist

namespace cohort::train {

/// What is trained. On every rank alike, except for what the strategy and the source make of the rank. The pointers
/// must stay valid while the loop lives.
struct TrainJob {
  parallel::Strategy* strategy = nullptr;
  parallel::LossFunction loss;
  BatchSource* batches = nullptr;
  Validator validator;  ///< empty: no validation
  /// Called on every rank once a checkpoint has been found or not, with the step that the training begins after.
  std::function<void(std::int64_t step)> started;
  std::function<void()> first_step;  ///< called on every rank once its first step is made
  rank::BeatObserver beat;           ///< called on every rank, see there; empty: nobody watches
  std::vector<StepObserver> step_observers;
  std::vector<ValidationObserver> validation_observers;
  std::filesystem::path checkpoints;  ///< folder of the run's checkpoints, seen by every rank; empty: none are written
  std::filesystem::path checkpoint_links;  ///< folder that shows each of them by a link; empty: none does
  std::string configuration = "null";      ///< JSON text of the whole job; saved in every checkpoint
  std::string dataset_statistics;          ///< JSON text saved in every checkpoint; empty: none
  /// true: where the checkpoint is of a finished training, nothing is validated, saved or reported, and run() returns
  /// kNothingLeft before `started` is called. On all ranks alike.
  bool leave_finished = false;
  /// What lets the training go on when another rank has died (memory_recovery.h); null: it ends with an error then.
  dist::Recovery* recovery = nullptr;
  dist::Group* group = nullptr;               ///< the strategy's, where there is `recovery`
  std::vector<std::string> constant_buffers;  ///< endings of names of buffers that no step changes
  /// What records steps under train.cuda_graph; empty: CUDA does.
  std::function<std::unique_ptr<dist::DeviceGraph>()> make_graph;
};

enum class TrainStatus {
  kFinished,      ///< all steps have been made
  kEarlyStopped,  ///< the watched metric did not improve any more
  kStopped,       ///< a signal or run::request_stop(); training can be resumed
  kParked,        ///< the job goes on with other ranks, which find the state in memory: nothing was saved or reported
  kNothingLeft,   ///< resumed, and finished before (leave_finished): nothing was done
};

struct TrainResult {
  TrainStatus status = TrainStatus::kFinished;
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t skipped_steps = 0;
  std::optional<double> best;  ///< of the watched metric
  std::int64_t best_step = 0;
  std::int64_t weights_step = 0;  ///< whose weights the model has now: best_step where they were restored, else step
  std::optional<std::int64_t> resumed_from;  ///< step of the checkpoint with which this process began
  std::vector<rank::Totals> ranks;  ///< of every rank, on all of them alike; empty where nothing was left to do
};

/// What a process keeps from one step to the next, bytes.
struct KeptBytes {
  std::int64_t weights = 0;    ///< parameters and buffers
  std::int64_t gradients = 0;  ///< of the last step; 0 before the first
  std::int64_t optimizer = 0;  ///< moments, counts, float32 masters
  std::int64_t ema = 0;
};

class TrainLoop {
 public:
  /// Throws Error for settings out of range.
  TrainLoop(TrainSettings settings, TrainJob job);
  ~TrainLoop();

  /// Resumes, trains, validates, saves; once. On every rank. Throws Error on all ranks when the training cannot go on:
  /// a NaN or inf (policy error), parameters that differ between ranks, a checkpoint that cannot be read or written;
  /// what was saved before stays.
  TrainResult run();

  /// Optimizer steps of the whole training.
  std::int64_t total_steps() const;
  /// The moving average, or null. EmaWeightsGuard(loop.ema()) evaluates with it.
  Ema* ema();
  KeptBytes kept_bytes() const;

 private:
  struct Impl;
  class MemoryRecovery;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::train
