// The front end: starts in milliseconds, because it links no LibTorch.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "cohort_version.h"
#include "core/config.h"
#include "core/home_path.h"

namespace cohort::cli {
namespace {

std::string usage() {
  std::string text =
      "Cohort simulates, trains and evaluates robot policies on all the GPUs it is given.\n\n"
      "usage: cohort SUBCOMMAND [arguments]\n\nsubcommands:\n";
  for (const Subcommand& subcommand : subcommands())
    text += format("  {:<16} {}\n", subcommand.name, subcommand.summary);
  return text +
         "\n`cohort help SUBCOMMAND` (or `cohort SUBCOMMAND --help`) explains one; `cohort version` prints the "
         "version;\n"
         "`cohort completion bash` and `cohort completion zsh` print what completes all of this in a shell.\n";
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  // Shells leave ~/ as it is behind the = of a flag and of a setting.
  for (std::string& word : words) word = word_with_home(word);
  // `cohort help train informer` is `cohort train informer --help`.
  if (words.size() > 1 && words.front() == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  const std::string first = words.empty() ? "" : words.front();
  if (first.empty() || first == "--help" || first == "-h" || first == "help") {
    std::fputs(usage().c_str(), first.empty() ? stderr : stdout);
    return first.empty() ? 2 : 0;
  }
  if (first == "--version" || first == "-V" || first == "version") {
    std::puts("cohort " COHORT_VERSION);
    return 0;
  }
  std::vector<std::string> names;
  for (const Subcommand& subcommand : subcommands()) {
    if (subcommand.name == first) {
      const std::vector<std::string> behind(words.begin() + 1, words.end());
      if (!subcommand.executable.empty()) become(subcommand.executable, behind);
      return subcommand.run(behind);
    }
    names.push_back(subcommand.name);
  }
  const std::string near = config::nearest(first, names);
  throw UsageError(format("there is no subcommand '{}'{}; `cohort --help` lists them", first,
                          near.empty() ? "" : format(", did you mean '{}'?", near)));
}

}  // namespace
}  // namespace cohort::cli

int main(int argc, char** argv) {
  return cohort::cli::run_program("cohort", [&] { return cohort::cli::run(argc, argv); });
}
