// `cohort train`: the executable cohort-train, which `cohort` becomes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/settings_help.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "cli/train_rollouts.h"
#include "core/command_line.h"
#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "dist/group.h"
#include "dist/group_speed.h"
#include "dist/usable_devices.h"
#include "run/resume_target.h"
#include "run/training.h"
#include "train/estimate.h"
#include "train/jobs/job.h"
#include "train/jobs/robomimic_run.h"
#include "train/supervised_training.h"

namespace cohort::cli {
namespace {

using Trainings = std::vector<std::unique_ptr<run::Training>>;

/// All that this build can train.
Trainings trainings() {
  Trainings all = train::supervised_trainings({.rollouts = rollouts_of, .task_of_environment = rollout_tasks()});
  for (auto& training : trainings_in_simulation()) all.push_back(std::move(training));
  return all;
}

/// Null: there is none of this name.
std::unique_ptr<run::Training> find_training(const std::string& name) {
  for (auto& training : trainings())
    if (training->name() == name) return std::move(training);
  return nullptr;
}

std::unique_ptr<run::Training> take_training(const std::string& name) {
  if (auto training = find_training(name)) return training;
  std::vector<std::string> names;
  for (const auto& training : trainings()) names.push_back(training->name());
  run::refuse_unknown_training(name, names, train::instead_of_job(name));
}

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
         "JSON file with the\nsame keys, e.g. the config.json of an earlier run; or a robomimic configuration as it "
         "is,\n"
         "with its own keys on the command line.\n";
}

std::string estimate_usage() {
  return "usage: cohort estimate CONFIG.json [key.path=value ...]\n"
         "       cohort estimate JOB [DATA] [--config FILE] [key.path=value ...]\n\n"
         "Says what `cohort train` with the same words would take: memory by part, the largest batch that fits, hours "
         "on "
         "1, 2, 4\nand 8 devices. It makes a few real steps and writes nothing.\n\n"
         "  --memory SIZE      what a device may take: 24G, 800M; without it what there is\n"
         "  --bandwidth SIZE   bytes a second between devices; without it 5e9 for the CPU, 20e9 for GPUs\n"
         "  --shapes           " +
         train::jobs_with_shapes() +
         ": memory from the shapes of its tensors, without data and steps; for models that do "
         "not "
         "fit here\n"
         "  --json             the estimate as JSON\n";
}

struct Arguments {
  bool estimates = false;       ///< `cohort estimate`: nothing is trained
  bool measures_parts = false;  ///< for `cohort doctor --measure`: nothing is trained
  run::Measurement measurement;
  std::string job;
  std::string data;  ///< what stands behind the job without a key
  run::TrainingWords words;
  bool help = false;
  std::vector<std::string> keys;  ///< of --help: what stands behind it
};

/// Whether what follows word i is no value of it.
bool stands_alone(const std::vector<std::string>& words, std::size_t i) {
  return i + 1 == words.size() || words[i + 1].starts_with("-") || config::is_override(words[i + 1]);
}

/// `job_of_files`: what the files among the words train; it decides which switches there are.
Arguments parse(const std::vector<std::string>& words, const std::string& job_of_files) {
  Arguments arguments;
  std::unique_ptr<run::Training> training = find_training(job_of_files);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (i == 0 && word == "--estimate") {
      arguments.estimates = true;
    } else if (i == 0 && word == "--measure-parts") {
      arguments.measures_parts = true;
      arguments.measurement.kind = run::Measurement::Kind::kParts;
    } else if (arguments.measures_parts && word.starts_with("--batch-of-rank=")) {
      arguments.measurement.batch_size = std::atoll(word.c_str() + word.find('=') + 1);
    } else if (arguments.estimates && (word.starts_with("--memory") || word.starts_with("--bandwidth"))) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos && ++i == words.size()) throw UsageError(format("{} wants a size", word));
      const double bytes = train::parse_bytes(equals == std::string::npos ? words[i] : word.substr(equals + 1));
      (word.starts_with("--memory") ? arguments.measurement.memory : arguments.measurement.bandwidth) = bytes;
    } else if (arguments.estimates && word == "--shapes") {
      arguments.measurement.kind = run::Measurement::Kind::kShapes;
    } else if (arguments.estimates && word == "--json") {
      arguments.measurement.json = true;
    } else if (arguments.estimates && arguments.job.empty() && word.ends_with(".json") && !config::is_override(word)) {
      arguments.words.files.push_back(word);
    } else if (word == "--help" || word == "-h") {
      arguments.help = true;
    } else if (word == "--config" || word == "--load_from") {
      if (++i == words.size()) throw UsageError(format("{} wants a file", word));
      arguments.words.files.push_back(words[i]);
    } else if (word.starts_with("--config=") || word.starts_with("load_from=") || word.starts_with("--load_from=")) {
      arguments.words.files.push_back(word.substr(word.find('=') + 1));
    } else if (word.starts_with("--local_rank=") || word.starts_with("--local-rank=")) {
      // The way of the old torch.distributed.launch; LOCAL_RANK says the same.
      ::setenv("LOCAL_RANK", word.substr(word.find('=') + 1).c_str(), 0);
    } else {
      const bool dashed = word.starts_with("--");
      if (dashed) word = word.substr(2);
      if (dashed && training) word = training->read_switch(word);
      if (word.empty()) continue;
      if (dashed && stands_alone(words, i)) {
        // robomimic's switches.
        if (word == "resume") word = "resume=auto";
        if (word == "debug") word = "debug=true";
      }
      if (dashed && word.find('=') == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--"))
        word += "=" + words[++i];
      if (config::is_override(word)) {
        arguments.words.settings.push_back(word);
      } else if (arguments.job.empty() && !dashed && !word.starts_with("-")) {
        arguments.job = word;
        training = find_training(word);
      } else if (arguments.help && !word.starts_with("-")) {
        arguments.keys.push_back(word);
      } else if (arguments.data.empty() && !dashed && !word.starts_with("-")) {
        arguments.data = word;
      } else {
        if (dashed && !word.empty() && stands_alone(words, i))
          throw UsageError(format("{} wants a value: {} VALUE, or {}=VALUE", words[i], words[i], words[i]));
        throw UsageError(format("'{}' is neither a job nor a setting of the form key.path=value", words[i]));
      }
    }
  }
  return arguments;
}

/// The job that a file of settings is for: the one that a run's config.json names, "policy" for a robomimic
/// configuration; empty where a file does not say it. Throws Error when it cannot be read.
std::string job_of(const std::string& file) {
  if (train::is_robomimic_file(file)) return "policy";
  const config::Json json = config::Json::parse(read_file(file), nullptr, true, true);
  return json.is_object() && json.contains("job") && json.at("job").is_string() ? json.at("job").get<std::string>()
                                                                                : "";
}

/// What the first of the files (or the run that is continued) trains, before the other words are understood; empty where
/// none says it. What is wrong with a file is said when it is read.
std::string job_of_files(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(word.starts_with("--") ? 2 : 0, equals - (word.starts_with("--") ? 2 : 0));
    const bool apart = equals == std::string::npos && word.starts_with("--") && i + 1 < words.size();
    const std::string value = equals != std::string::npos ? word.substr(equals + 1) : apart ? words[i + 1] : "";
    try {
      std::string job;
      if (key == "config" || key == "load_from") job = job_of(value);
      if ((key == "resume" || key == "resume_from_checkpoint") && value != "auto" && value != "latest")
        job = job_of((run::resume_target(value).run / "config.json").string());
      if (words.front() == "--estimate" && i > 0 && word.ends_with(".json") && equals == std::string::npos)
        job = job_of(word);
      if (!job.empty()) return job;
    } catch (const std::exception&) {
    }
  }
  return "";
}

/// Which run is continued; an empty path: none is. Its override then names the run's folder.
run::ResumeTarget resumed_run(Arguments& arguments) {
  run::ResumeTarget target;
  for (std::string& text : arguments.words.settings) {
    if (!text.starts_with("resume=")) continue;
    target = {};
    if (text == "resume=" || text == "resume=auto") continue;  // which run, is found later
    target = run::resume_target(text.substr(7));
    text = "resume=" + target.run.string();
  }
  return target;
}

/// The config.json of the run that is continued; empty: none is.
std::string resumed_configuration(const run::ResumeTarget& resumed) {
  return resumed.run.empty() ? "" : (resumed.run / "config.json").string();
}

/// Completes the job from the files, which must all be for the same one. Throws UsageError.
void take_job(Arguments& arguments) {
  std::vector<std::string> files = arguments.words.files;
  if (!arguments.words.resumed.empty()) files.insert(files.begin(), arguments.words.resumed);
  for (const std::string& file : files) {
    const std::string named = job_of(file);
    if (named.empty()) continue;
    if (arguments.job.empty()) arguments.job = named;
    if (arguments.job != named)
      throw UsageError(format("{} is for `cohort train {}`, not for {}: write {} or leave the job out", file, named,
                              arguments.job, named));
  }
  if (arguments.job.empty() && !files.empty())
    throw UsageError(format("{} does not say what is trained: name the job, as in `cohort train {} ...`", files.front(),
                            trainings().front()->name()));
}

/// The word behind the job as the setting `key`. Throws UsageError where that is typed besides, and says another thing.
void take_data(Arguments& arguments, const std::string& key) {
  const std::string text = key + "=" + arguments.data;
  for (const std::string& other : arguments.words.settings)
    if (other.starts_with(key + "=") && other != text)
      throw UsageError(
          format("'{}' stands for {}, and {} says another thing: leave one of them out", arguments.data, text, other));
  arguments.words.settings.push_back(text);
}

/// `cohort doctor --measure` in the ranks of a job: rank 0 says how fast they exchange sums.
int measure_ranks(bool json) {
  const dist::RankEnvironment environment = dist::read_rank_environment();
  log::set_console(environment.rank == 0);
  const auto devices = dist::usable_devices({.backend = default_backend(), .local_rank = environment.local_rank});
  // One device for each process: the one of its number where it sees several.
  const std::size_t own = devices.size() > 1 ? static_cast<std::size_t>(environment.local_rank) % devices.size() : 0;
  const auto group = dist::Group::create(environment, {.device = devices.at(own)});
  const dist::GroupSpeed speed = dist::measure_group(*group);
  if (group->rank() == 0 && json)
    std::puts(nlohmann::ordered_json{{"ranks", speed.world_size},
                                     {"all_reduce_latency_s", speed.latency},
                                     {"all_reduce_bytes", speed.bytes},
                                     {"all_reduce_s", speed.seconds},
                                     {"bytes_per_s_of_a_rank", speed.bandwidth}}
                  .dump(2)
                  .c_str());
  else if (group->rank() == 0)
    std::printf(
        "measured  all-reduce between %d ranks: %.3f ms for one number; %s in %.1f ms, each rank sends and receives "
        "%s/s\n          a model of 10 million weights has 40 MB of gradients: %.0f ms a step, as far as they are not "
        "hidden behind the backward pass\n",
        speed.world_size, speed.latency * 1e3, format_bytes(static_cast<double>(speed.bytes)).c_str(),
        speed.seconds * 1e3, format_bytes(speed.bandwidth).c_str(),
        1e3 * 4e7 / static_cast<double>(speed.bytes) * speed.seconds);
  group->close();
  return 0;
}

/// `cohort train JOB --help [KEY ...]`.
void print_help(run::Training& training, const Arguments& arguments) {
  // `cohort help train informer model` has the key in the place of the data.
  std::vector<std::string> words = arguments.keys, keys;
  if (!arguments.data.empty()) words.insert(words.begin(), arguments.data);
  auto fields = std::make_unique<config::Fields>();
  training.describe(*fields, arguments.words);
  for (const std::string& word : words) {
    if (word == "all" || names_setting(*fields, word)) {
      keys.push_back(word);
    } else if (training.has_defaults_for(word)) {
      fields = std::make_unique<config::Fields>();
      training.describe(*fields, arguments.words);
    } else if (word != arguments.data) {
      keys.push_back(word);
    }
  }
  const std::string explained = settings_help(*fields, training, keys);
  if (keys.empty()) std::fputs(training.usage().c_str(), stdout);
  std::fputs(explained.c_str(), stdout);
}

int run_train(const std::vector<std::string>& words) {
  if (!words.empty() && words.front() == "--measure-ranks") return measure_ranks(words.back() == "--json");
  const std::string of_files = job_of_files(words);
  Arguments arguments = parse(words, of_files);
  // What every rank would say is said once.
  if (only_checks_words())
    log::set_level(log::Level::kError);
  else if (!arguments.help)
    log::set_console(dist::read_rank_environment().rank == 0);
  std::unique_ptr<run::Training> training = find_training(arguments.job.empty() ? of_files : arguments.job);
  if (training) training->translate(arguments.words, words);
  const run::ResumeTarget continued = resumed_run(arguments);
  arguments.words.resumed = resumed_configuration(continued);
  arguments.words.checkpoint = continued.checkpoint;
  if (!arguments.help) take_job(arguments);
  if (arguments.estimates && (arguments.help || arguments.job.empty())) {
    std::fputs(estimate_usage().c_str(), arguments.help ? stdout : stderr);
    return arguments.help ? 0 : 2;
  }
  if (arguments.job.empty()) {
    std::fputs(usage().c_str(), arguments.help ? stdout : stderr);
    return arguments.help ? 0 : 2;
  }
  if (!training || training->name() != arguments.job) training = take_training(arguments.job);
  if (arguments.help) {
    print_help(*training, arguments);
    return 0;
  }
  if (!arguments.data.empty()) take_data(arguments, training->key_of_bare_word());
  config::Fields fields;
  training->describe(fields, arguments.words);
  training->read(fields, arguments.words);
  training->settings().program = typed_name(sibling("cohort"));
  if (only_checks_words()) {
    training->check();
    return 0;
  }
  if (arguments.estimates || arguments.measures_parts) {
    log::set_level(log::Level::kWarning);
    std::fputs(training->measure(arguments.measurement, fields).c_str(), stdout);
    return 0;
  }
  return training->run(fields, arguments.words.settings);
}

const TorchProgram kProgram("cohort-train", "cohort train", &run_train);

}  // namespace
}  // namespace cohort::cli
