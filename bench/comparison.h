/// What benchmarks share: two sides that take turns, and what is said about them.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace cohort::bench {

/// One line: processor, cores, date, version of Cohort, and `more`.
std::string machine_line(const std::string& more);

/// The processor's name, as /proc/cpuinfo has it.
std::string processor();

double median(std::vector<double> values);

/// Wall-clock seconds of a call.
double seconds_of(const std::function<void()>& body);

/// One side of a comparison: a name, and a run that returns its seconds.
struct Side {
  std::string name;
  std::function<double()> run;
};

/// Runs the sides in turns, `rounds` times after one round that does not count; returns each side's seconds by round.
std::vector<std::vector<double>> take_turns(const std::vector<Side>& sides, int rounds);

}  // namespace cohort::bench
