/// Runs a Python script beside a test: PyTorch itself as the judge.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace cohort::train {

/// A folder of its own for a test, empty.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("cohort_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

/// Runs tests/<script> with COHORT_PYTHON; what it prints goes into `output`. Returns its exit code.
inline int run_python(const std::string& script, const std::vector<std::string>& arguments,
                      std::string* output = nullptr) {
  const char* python = std::getenv("COHORT_PYTHON");
  std::string command = std::string(python ? python : "python3") + " " COHORT_SOURCE_DIR "/tests/" + script;
  for (const auto& argument : arguments) command += " '" + argument + "'";
  command += " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return -1;
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  const int status = ::pclose(pipe);
  if (output) *output = text;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  if (code != 0) ADD_FAILURE() << command << "\nended with " << code << ":\n" << text;
  return code;
}

/// Skips a test where no Python with torch is at hand.
#define COHORT_NEEDS_PYTHON()                                                                           \
  do {                                                                                                  \
    if (!std::getenv("COHORT_PYTHON") || !*std::getenv("COHORT_PYTHON"))                                \
      GTEST_SKIP() << "COHORT_PYTHON is not set: no Python with torch and safetensors to compare with"; \
  } while (false)

}  // namespace cohort::train
