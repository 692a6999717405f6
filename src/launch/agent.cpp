#include "launch/agent.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>

#include <poll.h>
#include <unistd.h>

#include "core/devices_cpu.h"
#include "core/devices_probe.h"
#include "core/error.h"
#include "core/files.h"
#include "launch/failure.h"
#include "launch/hang_watch.h"
#include "launch/recovery.h"
#include "launch/rendezvous.h"
#include "launch/signals.h"
#include "launch/spawn.h"

namespace cohort::launch {
namespace fs = std::filesystem;
namespace {
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// After the first failure: time for others that fail for the same cause to end by themselves, so that all causes are
/// seen.
constexpr milliseconds kSettle{200};
/// Output that a blocked terminal has not taken by the end of a stopped job is dropped after this.
constexpr milliseconds kLastWords{2000};

bool asks_to_stop(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

/// What a scheduler sends some time before it ends a job. A rank may end by it, or not.
bool is_notice(int signal) {
  return signal == SIGUSR1 || signal == SIGUSR2;
}

std::string host_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return host.data();
}

/// The outcome of one attempt.
struct Outcome {
  bool interrupted = false;  ///< by the other nodes
  int stop_signal = 0;       ///< what stopped the job; 0: nothing, or a rank had failed by itself before
  bool failed = false;
};

/// Watches one attempt to its end.
class Watch {
 public:
  Watch(WorkerGroup& group, SignalPipe& signals, Console& console, const LaunchSettings& settings,
        Rendezvous& rendezvous, const Meeting& meeting, int& restarts_used)
      : group_(group),
        rendezvous_(rendezvous),
        signals_(signals),
        console_(console),
        settings_(settings),
        recovery_(group, console, settings, rendezvous, meeting, restarts_used),
        hangs_({.least = settings.hang_timeout, .elsewhere = settings.hang_timeout_elsewhere}) {}

  Outcome run() {
    while (!group_.all_ended()) {
      group_.poll(signals_.fd(), time_to_wait());
      for (const int signal : signals_.take()) handle(signal);
      if (group_.any_failed() && !stopping_ && ended_by_notice()) {
        // It has saved its work; the others do so as well, and nothing may disturb them.
        outcome_.stop_signal = notice_;
        set_deadline();
      }
      if (group_.any_failed() && !stopping_ && may_be_recovered() && recovery_.replace_failed()) {
        failed_at_ = {};
        hangs_.forget();
      }
      if (!stopping_) recovery_.call_when_all_wait();
      if (!stopping_) hangs_.look(group_, console_);
      if (!stopping_)
        if (const Interruption other = rendezvous_.interruption(); !other.why.empty()) interrupt(other);
      if (group_.any_failed() && !stopping_ && SteadyClock::now() >= settled_at()) stop(SIGTERM, "");
      // `cohort launch ... | head`: nobody reads any more. A job whose logs are stored goes on.
      if (console_.reader_gone() && !stopping_ && settings_.log_dir.empty()) {
        if (!group_.any_failed()) outcome_.stop_signal = SIGPIPE;
        stop(SIGTERM, "");
      }
      if (stopping_ && !killed_ && SteadyClock::now() >= deadline_) kill();
    }
    group_.finish(stopping_ || group_.any_failed());
    outcome_.failed = group_.any_failed();
    return outcome_;
  }

 private:
  SteadyClock::time_point settled_at() {
    if (failed_at_ == SteadyClock::time_point{}) failed_at_ = SteadyClock::now();
    return failed_at_ + kSettle;
  }

  /// A rank that a signal ended is replaced at once; where one fails by itself, others may for the same cause.
  bool may_be_recovered() {
    const auto& workers = group_.workers();
    return std::any_of(workers.begin(), workers.end(), [](const Worker& w) { return w.failed() && w.signal != 0; }) ||
           SteadyClock::now() >= settled_at();
  }

  milliseconds time_to_wait() {
    constexpr milliseconds kIdle{1000}, kWatching{250}, kTogether{20}, kNap{2};
    SteadyClock::time_point next = SteadyClock::now() + (recovery_.under_way()           ? kNap
                                                         : rendezvous_.shares_recovery() ? kTogether
                                                         : settings_.hang_timeout > 0    ? kWatching
                                                                                         : kIdle);
    if (group_.any_failed() && !stopping_) next = std::min(next, settled_at());
    if (stopping_ && !killed_) next = std::min(next, deadline_);
    const auto left = std::chrono::ceil<milliseconds>(next - SteadyClock::now());
    return std::max(left, milliseconds(0));
  }

  void interrupt(const Interruption& other) {
    outcome_.interrupted = true;
    const std::string words = format("cohort launch: {}; the ranks of this node are stopped", other.why);
    if (other.ends || !settings_.recovers()) return stop(SIGTERM, words);
    set_deadline();
    const bool parks = recovery_.park_or_stop();
    console_.line(2, "", words + (parks ? ", and what they have of the training stays in memory" : ""));
  }

  void set_deadline() {
    stopping_ = true;
    deadline_ = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                         std::chrono::duration<double>(settings_.grace_period));
  }

  void stop(int signal, const std::string& words) {
    if (!words.empty()) console_.line(2, "", words);
    set_deadline();
    group_.send(signal, true);
  }

  void kill() {
    killed_ = true;
    group_.send(SIGKILL, true);
  }

  void handle(int signal) {
    if (signal == SIGCHLD) return;
    if (signal == SIGTSTP) {
      group_.send(SIGSTOP, false);
      console_.write();
      ::raise(SIGSTOP);  // until the shell continues us
      group_.send(SIGCONT, false);
      return;
    }
    if (!asks_to_stop(signal)) {
      if (is_notice(signal)) {
        console_.line(2, "", format("cohort launch: {}: passed on to the ranks", signal_name(signal)));
        if (notice_ == 0 && !failed_before(signal)) notice_ = signal;
      }
      group_.send(signal, false);
      return;
    }
    if (asked_) {
      console_.line(2, "", format("cohort launch: {} again: the ranks are killed", signal_name(signal)));
      kill();
      return;
    }
    asked_ = true;
    const char* another = signal == SIGINT ? "Ctrl-C again" : "a second one";
    if (stopping_) {
      // They were told to stop already: a second signal might make them give up what they are saving.
      const double left = std::chrono::duration<double>(deadline_ - SteadyClock::now()).count();
      console_.line(2, "",
                    format("cohort launch: {}: the ranks are being stopped already and have {:.0f} s left ({} kills "
                           "them)",
                           signal_name(signal), std::max(left, 0.0), another));
      return;
    }
    if (!failed_before(signal)) outcome_.stop_signal = signal;
    stop(signal, format("cohort launch: {}: passed on to the ranks, which have {:.0f} s to end ({} kills them)",
                        signal_name(signal), settings_.grace_period, another));
  }

  /// True when a rank had failed by itself before this signal arrived. Whoever sends it to all processes (Ctrl-C,
  /// scancel) may end a rank by it before the agent learns of it: such ranks did not fail.
  bool failed_before(int signal) const {
    return std::any_of(group_.workers().begin(), group_.workers().end(),
                       [&](const Worker& w) { return w.failed() && !ended_by(w, signal); });
  }

  /// True when ranks have ended, but none otherwise than a notice that was passed on makes them end.
  bool ended_by_notice() const { return notice_ != 0 && !failed_before(notice_); }

  WorkerGroup& group_;
  Rendezvous& rendezvous_;
  SignalPipe& signals_;
  Console& console_;
  const LaunchSettings& settings_;
  Recovery recovery_;
  HangWatch hangs_;
  Outcome outcome_;
  bool stopping_ = false;
  int notice_ = 0;      ///< the first one that was passed on
  bool asked_ = false;  ///< by a signal
  bool killed_ = false;
  SteadyClock::time_point failed_at_{};
  SteadyClock::time_point deadline_{};
};

}  // namespace

JobPlan plan_job(const LaunchSettings& settings, DeviceProbe& probe, std::vector<std::string>& notes) {
  COHORT_THROW_UNLESS(settings.ranks >= 1, "a job needs at least one rank, not {}", settings.ranks);
  COHORT_THROW_UNLESS(!settings.command.empty(), "there is no command to run");
  COHORT_THROW_UNLESS(settings.grace_period >= 0 && settings.grace_period <= kLongestGracePeriod,
                      "--grace-period={}: give 0 to {:.0f} s (a year)", settings.grace_period, kLongestGracePeriod);
  for (const int rank : settings.local_ranks_filter)
    COHORT_THROW_UNLESS(rank >= 0 && rank < settings.ranks,
                        "--local-ranks-filter names rank {}, but there are {} ranks", rank, settings.ranks);
  COHORT_THROW_UNLESS(settings.max_restarts >= 0, "--max-restarts={} must not be negative", settings.max_restarts);
  COHORT_THROW_UNLESS(
      settings.nodes == 1 || settings.elastic || settings.max_restarts == 0,
      "--max-restarts={}: a job on several nodes is not restarted: nobody tells the other nodes. Let them meet "
      "(--rdzv-backend=c10d --rdzv-endpoint=HOST:PORT), or let the scheduler start it again (Slurm: --requeue)",
      settings.max_restarts);
  JobPlan plan;
  plan.settings = settings;
  plan.program = find_program(settings.command.front());

  const DeviceListing listing = settings.without_gpu ? DeviceListing{.absence = "the CPU was asked for"}
                                                     : list_devices(probe, {.initialise_cuda = false});
  DeviceListing narrowed = listing;
  if (settings.gpu_ids) {
    plan.settings.gpu_ids = narrow_mask(listing, *settings.gpu_ids);
    if (plan.settings.gpu_ids) {
      // The chosen GPUs in the order asked for; their entries become the mask that all ranks are given.
      narrowed.mask = plan.settings.gpu_ids;
      narrowed.visible.clear();
      std::string rest = *narrowed.mask + ",";
      for (std::size_t comma; (comma = rest.find(',')) != std::string::npos; rest.erase(0, comma + 1)) {
        const std::string entry = rest.substr(0, comma);
        for (std::size_t i = 0; i < listing.visible.size(); ++i) {
          const auto own = device_environment(listing, DevicePolicy::kOwn, static_cast<int>(i),
                                              static_cast<int>(listing.visible.size()));
          if (own.variables.front().second == entry) narrowed.visible.push_back(listing.visible[i]);
        }
      }
      for (std::size_t i = 0; i < narrowed.visible.size(); ++i) narrowed.visible[i].cuda_index = static_cast<int>(i);
    }
  }
  if (settings.expects_gpu && listing.visible.empty())
    notes.push_back(format("warning: no GPU, the ranks work on the CPU: {}", listing.absence));
  for (const std::string& note : listing.notes) notes.push_back(note);
  for (int local_rank = 0; local_rank < settings.ranks; ++local_rank) {
    plan.devices.push_back(device_environment(narrowed, settings.device_policy, local_rank, settings.ranks));
    if (plan.devices.back().device >= 0) notes.push_back(plan.devices.back().explanation);
    for (const std::string& warning : plan.devices.back().warnings) notes.push_back("warning: " + warning);
  }

  if (settings.nodes == 1 && settings.master_addr != kLoopback && settings.master_addr != "localhost")
    notes.push_back(
        format("--master_addr={}: the store of a job on one node listens on {} only, which is the ranks' "
               "MASTER_ADDR",
               settings.master_addr, kLoopback));
  plan.identity.max_restarts = settings.max_restarts;
  plan.identity.run_id = settings.run_id;
  if (settings.run_id.empty())
    plan.identity.run_id = settings.nodes > 1
                               ? "none"  // torchrun's word; all nodes must have the same one
                               : format("{}-{}-{}", host_name(), static_cast<long>(std::time(nullptr)), ::getpid());
  const char* threads = std::getenv("OMP_NUM_THREADS");
  if (settings.threads_per_rank > 0) {
    plan.identity.threads = settings.threads_per_rank;
  } else if (settings.ranks > 1 && !(threads && *threads)) {
    const int cores = available_cores();
    plan.identity.threads = std::max(1, cores / settings.ranks);
    notes.push_back(format("OMP_NUM_THREADS={} for each rank ({} cores, {} ranks); set it to choose otherwise",
                           plan.identity.threads, cores, settings.ranks));
  }
  return plan;
}

namespace {

/// "2 rank(s) on host, store at 127.0.0.1:4242", with several nodes which of them this is.
std::string describe_job(const LaunchSettings& settings, const Meeting& meeting) {
  std::string text = format("cohort launch: {} rank(s) on {}", settings.ranks, host_name());
  if (meeting.nodes > 1)
    text += format(", node {} of {}: ranks {} to {} of {}", meeting.node_rank, meeting.nodes, meeting.first_rank,
                   meeting.first_rank + settings.ranks - 1, meeting.world_size);
  return text + format(", store at {}:{}", meeting.store_address, meeting.store_port);
}

/// Waits before a job is started again: not the first time, then 1, 2, 4, ... s, at most half a minute. Returns the
/// signal that asks to stop meanwhile, or 0.
int wait_before_restart(int restart, SignalPipe& signals, Console& console) {
  if (restart < 2) return 0;
  const auto delay = std::chrono::seconds(std::min(30, 1 << std::min(restart - 2, 5)));
  console.line(2, "", format("cohort launch: waiting for {} s before the next start", delay.count()));
  console.write();
  const auto end = SteadyClock::now() + delay;
  for (auto left = delay + milliseconds(0); left.count() > 0;
       left = std::chrono::ceil<milliseconds>(end - SteadyClock::now())) {
    pollfd wake{signals.fd(), POLLIN, 0};
    ::poll(&wake, 1, static_cast<int>(left.count()));
    for (const int signal : signals.take())
      if (asks_to_stop(signal) || is_notice(signal)) return signal;
  }
  return 0;
}

/// Why the job is not started again although restarts are left; "": it is.
std::string against_restart(const LaunchSettings& settings, const WorkerGroup& group, const JobFailure& failure) {
  if (settings.tells_first_step && failure.by_itself && !group.has_made_a_step())
    return "it failed before its first training step and would do so again";
  return "";
}

}  // namespace

int run_job(const LaunchSettings& given) {
  LaunchSettings settings = given;
  if (settings.node_id.empty()) settings.node_id = format("{}-{}", host_name(), ::getpid());
  std::vector<std::string> notes;
  const auto probe = system_probe();
  JobPlan plan = plan_job(settings, *probe, notes);
  const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(settings);
  if (settings.elastic && !settings.quiet)
    std::fprintf(stderr, "cohort launch: node %s waits for the others at %s:%d\n", settings.node_id.c_str(),
                 settings.rendezvous_host.c_str(), settings.rendezvous_port);
  try {
    plan.identity.meeting = rendezvous->meet(0);
  } catch (const JobEnded& end) {
    throw Error(end.why);
  }

  std::optional<TemporaryFolder> scratch;  // for error files when no logs are stored
  plan.keeps_logs = !settings.log_dir.empty() || settings.redirects.given || settings.tee.given;
  if (settings.log_dir.empty()) {
    const char* const or_else = ", or pass --log_dir";
    if (!plan.keeps_logs) scratch.emplace("cohort-launch", or_else);
    plan.log_dir = plan.keeps_logs ? make_folder_in_tmp("cohort-logs", or_else) : scratch->path();
  } else {
    plan.log_dir = fs::absolute(settings.log_dir);
    // Agents on one machine, or with a shared file system, may have been given the same folder.
    if (settings.nodes > 1)
      plan.log_dir /= settings.elastic ? "node_" + settings.node_id : format("node_{}", settings.node_rank);
  }

  Console console(1, 2);
  if (!settings.quiet) {
    console.line(
        2, "",
        describe_job(settings, plan.identity.meeting) + (plan.keeps_logs ? ", logs in " + plan.log_dir.string() : ""));
    for (const std::string& note : notes) console.line(2, "", "cohort launch: " + note);
  }
  std::vector<int> caught = settings.signals;
  if (caught.empty()) caught.assign(kForwarded.begin(), kForwarded.end());
  for (const int always : {SIGCHLD, SIGTSTP})
    if (std::find(caught.begin(), caught.end(), always) == caught.end()) caught.push_back(always);
  std::optional<SignalPipe> signals;
  signals.emplace(caught);
  OrphanGuard guard;

  int code = 0;
  int restarts_used = 0;  // recoveries from memory count, too
  Outcome outcome;
  std::vector<std::unique_ptr<RankPage>> pages;  // of the last round
  rendezvous->interrupt_on(&*signals);
  try {
    for (int attempt = 0;; ++attempt) {
      const OomCounts before = read_oom_counts();
      if (attempt > 0) {
        plan.identity.meeting = rendezvous->meet(attempt);
        if (settings.elastic) console.line(2, "", describe_job(settings, plan.identity.meeting));
      }
      plan.identity.attempt = rendezvous->attempt(attempt);
      WorkerGroup group(plan, console, guard, *rendezvous);
      console.write();
      group.start(settings.elastic ? std::move(pages) : std::vector<std::unique_ptr<RankPage>>());
      outcome = Watch(group, *signals, console, plan.settings, *rendezvous, plan.identity.meeting, restarts_used).run();
      code = 0;
      if (outcome.stop_signal != 0) {
        code = 128 + outcome.stop_signal;
        if (outcome.stop_signal != SIGPIPE) console.line(2, "", describe_stop(group, outcome.stop_signal));
        break;
      }
      if (outcome.interrupted) {
        pages = group.take_pages();
        continue;
      }
      if (!outcome.failed) {
        if (!rendezvous->shares_failures()) break;
        rendezvous->finished();
        pages = group.take_pages();
        continue;
      }
      const JobFailure failure = describe_failure(group, before, read_oom_counts(), memory_limit(), plan.keeps_logs);
      code = failure.code;
      std::string text = failure.text;
      if (!text.empty() && text.back() == '\n') text.pop_back();
      console.line(2, "", text);
      if (rendezvous->shares_failures()) {
        rendezvous->failed(code, text.substr(0, text.find('\n')), against_restart(settings, group, failure).empty());
        pages = group.take_pages();
        continue;
      }
      if (restarts_used >= settings.max_restarts) break;
      if (const std::string why = against_restart(settings, group, failure); !why.empty()) {
        console.line(2, "", format("cohort launch: the job is not restarted: {}", why));
        break;
      }
      ++restarts_used;
      console.line(2, "", format("cohort launch: restart {} of {}", restarts_used, settings.max_restarts));
      if (const int signal = wait_before_restart(restarts_used, *signals, console); signal != 0)
        throw StopAsked{signal};
    }
  } catch (const JobEnded& end) {
    code = end.code;
    if (code != 0) console.line(2, "", format("cohort launch: the job has ended: {}", end.why));
  } catch (const StopAsked& asked) {
    outcome.stop_signal = asked.signal;
    code = 128 + asked.signal;
    console.line(2, "", format("cohort launch: stopped by {}", signal_name(asked.signal)));
  }
  rendezvous->interrupt_on(nullptr);
  signals.reset();  // from here on a signal ends the agent, which has no ranks any more
  // A job that ended well waits for a slow reader as any program does; one that was stopped does not.
  console.drain(outcome.stop_signal ? kLastWords : milliseconds(std::chrono::hours(24)));
  return code;
}

}  // namespace cohort::launch
