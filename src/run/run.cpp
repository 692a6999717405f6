#include "run/run.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include <torch/types.h>
#include <torch/version.h>

#include "core/command_line.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/without_stack.h"
#include "report/metric_names.h"
#include "report/result_links.h"
#include "run/banner.h"
#include "run/continue_command.h"
#include "run/launched_job.h"
#include "run/rank_beats.h"
#include "run/rank_shares.h"
#include "run/resume_target.h"
#include "run/same_settings.h"
#include "run/stop_request.h"
#include "tensors/processor.h"
#include "weights/checkpoint_folder.h"

namespace cohort::run {
namespace fs = std::filesystem;
namespace {

constexpr double kLongestTimeout = 7 * 24 * 3600;  // s

std::chrono::milliseconds timeout_of(const char* setting, double seconds) {
  COHORT_THROW_UNLESS(seconds >= 1 && seconds <= kLongestTimeout, "{}={:g} must be between 1 and {:g} seconds (a week)",
                      setting, seconds, kLongestTimeout);
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void append_load(std::vector<report::TagValue>& values, const HostLoad& host, const std::optional<GpuLoad>& gpus) {
  namespace metric = report::metric;
  const GpuLoad of_gpus = gpus.value_or(GpuLoad());
  for (const auto& [name, value] :
       {std::pair(metric::kHostBusyCores, host.busy_cores), std::pair(metric::kHostLoad, host.load),
        std::pair(metric::kHostMemory, host.memory), std::pair(metric::kGpuUtilization, of_gpus.utilization),
        std::pair(metric::kLeastGpuUtilization, of_gpus.least_utilization),
        std::pair(metric::kGpuMemory, of_gpus.memory), std::pair(metric::kGpuPower, of_gpus.power)})
    if (value) values.push_back({name, *value});
}

}  // namespace

Run::Run(RunSettings& settings, const config::Fields& fields, const std::vector<std::string>& overrides)
    : settings_(settings),
      fields_(fields),
      overrides_(overrides),
      environment_(rank::read_environment()),
      recovery_(dist::Recovery::of_this_process()) {
  log::set_console(is_first());
}

Run::~Run() = default;

/// A job that was started again goes on with its own run. Every rank looks for it: rank 0 makes a new one only after
/// all of them have.
void Run::choose() {
  if (replaces()) {
    settings_.resume = recovery_->note();
    return;
  }
  if (resumes() && settings_.resume != "auto") return;
  const LaunchedJob launched = read_launched_job();
  const std::string asked = settings_.resume;
  settings_.resume = find_run(asked, fs::path(settings_.output_dir) / name_, launched, overrides_);
  found_itself_ = (settings_.resume != asked || launched.restarted()) && resumes() &&
                  !weights::CheckpointFolder(fs::path(settings_.resume) / "checkpoints").steps().empty();
}

/// The settings as they were resolved, and what the learners must have in common beside them.
void Run::check_ranks_agree(const Learner& learner) {
  // Of how many ranks the whole job is, and with it the batch, each node reckons from its own.
  const std::vector<std::string> all = group_->all_gather_bytes(format("{}", environment_.full_world_size));
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    COHORT_THROW_UNLESS(
        all[rank] == all[0],
        "with all of its nodes this job would have {} processes by rank 0, but {} by rank {}: nodes "
        "that come and go need the same --nproc_per_node, or the batch of a step would not stay the same",
        all[0], all[rank], rank);
  config::Json common = config::Json::object();
  common["job"] = learner.job();
  common.update(fields_.to_json());
  common.update(learner.common());
  check_same_settings(common, *group_);
}

void Run::join(Learner& learner, const dist::GroupOptions& options) {
  group_ = dist::Group::create(replaces() ? recovery_->wait_to_join(environment_) : environment_, options);
  if (!replaces()) check_ranks_agree(learner);
}

/// Rank 0 makes (or opens) the folder, claims it, and tells the others.
void Run::open_folder() {
  std::string path = settings_.resume;
  if (is_first()) {
    if (resumes())
      claimed_.emplace(settings_.resume);
    else
      claimed_.emplace(settings_.output_dir, name_);
    path = claimed_->folder().path().string();
  }
  if (group_ && !replaces()) path = group_->broadcast_bytes(path, 0);
  folder_ = report::RunFolder::open(path);
  if (recovery_) recovery_->set_note(path);
  if (!is_first()) return;
  std::error_code none_yet;
  if (const auto bytes = fs::file_size(folder_->log_file(), none_yet); !none_yet) log_bytes_ = bytes;
  log::add_file(folder_->log_file().string());
}

/// Says what is about to be trained, on what and how. The banner is to fit a screen of 24 lines.
void Run::announce(const Resources& resources) {
  if (is_first()) gpus_.emplace(watched_gpus(cuda_indices(resources.devices), environment_.local_world_size));
  for (const BannerRow& row : banner_) {
    const std::string line = format("{:<9} {}", row.label, row.text);
    if (row.on_screen || !is_first())
      log::info("{}", line);
    else
      log::write_to_files(log::Level::kInfo, line);
  }
  if (!settings_.init_from.empty() && !resumes()) log::info("{:<9} of {}", "weights", settings_.init_from);
  log::info("{:<9} {}", "results", folder_->path().string());
  log::info("{:<9} {}", "log", folder_->log_file().string());
  if (!is_first()) return;
  // What follows from others is long, and one line in a hundred is wanted: the files have it.
  log::write_to_files(log::Level::kInfo, format("{:<9} all of them in {}; other than the defaults:", "settings",
                                                folder_->config_file().string()));
  for (const std::string& line : settings_lines(fields_.changed()))
    log::write_to_files(log::Level::kInfo, format("{:<9} {}", "", line));
}

bool Run::is_complete(const std::vector<std::string>& files) {
  bool complete = is_first() && resumes() && (!settings_.charts || fs::exists(folder_->report_file()));
  for (const std::string& file : files) complete = complete && fs::exists(folder_->path() / file);
  return group_ ? group_->broadcast_bytes(complete ? "1" : "0", 0) == "1" : complete;
}

/// A run that cannot begin, or go on, has left the folder as it was.
void Run::begin(std::int64_t step, std::int64_t total, const std::string& anew) {
  if (!is_first()) return;
  if (resumes() && !anew.empty())
    log::warning("{}: training begins at its first {}, because {}; the metrics of the earlier one are cut",
                 folder_->path().string(), counting_.unit, anew);
  folder_->save_configuration(json_text(configuration_, 2) + "\n", overrides_);
  metrics_.emplace(folder_->path(),
                   report::MetricsSettings{.tensorboard = settings_.tensorboard,
                                           .resumed_step = resumes() ? step : std::optional<std::int64_t>()});
  progress_.emplace(
      total, ProgressSettings{.label = counting_.label, .unit = counting_.short_unit, .initial = step, .ticks = true});
  pace_.emplace(total, counting_.unit, step, steady_seconds());
  counted_ = step;
  claimed_->keep();
  record_job(folder_->path(), read_launched_job(), overrides_);
  if (settings_.links_results) report::link_results(settings_.output_dir, folder_->path());
}

void Run::first_step() {
  if (const auto file = rank::process_variable("COHORT_FIRST_STEP_FILE")) std::ofstream(*file) << "\n";
}

rank::BeatObserver Run::beats() {
  return [this, status = settings_.rank_status ? beats_->observer() : rank::BeatObserver()](
             const rank::Beat& beat, const std::function<rank::Totals()>& totals) {
    if (recovery_) recovery_->say(beat.phase, beat.step);
    count(beat.step);
    if (status) status(beat, totals);
  };
}

/// Steps that are made, whether they are observed or not.
void Run::count(std::int64_t step) {
  if (!progress_ || step <= counted_) return;
  counted_ = step;
  progress_->update(step);
  if (const auto line = pace_->made(step, steady_seconds())) log::info("{}", *line);
}

std::optional<GpuLoad> Run::observe(std::int64_t step, std::vector<report::TagValue> values) {
  counted_ = std::max(counted_, step);
  if (const auto line = pace_->made(step, steady_seconds())) log::info("{}", *line);
  const std::optional<GpuLoad> gpus = gpus_->read();
  append_load(values, host_.read(), gpus);
  metrics_->write(step, values);
  return gpus;
}

void Run::sync_metrics() {
  if (metrics_) metrics_->sync();
}

void Run::say_end(const Outcome& outcome, double seconds) {
  const bool stopped = outcome.ending == Ending::kStopped;
  if (progress_ && !stopped) progress_->finish();
  progress_.reset();
  status_ = outcome.status;
  if (!stopped) {
    log::info("training {} after {}", outcome.status, format_duration(seconds));
    return;
  }
  const ContinueCommand command = continue_command(settings_.program, folder_->path(), environment_);
  const std::string remark = command.remark.empty() ? "" : ", " + command.remark + ",";
  log::info("training {} after {}; go on{} with", outcome.status, format_duration(seconds), remark);
  log::info("  {}", command.text);
  status_ = format("{}; continue{} with: {}", outcome.status, remark, command.text);
}

/// The training was finished before: says so, and leaves the folder, its log too, as it was.
void Run::left_as_it_was(const Outcome& outcome) {
  if (!is_first()) return;
  log::info("{}: this training was finished at {} {}; its folder was left as it was. To train on, {}",
            folder_->path().string(), counting_.unit, outcome.step, outcome.remedy);
  log::remove_file(folder_->log_file().string());
  std::error_code ignored;
  if (log_bytes_)
    fs::resize_file(folder_->log_file(), *log_bytes_, ignored);
  else
    fs::remove(folder_->log_file(), ignored);
}

void Run::failed(const Learner& learner, const std::string& what, double seconds) {
  if (progress_) progress_->finish();
  // No report among several ranks: the launcher should hear of the failure first, and may end this process any time.
  if (!metrics_ || group_) return;
  write_report(learner.results(seconds), format("failed: {}", what), true, {});
  if (!weights::CheckpointFolder(folder_->checkpoints()).steps().empty())
    log::info("what was saved goes on, once the cause is mended, with: {}",
              continue_command(settings_.program, folder_->path(), environment_).text);
}

/// Never throws: what goes wrong is a warning.
void Run::write_report(Results results, const std::string& status, bool is_failure,
                       const std::vector<rank::Totals>& ranks) {
  if (!settings_.charts || !metrics_) return;
  report::ReportContent& content = results.report.content;
  content.status = status;
  content.failed = is_failure;
  report::NamedTexts summary;
  for (const BannerRow& row : banner_)
    if (row.in_report) summary.emplace_back(row.label, row.text);
  summary.insert(summary.end(), content.summary.begin(), content.summary.end());
  const bool vowel = std::string("aeiou").find(counting_.unit.front()) != std::string::npos;
  for (auto& row : rank_shares(ranks, (vowel ? "an " : "a ") + counting_.unit)) summary.push_back(std::move(row));
  if (const auto busy = gpus_->mean_utilization())
    summary.emplace_back(
        "GPUs", format("busy {:.0f} % of the time{}", *busy,
                       *busy < 80 ? "; below 80 %: the loader, small batches or the ranks' communication hold them up "
                                    "(docs/guide/troubleshooting.md)"
                                  : ""));
  content.summary = std::move(summary);
  content.machine = report::describe_machine({.libtorch = TORCH_VERSION, .usable_cores = available_cores()});
  try {
    report::write_run_report(*folder_, std::move(results.report), results.step,
                             settings_.tensorboard_charts ? &*metrics_ : nullptr);
  } catch (const std::exception& e) {
    log::warning("the report could not be written whole: {}", e.what());
  }
}

void Run::say_where_things_are(const Results& results, bool stopped) const {
  if (settings_.tensorboard)
    log::info("curves   tensorboard --logdir {}",
              shell_quoted(report::events_folder(folder_->path()).parent_path().string()));
  log::info("log      {}", folder_->log_file().string());
  log::info("weights  {}", (folder_->path() / results.weights).string());
  if (!results.weights_text.empty()) log::info("{:<8} {}", "", results.weights_text);
  if (settings_.charts && fs::exists(folder_->charts())) log::info("charts   {}", folder_->charts().string());
  if (settings_.charts) log::info("report   {}", folder_->report_file().string());
  if (stopped) return;
  for (const auto& [label, command] : results.commands) log::info("{:<8} {}", label, command);
}

int Run::carry_out(Learner& learner) {
  name_ = settings_.name.empty() ? learner.default_name() : settings_.name;
  counting_ = learner.counting();
  if (recovery_) recovery_->say(rank::Phase::kStart, 0);
  choose();
  if (found_itself_) learner.goes_on_with_own_run();
  COHORT_THROW_UNLESS(settings_.threads >= 0, "threads = {} must not be negative; 0 leaves their number open",
                      settings_.threads);
  dist::GroupOptions options{
      .store_timeout = timeout_of("dist.store_timeout_s", settings_.store_timeout_s),
      .collective_timeout = timeout_of("dist.collective_timeout_s", settings_.collective_timeout_s)};

  // Bad input ends the run here, before a device, a port or a folder is touched.
  if (resumes()) check_data_of_run(fields_);
  const Resources resources = learner.prepare(*this);
  at::set_num_threads(resources.threads);
  tensors::prepare_arithmetic();  // the model's first weights are drawn by the same library as later ones
  tensors::keep_freed_memory();
  if (replaces()) learner.prepare_to_join();
  options.device = resources.exchange;
  if (resources.several_ranks) join(learner, options);
  configuration_ = fields_.to_json();
  configuration_["resume"] = "";  // who starts from this configuration starts another run
  learner.build(*this);

  // All that can be refused was: from here on the run has a folder.
  open_folder();
  banner_ = learner.banner(*this);
  announce(resources);
  beats_ = std::make_unique<RankBeats>(folder_->path(), rank::Status{.rank = environment_.rank,
                                                                     .world_size = environment_.world_size,
                                                                     .job = learner.job(),
                                                                     .device = device_names(resources.devices),
                                                                     .batch_size = learner.batch_size()});
  static const std::string answer = "stops after this " + counting_.unit +
                                    ", with a checkpoint; Ctrl-C again: at once, "
                                    "without one";  // lives as long as the handler
  install_stop_signals(is_first() ? answer.c_str() : nullptr);

  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Outcome outcome;
  try {
    outcome = learner.train(*this);
  } catch (const std::exception& e) {
    failed(learner, without_stack(e.what()), seconds());
    throw;
  }
  const bool stopped = outcome.ending == Ending::kStopped;
  if (outcome.ending == Ending::kParked) {
    beats_->end(rank::Phase::kStopped);
    return 0;
  }
  if (outcome.ending == Ending::kNothingLeft) {
    left_as_it_was(outcome);
    if (group_) group_->close();
    return 0;
  }
  const double trained_s = seconds();
  say_end(outcome, trained_s);
  learner.conclude(*this, outcome);
  if (is_first()) {
    Results results = learner.results(trained_s);
    write_report(results, status_, false, outcome.ranks);
    say_where_things_are(results, stopped);
  }
  beats_->end(stopped ? rank::Phase::kStopped : rank::Phase::kFinished);
  if (group_) group_->close();
  return stopped && stop_signal() != 0 ? 128 + stop_signal() : 0;
}

}  // namespace cohort::run
