#include "launch/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <sstream>

#include "core/error.h"

namespace cohort::launch {
namespace {

struct NamedSignal {
  int number;
  const char* name;
};
constexpr std::array kSignals{
    NamedSignal{SIGHUP, "SIGHUP"},   NamedSignal{SIGINT, "SIGINT"},   NamedSignal{SIGQUIT, "SIGQUIT"},
    NamedSignal{SIGILL, "SIGILL"},   NamedSignal{SIGTRAP, "SIGTRAP"}, NamedSignal{SIGABRT, "SIGABRT"},
    NamedSignal{SIGBUS, "SIGBUS"},   NamedSignal{SIGFPE, "SIGFPE"},   NamedSignal{SIGKILL, "SIGKILL"},
    NamedSignal{SIGUSR1, "SIGUSR1"}, NamedSignal{SIGSEGV, "SIGSEGV"}, NamedSignal{SIGUSR2, "SIGUSR2"},
    NamedSignal{SIGPIPE, "SIGPIPE"}, NamedSignal{SIGALRM, "SIGALRM"}, NamedSignal{SIGTERM, "SIGTERM"},
    NamedSignal{SIGXCPU, "SIGXCPU"}, NamedSignal{SIGXFSZ, "SIGXFSZ"}, NamedSignal{SIGSYS, "SIGSYS"}};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

/// The digits of the text as a number; -1 where it is none.
int plain_number(const std::string& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

StreamChoice parse_streams(const std::string& text, const std::string& flag) {
  StreamChoice choice;
  choice.given = true;
  const auto stream = [&](const std::string& word) {
    const int value = plain_number(word);
    COHORT_THROW_UNLESS(
        value >= 0 && value <= 3,
        "{}='{}': streams are 0 (none), 1 (standard output), 2 (standard error), 3 (both), for all ranks or by "
        "rank as in 0:3,1:1",
        flag, text);
    return value;
  };
  if (text.find(':') == std::string::npos) {
    choice.all = stream(text);
    return choice;
  }
  for (const std::string& part : split(text)) {
    const auto colon = part.find(':');
    const int rank = plain_number(part.substr(0, colon));
    COHORT_THROW_UNLESS(colon != std::string::npos && rank >= 0, "{}='{}': '{}' is no rank:stream pair", flag, text,
                        part);
    choice.by_rank[rank] = stream(part.substr(colon + 1));
  }
  return choice;
}

std::vector<int> parse_signals(const std::string& text) {
  std::vector<int> signals;
  for (const std::string& word : split(text)) {
    const auto found =
        std::find_if(kSignals.begin(), kSignals.end(), [&](const NamedSignal& s) { return word == s.name; });
    COHORT_THROW_UNLESS(found != kSignals.end() && found->number != SIGKILL,
                        "'{}' is no signal that can be handled: give names such as SIGTERM,SIGINT,SIGUSR1", word);
    signals.push_back(found->number);
  }
  return signals;
}

std::string signal_name(int signal) {
  for (const NamedSignal& s : kSignals)
    if (s.number == signal) return s.name;
  return format("signal {}", signal);
}

std::string what_follows_a_death(const LaunchSettings& settings) {
  if (settings.max_restarts == 0)
    return "when a rank dies, the job ends on all nodes; with --max-restarts=N" +
           std::string(settings.elastic ? "" : " and --job-secret-file=F on each") + " it goes on";
  return format("when a rank dies, {}, {} time(s) at most; {}",
                settings.recovers_from_memory
                    ? "a new process takes its place and the others keep what they have in memory (where that cannot "
                      "be, all start again from their last checkpoint)"
                    : "all ranks start again from their last checkpoint",
                settings.max_restarts,
                settings.numbered_nodes ? "a node that is lost is waited for (start the same command there again), but "
                                          "without node 0 the job ends"
                                        : "nodes that come and go cost none of these");
}

}  // namespace cohort::launch
