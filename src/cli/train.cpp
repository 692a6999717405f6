// `cohort train`: the executable cohort-train, which `cohort` becomes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/settings_help.h"
#include "cli/subcommand.h"
#include "cli/train_ppo.h"
#include "cli/train_rollouts.h"
#include "core/command_line.h"
#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "dist/group.h"
#include "dist/group_speed.h"
#include "dist/usable_devices.h"
#include "policies/rdt/flags.h"
#include "run/resume_target.h"
#include "train/estimate.h"
#include "train/jobs/robomimic_run.h"
#include "train/memory_plan.h"
#include "train/part_speeds.h"
#include "train/run.h"
#include "train/typed_settings.h"

namespace cohort::cli {
namespace {

std::string usage() {
  std::string text =
      "usage: cohort train JOB [DATA] [--config FILE | load_from=FILE] [key.path=value ...]\n"
      "       cohort train resume=RUN [key.path=value ...]\n"
      "       cohort train JOB resume=auto [key.path=value ...]\n"
      "       cohort train load_from=ROBOMIMIC.json [key.path=value ...]\n\n"
      "Trains on every device of this process, or as one rank of a job under `cohort launch` or torchrun.\n\njobs:\n";
  for (const auto& job : train::all_jobs()) text += format("  {:<10} {}\n", job->name(), job->summary());
  text += format("  {:<10} {}\n", "ppo", "a policy by reinforcement learning, in the simulation loop: task=NAME");
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
         "  --shapes           rdt: memory from the shapes of its tensors, without data and steps; for models that do "
         "not "
         "fit here\n"
         "  --json             the estimate as JSON\n";
}

struct Arguments {
  bool estimates = false;  ///< `cohort estimate`: nothing is trained
  train::EstimateSettings estimate;
  bool measures_parts = false;  ///< for `cohort doctor --measure`: nothing is trained
  train::PartSpeedSettings parts;
  bool json = false;
  bool shapes = false;
  std::string job;
  std::string data;  ///< what stands behind the job without a key
  std::vector<std::string> files;
  std::vector<std::string> overrides;
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
  const auto trains = [&](const char* job) {
    return arguments.job == job || (arguments.job.empty() && job_of_files == job);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (i == 0 && word == "--estimate") {
      arguments.estimates = true;
    } else if (i == 0 && word == "--measure-parts") {
      arguments.measures_parts = true;
    } else if (arguments.measures_parts && word.starts_with("--batch-of-rank=")) {
      arguments.parts.batch_size = std::atoll(word.c_str() + word.find('=') + 1);
    } else if (arguments.estimates && (word.starts_with("--memory") || word.starts_with("--bandwidth"))) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos && ++i == words.size()) throw UsageError(format("{} wants a size", word));
      const double bytes = train::parse_bytes(equals == std::string::npos ? words[i] : word.substr(equals + 1));
      (word.starts_with("--memory") ? arguments.estimate.memory : arguments.estimate.bandwidth) = bytes;
    } else if (arguments.estimates && word == "--shapes") {
      arguments.shapes = true;
    } else if (arguments.estimates && word == "--json") {
      arguments.json = true;
    } else if (arguments.estimates && arguments.job.empty() && word.ends_with(".json") && !config::is_override(word)) {
      arguments.files.push_back(word);
    } else if (word == "--help" || word == "-h") {
      arguments.help = true;
    } else if (word == "--config" || word == "--load_from") {
      if (++i == words.size()) throw UsageError(format("{} wants a file", word));
      arguments.files.push_back(words[i]);
    } else if (word.starts_with("--config=") || word.starts_with("load_from=") || word.starts_with("--load_from=")) {
      arguments.files.push_back(word.substr(word.find('=') + 1));
    } else if (word == "--headless" && trains("ppo")) {
      // Isaac Lab's: nothing is shown in any case.
    } else if (word.starts_with("--local_rank=") || word.starts_with("--local-rank=")) {
      // The way of the old torch.distributed.launch; LOCAL_RANK says the same.
      ::setenv("LOCAL_RANK", word.substr(word.find('=') + 1).c_str(), 0);
    } else {
      const bool dashed = word.starts_with("--");
      if (dashed) word = word.substr(2);
      if (dashed && trains("rdt") && policies::is_rdt_switch(word)) word += "=true";
      if (dashed && stands_alone(words, i)) {
        // robomimic's switches.
        if (word == "resume") word = "resume=auto";
        if (word == "debug") word = "debug=true";
      }
      if (dashed && word.find('=') == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--"))
        word += "=" + words[++i];
      if (config::is_override(word)) {
        arguments.overrides.push_back(word);
      } else if (arguments.job.empty() && !dashed && !word.starts_with("-")) {
        arguments.job = word;
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
  for (std::string& text : arguments.overrides) {
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
void take_job(Arguments& arguments, const std::string& resumed) {
  std::vector<std::string> files = arguments.files;
  if (!resumed.empty()) files.insert(files.begin(), resumed);
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
                            train::all_jobs().front()->name()));
}

/// The word behind the job as the setting `key`. Throws UsageError where that is typed besides, and says another thing.
void take_data(Arguments& arguments, const std::string& key) {
  const std::string text = key + "=" + arguments.data;
  for (const std::string& other : arguments.overrides)
    if (other.starts_with(key + "=") && other != text)
      throw UsageError(
          format("'{}' stands for {}, and {} says another thing: leave one of them out", arguments.data, text, other));
  arguments.overrides.push_back(text);
}

/// The precision that a launcher's --mixed_precision asks for. `cohort launch` passes what was typed, which outranks a
/// file; accelerate always passes one, "no" unless it was told, which holds where nobody has said a precision.
void apply_launcher_precision(const run::TypedSettings& typed, config::Fields& fields) {
  for (const char* name : {"COHORT_MIXED_PRECISION", "ACCELERATE_MIXED_PRECISION"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string precision = value == std::string("no") ? "fp32" : value;
    const std::string set = fields.to_json().at("train").at("precision").get<std::string>();
    if (set == precision) return;
    const bool of_cohort = name == std::string("COHORT_MIXED_PRECISION");
    if (typed.has("train.precision")) {
      COHORT_THROW_UNLESS(!of_cohort, "{} and the launcher's --mixed_precision={} contradict each other: leave one out",
                          typed.word("train.precision"), value);
      return;
    }
    if (!of_cohort && fields.was_set("train.precision")) {
      log::warning(
          "precision {} as the configuration says; the launcher's {}={} is not used: train.precision={} on "
          "the command line would be",
          set, name, value, precision);
      return;
    }
    fields.apply_override("train.precision=" + precision);
    log::info("precision {} as the launcher's {} says", precision, name);
    return;
  }
}

/// An unknown setting is told with the flag or key that is meant, where those of RDT's main.py or of robomimic are read.
void apply_word(config::Fields& fields, train::RunSettings& settings, const std::string& text, bool rdt,
                bool robomimic) {
  const std::string key = text.substr(0, text.find('='));
  constexpr std::string_view kOfTask = "rollout.task_settings.";
  if (key.starts_with(kOfTask)) {
    std::vector<std::string>& of_task = settings.rollout.task_settings;
    std::erase_if(of_task,
                  [&](const std::string& other) { return other.starts_with(key.substr(kOfTask.size()) + "="); });
    of_task.push_back(text.substr(kOfTask.size()));
    return;
  }
  if (!fields.has(key)) {
    const std::string flag = rdt ? policies::near_rdt_flag(key) : "";
    COHORT_THROW_UNLESS(flag.empty(), "there is no flag --{}; did you mean --{}?", key, flag);
    const std::string of_robomimic = robomimic ? train::near_robomimic_key(key) : "";
    COHORT_THROW_UNLESS(of_robomimic.empty(), "there is no setting '{}'; did you mean '{}', robomimic's?", key,
                        of_robomimic);
  }
  fields.apply_override(text);
}

/// `cohort estimate rdt --shapes`.
std::string shapes_of(const std::string& job, const train::RunSettings& settings, const config::Fields& fields,
                      const Arguments& arguments) {
  constexpr double kUsualGpu = 24.0 * (1 << 30);
  COHORT_THROW_UNLESS(job == "rdt", "--shapes is for rdt; other models are measured: leave it out");
  COHORT_THROW_UNLESS(!arguments.json, "--shapes and --json do not go together: it prints a table");
  settings.train.validate();
  models::RdtSettings model;
  config::Fields of_model;
  models::describe(of_model, model);
  of_model.apply_json(fields.to_json().at("model").at("rdt"), "model.rdt");
  models::check(model);
  return train::shapes_text(model, settings.train, settings.parallel.zero,
                            arguments.estimate.memory.value_or(kUsualGpu));
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

int run_train(const std::vector<std::string>& words) {
  if (!words.empty() && words.front() == "--measure-ranks") return measure_ranks(words.back() == "--json");
  Arguments arguments = parse(words, job_of_files(words));
  // What every rank would say is said once.
  if (only_checks_words())
    log::set_level(log::Level::kError);
  else if (!arguments.help)
    log::set_console(dist::read_rank_environment().rank == 0);
  std::vector<std::string> notes;
  std::size_t of_files = 0;           // of the overrides: those that files named by flags say
  std::vector<std::string> main_pys;  // defaults, where nothing is said
  bool links_results = false;
  const bool rdt = arguments.job == "rdt" || (arguments.job.empty() && job_of_files(words) == "rdt");
  if (rdt) {
    policies::RdtFlags flags = policies::read_rdt_flags(arguments.overrides);
    arguments.overrides = std::move(flags.overrides);
    main_pys = std::move(flags.defaults);
    of_files = flags.of_files;
    // The flag is main.py's; the setting output_dir=FOLDER is the folder of all runs, as in every job.
    links_results = flags.names_output_dir && std::any_of(words.begin(), words.end(), [](const std::string& word) {
                      return word.starts_with("--output_dir") || word.starts_with("--output-dir");
                    });
    notes = std::move(flags.notes);
  }
  const run::ResumeTarget continued = resumed_run(arguments);
  const std::string resumed = resumed_configuration(continued);
  if (!arguments.help) take_job(arguments, resumed);
  if (arguments.estimates && (arguments.help || (arguments.job.empty() && arguments.files.empty()))) {
    std::fputs(estimate_usage().c_str(), arguments.help ? stdout : stderr);
    return arguments.help ? 0 : 2;
  }
  if (arguments.job.empty()) {
    std::fputs(usage().c_str(), arguments.help ? stdout : stderr);
    return arguments.help ? 0 : 2;
  }
  COHORT_THROW_UNLESS(arguments.job != "ppo" || !arguments.measures_parts,
                      "ppo has no loader: what it learns from is simulated; its report says where the time goes");
  if (arguments.job == "ppo") {
    COHORT_THROW_UNLESS(
        !arguments.estimates,
        "`cohort estimate` is for trainings with data; ppo's speed is that of its simulator: train it for "
        "a few iterations with max_iterations=3");
    if (!arguments.data.empty() && arguments.help)
      arguments.keys.insert(arguments.keys.begin(), arguments.data);
    else if (!arguments.data.empty())
      take_data(arguments, "task");
    return run_ppo(
        {arguments.files, arguments.overrides, resumed, continued.checkpoint, arguments.help, arguments.keys});
  }
  const std::unique_ptr<train::Job> job = train::make_job(arguments.job);
  train::RunSettings settings;
  // The job's defaults go in before the general settings are bound, so that --help shows them.
  {
    config::Fields defaults;
    job->describe(defaults, settings);
  }
  std::string name = job->name();
  config::Fields fields;
  fields.add_choice("job", name, {name}, "what is trained: the word behind `cohort train`");
  train::describe(fields, settings);
  job->describe(fields, settings);
  // robomimic's name for it, also where a run is continued without its file.
  if (job->name() == "policy")
    for (const char* section : {"train", "algo"})
      fields.alias(format("{}.optim_params.policy.learning_rate.initial", section), "train.lr");
  if (arguments.help) {
    // `cohort help train informer model` has the key in the place of the data.
    if (!arguments.data.empty() && (arguments.data == "all" || names_setting(fields, arguments.data)))
      arguments.keys.insert(arguments.keys.begin(), arguments.data);
    const std::string explained = settings_help(fields, job->name(), arguments.keys);
    if (arguments.keys.empty())
      std::printf(
          "usage: cohort train %s [DATA] [--config FILE] [key.path=value ...]\n       cohort train resume=RUN "
          "[key.path=value ...]\n\n%s: %s\n\n",
          job->name().c_str(), job->name().c_str(), job->summary().c_str());
    std::fputs(explained.c_str(), stdout);
    return 0;
  }
  // A run that is continued keeps its own settings; what the command line says anew goes on top.
  if (!resumed.empty()) {
    fields.apply_file(resumed);
    // Where it began is behind it: it goes on from its own last checkpoint.
    settings.train.checkpoint.resume =
        continued.checkpoint.empty() ? train::CheckpointSettings().resume : continued.checkpoint;
  }
  if (!arguments.data.empty()) take_data(arguments, fields.has("data.path") ? "data.path" : "data.paths");
  std::vector<std::string> overrides = arguments.overrides;
  std::string robomimic;  // the file of that form
  config::Json typed_robomimic = config::Json::object();
  for (const std::string& file : arguments.files) {
    if (job->name() == "policy" && train::is_robomimic_file(file)) {
      if (!robomimic.empty())
        throw UsageError(format("{} and {} are both robomimic's configurations, each of a whole training: name one",
                                robomimic, file));
      robomimic = file;
      train::RobomimicRun run = train::read_robomimic_run(file, overrides, rollout_tasks());
      typed_robomimic = train::settings_of_robomimic_words(file, overrides, run.overrides);
      fields.apply_json(run.settings, file);
      overrides = std::move(run.overrides);
      notes.insert(notes.end(), run.notes.begin(), run.notes.end());
    } else {
      fields.apply_file(file);
    }
  }
  // What robomimic's keys on the command line say outranks every file, as other words do.
  if (arguments.files.size() > 1) fields.apply_json(typed_robomimic, "the command line");
  for (const std::string& text : main_pys)
    if (!fields.was_set(text.substr(0, text.find('=')))) fields.apply_override(text);
  // A file says how to train. Which run is continued, the command line alone says.
  settings.resume.clear();
  for (const std::string& override_text : overrides) {
    COHORT_THROW_UNLESS(job->name() != "policy" || !override_text.starts_with("train.num_epochs="),
                        "{}: how many steps such an epoch has only a robomimic configuration says (load_from=FILE); "
                        "say train.steps=N{}",
                        override_text,
                        settings.train.steps > 0 ? format(", which is {} now", settings.train.steps) : "");
    apply_word(fields, settings, override_text, job->name() == "rdt", !robomimic.empty());
  }
  overrides.erase(overrides.begin(), overrides.begin() + static_cast<std::ptrdiff_t>(of_files));
  run::TypedSettings typed(overrides);
  train::settle(typed, settings);
  if (fields.has("model.algorithm")) {
    const std::string learner = fields.to_json().at("model").at("algorithm").get<std::string>();
    for (const auto& [algorithm, section] : {std::pair("diffusion_policy", "model.diffusion."),
                                             std::pair("bc", "model.bc."), std::pair("rdt", "model.rdt.")})
      typed.needs(learner == algorithm, {section},
                  format("model.algorithm is {}: add model.algorithm={}", learner, algorithm));
    typed.refuse_what_does_nothing();
  }
  for (const std::string& note : notes) log::warning("{}", note);
  settings.program = typed_name(sibling("cohort"));
  settings.links_results = links_results;
  apply_launcher_precision(typed, fields);
  if (only_checks_words()) {
    settings.train.validate();
    return 0;
  }
  if (arguments.measures_parts) {
    log::set_level(log::Level::kWarning);
    std::puts(to_json(train::measure_parts(*job, settings, arguments.parts)).c_str());
    return 0;
  }
  if (arguments.estimates) {
    log::set_level(log::Level::kWarning);
    if (arguments.shapes) {
      std::fputs(shapes_of(job->name(), settings, fields, arguments).c_str(), stdout);
      return 0;
    }
    const train::Estimate estimate = train::estimate(*job, settings, arguments.estimate);
    std::fputs((arguments.json ? to_json(estimate) : to_text(estimate)).c_str(), stdout);
    return 0;
  }
  const train::RolloutFunction rollouts = rollouts_of(settings);
  return train::run(*job, settings, fields, arguments.overrides, rollouts);
}

}  // namespace
}  // namespace cohort::cli

int main(int argc, char** argv) {
  const bool estimates = argc > 1 && std::string(argv[1]) == "--estimate";
  return cohort::cli::run_program(estimates ? "cohort estimate" : "cohort train", [&] {
    return cohort::cli::run_train(std::vector<std::string>(argv + 1, argv + argc));
  });
}
