// What every program makes of an exception.
#include <filesystem>
#include <regex>
#include <stdexcept>

#include <gtest/gtest.h>

#include "cli/subcommand.h"
#include "core/files.h"
#include "support/command.h"
#include "support/fresh_folder.h"

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

TEST(Program, AFileSystemsErrorNamesThePathAndOfALinkThatLoopsTheRemedy) {
  const std::filesystem::path loop = test::fresh_folder("loop") / "loop";
  std::filesystem::create_symlink("loop", loop);
  EXPECT_EQ(end_of([&]() -> int { return std::filesystem::exists(loop); }),
            "1 cohort test: " + loop.string() +
                ": Too many levels of symbolic links: a link that leads back to itself; remove it, or let it point "
                "elsewhere\n");
  EXPECT_EQ(end_of([&]() -> int {
              std::filesystem::rename(loop / "a", "b");
              return 0;
            }).find("1 cohort test: " + (loop / "a").string() + " and b: Too many levels"),
            0u);
}

TEST(Program, TheStackBehindALibTorchMessageIsLeftOut) {
  EXPECT_EQ(end_of([]() -> int {
              throw std::runtime_error(
                  "The size of tensor a (3)\nmust match b (4)\nException raised from infer_size at "
                  "/pytorch/ExpandUtils.cpp:35 (most recent call first):\nframe #0: c10::Error::Error(...)");
            }),
            "1 cohort test: The size of tensor a (3)\nmust match b (4)\n");
}

/// What `cohort --help` names is there after the first command that README names.
TEST(Quickstart, BuildsEveryProgramThatHelpNames) {
  const std::filesystem::path source = COHORT_SOURCE_DIR;
  EXPECT_NE(read_file(source / "scripts" / "quickstart").find("--target programs"), std::string::npos);
  const auto asked = [](const std::string& tool, const std::string& target) {
    const std::string command = "ninja -C '" COHORT_BINARY_DIR "' -t " + tool + " " + target;
    const test::CommandOutcome outcome = test::run_command(command);
    return std::pair(outcome.code == 0, outcome.output);
  };
  if (!asked("query", "all").first) GTEST_SKIP() << "this build folder is not Ninja's";
  const std::string commands = asked("commands", "programs").second;
  EXPECT_NE(commands.find("-o bin/cohort "), std::string::npos) << commands;
  const std::string registered = read_file(source / "src" / "cli" / "programs.def");
  static const std::regex kExecutable(R"re(PROGRAM\("[^"]*", "(cohort-[a-z-]+)")re");
  int count = 0;
  for (std::sregex_iterator at(registered.begin(), registered.end(), kExecutable), end; at != end; ++at, ++count) {
    const std::string program = (*at)[1];
    if (!asked("query", "bin/" + program).first) continue;  // left out of this build: a library is missing
    EXPECT_NE(commands.find("-o bin/" + program + " "), std::string::npos) << program << " is not built";
  }
  EXPECT_GE(count, 4);
}

}  // namespace
}  // namespace cohort::cli
