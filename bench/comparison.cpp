#include "comparison.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>

#include "cohort_version.h"
#include "core/devices_cpu.h"
#include "core/format.h"

namespace cohort::bench {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string machine_line(const std::string& more) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  return format("{}, {} cores, {}, cohort {}, {}", processor(), available_cores(), date, COHORT_VERSION, more);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<std::vector<double>> take_turns(const std::vector<Side>& sides, int rounds) {
  std::vector<std::vector<double>> seconds(sides.size());
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const double taken = sides[i].run();
      if (round >= 0) seconds[i].push_back(taken);
    }
  }
  return seconds;
}

}  // namespace cohort::bench
