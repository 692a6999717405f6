// What every program makes of an exception.
#include <stdexcept>

#include <gtest/gtest.h>

#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

/// Exit code, a space, and standard error.
std::string end_of(const std::function<int()>& body) {
  ::testing::internal::CaptureStderr();
  const int code = run_program("cohort test", body);
  return std::to_string(code) + " " + ::testing::internal::GetCapturedStderr();
}

TEST(Program, ExceptionsBecomeOneMessageAndAnExitCode) {
  EXPECT_EQ(end_of([] { return 7; }), "7 ");
  EXPECT_EQ(end_of([]() -> int { throw Error("t.csv is empty"); }), "1 cohort test: t.csv is empty\n");
  EXPECT_EQ(end_of([]() -> int { throw UsageError("what shall be run?"); }), "2 cohort test: what shall be run?\n");
}

TEST(Program, TheStackBehindALibTorchMessageIsLeftOut) {
  EXPECT_EQ(end_of([]() -> int {
              throw std::runtime_error(
                  "The size of tensor a (3)\nmust match b (4)\nException raised from infer_size at "
                  "/pytorch/ExpandUtils.cpp:35 (most recent call first):\nframe #0: c10::Error::Error(...)");
            }),
            "1 cohort test: The size of tensor a (3)\nmust match b (4)\n");
}

}  // namespace
}  // namespace cohort::cli
