#include "train/supervised_training.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/usage_error.h"
#include "policies/algorithm.h"
#include "run/launched_job.h"
#include "train/estimate.h"
#include "train/jobs/job.h"
#include "train/memory_plan.h"
#include "train/part_speeds.h"
#include "train/typed_settings.h"

namespace cohort::train {
namespace {

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

/// An unknown setting is told with the flag or key that is meant, where those of an algorithm's reference (`foreign`) or of
/// robomimic are read.
void apply_word(config::Fields& fields, RunSettings& settings, const std::string& text,
                const policies::Algorithm* foreign, bool robomimic) {
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
    const std::string flag = foreign != nullptr ? foreign->near_foreign_flag(key) : "";
    COHORT_THROW_UNLESS(flag.empty(), "there is no flag --{}; did you mean --{}?", key, flag);
    const std::string of_robomimic = robomimic ? near_robomimic_key(key) : "";
    COHORT_THROW_UNLESS(of_robomimic.empty(), "there is no setting '{}'; did you mean '{}', robomimic's?", key,
                        of_robomimic);
  }
  fields.apply_override(text);
}

class SupervisedTraining final : public run::Training {
 public:
  SupervisedTraining(std::unique_ptr<Job> job, const TaskFunctions& tasks)
      : job_(std::move(job)), algorithm_(policies::algorithm_of_job(job_->name())), tasks_(tasks) {
    // The job's defaults go in before the general settings are bound, so that --help shows them.
    config::Fields fields;
    job_->describe(fields, settings_);
    key_of_bare_word_ = fields.has("data.path") ? "data.path" : "data.paths";
  }

  std::string name() const override { return job_->name(); }
  std::string summary() const override { return job_->summary(); }
  std::string usage() const override {
    return format(
        "usage: cohort train {} [DATA] [--config FILE] [key.path=value ...]\n       cohort train resume=RUN "
        "[key.path=value ...]\n\n{}: {}\n\n",
        name(), name(), summary());
  }
  std::vector<std::string> basic_settings() const override {
    std::vector<std::string> basic = job_->basic_settings();
    for (const char* of_all : {"train.steps", "train.epochs", "train.batch_size", "train.gradient_accumulation_steps",
                               "train.lr", "train.precision", "train.validate_every", "train.log_every", "train.seed",
                               "devices", "loader.workers", "name", "output_dir", "resume"})
      if (std::ranges::find(basic, of_all) == basic.end()) basic.emplace_back(of_all);
    return basic;
  }
  std::string remark() const override { return job_->remark(); }
  RunSettings& settings() override { return settings_; }
  std::string key_of_bare_word() const override { return key_of_bare_word_; }
  std::string read_switch(const std::string& word) const override {
    return algorithm_ != nullptr && algorithm_->is_foreign_switch(word) ? word + "=true" : word;
  }
  void translate(run::TrainingWords& words, const std::vector<std::string>& typed) override;
  void describe(config::Fields& fields, const run::TrainingWords& words) override;
  void read(config::Fields& fields, const run::TrainingWords& words) override;
  void check() override { settings_.train.validate(); }
  std::string measure(const run::Measurement& measurement, const config::Fields& fields) override;
  int run(const config::Fields& fields, const std::vector<std::string>& typed) override {
    const std::string continued = run::run_to_continue(settings_, name(), typed);
    return train::run(*job_, settings_, fields, typed, tasks_.rollouts(settings_, continued));
  }

 private:
  bool is_policy() const { return name() == "policy"; }
  std::vector<std::string> read_files(config::Fields& fields, const run::TrainingWords& words, bool& of_robomimic);
  void refuse_idle(const config::Fields& fields, run::TypedSettings& typed) const;
  std::string shapes(const run::Measurement& measurement, const config::Fields& fields) const;

  std::unique_ptr<Job> job_;
  const policies::Algorithm* algorithm_;  // whose own job it is; null: a job of no algorithm, or of all
  TaskFunctions tasks_;
  RunSettings settings_;
  std::string name_, key_of_bare_word_;
  std::size_t of_files_ = 0;           // of the words: those that files named by flags say, which come first
  std::vector<std::string> defaults_;  // the reference's, where nothing is said
  std::vector<std::string> notes_;     // on flags and keys without effect
};

void SupervisedTraining::translate(run::TrainingWords& words, const std::vector<std::string>& typed) {
  if (algorithm_ == nullptr) return;
  policies::ForeignWords flags = algorithm_->read_foreign(words.settings);
  words.settings = std::move(flags.overrides);
  defaults_ = std::move(flags.defaults);
  of_files_ = flags.of_files;
  // The flag is the reference's; the setting output_dir=FOLDER is the folder of all runs, as in every job.
  settings_.links_results = flags.names_output_dir && std::any_of(typed.begin(), typed.end(), [](const auto& word) {
                              return word.starts_with("--output_dir") || word.starts_with("--output-dir");
                            });
  notes_ = std::move(flags.notes);
}

void SupervisedTraining::describe(config::Fields& fields, const run::TrainingWords&) {
  name_ = job_->name();
  fields.add_choice("job", name_, {name_}, "what is trained: the word behind `cohort train`");
  train::describe(fields, settings_);
  job_->describe(fields, settings_);
  // robomimic's name for it, also where a run is continued without its file.
  if (is_policy())
    for (const char* section : {"train", "algo"})
      fields.alias(format("{}.optim_params.policy.learning_rate.initial", section), "train.lr");
}

/// The settings of the command line are returned as they are left by a robomimic configuration, which speaks for its own.
std::vector<std::string> SupervisedTraining::read_files(config::Fields& fields, const run::TrainingWords& words,
                                                        bool& of_robomimic) {
  std::vector<std::string> settings = words.settings;
  std::string robomimic;  // the file of that form
  config::Json typed_robomimic = config::Json::object();
  for (const std::string& file : words.files) {
    if (!is_policy() || !is_robomimic_file(file)) {
      fields.apply_file(file);
      continue;
    }
    if (!robomimic.empty())
      throw UsageError(
          format("{} and {} are both robomimic's configurations, each of a whole training: name one", robomimic, file));
    robomimic = file;
    RobomimicRun run = read_robomimic_run(file, settings, tasks_.task_of_environment);
    typed_robomimic = settings_of_robomimic_words(file, settings, run.overrides);
    fields.apply_json(run.settings, file);
    settings = std::move(run.overrides);
    notes_.insert(notes_.end(), run.notes.begin(), run.notes.end());
  }
  // What robomimic's keys on the command line say outranks every file, as other words do.
  if (words.files.size() > 1) fields.apply_json(typed_robomimic, "the command line");
  of_robomimic = !robomimic.empty();
  return settings;
}

void SupervisedTraining::read(config::Fields& fields, const run::TrainingWords& words) {
  // A run that is continued keeps its own settings; what the command line says anew goes on top.
  if (!words.resumed.empty()) {
    fields.apply_file(words.resumed);
    // Where it began is behind it: it goes on from its own last checkpoint.
    settings_.train.checkpoint.resume = words.checkpoint.empty() ? CheckpointSettings().resume : words.checkpoint;
  }
  bool of_robomimic = false;
  std::vector<std::string> settings = read_files(fields, words, of_robomimic);
  for (const std::string& text : defaults_)
    if (!fields.was_set(text.substr(0, text.find('=')))) fields.apply_override(text);
  // A file says how to train. Which run is continued, the command line alone says.
  settings_.resume.clear();
  for (const std::string& text : settings) {
    COHORT_THROW_UNLESS(!is_policy() || !text.starts_with("train.num_epochs="),
                        "{}: how many steps such an epoch has only a robomimic configuration says (load_from=FILE); "
                        "say train.steps=N{}",
                        text, settings_.train.steps > 0 ? format(", which is {} now", settings_.train.steps) : "");
    apply_word(fields, settings_, text, algorithm_, of_robomimic);
  }
  settings.erase(settings.begin(), settings.begin() + static_cast<std::ptrdiff_t>(of_files_));
  run::TypedSettings typed(settings);
  settle(typed, settings_);
  refuse_idle(fields, typed);
  for (const std::string& note : notes_) log::warning("{}", note);
  apply_launcher_precision(typed, fields);
}

void SupervisedTraining::refuse_idle(const config::Fields& fields, run::TypedSettings& typed) const {
  if (!fields.has("model.algorithm")) return;
  const std::string learner = fields.to_json().at("model").at("algorithm").get<std::string>();
  for (const policies::Algorithm* one : policies::algorithms())
    typed.needs(learner == one->name(), {one->section() + "."},
                format("model.algorithm is {}: add model.algorithm={}", learner, one->name()));
  typed.refuse_what_does_nothing();
}

std::string SupervisedTraining::shapes(const run::Measurement& measurement, const config::Fields& fields) const {
  constexpr double kUsualGpu = 24.0 * (1 << 30);
  COHORT_THROW_UNLESS(algorithm_ != nullptr && algorithm_->memory_shapes({}),
                      "--shapes is for {}; other models are measured: leave it out", jobs_with_shapes());
  COHORT_THROW_UNLESS(!measurement.json, "--shapes and --json do not go together: it prints a table");
  settings_.train.validate();
  policies::PolicySettings model;
  config::Fields of_model;
  policies::describe(of_model, model);
  of_model.apply_json(fields.to_json().at("model"), "model");
  return shapes_text(algorithm_->name(), *algorithm_->memory_shapes(model), settings_.train, settings_.parallel.zero,
                     measurement.memory.value_or(kUsualGpu));
}

std::string SupervisedTraining::measure(const run::Measurement& measurement, const config::Fields& fields) {
  switch (measurement.kind) {
    case run::Measurement::Kind::kParts:
      return to_json(measure_parts(*job_, settings_, {.batch_size = measurement.batch_size})) + "\n";
    case run::Measurement::Kind::kShapes:
      return shapes(measurement, fields);
    case run::Measurement::Kind::kEstimate:
      break;
  }
  const Estimate estimated =
      estimate(*job_, settings_, {.memory = measurement.memory, .bandwidth = measurement.bandwidth});
  return measurement.json ? to_json(estimated) : to_text(estimated);
}

}  // namespace

std::string jobs_with_shapes() {
  std::string names;
  for (const policies::Algorithm* one : policies::algorithms())
    if (const auto job = one->job(); job && one->memory_shapes({})) names += (names.empty() ? "" : ", ") + job->name;
  return names;
}

std::vector<std::unique_ptr<run::Training>> supervised_trainings(const TaskFunctions& tasks) {
  std::vector<std::unique_ptr<run::Training>> all;
  for (auto& job : all_jobs()) all.push_back(std::make_unique<SupervisedTraining>(std::move(job), tasks));
  return all;
}

}  // namespace cohort::train
