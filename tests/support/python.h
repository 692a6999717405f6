/// Runs the Python beside the checkout: PyTorch itself, or an independent reader of what is written here.
#pragma once
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/command.h"

namespace cohort::test {

/// The path of the interpreter, or "" when the test was started without it.
inline std::string python() {
  const char* path = std::getenv("COHORT_PYTHON");
  return path ? path : "";
}

/// tests/<script> with these arguments, which hold no quotes.
inline CommandOutcome run_python(const std::string& script, const std::vector<std::string>& arguments = {}) {
  std::string command = "TF_CPP_MIN_LOG_LEVEL=3 '" + python() + "' '" COHORT_SOURCE_DIR "/tests/" + script + "'";
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  return run_command(command);
}

/// That it ended well; else with what it said.
inline ::testing::AssertionResult python_agrees(const std::string& script, const std::vector<std::string>& arguments) {
  const CommandOutcome outcome = run_python(script, arguments);
  if (outcome.code == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << script << " ended with " << outcome.code << ":\n" << outcome.output;
}

}  // namespace cohort::test

/// Skips a test whose independent reader is missing.
#define COHORT_NEEDS_PYTHON()                                                 \
  if (::cohort::test::python().empty())                                       \
  GTEST_SKIP() << "COHORT_PYTHON is not set: ctest sets it to a Python with " \
                  "torch"
