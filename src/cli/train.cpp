// `cohort train`: the executable cohort-train, which `cohort` becomes.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/settings_help.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "cli/train_words.h"
#include "core/config.h"

namespace cohort::cli {
namespace {

std::string usage() {
  std::string text =
      "usage: cohort train JOB [DATA] [--config FILE | load_from=FILE] [key.path=value ...]\n"
      "       cohort train resume=RUN [key.path=value ...]\n"
      "       cohort train JOB resume=auto [key.path=value ...]\n"
      "       cohort train load_from=ROBOMIMIC.json [key.path=value ...]\n\n"
      "Trains on every device of this process, or as one rank of a job under `cohort launch` or torchrun.\n\njobs:\n";
  for (const auto& training : trainings()) text += format("  {:<10} {}\n", training->name(), training->summary());
  return text +
         "\n`cohort train JOB --help` lists the job's basic settings and the groups of the others, `--help KEY` "
         "explains those\n"
         "of a group or with that part in their names. A setting is key.path=value (or --key.path=value, or\n"
         "--key.path value); DATA stands for data.path=DATA (of policies: data.paths=DATA). FILE is a "
         "JSON or YAML file with the\nsame keys, e.g. the config.json of an earlier run; or a robomimic configuration "
         "as it "
         "is,\n"
         "with its own keys on the command line.\n";
}

/// `cohort train JOB --help [KEY ...]`.
void print_help(const TrainingCall& call) {
  run::Training& training = *call.training;
  // `cohort help train informer model` has the key in the place of the data.
  std::vector<std::string> words = call.keys, keys;
  if (!call.data.empty()) words.insert(words.begin(), call.data);
  auto fields = std::make_unique<config::Fields>();
  training.describe(*fields, call.words);
  for (const std::string& word : words) {
    if (word == "all" || names_setting(*fields, word)) {
      keys.push_back(word);
    } else if (training.has_defaults_for(word)) {
      fields = std::make_unique<config::Fields>();
      training.describe(*fields, call.words);
    } else if (word != call.data) {
      keys.push_back(word);
    }
  }
  const std::string explained = settings_help(*fields, training, keys);
  if (keys.empty()) std::fputs(training.usage().c_str(), stdout);
  std::fputs(explained.c_str(), stdout);
}

int run_train(const std::vector<std::string>& words) {
  TrainingCall call = read_call(words);
  if (!call.training) {
    std::fputs(usage().c_str(), call.help ? stdout : stderr);
    return call.help ? 0 : 2;
  }
  if (call.help) {
    print_help(call);
    return 0;
  }
  config::Fields fields;
  read_settings(call, fields);
  if (!only_checks_words()) return call.training->run(fields, call.words.settings);
  call.training->check();
  return 0;
}

const TorchProgram kTrain("cohort-train", "cohort train", &run_train);

}  // namespace
}  // namespace cohort::cli
