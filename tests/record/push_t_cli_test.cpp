// `cohort data push-t` and `push-t-baselines` as a user runs them.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "core/command.h"
#include "core/format.h"
#include "data/fixture_folder.h"

namespace cohort::record {
namespace {

using test::CommandOutcome;

CommandOutcome run(const std::string& arguments) {
  return test::run_command(std::string(std::getenv("COHORT_BIN")) + "/cohort data " + arguments);
}

TEST(PushTCli, RecordedDemonstrationsAreInspectedAndReplayed) {
  const data::OwnFolder folder;
  const std::string out = folder.path().string();
  const CommandOutcome recorded = run(format("push-t --out {} --episodes 1 --beam 3 --threads 1", out));
  ASSERT_EQ(recorded.code, 0) << recorded.output;
  EXPECT_NE(recorded.output.find("1 episodes"), std::string::npos) << recorded.output;
  const CommandOutcome inspected = run(format("inspect {}/push_t", out));
  ASSERT_EQ(inspected.code, 0) << inspected.output;
  for (const char* part : {"observation/state", "observation/environment_state", "language_instruction"})
    EXPECT_NE(inspected.output.find(part), std::string::npos) << part << "\n" << inspected.output;
  const CommandOutcome scored =
      run(format("push-t-baselines --demonstrations {}/push_t --no-expert --seeds 2 --max-steps 20 --threads 1", out));
  ASSERT_EQ(scored.code, 0) << scored.output;
  EXPECT_NE(scored.output.find("seeds 0 to 1, 20 steps"), std::string::npos) << scored.output;
  for (const char* policy : {"\nrandom ", "\nreplay "})
    EXPECT_NE(scored.output.find(policy), std::string::npos) << policy << "\n" << scored.output;
  EXPECT_EQ(scored.output.find("\nexpert "), std::string::npos) << scored.output;
}

TEST(PushTCli, ASecondRecordingDoesNotReplaceTheFirst) {
  const data::OwnFolder folder;
  std::filesystem::create_directories(folder.path() / "push_t" / "1.0.0");
  const CommandOutcome outcome = run(format("push-t --out {} --episodes 1", folder.path().string()));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find("exists already"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace cohort::record
