// A subcommand that no file of src knows, for `cohort`, which finds it when this library is loaded before it.
#include <cstdio>

#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

int run_repeat(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError("repeat wants words");
  for (const std::string& word : words) std::puts(word.c_str());
  return 3;
}

const Register kRepeat({"repeat", "the words behind it, one a line", run_repeat, ""});

}  // namespace
}  // namespace cohort::cli
