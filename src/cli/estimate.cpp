// `cohort estimate`: what a training would take. It is cohort-train that measures, with the same words.
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

int run_estimate(const std::vector<std::string>& words) {
  const std::string path = sibling("cohort-train");
  std::vector<std::string> all{path, "--estimate"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  throw Error(format("cannot execute {}: {}", path, std::strerror(errno)));
}

const Register kEstimate({"estimate", "memory by part, the largest batch, and hours, before a training is started",
                          run_estimate, ""});

}  // namespace
}  // namespace cohort::cli
