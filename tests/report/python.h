/// Runs the Python beside the checkout: an independent reader of the files that are written here.
#pragma once
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "core/format.h"

namespace cohort::test {

struct PythonResult {
  int exit_code = -1;
  std::string output;  ///< standard output and error
};

/// The path of the interpreter, or "" when the test was started without it.
inline std::string python_path() {
  const char* path = std::getenv("COHORT_PYTHON");
  return path ? path : "";
}

/// tests/report/<script> with one argument. The paths of tests hold no quotes.
inline PythonResult run_python(const std::string& script, const std::string& argument) {
  const std::string command = format("TF_CPP_MIN_LOG_LEVEL=3 '{}' '{}/tests/report/{}' '{}' 2>&1", python_path(),
                                     COHORT_SOURCE_DIR, script, argument);
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  PythonResult result;
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    result.output.append(buffer.data(), n);
  const int status = ::pclose(pipe.release());
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace cohort::test

/// Skips a test whose independent reader is missing.
#define COHORT_NEED_PYTHON() \
  if (::cohort::test::python_path().empty()) GTEST_SKIP() << "COHORT_PYTHON is not set (ctest sets it)"
