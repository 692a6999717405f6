/// The words behind `cohort train`, and behind the commands that measure what it would do.
///
///   TrainingCall call = read_call(words);
///   if (call.training && !call.help) read_settings(call, fields);
///   return call.training->run(fields, call.words.settings);
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config.h"
#include "run/training.h"

namespace cohort::cli {

/// All that this build can train.
std::vector<std::unique_ptr<run::Training>> trainings();

struct TrainingCall {
  std::unique_ptr<run::Training> training;  ///< null: nothing says what is trained
  run::TrainingWords words;
  std::string data;  ///< what stands behind the job without a key
  bool help = false;
  std::vector<std::string> keys;  ///< of --help: what stands behind it
};

/// Finds out what is trained and sorts the words. Throws UsageError, Error.
TrainingCall read_call(const std::vector<std::string>& words);

/// Binds all settings of the training to `fields` and sets what files and words say. Throws Error.
void read_settings(TrainingCall& call, config::Fields& fields);

}  // namespace cohort::cli
