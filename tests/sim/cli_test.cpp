// `cohort simulate` and `cohort model` as programs.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/command.h"
#include "core/files.h"
#include "core/format.h"

namespace cohort {
namespace {

const std::string kWalker = COHORT_SOURCE_DIR "/tests/sim/models/walker.xml";

using Result = test::CommandOutcome;
using test::run_command;

std::string cohort_program() {
  return std::string(std::getenv("COHORT_BIN")) + "/cohort";
}

class SimulateCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / format("cohort_simulate_{}", getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Lines of a recording behind its header, in any order.
  std::multiset<std::string> lines(const std::string& name) const {
    std::multiset<std::string> set;
    const std::string text = read_file(path(name));
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      if (at > 0) set.insert(text.substr(at, end - at));
    }
    return set;
  }
  std::filesystem::path folder_;
};

TEST_F(SimulateCommand, RecordsWhatNumpyReadsAndTheSameBytesForAnyThreadsAndLanes) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --n-envs 20 --steps 40 --seed 5 --record ";
  const Result first = run_command(base + path("a.npz"));
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_NE(first.output.find("steps/s"), std::string::npos) << first.output;
  ASSERT_EQ(run_command(base + path("b.npz") + " --threads 2 --lanes scalar").code, 0);
  EXPECT_EQ(read_file(path("a.npz")), read_file(path("b.npz")));
  const Result shape = run_command(
      std::string(std::getenv("COHORT_PYTHON")) +
      " -c 'import numpy as n,sys; a=n.load(sys.argv[1]); print(a[\"qpos\"].shape, a[\"env\"].tolist()[-1], "
      "abs(a[\"time\"][-1]-0.16).max()<1e-6, n.isfinite(a[\"qvel\"]).all(), a[\"status\"].any())' " +
      path("a.npz"));
  EXPECT_EQ(shape.output, "(41, 20, 14) 19 True True False\n");
}

TEST_F(SimulateCommand, TwoProcessesWithHalfTheEnvironmentsMakeTheWhole) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --steps 30 --record ";
  ASSERT_EQ(run_command(base + path("all.csv") + " --n-envs 6").code, 0);
  ASSERT_EQ(run_command(base + path("one.csv") + " --n-envs 2").code, 0);
  ASSERT_EQ(run_command(base + path("two.csv") + " --n-envs 4 --first-env 2").code, 0);
  std::multiset<std::string> halves = lines("one.csv");
  halves.merge(lines("two.csv"));
  EXPECT_EQ(lines("all.csv").size(), 6u * 31u);
  EXPECT_EQ(halves, lines("all.csv"));
}

TEST_F(SimulateCommand, AProcessPerDeviceComputesWhatOneProcessComputes) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --steps 30 --n-envs 7 --record ";
  ASSERT_EQ(run_command(base + path("all.csv")).code, 0);
  const Result shared = run_command(base + path("part.csv") + " --devices 0,1,2");
  ASSERT_EQ(shared.code, 0) << shared.output;
  EXPECT_NE(shared.output.find("3 processes together"), std::string::npos) << shared.output;
  EXPECT_NE(shared.output.find("7 environments x 30 steps"), std::string::npos) << shared.output;
  std::multiset<std::string> parts = lines("part.0.csv");
  parts.merge(lines("part.1.csv"));
  parts.merge(lines("part.2.csv"));
  EXPECT_EQ(parts.size(), 7u * 31u);
  EXPECT_EQ(parts, lines("all.csv"));
  // A process that fails ends the whole run with its code.
  const Result broken = run_command(cohort_program() + " simulate /nowhere/x.xml --n-envs 4 --devices 0,1");
  EXPECT_EQ(broken.code, 1) << broken.output;
  EXPECT_EQ(run_command(base + path("x.csv") + " --devices 0,0").code, 2);
  EXPECT_EQ(run_command(cohort_program() + " simulate " + kWalker + " --n-envs 1 --devices 0,1").code, 2);
}

TEST_F(SimulateCommand, SurveysAFolderOfModels) {
  const Result table = run_command(cohort_program() + " model " + COHORT_SOURCE_DIR + "/tests/sim/models");
  EXPECT_EQ(table.code, 0) << table.output;
  EXPECT_NE(table.output.find("| walker.xml | 13 | runs |"), std::string::npos) << table.output;
}

TEST_F(SimulateCommand, ASurveyTellsUrdfByItsContentAndKeepsNamesAndColumns) {
  const std::string arm = read_file(COHORT_SOURCE_DIR "/tests/sim/models/two_link.urdf");
  write_file_atomically(path("UP.XML"), read_file(kWalker));
  write_file_atomically(path("a|b.URDF"), arm);
  write_file_atomically(path("arm.xml"), arm);
  std::filesystem::create_symlink(kWalker, path("link.xml"));
  const Result table = run_command(cohort_program() + " model " + folder_.string());
  EXPECT_EQ(table.code, 0) << table.output;
  for (const char* row :
       {"| UP.XML | 13 | runs |", "| a\\|b.URDF | 7 | runs |", "| arm.xml | 7 | runs |", "| link.xml | 13 | runs |"}) {
    EXPECT_NE(table.output.find(row), std::string::npos) << row << " in\n" << table.output;
  }
}

TEST_F(SimulateCommand, AUrdfHasItsFreeBaseWhateverItsNameUnlessItIsFixed) {
  const std::string arm = path("arm.URDF");
  write_file_atomically(arm, read_file(COHORT_SOURCE_DIR "/tests/sim/models/two_link.urdf"));
  EXPECT_NE(run_command(cohort_program() + " model " + arm).output.find(" 7 dofs"), std::string::npos);
  EXPECT_NE(run_command(cohort_program() + " model " + arm + " --fixed-base").output.find(" 1 dofs"),
            std::string::npos);
  EXPECT_EQ(run_command(cohort_program() + " simulate " + arm + " --fixed-base --steps 1").code, 0);
  const Result compiled =
      run_command(cohort_program() + " model " + arm + " --fixed-base --compile " + path("arm.cohort"));
  EXPECT_EQ(compiled.code, 0) << compiled.output;
  EXPECT_NE(run_command(cohort_program() + " model " + path("arm.cohort")).output.find(" 1 dofs"), std::string::npos);
}

TEST_F(SimulateCommand, RunsBothEnginesAndACompiledModel) {
  const Result mujoco =
      run_command(cohort_program() + " simulate " + kWalker + " --n-envs 3 --steps 10 --engine mujoco --control hold");
  EXPECT_EQ(mujoco.code, 0) << mujoco.output;
  const Result compiled = run_command(cohort_program() + " model " + kWalker + " --compile " + path("w.cohort"));
  ASSERT_EQ(compiled.code, 0) << compiled.output;
  EXPECT_NE(compiled.output.find("engine batched: runs it"), std::string::npos) << compiled.output;
  const Result again = run_command(cohort_program() + " simulate " + path("w.cohort") + " --n-envs 3 --steps 10");
  EXPECT_EQ(again.code, 0) << again.output;
  const Result described = run_command(cohort_program() + " model " + path("w.cohort") + " -v");
  EXPECT_EQ(described.code, 0) << described.output;
  EXPECT_NE(described.output.find("13 dofs"), std::string::npos) << described.output;
}

TEST_F(SimulateCommand, WrongArgumentsAreNamedBeforeAnythingIsComputed) {
  const std::string base = cohort_program() + " simulate " + kWalker;
  const auto refused = [](const std::string& command, int code, const char* word) {
    const Result result = run_command(command);
    EXPECT_EQ(result.code, code) << command << "\n" << result.output;
    EXPECT_NE(result.output.find(word), std::string::npos) << command << "\n" << result.output;
    EXPECT_EQ(result.output.find("ready after"), std::string::npos) << command << "\n" << result.output;
  };
  refused(base + " --n-env 3", 2, "`--n-envs`");
  refused(base + " --timestep -1", 2, "-1 is no timestep");
  refused(base + " --record run.txt", 2, ".npz or .csv");
  refused(base + " --engine mujoco --lanes avx2", 2, "no lanes");
  refused(base + " --engine mujoco --row-space 8", 2, "its own solvers");
  refused(base + " --row-space 65", 2, "-1 to 64");
  refused(base + " --fixed-base", 2, "no URDF");
  refused(base + " --devices ''", 2, "--devices");
  refused(cohort_program() + " model " + kWalker + " --compile x.txt", 2, ".cohort");
  refused(cohort_program() + " model " + kWalker + " --verbos", 2, "`--verbose`");
  refused(cohort_program() + " model " + kWalker + " --compile ''", 2, ".cohort");
  refused(cohort_program() + " model " + kWalker + " --compare", 2, "no folder");
  refused(cohort_program() + " model " + kWalker + " --fixed-base", 2, "no URDF");
  refused(cohort_program() + " model " + folder_.string() + " -v", 2, "is a folder");
  refused(cohort_program() + " model " + folder_.string() + " --compile x.cohort", 2, "is a folder");
  refused(cohort_program() + " model ''", 2, "empty");
  refused(cohort_program() + " simulate ''", 2, "empty");
  refused(cohort_program() + " simulate " + folder_.string(), 1, "is a folder");
  const Result none = run_command(base + " --steps 0");
  EXPECT_EQ(none.code, 0) << none.output;
  EXPECT_EQ(none.output.find("inf step"), std::string::npos) << none.output;
}

TEST_F(SimulateCommand, RefusesWhatItCannotDoWithAClearMessage) {
  // An empty mask hides every GPU, also from a build that has the kernels.
  const Result cuda =
      run_command("CUDA_VISIBLE_DEVICES= " + cohort_program() + " simulate " + kWalker + " --backend cuda");
  EXPECT_EQ(cuda.code, 1);
  EXPECT_NE(cuda.output.find("--backend cpu"), std::string::npos) << cuda.output;
  const Result missing = run_command(cohort_program() + " simulate /nowhere/x.xml");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.output.find("/nowhere/x.xml"), std::string::npos) << missing.output;
  EXPECT_EQ(run_command(cohort_program() + " simulate " + kWalker + " --n-envs 0").code, 2);
  EXPECT_EQ(run_command(cohort_program() + " simulate " + kWalker + " --n-envs 1000000000").code, 1);
  write_file_atomically(
      path("muscle.xml"),
      "<mujoco><worldbody><body><joint name='j'/><geom size='1'/></body></worldbody><actuator><muscle "
      "name='biceps' joint='j' lengthrange='0 1'/></actuator></mujoco>");
  const Result muscle = run_command(cohort_program() + " simulate " + path("muscle.xml"));
  EXPECT_EQ(muscle.code, 1);
  EXPECT_NE(muscle.output.find("biceps"), std::string::npos) << muscle.output;
  EXPECT_NE(muscle.output.find("--engine mujoco"), std::string::npos) << muscle.output;
}

}  // namespace
}  // namespace cohort
