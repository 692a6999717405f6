/// What a rank is doing: one vocabulary for the launcher, which looks for ranks that hang (rank/page.h), and for whoever
/// watches a run (rank/status.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cohort::rank {

enum class Phase : std::uint32_t {
  kSilent = 0,      ///< it has never beaten: a program that knows nothing of pages
  kStart = 1,       ///< reading data, building the model, meeting the others
  kTraining = 2,    ///< steps
  kData = 3,        ///< waiting for the loader's next batch
  kValidation = 4,  ///< validation and rollouts
  kCheckpoint = 5,
  kRejoining = 6,  ///< its group has broken: waiting for the others, or for the rank that takes a dead one's place
  kEnd = 7,        ///< trained: test set, report
  // In status files only: the launcher sees how a process ends.
  kFinished = 8,
  kStopped = 9,  ///< by a signal; it can be resumed
  kFailed = 10,
};

/// Where in a training step a rank is.
enum class StepPart : std::uint32_t {
  kBetween = 0,    ///< after a step, or outside steps
  kForward = 1,    ///< batches and forward pass; before the last micro-batch also backward
  kBackward = 2,   ///< the backward pass that exchanges gradients with the other ranks
  kReduced = 3,    ///< all gradients are there
  kOptimizer = 4,  ///< the weights are being changed
  kAverage = 5,    ///< the weights are new, their moving average is not
};

/// "training", "validating", "saving", ...
const char* to_string(Phase phase);
/// Nothing for a text that is none.
std::optional<Phase> parse_phase(std::string_view text);
/// "forward", "optimizer", ...
const char* to_string(StepPart part);

}  // namespace cohort::rank
