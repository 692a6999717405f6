#include "launch/recovery.h"

#include <algorithm>
#include <csignal>
#include <limits>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "launch/error_file.h"

namespace cohort::launch {
namespace {
using SteadyClock = std::chrono::steady_clock;

/// "ranks 0 and 2", "rank 1".
std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return text;
}

std::string first_line_of(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

Recovery::Recovery(WorkerGroup& group, Console& console, const LaunchSettings& settings, Rendezvous& rendezvous,
                   const Meeting& meeting, int& used)
    : group_(group),
      console_(console),
      settings_(settings),
      rendezvous_(rendezvous),
      used_(used),
      oom_before_(read_oom_counts()),
      world_size_(meeting.world_size),
      number_(meeting.recovery) {}

bool Recovery::asked_for_restart() const {
  return std::any_of(group_.workers().begin(), group_.workers().end(),
                     [](const Worker& w) { return w.page->asks_for_restart(); });
}

std::string Recovery::obstacle() const {
  if (asked_for_restart()) return "a rank cannot go on from memory";
  bool has_state = false;
  for (const Worker& worker : group_.workers()) {
    if (worker.failed()) continue;
    if (worker.ended) return format("rank {} has finished", worker.rank);
    if (!worker.page->ready() && worker.recovery == 0)
      return format("rank {} is not in its training steps", worker.rank);
    has_state = has_state || worker.page->ready();
  }
  // Those of other nodes may have it.
  return has_state || rendezvous_.shares_recovery() ? "" : "no rank is left that has the state of the training";
}

std::string Recovery::describe(const Worker& worker, const OomCounts& now) const {
  const std::int64_t step = worker.page->step();
  std::string text = format("cohort launch: rank {} (pid {}) ended with {} after step {}", worker.rank, worker.pid,
                            worker.signal ? format("{} (signal {})", signal_name(worker.signal), worker.signal)
                                          : format("exit code {}", worker.exit_code),
                            step);
  if (worker.signal == SIGKILL)
    text += "\n  why       " + explain_kill(oom_before_, now, worker.peak_memory, memory_limit());
  if (const auto error = read_error_file(worker.folder / "error.json"))
    text += format("\n  message   {}", first_line_of(error->message));
  else if (worker.signal != SIGKILL && worker.err && !worker.err->tail().empty())
    text += format("\n  last line {}", worker.err->tail().back());
  return text;
}

bool Recovery::replace_failed() {
  if (refused_ || !settings_.recovers()) return false;
  std::vector<Worker*> failed;
  std::vector<int> left;
  for (Worker& worker : group_.workers()) {
    if (worker.failed())
      failed.push_back(&worker);
    else
      left.push_back(worker.rank);
  }
  // Those that end by themselves at one step, all of them without having gone on in between: one failure of the job,
  // whose exits are seen one after another.
  const bool all_of_themselves = std::all_of(failed.begin(), failed.end(), [&](const Worker* worker) {
    return worker->signal == 0 && (worker->recovery == 0 || worker->recovery != used_) &&
           worker->page->step() == failed.front()->page->step();
  });
  const std::int64_t own_step = all_of_themselves ? failed.front()->page->step() : -1;
  const bool counted = began_ && own_step >= 0 && own_step == step_of_own_failure_;
  std::string why = used_ >= settings_.max_restarts && !counted ? "no restart is left" : obstacle();
  const std::int64_t step_before = step_of_own_failure_;
  for (const Worker* worker : failed) {
    if (worker->signal != 0) continue;
    step_of_own_failure_ = worker->page->step();
    if (why.empty() && !counted && step_of_own_failure_ == step_before)
      why = "it failed at the same step before and would do so again";
  }
  if (!why.empty()) {
    refused_ = true;
    for (const Worker& worker : group_.workers()) worker.page->take_offer_back();
    const auto begun = [](const Worker& w) { return w.page->phase() != rank::Phase::kSilent; };
    if (used_ < settings_.max_restarts && std::any_of(group_.workers().begin(), group_.workers().end(), begun))
      console_.line(2, "", format("cohort launch: the ranks cannot go on from memory: {}", why));
    return false;
  }
  const OomCounts now = read_oom_counts();
  if (!counted) ++used_;
  if (!began_) began_ = SteadyClock::now();
  for (Worker* worker : failed) {
    group_.retire(*worker);
    console_.line(2, "", describe(*worker, now));
  }
  console_.line(
      2, "",
      format("cohort launch: recovery {} of {}{}: what {} {} in memory stays, and new processes take the dead "
             "ones' places",
             used_, settings_.max_restarts, counted ? ", by the same failure" : "",
             left.empty() ? "the ranks of other nodes" : list_of(left), left.size() == 1 ? "has" : "have"));
  if (rendezvous_.shares_recovery()) {
    const Worker& first = *failed.front();
    told_ = false;
    rendezvous_.lost(first.signal ? 128 + first.signal : first.exit_code, describe(first, now).substr(15), own_step);
  } else {
    for (const Worker& worker : group_.workers()) worker.page->break_groups(generation_ + 1);
  }
  for (Worker* worker : failed) group_.replace(*worker, used_);
  oom_before_ = now;
  return true;
}

bool Recovery::all_wait() const {
  const auto& workers = group_.workers();
  return std::all_of(workers.begin(), workers.end(),
                     [](const Worker& w) { return !w.ended && w.page->waits_for_generation(); });
}

void Recovery::call(std::uint32_t generation) {
  generation_ = generation;
  for (const Worker& worker : group_.workers()) worker.page->call_generation(generation);
  if (!began_) return;
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - *began_).count();
  console_.line(2, "", format("cohort launch: all {} ranks are there again after {:.2f} s", world_size_, seconds));
  began_.reset();
}

void Recovery::call_when_all_wait() {
  if (rendezvous_.shares_recovery()) follow_calls();
  if (refused_ || !all_wait()) return;
  if (!rendezvous_.shares_recovery()) return call(generation_ + 1);
  if (!told_) rendezvous_.waits(number_);
  told_ = true;
}

/// What the nodes have decided.
void Recovery::follow_calls() {
  while (const std::optional<RecoveryCall> call_of_all = rendezvous_.recovery_call()) {
    number_ = call_of_all->number;
    told_ = false;
    if (refused_) continue;
    if (call_of_all->go) {
      call(static_cast<std::uint32_t>(number_));
      continue;
    }
    if (const std::string why = obstacle(); !why.empty()) {
      rendezvous_.cannot(why);
      continue;
    }
    if (!began_) {
      began_ = SteadyClock::now();
      console_.line(2, "",
                    format("cohort launch: {}; what the ranks of this node have in memory stays", call_of_all->why));
    }
    for (const Worker& worker : group_.workers())
      worker.page->break_groups(static_cast<std::uint32_t>(call_of_all->number));
  }
}

bool Recovery::park_or_stop() {
  bool parks = false;
  for (const Worker& worker : group_.workers()) {
    if (worker.ended) continue;
    const bool has_state = settings_.recovers() && worker.page->ready() && !worker.page->asks_for_restart();
    worker.page->ask_to_park();
    parks = parks || has_state;
    // A program that saves its work when it is asked to stop needs its group for it.
    if (has_state)
      worker.page->break_groups(std::numeric_limits<std::uint32_t>::max());
    else
      group_.send_to(worker, SIGTERM);
  }
  return parks;
}

}  // namespace cohort::launch
