#include "cli/train_words.h"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/subcommand.h"
#include "cli/train_rollouts.h"
#include "core/command_line.h"
#include "core/error.h"
#include "core/log.h"
#include "core/settings_file.h"
#include "rank/environment.h"
#include "run/resume_target.h"
#include "train/jobs/job.h"
#include "train/jobs/robomimic_run.h"
#include "train/supervised_training.h"

namespace cohort::cli {
namespace {

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

struct Sorted {
  TrainingCall call;
  std::string job;  ///< empty: the words name none
};

/// Whether what follows word i is no value of it.
bool stands_alone(const std::vector<std::string>& words, std::size_t i) {
  return i + 1 == words.size() || words[i + 1].starts_with("-") || config::is_override(words[i + 1]);
}

/// `job_of_files`: what the files among the words train; it decides which switches there are.
Sorted sort_words(const std::vector<std::string>& words, const std::string& job_of_files) {
  Sorted sorted;
  TrainingCall& call = sorted.call;
  std::unique_ptr<run::Training> training = find_training(job_of_files);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == "--help" || word == "-h") {
      call.help = true;
    } else if (word == "--config" || word == "--load_from") {
      if (++i == words.size()) throw UsageError(format("{} wants a file", word));
      call.words.files.push_back(words[i]);
    } else if (word.starts_with("--config=") || word.starts_with("load_from=") || word.starts_with("--load_from=")) {
      call.words.files.push_back(word.substr(word.find('=') + 1));
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
        call.words.settings.push_back(word);
      } else if (sorted.job.empty() && !dashed && word.ends_with(".json")) {
        call.words.files.push_back(word);
      } else if (sorted.job.empty() && !dashed && !word.starts_with("-")) {
        sorted.job = word;
        training = find_training(word);
      } else if (call.help && !word.starts_with("-")) {
        call.keys.push_back(word);
      } else if (call.data.empty() && !dashed && !word.starts_with("-")) {
        call.data = word;
      } else {
        if (dashed && !word.empty() && stands_alone(words, i))
          throw UsageError(format("{} wants a value: {} VALUE, or {}=VALUE", words[i], words[i], words[i]));
        throw UsageError(format("'{}' is neither a job nor a setting of the form key.path=value", words[i]));
      }
    }
  }
  return sorted;
}

/// The job that a file of settings is for: the one that a run's config.json names, "policy" for a robomimic
/// configuration; empty where a file does not say it. Throws Error when it cannot be read.
std::string job_of(const std::string& file) {
  if (train::is_robomimic_file(file)) return "policy";
  const config::Json json = read_settings_file(file);
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
      if (word.ends_with(".json") && equals == std::string::npos) job = job_of(word);
      if (!job.empty()) return job;
    } catch (const std::exception&) {
    }
  }
  return "";
}

/// Which run is continued; an empty path: none is. Its override then names the run's folder.
run::ResumeTarget resumed_run(run::TrainingWords& words) {
  run::ResumeTarget target;
  for (std::string& text : words.settings) {
    if (!text.starts_with("resume=")) continue;
    target = {};
    if (text == "resume=" || text == "resume=auto") continue;  // which run, is found later
    target = run::resume_target(text.substr(7));
    text = "resume=" + target.run.string();
  }
  return target;
}

/// The job as the files name it, which must all be for the same one. Throws UsageError.
void take_job(Sorted& sorted) {
  std::vector<std::string> files = sorted.call.words.files;
  if (!sorted.call.words.resumed.empty()) files.insert(files.begin(), sorted.call.words.resumed);
  for (const std::string& file : files) {
    const std::string named = job_of(file);
    if (named.empty()) continue;
    if (sorted.job.empty()) sorted.job = named;
    if (sorted.job != named)
      throw UsageError(format("{} is for `cohort train {}`, not for {}: write {} or leave the job out", file, named,
                              sorted.job, named));
  }
  if (sorted.job.empty() && !files.empty())
    throw UsageError(format("{} does not say what is trained: name the job, as in `cohort train {} ...`", files.front(),
                            trainings().front()->name()));
}

/// Whether the word is a setting of the training, or is written as one of its groups: "train.steps", "train.step".
bool is_written_as_setting(const std::string& word, run::Training& training) {
  config::Fields fields;
  training.describe(fields, {});
  if (fields.has(word)) return true;
  const std::size_t dot = word.find('.');
  if (dot == std::string::npos) return false;
  const config::Json all = fields.to_json();
  const auto group = all.find(word.substr(0, dot));
  return group != all.end() && group->is_object();
}

/// The word behind the job as the setting `key`. Throws UsageError where that is typed besides, and says another thing.
void take_data(TrainingCall& call, const std::string& key) {
  const std::string text = key + "=" + call.data;
  // "--train.steps 5" without its dashes: a setting, and no data of that name.
  std::error_code error;
  if (!std::filesystem::exists(call.data, error) &&
      is_written_as_setting(call.data, *take_training(call.training->name())))
    throw UsageError(format("'{0}' is a setting without a value: write {0}=VALUE", call.data));
  for (const std::string& other : call.words.settings)
    if (other.starts_with(key + "=") && other != text)
      throw UsageError(
          format("'{}' stands for {}, and {} says another thing: leave one of them out", call.data, text, other));
  call.words.settings.push_back(text);
}

}  // namespace

std::vector<std::unique_ptr<run::Training>> trainings() {
  auto all = train::supervised_trainings({.rollouts = rollouts_of, .task_of_environment = rollout_tasks()});
  for (auto& training : trainings_in_simulation()) all.push_back(std::move(training));
  return all;
}

TrainingCall read_call(const std::vector<std::string>& words) {
  const std::string of_files = job_of_files(words);
  Sorted sorted = sort_words(words, of_files);
  TrainingCall& call = sorted.call;
  // What every rank would say is said once.
  if (only_checks_words())
    log::set_level(log::Level::kError);
  else if (!call.help)
    log::set_console(rank::read_environment().rank == 0);
  call.training = find_training(sorted.job.empty() ? of_files : sorted.job);
  if (call.training) call.training->translate(call.words, words);
  const run::ResumeTarget continued = resumed_run(call.words);
  if (!continued.run.empty()) call.words.resumed = (continued.run / "config.json").string();
  call.words.checkpoint = continued.checkpoint;
  if (!call.help) take_job(sorted);
  if (sorted.job.empty())
    call.training = nullptr;
  else if (!call.training || call.training->name() != sorted.job)
    call.training = take_training(sorted.job);
  return std::move(call);
}

void read_settings(TrainingCall& call, config::Fields& fields) {
  if (!call.data.empty()) take_data(call, call.training->key_of_bare_word());
  call.training->describe(fields, call.words);
  call.training->read(fields, call.words);
  call.training->settings().program = typed_name(sibling("cohort"));
}

}  // namespace cohort::cli
