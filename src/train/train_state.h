/// The state of a training between two steps: plain values, each named once in a visit(). Checkpoints
/// (loop_checkpoint.cpp), recovery from memory (memory_recovery.cpp) and the state parked for another number of ranks
/// (parked_state.cpp) write and read it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/named_tensors.h"
#include "weights/trainer_state.h"

namespace cohort::train {

/// What follows a step, in this order. All but the first speak with the other ranks.
enum AfterStep : int { kReport, kCompare, kValidate, kSave, kAgreeOnStop, kAfterStepCount };

/// Counters and decisions, the same on all ranks. A checkpoint holds weights::TrainerState; a rank that takes part again
/// gets the rest, too.
struct TrainState : weights::TrainerState {
  std::int64_t step_epoch = 0;     ///< the epoch of the last step
  double lr = 0.0;                 ///< of the last step
  std::int64_t first_step = 0;     ///< steps before this process began
  std::int64_t resumed_from = -1;  ///< step of the checkpoint that this process began with; -1: none
  std::int64_t saved_step = -1;    ///< of the last checkpoint
  std::int64_t validated_step = -1;
  std::int64_t compared_step = -1;  ///< when all ranks' parameters were last found equal
  bool early_stop = false, stop_agreed = false;
  std::int64_t interval_steps = 0;   ///< since the last report
  double agreed_step_s = 0.0;        ///< of a step in the last interval, seconds; 0: unknown
  int after_step = kAfterStepCount;  ///< how many of AfterStep are done
  bool ended_epoch = false;          ///< the last step did
  bool validation_improved = false;  ///< after the last step

  template <class Self, class Visitor>
  static void visit(Self& s, Visitor&& v) {
    v("step_epoch", s.step_epoch);
    v("lr", s.lr);
    v("first_step", s.first_step);
    v("resumed_from", s.resumed_from);
    v("saved_step", s.saved_step);
    v("validated_step", s.validated_step);
    v("compared_step", s.compared_step);
    v("early_stop", s.early_stop);
    v("stop_agreed", s.stop_agreed);
    v("interval_steps", s.interval_steps);
    v("agreed_step_s", s.agreed_step_s);
    v("after_step", s.after_step);
    v("ended_epoch", s.ended_epoch);
    v("validation_improved", s.validation_improved);
  }
};

/// What each rank has of its own.
struct RankState {
  weights::LossSums loss_sums;
  double interval_samples = 0.0;  ///< since the last report
  weights::NamedTensors random;   ///< LibTorch's generators: "cpu", "cuda"
  weights::NamedTensors buffers;  ///< of the model, that steps change; empty in checkpoints

  template <class Self, class Visitor>
  static void visit(Self& s, Visitor&& v) {
    v(s.loss_sums);
    v(s.interval_samples);
    for (auto& [name, tensor] : s.random) v(tensor);
    for (auto& [name, tensor] : s.buffers) v(tensor);
  }
};

std::string to_bytes(const RankState& state);
/// `like` has the tensors' shapes and devices; those of the result are new. Throws Error when the bytes are of another.
RankState rank_state_from(const std::string& bytes, const RankState& like);

/// What the sums of ranks that are not known are taken for: the mean of the known ones.
weights::LossSums mean_of(const std::vector<weights::LossSums>& sums);

std::string to_text(const TrainState& state);
/// Throws Error naming `source`.
TrainState train_state_from(const std::string& text, const std::string& source);

/// The state that ranks have in common, as it goes from one process to another.
struct StateImage {
  std::string text;               ///< to_text()
  weights::NamedTensors tensors;  ///< "model.", "ema." and "optimizer." before the names

  std::uint64_t hash() const;
  /// Names, types and shapes of the tensors.
  std::string layout() const;
  /// Tensors of the CPU that nobody has written yet.
  static StateImage with_layout(std::string text, const std::string& layout);
};

/// How far a rank's state has come, as ranks tell each other before they agree on the one to go on with.
struct Progress {
  bool has_state = false;
  std::int64_t step = -1;
  int after_step = 0;
  std::uint64_t hash = 0;  ///< of the StateImage

  bool same_point(const Progress& other) const {
    return has_state && other.has_state && step == other.step && after_step == other.after_step;
  }
};

std::string to_text(const Progress& progress);
Progress progress_from(const std::string& text);
/// The rank whose state all take: rank 0 where it can be, as it writes the files; else one that has most left to do
/// after the furthest step. -1: none has a state.
int source_rank(const std::vector<Progress>& ranks);

}  // namespace cohort::train
