#include "launch/hang_watch.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "core/error.h"
#include "rank/stack_signal.h"

namespace cohort::launch {
namespace {
using SteadyClock = std::chrono::steady_clock;

constexpr auto kHangCheckPeriod = std::chrono::milliseconds(250);
constexpr auto kStoodStill = std::chrono::seconds(3);
constexpr std::size_t kFewestSteps = 5, kMostSteps = 31;
/// For the answer with the stack to arrive.
constexpr auto kStackTime = std::chrono::milliseconds(500);

}  // namespace

std::optional<double> RankPulse::median_step() const {
  if (steps_.size() < kFewestSteps) return std::nullopt;
  std::vector<double> sorted(steps_.begin(), steps_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

void RankPulse::learn(const RankGlance& glance, double now) {
  if (glance.beats != beats_) {
    beats_ = glance.beats;
    worked_at_beat_ = glance.worked;
  }
  if (glance.step == step_) return;
  // Looks are rarer than short steps: several steps share the time between two looks.
  if (step_ >= 0 && glance.step > step_) {
    const std::int64_t made = glance.step - step_;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(made, kMostSteps); ++i)
      steps_.push_back((now - step_at_) / static_cast<double>(made));
  }
  while (steps_.size() > kMostSteps) steps_.pop_front();
  step_ = glance.step;
  step_at_ = now;
}

bool RankPulse::hangs(const RankGlance& glance, double now, const HangLimits& limits) {
  learn(glance, now);
  if (limits.least <= 0 || glance.beats == 0 || glance.waits_for_others) return false;
  // At the start data are read, for as long as it takes; ranks that wait for each other there have a limit of their
  // own.
  if (glance.phase == rank::Phase::kSilent || glance.phase == rank::Phase::kStart) return false;
  const std::optional<double> median = median_step();
  const bool in_steps = glance.phase == rank::Phase::kTraining && median;
  double limit = in_steps ? std::max(limits.least, HangLimits::kSteps * *median) : limits.elsewhere;
  if (glance.silent <= limit) return false;
  const double worked = glance.worked - worked_at_beat_;
  if (worked >= HangLimits::kBusyShare * glance.silent) limit *= HangLimits::kBusyFactor;
  return glance.silent > limit;
}

void HangWatch::forget() {
  pulses_.clear();
}

bool HangWatch::look(WorkerGroup& group, Console& console) {
  const auto now = SteadyClock::now();
  if (limits_.least <= 0 || now < next_) return false;
  // The agent itself stood still (a suspended machine, Ctrl-Z): so may the ranks have, and are given time to beat.
  const bool stood_still = now - next_ > kStoodStill && next_ != SteadyClock::time_point{};
  next_ = now + kHangCheckPeriod;
  if (stood_still) {
    next_ = now + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(limits_.least));
    return false;
  }
  std::vector<Worker>& workers = group.workers();
  pulses_.resize(workers.size());
  const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  std::vector<Worker*> hung;
  std::string waiting;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    Worker& worker = workers[i];
    if (!worker.started || worker.ended) continue;
    RankGlance glance{
        .beats = worker.page->beats(),
        .step = worker.page->step(),
        .phase = worker.page->phase(),
        // LibTorch's reducer waits within the backward pass, where nobody sees it.
        .waits_for_others = worker.page->waits_for_others() || worker.page->part() == rank::StepPart::kBackward,
        .silent = std::chrono::duration<double>(worker.page->silent_for()).count()};
    if (glance.beats == 0) continue;
    glance.worked = worked_seconds(worker.pid);
    // A stopped process makes no step, whatever it was doing.
    const bool stopped =
        glance.phase != rank::Phase::kSilent && glance.silent > limits_.least && process_state(worker.pid) == 'T';
    if (pulses_[i].hangs(glance, seconds, limits_) || stopped) hung.push_back(&worker);
    if (glance.waits_for_others && glance.silent > 1)
      waiting += format("{}{}", waiting.empty() ? "" : ", ", worker.rank);
  }
  if (hung.empty()) return false;
  // Where several are silent, one of them may be stopped, and the others wait for it where nobody sees them wait.
  std::vector<Worker*> stopped;
  for (Worker* worker : hung)
    if (process_state(worker->pid) == 'T') stopped.push_back(worker);
  if (!stopped.empty()) hung = stopped;
  for (Worker* worker : hung) {
    const bool is_stopped = process_state(worker->pid) == 'T';
    const double silent = std::chrono::duration<double>(worker->page->silent_for()).count();
    worker->killed_for =
        format("it hung: silent for {:.1f} s ({}, after step {}){}", silent, to_string(worker->page->phase()),
               worker->page->step(), is_stopped ? "; the process is stopped (SIGSTOP)" : "");
    console.line(2, "",
                 format("cohort launch: rank {} (pid {}) hangs: silent for {:.1f} s ({}, after step {}){}{}; it is "
                        "killed",
                        worker->rank, worker->pid, silent, to_string(worker->page->phase()), worker->page->step(),
                        is_stopped ? ", the process is stopped" : "",
                        waiting.empty() ? "" : ", while others wait for it in a collective: " + waiting));
    if (!is_stopped) rank::ask_for_stack(worker->pid);
  }
  const auto end = SteadyClock::now() + kStackTime;
  while (SteadyClock::now() < end) group.poll(-1, std::chrono::milliseconds(20));
  for (Worker* worker : hung)
    if (!worker->ended) ::kill(worker->pid, SIGKILL);
  // Those who waited for them where nobody sees it, have to notice first.
  next_ = SteadyClock::now() +
          std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(limits_.least));
  return true;
}

double worked_seconds(pid_t pid) {
  double nanoseconds = 0;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(format("/proc/{}/task", pid), error)) {
    std::ifstream file(thread.path() / "schedstat");
    double ran = 0, waited = 0;
    if (file >> ran >> waited) nanoseconds += ran + waited;
  }
  return nanoseconds * 1e-9;
}

char process_state(pid_t pid) {
  std::ifstream file(format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const std::size_t bracket = line.rfind(')');
  return bracket == std::string::npos || bracket + 2 >= line.size() ? '?' : line[bracket + 2];
}

}  // namespace cohort::launch
