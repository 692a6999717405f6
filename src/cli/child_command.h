/// Another command of Cohort as a child of this one.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cohort::cli {

/// Runs `cohort WORDS...` with this process's terminal and waits for it. SIGINT and SIGTERM go to the child; this
/// process ends when the child has. Returns its exit code, 128 + signal where one ended it. Throws Error where it
/// cannot be started.
int run_cohort(const std::vector<std::string>& words);

/// The same for a program of PATH.
int run_program(const std::string& program, const std::vector<std::string>& words);

struct ChildOutput {
  int code = 0;  ///< as run_cohort returns it
  std::string out, err;
};
/// The same for `program`, whose output is kept instead of shown.
ChildOutput run_and_read(const std::string& program, const std::vector<std::string>& words);

/// Has `cohort WORDS...` only read its words and say what is wrong with them (only_checks_words), with these environment
/// variables. The command is one that does: train, evaluate, collect, view.
ChildOutput check_words(const std::vector<std::string>& words,
                        const std::vector<std::pair<std::string, std::string>>& environment = {});

}  // namespace cohort::cli
