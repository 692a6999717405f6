#include "launch/agent.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/devices_cpu.h"
#include "core/devices_probe.h"
#include "core/error.h"
#include "core/files.h"
#include "launch/attempt_watch.h"
#include "launch/failure.h"
#include "launch/job_plan.h"
#include "launch/rendezvous.h"
#include "launch/signals.h"

namespace cohort::launch {
namespace fs = std::filesystem;
namespace {
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Output that a blocked terminal has not taken by the end of a stopped job is dropped after this.
constexpr milliseconds kLastWords{2000};

/// A folder of logs, kept from other agents while this one lives: they would move it aside, and take error files that
/// the ranks of this one write for their own.
class LogFolder {
 public:
  explicit LogFolder(const fs::path& path) {
    std::error_code error;
    fs::create_directories(path, error);  // where it cannot be made, the first rank's folder says why
    lock_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // Not every file system has locks.
    if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    ::close(lock_);
    throw Error(
        format("another cohort launch that is running keeps its logs in {}: give each job a --log-dir of its own",
               path.string()));
  }
  ~LogFolder() {
    if (lock_ >= 0) ::close(lock_);
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;

 private:
  int lock_ = -1;
};

/// "2 rank(s) on host, store at 127.0.0.1:4242", with several nodes which of them this is.
std::string describe_job(const LaunchSettings& settings, const Meeting& meeting) {
  std::string text = format("cohort launch: {} rank(s) on {}", settings.ranks, own_host_name());
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
  if (settings.node_id.empty())
    settings.node_id =
        settings.numbered_nodes ? std::to_string(settings.node_rank) : format("{}-{}", own_host_name(), ::getpid());
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
  std::optional<LogFolder> own_logs;
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
    own_logs.emplace(plan.log_dir);
  }

  Console console(1, 2);
  if (!settings.quiet) {
    console.line(
        2, "",
        describe_job(settings, plan.identity.meeting) + (plan.keeps_logs ? ", logs in " + plan.log_dir.string() : ""));
    if (settings.nodes > 1) console.line(2, "", "cohort launch: " + what_follows_a_death(settings));
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
  AttemptOutcome outcome;
  std::vector<std::unique_ptr<rank::Page>> pages;  // of the last round
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
      group.start(settings.elastic ? std::exchange(pages, {}) : std::vector<std::unique_ptr<rank::Page>>());
      outcome = AttemptWatch(group, *signals, console, plan.settings, *rendezvous, plan.identity.meeting, restarts_used)
                    .run();
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
        console.write();  // the others may take long to end their ranks
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
  } catch (const std::exception&) {
    console.drain(kLastWords);  // what was said before it often tells why
    throw;
  }
  rendezvous->interrupt_on(nullptr);
  signals.reset();  // from here on a signal ends the agent, which has no ranks any more
  // A job that ended well waits for a slow reader as any program does; one that was stopped does not.
  console.drain(outcome.stop_signal ? kLastWords : milliseconds(std::chrono::hours(24)));
  return code;
}

}  // namespace cohort::launch
