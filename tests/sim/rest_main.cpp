// The rest suite by hand: all pairs, or those of some shapes; rest_test.cpp is its short form.
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "rest_suite.h"

namespace cohort::sim::test {
namespace {

constexpr const char* kUsage =
    "Puts shapes on supports, lets them lie for two seconds, in the lanes and in MuJoCo, and writes a line for each.\n"
    "  sim_rest                    all pairs\n"
    "  sim_rest list               the names of shapes and supports\n"
    "  sim_rest UPPER LOWER        one pair; `any` for either stands for all\n"
    "  sim_rest model UPPER LOWER  its scene\n"
    "  sim_rest contacts UPPER LOWER  the contacts after two seconds, of two steps\n"
    "The exit code is 1 where something does not rest as it should, 2 for a wrong command line.\n";

int main_of(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "list") {
    for (const std::string& name : rest_uppers()) std::cout << "upper " << name << '\n';
    for (const std::string& name : rest_lowers()) std::cout << "lower " << name << '\n';
    return 0;
  }
  if (words.size() == 3 && words[0] == "model") {
    std::cout << rest_scene({words[1], words[2]}) << '\n';
    return 0;
  }
  if (words.size() == 3 && words[0] == "contacts") {
    std::cout << rest_contacts({words[1], words[2]});
    return 0;
  }
  if (!words.empty() && words.size() != 2) {
    std::cerr << kUsage;
    return 2;
  }
  const auto wanted = [&](std::size_t word, const std::string& name) {
    return words.empty() || words[word] == "any" || words[word] == name;
  };
  std::cout << rest_columns() << '\n';
  int shapes = 0, wrong = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (const RestCase& c : rest_cases()) {
    if (!wanted(0, c.upper) || !wanted(1, c.lower)) continue;
    for (const RestResult& r : run_rest_case(c)) {
      std::cout << rest_line(r) << '\n';
      ++shapes, wrong += !r.wrong.empty();
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cerr << format("{} of {} do not rest as they should; {:.0f} s\n", wrong, shapes, seconds);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace cohort::sim::test

int main(int count, char** words) {
  try {
    return cohort::sim::test::main_of({words + 1, words + count});
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
