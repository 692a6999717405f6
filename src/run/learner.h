/// What learns in a run (run/run.h). The run owns the folder, the ranks, what is said and written, and the end; a learner
/// owns the model and its state: supervised training (train/run.h) and PPO (rl/run.h).
///
/// A run calls the functions in the order in which they stand here, once each, on every rank.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/array_view.h"
#include "core/config.h"
#include "rank/beat.h"
#include "report/run_report.h"

namespace cohort::run {

class Run;

/// How a learner counts what it does.
struct Counting {
  std::string label;       ///< of the progress: "train"
  std::string short_unit;  ///< on the progress: "it"
  std::string unit;        ///< in sentences: "iteration"
};

/// What a process learns on.
struct Resources {
  std::vector<DeviceId> devices;  ///< of this process
  int threads = 1;                ///< inside an operation of LibTorch's
  bool several_ranks = false;     ///< it exchanges with the other ranks of its job ...
  DeviceId exchange{};            ///< ... tensors of this device
};

/// A line of the banner, which goes to log and report.
struct BannerRow {
  std::string label, text;
  bool on_screen = true;  ///< else in the log file only
  bool in_report = true;
};

enum class Ending {
  kFinished,
  kStopped,      ///< by a signal; it can be resumed
  kParked,       ///< the job goes on with other ranks: nothing more is said
  kNothingLeft,  ///< resumed, and finished before: nothing was done
};

struct Outcome {
  Ending ending = Ending::kFinished;
  std::int64_t step = 0;            ///< reached, in the learner's unit
  std::string status = "finished";  ///< "stopped early at step 400", "stopped at iteration 12"
  std::string remedy;               ///< kNothingLeft: how to train on, "raise train.steps"
  std::vector<rank::Totals> ranks;  ///< what each has done, where that is known
};

/// What a run has to show for it.
struct Results {
  /// Title, figures and rows of the summary; the run adds banner, status, what ranks and GPUs did, and the machine.
  report::RunResults report;
  std::int64_t step = 0;                                      ///< of the last figures
  std::filesystem::path weights;                              ///< the file to use, within the run's folder
  std::string weights_text;                                   ///< which they are; may be empty
  std::vector<std::pair<std::string, std::string>> commands;  ///< label and command to go on with, for users to paste
};

class Learner {
 public:
  virtual ~Learner() = default;

  /// Its word behind `cohort train`.
  virtual std::string job() const = 0;
  /// Of a run that has no name.
  virtual std::string default_name() const { return job(); }
  virtual Counting counting() const = 0;

  /// The run that is continued is this job's own, found by itself: where that one began is behind it.
  virtual void goes_on_with_own_run() {}
  /// Checks the settings, reads and checks what is learnt from, chooses devices. Throws Error for bad input: nothing has
  /// been touched.
  virtual Resources prepare(Run& run) = 0;
  /// Only in a process that takes a dead rank's place, before it joins the others, who wait for it.
  virtual void prepare_to_join() {}
  /// What all ranks must have in common beside the settings.
  virtual config::Json common() const { return config::Json::object(); }
  /// Makes model and whatever steps it, with run.group(). Throws Error for what does not fit; the run has no folder yet.
  virtual void build(Run& run) = 0;
  /// Samples of this rank in a step, for `cohort top`.
  virtual std::int64_t batch_size() const = 0;
  virtual std::vector<BannerRow> banner(Run& run) const = 0;
  /// Learns: calls run.begin() once it is known where it goes on, then what else the run has for a learner. Throws Error.
  virtual Outcome train(Run& run) = 0;
  /// Tests what was learnt, and says its figures. Not after an ending of kParked and kNothingLeft.
  virtual void conclude(Run&, const Outcome&) {}
  /// For report and last lines, on rank 0; `seconds` of training. After an error in train(), too.
  virtual Results results(double seconds) const = 0;
};

}  // namespace cohort::run
