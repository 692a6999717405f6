// `cohort predict`: the executable cohort-predict, which `cohort` becomes. A trained model's answers for a file.
#include "train/predict.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "core/config.h"
#include "core/error.h"
#include "rank/environment.h"

namespace cohort::cli {
namespace {

int run_predict(const std::vector<std::string>& words) {
  CLI::App app(
      "Writes what a trained model says about data: a regressor or Informer about a CSV file, a policy about recorded "
      "episodes.",
      "cohort predict");
  app.footer(
      "A regressor answers for every row of the file, which need not hold the targets; where it does, the errors are\n"
      "printed. Informer forecasts the rows behind the file's end. A policy says for every step of RLDS, HDF5 or "
      "LeRobot "
      "episodes\n"
      "what it would do, beside what was done; the errors of each number of the action are printed.\n\n"
      "  cohort predict outputs/regressor/latest new.csv --out answers.csv\n"
      "  cohort predict outputs/push/latest outputs/data/push data.splits=train[95%:] --out actions.csv");
  train::PredictSettings settings;
  app.add_option("RUN", settings.run, "a run's folder, its folder of checkpoints, or a checkpoint")->required();
  app.add_option("FILE", settings.file,
                 "the CSV file, with the columns of the training data; or a data set with the fields of the policy's")
      ->required();
  app.add_option("settings", settings.overrides, "key.path=value: settings of the run that this file needs otherwise");
  app.add_option("--out", settings.out, "file for the answers: .csv, or .hdf5 for those of a policy")->required();
  app.add_option("--device", settings.device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--batch-size", settings.batch_size,
                 "rows or windows at a time (default: 1024; 64 where pictures are seen)")
      ->check(CLI::PositiveNumber);
  app.add_option("--data-set", settings.data_set,
                 "of the policy's data.paths: whose statistics, where each set has its own");
  if (const auto code = parse_arguments(app, words)) return *code;
  const rank::Environment place = rank::read_environment(rank::process_variable, rank::StoreUse::kNone);
  if (place.world_size > 1)
    throw UsageError(
        format("predict works in one process, and {} were started (from {}): each would write {}. Start "
               "it without the launcher, or with one process",
               place.world_size, rank::to_string(place.source), settings.out.string()));
  const train::PredictReport report = train::predict_file(settings);
  std::printf("%s: %lld row(s) of %s by %s\n", settings.out.c_str(), static_cast<long long>(report.rows),
              report.job.c_str(), report.weights.c_str());
  if (report.metrics) std::printf("against what the data hold:\n%s", report.metrics->to_table().c_str());
  return 0;
}

const TorchProgram kPredict("cohort-predict", "cohort predict", &run_predict);

}  // namespace
}  // namespace cohort::cli
