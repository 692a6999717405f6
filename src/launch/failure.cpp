#include "launch/failure.h"

#include <algorithm>
#include <csignal>
#include <sstream>

#include "core/error.h"
#include "launch/error_file.h"

namespace cohort::launch {
namespace {
using WallClock = std::chrono::system_clock;

struct Cause {
  const Worker* worker;
  std::optional<ErrorFile> error;
  WallClock::time_point when;
};

std::string how(const Worker& worker) {
  return worker.signal ? format("{} (signal {})", signal_name(worker.signal), worker.signal)
                       : format("exit code {}", worker.exit_code);
}

/// When a rank with an error file or last words failed; never later than its end.
WallClock::time_point time_of(const Worker& worker, const std::optional<ErrorFile>& error) {
  WallClock::time_point when = worker.ended_at;
  if (error) {
    const auto age = std::filesystem::file_time_type::clock::now() - error->written;
    when = std::min(when, WallClock::now() - std::chrono::duration_cast<WallClock::duration>(age));
  } else if (worker.signal == 0 && worker.err && worker.err->last_activity() != WallClock::time_point{}) {
    when = std::min(when, worker.err->last_activity());
  }
  return when;
}

std::string indented(const std::string& text, const std::string& indent) {
  std::stringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) result += (result.empty() ? "" : "\n" + indent) + line;
  return result;
}

std::string last_lines(const std::string& text, std::size_t count) {
  std::size_t at = text.size();
  while (at > 0 && (text[at - 1] == '\n')) --at;
  const std::size_t end = at;
  for (std::size_t n = 0; at > 0; --at)
    if (text[at - 1] == '\n' && ++n == count) break;
  return text.substr(at, end - at);
}

/// What torch.distributed.elastic writes for a program that a signal ended.
bool says_it_was_stopped(const ErrorFile& error) {
  return error.message.find("SignalException") != std::string::npos;
}

/// What to do, where the words of the failure tell.
std::string remedy_for(const Worker& worker, const std::optional<ErrorFile>& error,
                       const std::deque<std::string>& lines, int nodes) {
  std::string said = error ? error->message + "\n" + error->traceback : "";
  for (const std::string& line : lines) said += "\n" + line;
  const auto says = [&](const char* words) { return said.find(words) != std::string::npos; };
  if (says("CUDA out of memory") || says("CUDA error: out of memory"))
    return "the GPU's memory is full: halve train.batch_size and double train.gradient_accumulation_steps, or "
           "train.precision=bf16, or train.gradient_checkpointing=true";
  if (says("No space left on device"))
    return "a disk, or /dev/shm, is full: make room, or choose another output_dir or TMPDIR";
  if (says("Too many open files")) return "raise the limit of open files: ulimit -n 65536";
  if (says("NCCL error") || says("ncclSystemError") || says("ncclUnhandledCudaError"))
    return "NCCL_DEBUG=INFO makes NCCL say more; docs/guide/troubleshooting.md lists its usual causes";
  if (says("Address already in use"))
    return nodes == 1 ? "leave --master-port out, and a free port is chosen"
                      : "choose another --master-port, the same on all nodes";
  if (worker.signal == SIGILL)
    return "the program was built for a newer processor than this one: build it here, or for an older one";
  if (worker.signal == SIGBUS) return "/dev/shm, or a file that is mapped, may have become too small: df -h /dev/shm";
  return "";
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += format("{}{}", text.empty() ? "" : ", ", rank);
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

}  // namespace

JobFailure describe_failure(const WorkerGroup& group, const OomCounts& before, const OomCounts& after,
                            std::uint64_t memory_limit, bool logs_are_kept) {
  constexpr std::size_t kTracebackLines = 12;
  std::vector<Cause> causes;
  std::vector<int> stopped;
  std::vector<int> killed;
  for (const Worker& worker : group.workers()) {
    if (worker.asked_to_stop) {
      const auto error = read_error_file(worker.folder / "error.json");
      // Told to stop, but it had already written down a failure of its own.
      if (error && worker.failed() && !says_it_was_stopped(*error))
        causes.push_back({&worker, error, time_of(worker, error)});
      else
        (worker.signal == SIGKILL ? killed : stopped).push_back(worker.rank);
    } else if (worker.failed()) {
      auto error = read_error_file(worker.folder / "error.json");
      const auto when = time_of(worker, error);
      causes.push_back({&worker, std::move(error), when});
    }
  }
  COHORT_CHECK(!causes.empty(), "no rank failed");
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.when < b.when; });
  const Cause& first = causes.front();
  const Worker& worker = *first.worker;

  JobFailure failure;
  failure.rank = worker.rank;
  failure.code = worker.signal ? 128 + worker.signal : worker.exit_code;
  if (failure.code == 0) failure.code = 1;
  failure.by_itself = worker.signal == 0;
  std::string& text = failure.text;
  text = format("cohort launch: rank {} failed first{}\n", worker.rank,
                group.workers().size() > 1 ? format(" of {} ranks; the job was stopped", group.workers().size()) : "");
  text += format("  rank      {} on {}, pid {}: {}\n", worker.rank, own_host_name(), worker.pid, how(worker));
  if (first.error) text += format("  message   {}\n", indented(first.error->message, "            "));
  if (!worker.killed_for.empty())
    text += format("  why       {}\n", worker.killed_for);
  else if (worker.signal == SIGKILL)
    text += format("  why       {}\n", explain_kill(before, after, worker.peak_memory, memory_limit));
  if (worker.signal == SIGSEGV || worker.signal == SIGBUS || worker.signal == SIGABRT || worker.signal == SIGILL)
    text += format("  memory    peak {}\n", format_bytes(static_cast<double>(worker.peak_memory)));
  if (first.error && !first.error->traceback.empty())
    text += format("  traceback {}\n", indented(last_lines(first.error->traceback, kTracebackLines), "            "));
  const auto& lines = worker.err && !worker.err->tail().empty() ? worker.err->tail()
                      : worker.out                              ? worker.out->tail()
                                                                : std::deque<std::string>{};
  if (!lines.empty()) {
    text +=
        format("  its last lines on standard {}:\n", worker.err && !worker.err->tail().empty() ? "error" : "output");
    for (const std::string& line : lines) text += format("    | {}\n", line);
  }
  if (const std::string remedy = remedy_for(worker, first.error, lines, group.nodes()); !remedy.empty())
    text += format("  remedy    {}\n", remedy);
  if (logs_are_kept) text += format("  logs      {}\n", worker.folder.string());
  for (std::size_t i = 1; i < causes.size(); ++i) {
    const Cause& other = causes[i];
    const double later = std::chrono::duration<double>(other.when - first.when).count();
    text += format("  then      rank {} ({:.2f} s later): {}{}\n", other.worker->rank, later, how(*other.worker),
                   other.error ? ": " + indented(other.error->message, "            ") : "");
  }
  if (!stopped.empty()) text += format("  stopped   {}\n", ranks_text(stopped));
  if (!killed.empty()) text += format("  killed    {} after ignoring the request to stop\n", ranks_text(killed));
  return failure;
}

std::string describe_stop(const WorkerGroup& group, int signal) {
  std::string text = format("cohort launch: stopped by {}", signal_name(signal));
  std::vector<int> killed;
  for (const Worker& worker : group.workers()) {
    if (!worker.failed() || ended_by(worker, signal)) continue;
    if (worker.signal == SIGKILL) {
      killed.push_back(worker.rank);
      continue;
    }
    const auto error = read_error_file(worker.folder / "error.json");
    if (error && says_it_was_stopped(*error)) continue;
    text += format("\n  failed    rank {} after it was asked to stop: {}{}", worker.rank, how(worker),
                   error ? ": " + indented(error->message, "            ") : "");
  }
  if (!killed.empty())
    text += format("\n  killed    {} before {} ended", ranks_text(killed), killed.size() == 1 ? "it" : "they");
  return text;
}

bool ended_by(const Worker& worker, int signal) {
  return worker.ended && (worker.signal == signal || worker.exit_code == 128 + signal);
}

}  // namespace cohort::launch
