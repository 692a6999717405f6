/// The end of a run: figures of the test set as text, as files and in the report.
#pragma once
#include <filesystem>
#include <string>

#include "report/run_folder.h"
#include "run/learner.h"
#include "train/loop.h"
#include "train/run.h"
#include "train/run_test_set.h"

namespace cohort::train {

/// How many steps changed nothing, and why; empty: all did.
std::string skipped_text(const TrainResult& result);

/// Lines for the log: the table of errors in the units of the data and the overall ones in the units of the loss.
std::string describe_test(const TestResult& test);

/// The file of the weights that a training ends with and tests, within the run's folder: of the best validation or of
/// the last step, and the moving average where one is kept.
std::filesystem::path tested_weights(const TrainSettings& settings, const TrainResult& result);
/// "the weights of step 26, the best validation".
std::string describe_weights(const TrainSettings& settings, const TrainResult& result);

/// Writes test_metrics.json and test_metrics.txt. Never throws: what goes wrong is a warning.
void write_test_metrics(const report::RunFolder& folder, const TestResult& test);
/// Removes what an earlier test of a run that is resumed has left: its figures and its charts.
void remove_test_results(const report::RunFolder& folder);

/// What the run shows of it. `samples_per_s`: at last; `seconds`: of training; `test`: null where nothing was tested.
run::Results results_of(const Trainable& trainable, const RunSettings& settings, const TrainResult& result,
                        double samples_per_s, double seconds, const TestResult* test);

}  // namespace cohort::train
