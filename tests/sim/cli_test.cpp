// `cohort simulate` and `cohort model` as programs.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/format.h"
#include "support/command.h"

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

/// A centimetre a second, 300 m out: single precision rounds each step to one and a half times its length.
TEST_F(SimulateCommand, SaysThatPositionsAreLostFarOutWhereTheyAre) {
  const auto xml = [](double far) {
    return format(
        "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='rail' type='slide' axis='1 0 0' limited='true' "
        "range='0 400'/><geom size='.1'/></body></worldbody><keyframe><key name='out' qpos='{}' qvel='.01'/>"
        "</keyframe></mujoco>",
        far);
  };
  const auto run = [&](double far, const std::string& engine) {
    write_file_atomically(path("rail.xml"), xml(far));
    const Result r = run_command(cohort_program() + " simulate " + path("rail.xml") +
                                 " --keyframe out --n-envs 1 --steps 2000 --engine " + engine);
    EXPECT_EQ(r.code, 0) << r.output;
    return r.output;
  };
  EXPECT_NE(run(300, "batched").find("joint `rail` of environment 0 is 300."), std::string::npos);
  EXPECT_EQ(run(300, "mujoco").find("rounds"), std::string::npos);
  EXPECT_EQ(run(3, "batched").find("rounds"), std::string::npos);
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

TEST_F(SimulateCommand, RanksOfALauncherShareTheEnvironments) {
  const std::string base = " simulate " + std::string(kWalker) + " --steps 30 --n-envs 7 --record ";
  ASSERT_EQ(run_command(cohort_program() + base + path("all.csv")).code, 0);
  const Result shared = run_command(cohort_program() + " launch --nproc_per_node=3 --cpu" + base + path("part.csv"));
  ASSERT_EQ(shared.code, 0) << shared.output;
  EXPECT_NE(shared.output.find("rank 1 of 3 (from RANK and WORLD_SIZE): environments 2 to 3"), std::string::npos)
      << shared.output;
  std::multiset<std::string> parts = lines("part.0.csv");
  parts.merge(lines("part.1.csv"));
  parts.merge(lines("part.2.csv"));
  EXPECT_EQ(parts, lines("all.csv"));
  const Result few = run_command(cohort_program() + " launch --nproc_per_node=3 --cpu simulate " + kWalker);
  EXPECT_NE(few.code, 0);
  EXPECT_NE(few.output.find("cannot be shared among 3 processes"), std::string::npos) << few.output;
}

TEST_F(SimulateCommand, RanksOfMpirunShareTheEnvironments) {
  if (run_command("command -v mpirun").code != 0) GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
  const std::string base = " simulate " + std::string(kWalker) + " --steps 30 --n-envs 7 --backend cpu --record ";
  ASSERT_EQ(run_command(cohort_program() + base + path("all.csv")).code, 0);
  const Result shared =
      run_command("mpirun --allow-run-as-root --oversubscribe -n 3 " + cohort_program() + base + path("part.csv"));
  ASSERT_EQ(shared.code, 0) << shared.output;
  EXPECT_NE(shared.output.find("rank 1 of 3 (from Open MPI): environments 2 to 3"), std::string::npos) << shared.output;
  std::multiset<std::string> parts = lines("part.0.csv");
  parts.merge(lines("part.1.csv"));
  parts.merge(lines("part.2.csv"));
  EXPECT_EQ(parts, lines("all.csv"));
}

/// The variables as srun and as MPICH's mpirun set them; no address or port to meet at, since nobody meets.
TEST_F(SimulateCommand, RanksOfSrunAndOfMpichShareTheEnvironmentsWithoutAPlaceToMeet) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --steps 30 --n-envs 7 --backend cpu --record ";
  ASSERT_EQ(run_command(base + path("all.csv")).code, 0);
  const auto rank_of = [&](const std::string& launcher, int rank) {
    if (launcher == "slurm")
      return format(
          "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=2 SLURM_PROCID={} "
          "SLURM_LOCALID=0 SLURM_NODEID={} SLURM_STEP_TASKS_PER_NODE='1(x2)' SLURM_STEP_NODELIST='n[1-2]' ",
          rank, rank);
    return format("PMI_RANK={} PMI_SIZE=2 MPI_LOCALRANKID={} MPI_LOCALNRANKS=2 ", rank, rank);
  };
  for (const std::string launcher : {"slurm", "mpich"}) {
    for (int rank = 0; rank < 2; ++rank) {
      const Result one = run_command("env " + rank_of(launcher, rank) + base + path(launcher + ".csv"));
      ASSERT_EQ(one.code, 0) << one.output;
      EXPECT_NE(one.output.find(rank == 0 ? "environments 0 to 2" : "environments 3 to 6"), std::string::npos)
          << one.output;
    }
    std::multiset<std::string> parts = lines(launcher + ".0.csv");
    parts.merge(lines(launcher + ".1.csv"));
    EXPECT_EQ(parts, lines("all.csv")) << launcher;
  }
}

TEST_F(SimulateCommand, SurveysAFolderOfModels) {
  const Result table = run_command(cohort_program() + " model " + COHORT_SOURCE_DIR + "/tests/sim/models");
  EXPECT_EQ(table.code, 0) << table.output;
  EXPECT_NE(table.output.find("| walker.xml | 13 | runs |"), std::string::npos) << table.output;
}

/// As a robot whose motors' ranges are tens of thousands of N m, for a controller to stay far below (robosuite's gr1).
TEST_F(SimulateCommand, AModelThatRandomControlsBreakInMujocoTooIsComparedWithoutThem) {
  write_file_atomically(path("strong.xml"), R"(
<mujoco><worldbody><body pos="0 0 1"><joint name="wrist" axis="0 1 0"/><geom size=".02" pos=".03 0 0" mass=".1"/></body>
</worldbody><actuator><motor joint="wrist" ctrllimited="true" ctrlrange="-1e8 1e8"/></actuator></mujoco>)");
  const Result table = run_command(cohort_program() + " model " + folder_.string() + " --compare");
  EXPECT_NE(table.output.find("broke in MuJoCo too under random controls; without controls same"), std::string::npos)
      << table.output;
  const Result stopped = run_command(cohort_program() + " simulate " + path("strong.xml") + " --steps 20");
  EXPECT_EQ(stopped.code, 1);
  EXPECT_NE(stopped.output.find("--control zero shows"), std::string::npos) << stopped.output;
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

TEST_F(SimulateCommand, AModelsPartsAreCountedAndListed) {
  const std::string models = COHORT_SOURCE_DIR "/tests/sim/models/";
  const auto says = [](const std::string& arguments, const std::vector<std::string>& words) {
    const Result result = run_command(cohort_program() + " model " + arguments);
    EXPECT_EQ(result.code, 0) << result.output;
    for (const std::string& word : words) EXPECT_NE(result.output.find(word), std::string::npos) << result.output;
  };
  says(models + "tendons.xml -v",
       {"9 sites, 6 tendons, 1 equality\n", "joint      4 wrist                ball   of 3, qpos   4, dof   4\n",
        "link       3                      in 2, 0.24 kg\n", "geom       1 round                sphere    of 1\n"});
  says(models + "mixed.xml", {"2 sites, 2 equalities, 1 mesh, 1 height field\n"});
  says(models + "mixed.xml --compile " + path("m.cohort"), {"compiled to"});
  says(path("m.cohort"), {"2 sites, 2 equalities, 1 mesh, 1 height field\n"});
  says(models + "two_link.urdf", {"two_link.urdf: 3 links"});  // a file without a name of its own
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(SimulateCommand, ALimitOfAddressSpaceIsTheMemoryThereIs) {
  for (const char* engine : {"batched", "mujoco"}) {
    const Result result = run_command(
        format("ulimit -v 3000000; {} simulate {} --n-envs 5000000 --engine {}", cohort_program(), kWalker, engine));
    EXPECT_EQ(result.code, 1) << result.output;
    EXPECT_NE(result.output.find("5000000 environments need"), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("enough for"), std::string::npos) << result.output;
  }
}
#endif

TEST_F(SimulateCommand, ACompiledModelRunsWithoutMujocosLibrary) {
  ASSERT_EQ(run_command(cohort_program() + " model " + kWalker + " --compile " + path("w.cohort")).code, 0);
  const auto run_with = [&](const std::string& library, const std::string& command) {
    return run_command("COHORT_MUJOCO_LIBRARY=" + library + " " + cohort_program() + " " + command);
  };
  for (const std::string& command :
       {"simulate " + path("w.cohort") + " --n-envs 3 --steps 5", "model " + path("w.cohort")}) {
    const Result result = run_with(path("absent.so"), command);
    EXPECT_EQ(result.code, 0) << command << "\n" << result.output;
  }
  // Of what needs it, both ask for it: the absent one, and one that is another library.
  for (const std::string& command : {"simulate " + kWalker + " --n-envs 3 --steps 5", "model " + kWalker,
                                     "simulate " + kWalker + " --engine mujoco --steps 5"}) {
    const Result absent = run_with(path("absent.so"), command);
    EXPECT_EQ(absent.code, 1) << command << "\n" << absent.output;
    EXPECT_NE(absent.output.find(path("absent.so")), std::string::npos) << absent.output;
    EXPECT_NE(absent.output.find("COHORT_MUJOCO_LIBRARY"), std::string::npos) << absent.output;
  }
  const Result other = run_with("libm.so.6", "model " + kWalker);
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.output.find("libm.so.6 is not MuJoCo's library"), std::string::npos) << other.output;
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
  refused(base + " --n_env 3", 2, "`--n-envs`");
  refused(base + " n_envs=3", 2, "`--n-envs`");
  refused(base + " --timestep -1", 2, "-1 is no timestep");
  refused(base + " --record run.txt", 2, ".npz or .csv");
  refused(base + " --engine mujoco --lanes avx2", 2, "no lanes");
  refused(base + " --engine mujoco --contact-capacity 8", 2, "its own memory");
  refused(base + " --engine mujoco --row-space 24", 2, "its own solvers");
  refused(base + " --row-space 65", 2, "from 0 to 64");
  refused(base + " --fixed-base", 2, "no URDF");
  refused(base + " --devices ''", 2, "--devices");
  refused(cohort_program() + " model " + kWalker + " --compile x.txt", 2, ".cohort");
  refused(cohort_program() + " model " + kWalker + " --verbos", 2, "`--verbose`");
  refused(cohort_program() + " model " + kWalker + " --compile ''", 2, ".cohort");
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

TEST_F(SimulateCommand, FlagsAreKnownWithLowLinesToo) {
  const Result run = run_command(cohort_program() + " simulate " + kWalker + " --n_envs=3 --first_env 2 --steps 1");
  EXPECT_EQ(run.code, 0) << run.output;
  EXPECT_NE(run.output.find("3 environments x 1 steps"), std::string::npos) << run.output;
}

TEST_F(SimulateCommand, NumbersThatNoConversionMayClampOrWrapAreRefused) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --steps 1 ";
  for (const char* wrong :
       {"--seed -1", "--seed 18446744073709551616", "--seed ''", "--steps -1", "--steps 1000000000000001",
        "--first-env 9223372036854775808", "--first-env 9223372036854775806 --n-envs 3", "--n-envs 0x10",
        "--n-envs 010", "--timestep 1e-50", "--record ''", "--devices 0,00"}) {
    const Result result = run_command(base + wrong);
    EXPECT_EQ(result.code, 2) << wrong << "\n" << result.output;
    EXPECT_LT(result.output.size(), 200u) << result.output;
  }
  EXPECT_EQ(run_command(base + "--seed 18446744073709551615").code, 0);
  const Result unnamed = run_command(cohort_program() + " simulate ''");
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_NE(unnamed.output.find("MODEL is empty"), std::string::npos) << unnamed.output;
  write_file_atomically(path("still.xml"),
                        "<mujoco><option timestep='1e-50'/><worldbody><body><joint/><geom size='1'/></body></worldbody>"
                        "</mujoco>");
  for (const char* engine : {"batched", "mujoco"}) {
    const Result still = run_command(cohort_program() + " simulate " + path("still.xml") + " --engine " + engine);
    EXPECT_EQ(still.code, 1) << still.output;
    EXPECT_NE(still.output.find("timestep is 1e-50"), std::string::npos) << still.output;
  }
}

TEST_F(SimulateCommand, OutputThatCannotBeWrittenIsAnError) {
  for (const std::string& command : {std::string(" --help"), std::string(" simulate --help"), " model " + kWalker}) {
    const Result full = run_command("{ " + cohort_program() + command + " > /dev/full; }");
    EXPECT_EQ(full.code, 1) << command;
    EXPECT_NE(full.output.find("No space left"), std::string::npos) << full.output;
  }
}

TEST_F(SimulateCommand, HoldKeepsServosOfEveryTransmissionAtTheStart) {
  write_file_atomically(path("held.xml"), R"(
<mujoco>
  <option gravity="0 0 0"/>
  <compiler autolimits="true"/>
  <worldbody>
    <body pos="0 0 1"><joint name="geared" axis="0 1 0" ref="40"/><geom size=".1"/></body>
    <body pos="1 0 1"><joint name="bent" axis="0 1 0" ref="20"/><geom size=".1"/></body>
    <body pos="2 0 1"><joint name="pulled" type="slide" axis="0 0 1" ref="0.3"/><geom size=".1"/></body>
    <body pos="3 0 1"><joint name="slow" type="slide" axis="0 0 1" ref="0.3"/><geom size=".1"/></body>
    <body pos="4 0 1"><joint name="far" type="slide" axis="0 0 1" ref="0.3"/><geom size=".1"/></body>
    <body pos="5 0 1"><joint name="ball" type="ball"/><geom size=".1" pos=".1 0 0"/></body>
  </worldbody>
  <tendon><fixed name="string"><joint joint="pulled" coef="3"/></fixed></tendon>
  <actuator>
    <position joint="geared" kp="50" gear="2"/>
    <general joint="bent" biastype="affine" gaintype="affine" gainprm="20 3 0" biasprm="1 -40 -1"/>
    <position tendon="string" kp="50"/>
    <position name="lazy" joint="slow" kp="50" kv="30" timeconst="0.1"/>
    <position name="short" joint="far" kp="50" ctrlrange="-0.2 0.2"/>
    <position joint="ball" kp="10" gear="1 0 0 0 0 0"/>
  </actuator>
</mujoco>)");
  for (const char* engine : {"batched", "mujoco"}) {
    const Result held = run_command(cohort_program() + " simulate " + path("held.xml") +
                                    " --control hold --steps 500 --record " + path("held.npz") + " --engine " + engine);
    ASSERT_EQ(held.code, 0) << held.output;
    EXPECT_NE(held.output.find("`lazy` (its activation begins at zero), `short` (the start asks for 0.3"),
              std::string::npos)
        << held.output;
    EXPECT_EQ(held.output.find("no position servo"), std::string::npos) << held.output;
    // Nothing but the control's rounding to single precision moves the others; the slow one comes back.
    const Result moved = run_command(
        std::string(std::getenv("COHORT_PYTHON")) +
        " -c 'import numpy as n,sys; q=n.load(sys.argv[1])[\"qpos\"][:,0]; "
        "d=abs(q-q[0]).max(0); print((d[[0,1,2,5,6,7,8]]<1e-5).all(), (d[3:5]>0.01).all(), abs(q[-1]-q[0])[3]<0.02)' " +
        path("held.npz"));
    EXPECT_EQ(moved.output, "True True True\n") << engine;
  }
}

TEST_F(SimulateCommand, AKeyframeIsHeldAndZeroIsZeroAlsoOfACompiledModel) {
  write_file_atomically(path("poses.xml"), R"(
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body><joint name="a" axis="0 0 1" damping="1"/><geom size=".1" pos=".3 0 0"/></body>
    <body pos="1 0 0"><joint name="b" axis="0 0 1" damping="1"/><geom size=".1" pos=".3 0 0"/></body>
  </worldbody>
  <tendon><fixed name="string"><joint joint="b" coef="2"/></fixed></tendon>
  <actuator><position joint="a" kp="30"/><position tendon="string" kp="30"/></actuator>
  <keyframe><key qpos="1 2" ctrl="0 0"/><key qpos="-1.5 0.5" ctrl="-1.5 1"/></keyframe>
</mujoco>)");
  ASSERT_EQ(run_command(cohort_program() + " model " + path("poses.xml") + " --compile " + path("poses.cohort")).code,
            0);
  const auto last = [&](const std::string& arguments) {
    const Result run = run_command(cohort_program() + " simulate " + arguments + " --n-envs 1 --steps 300 --record " +
                                   path("run.csv"));
    EXPECT_EQ(run.code, 0) << run.output;
    std::string end;
    for (const std::string& line : lines("run.csv")) {
      if (line.starts_with("300,")) end = line;
    }
    return end;
  };
  for (const std::string& model : {path("poses.xml"), path("poses.xml") + " --engine mujoco", path("poses.cohort")}) {
    const std::string first = last(model + " --keyframe 0 --control hold"),
                      second = last(model + " --keyframe 1 --control hold");
    EXPECT_TRUE(first.find(",0,1,2,") != std::string::npos && first.ends_with(",1,4")) << model << ": " << first;
    EXPECT_TRUE(second.find(",0,-1.5,0.5,") != std::string::npos && second.ends_with(",-1.5,1"))
        << model << ": " << second;
    EXPECT_TRUE(last(model + " --keyframe 1 --control zero").ends_with(",0,0")) << model;
  }
  const Result unknown = run_command(cohort_program() + " simulate " + path("poses.xml") + " --keyframe home");
  EXPECT_NE(unknown.output.find("no keyframe `home`: name 0 to 1, their indices"), std::string::npos) << unknown.output;
}

TEST_F(SimulateCommand, OverlapsAreNamedAndLeftOutByNameAndHintsFitTheCause) {
  write_file_atomically(path("pile.xml"), R"(
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 1"/>
    <body name="low" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body name="high" pos="0 0 .25"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>)");
  const std::string base = cohort_program() + " simulate " + path("pile.xml") + " --backend cpu --steps 5 ";
  const auto says = [](const Result& r, const std::string& words) {
    EXPECT_NE(r.output.find(words), std::string::npos) << r.output << "\nwanted: " << words;
  };
  says(run_command(base), "1 pair of links overlaps: `low` and `high` by 0.05 m");
  says(run_command(cohort_program() + " model " + path("pile.xml")), "`low` and `high` by 0.05 m");
  const Result apart = run_command(base + "--exclude low:high");
  EXPECT_EQ(apart.output.find("overlap"), std::string::npos) << apart.output;
  const Result unknown = run_command(base + "--exclude low:hihg");
  says(unknown, "no link has that name; is `high` meant?");
  EXPECT_EQ(run_command(base + "--exclude low").code, 2);
  EXPECT_EQ(run_command(base + "--srdf " + path("none.srdf")).code, 2);
  const Result full = run_command(base + "--contact-capacity 3");
  EXPECT_EQ(full.code, 1);
  says(full, "more contacts than the 3 that there is room for; a larger --contact-capacity");
  EXPECT_EQ(full.output.find("--control zero"), std::string::npos) << full.output;
}

TEST_F(SimulateCommand, OneModelIsComparedWithMujoco) {
  const Result one = run_command(cohort_program() + " model " + kWalker + " --compare");
  EXPECT_EQ(one.code, 0) << one.output;
  EXPECT_NE(one.output.find("beside MuJoCo, 4 environments with random controls: "), std::string::npos) << one.output;
  EXPECT_NE(one.output.find("largest difference after 1 and 5 steps"), std::string::npos) << one.output;
}

TEST_F(SimulateCommand, ASignalEndsTheRunWithItsFiguresAndTheRecordingUpToThere) {
  // Waits until the steps begin; 200,000 of them take long enough for the signal to come first.
  const auto stopped = [&](const std::string& more, int processes) {
    return run_command(cohort_program() + " simulate " + kWalker + " --n-envs 2 --steps 200000 --record " +
                       path("run.npz") + more + " > " + path("log") + " 2>&1 & p=$!; until [ $(grep -c 'ready after' " +
                       path("log") + ") = " + format("{}", processes) + " ]; do :; done; kill -TERM $p; wait $p; " +
                       "code=$?; cat " + path("log") + "; exit $code");
  };
  const auto frames = [&](const std::string& name) {
    return run_command(std::string(std::getenv("COHORT_PYTHON")) +
                       " -c 'import numpy as n,sys; print(0 < len(n.load(sys.argv[1])[\"qpos\"]) < 200001)' " +
                       path(name))
        .output;
  };
  const Result one = stopped("", 1);
  EXPECT_EQ(one.code, 128 + SIGTERM) << one.output;
  EXPECT_NE(one.output.find("of 200000 steps by SIGTERM"), std::string::npos) << one.output;
  EXPECT_NE(one.output.find("steps/s in physics"), std::string::npos) << one.output;
  EXPECT_EQ(frames("run.npz"), "True\n");
  const Result two = stopped(" --devices 0,1", 2);
  EXPECT_EQ(two.code, 128 + SIGTERM) << two.output;
  EXPECT_NE(two.output.find("2 processes together"), std::string::npos) << two.output;
  EXPECT_EQ(frames("run.0.npz"), "True\n");
  EXPECT_EQ(frames("run.1.npz"), "True\n");
}

TEST_F(SimulateCommand, ARecordingThatCannotBeWrittenIsFoundAtTheStartOrCostsNoFigures) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --n-envs 100 ";
  const Result nowhere = run_command(base + "--record /proc/x.npz");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.output.find("/proc/x.npz"), std::string::npos) << nowhere.output;
  EXPECT_EQ(nowhere.output.find("ready after"), std::string::npos) << nowhere.output;
  // A limit of files' size stands for a disk that becomes full meanwhile.
  const std::string limited = "trap '' XFSZ; ulimit -f 100; " + base + "--steps 2000 --record ";
  const Result full = run_command(limited + path("new/full.csv"));
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.output.find("steps/s in physics"), std::string::npos) << full.output;
  EXPECT_NE(full.output.find("cannot write " + path("new/full.csv")), std::string::npos) << full.output;
  EXPECT_NE(full.output.find("full.csv holds the first "), std::string::npos) << full.output;
  EXPECT_GE(lines("new/full.csv").size(), 100u);
  std::filesystem::remove_all(path("new"));
  // An archive is found too large at the start.
  const Result archive = run_command(limited + path("new/full.npz"));
  EXPECT_EQ(archive.code, 1);
  EXPECT_NE(archive.output.find("cannot write " + path("new/full.npz")), std::string::npos) << archive.output;
  EXPECT_EQ(archive.output.find("ready after"), std::string::npos) << archive.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SimulateCommand, ProcessesUnderstandTheArgumentsAsOneProcessDoes) {
  std::filesystem::create_directories(path("p${local_rank}"));
  std::filesystem::copy_file(kWalker, path("p${local_rank}/m.xml"));
  const Result result = run_command(cohort_program() + " simulate --steps 5 --n-envs 4 --devices 0,1 -- '" +
                                    path("p${local_rank}/m.xml") + "'");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("2 processes together"), std::string::npos) << result.output;
}

TEST_F(SimulateCommand, ProcessesShareTheMemoryThatIsThere) {
  // Half of the environments fit into the limit, all of them do not: each process alone would not see that.
  const std::string base = "COHORT_HOST_MEMORY=128e6 " + cohort_program() + " simulate " + kWalker + " --steps 1 ";
  EXPECT_EQ(run_command(base + "--n-envs 120000").code, 0);
  const Result both = run_command(base + "--n-envs 240000 --devices 0,1");
  EXPECT_EQ(both.code, 1) << both.output;
  EXPECT_NE(both.output.find("this process can get"), std::string::npos) << both.output;
}

TEST_F(SimulateCommand, StoppedEnvironmentsAreListedWithMujocosReason) {
  std::string model = read_file(COHORT_SOURCE_DIR "/tests/sim/models/pile.xml");
  model.insert(model.find('>') + 1, "<size memory='20K'/>");
  write_file_atomically(path("tight.xml"), model);
  const Result result = run_command(cohort_program() + " simulate " + path("tight.xml") +
                                    " --engine mujoco --n-envs 7 --first-env 40 --steps 100");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_NE(
      result.output.find("7 environments stopped: an error in MuJoCo (environments 40, 41, 42, 43, 44 and 2 more): "),
      std::string::npos)
      << result.output;
  EXPECT_NE(result.output.find("mj_stackAlloc: out of memory"), std::string::npos) << result.output;
}

TEST_F(SimulateCommand, ARunInWhichEveryEnvironmentStoppedFailsWithTheFirstReason) {
  // A joint that pushes itself away ever faster.
  write_file_atomically(path("run.xml"),
                        "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='j' stiffness='-1e6'/><geom "
                        "size='.1' pos='.1 0 0'/></body></worldbody><actuator><motor joint='j'/></actuator></mujoco>");
  const std::string base =
      cohort_program() + " simulate " + path("run.xml") + " --n-envs 4 --first-env 10 --steps 500 --record ";
  for (const char* engine : {" --engine batched", " --engine mujoco", " --devices 0,1"}) {
    const Result all = run_command(base + path("run.csv") + engine);
    EXPECT_EQ(all.code, 1) << all.output;
    EXPECT_NE(all.output.find("every environment stopped, the first, 1"), std::string::npos) << all.output;
    EXPECT_NE(all.output.find(": a NaN or a value above 1e10"), std::string::npos) << all.output;
    EXPECT_NE(all.output.find("4 environments stopped"), std::string::npos) << all.output;
  }
  EXPECT_EQ(lines("run.csv").size(), 4u * 501u) << "what was computed is kept";
  // One that goes on is a result.
  const Result some = run_command(base + path("some.csv") + " --control zero");
  EXPECT_EQ(some.code, 0) << some.output;
}

TEST_F(SimulateCommand, SaysTheMemoryOfEnvironmentsAndThreads) {
  const std::string base = cohort_program() + " simulate " + kWalker + " --steps 1 ";
  for (const char* engine : {"batched", "mujoco"}) {
    const Result said = run_command(base + "--threads 2 --n-envs 40 --engine " + engine);
    EXPECT_NE(said.output.find("B per environment, "), std::string::npos) << said.output;
    EXPECT_NE(said.output.find("B per thread, ready after"), std::string::npos) << said.output;
  }
}

TEST_F(SimulateCommand, TakesAllCoresWhereEachGetsEnoughEnvironments) {
  const std::string base = "CUDA_VISIBLE_DEVICES= " + cohort_program() + " simulate " + kWalker + " --steps 1 ";
  const Result few = run_command(base + "--n-envs 64");
  EXPECT_NE(few.output.find("64 environments, engine batched on the CPU, 1 thread,"), std::string::npos) << few.output;
  const int cores = std::clamp(available_cores(), 1, 8);
  const Result many = run_command(base + "--n-envs 2048");
  EXPECT_NE(many.output.find(
                format("2048 environments, engine batched on the CPU, {} thread{},", cores, cores == 1 ? "" : "s")),
            std::string::npos)
      << many.output;
}

TEST_F(SimulateCommand, RefusesWhatItCannotDoWithAClearMessage) {
  // An empty mask hides every GPU, also from a build that has the kernels.
  const Result cuda =
      run_command("CUDA_VISIBLE_DEVICES= " + cohort_program() + " simulate " + kWalker + " --backend cuda");
  EXPECT_EQ(cuda.code, 1);
  EXPECT_NE(cuda.output.find("--backend cpu"), std::string::npos) << cuda.output;
  const Result gpu =
      run_command("CUDA_VISIBLE_DEVICES= " + cohort_program() + " simulate " + kWalker + " --backend gpu --steps 1");
  EXPECT_EQ(gpu.code, 0) << gpu.output;
  EXPECT_NE(gpu.output.find("falling back to the CPU"), std::string::npos) << gpu.output;
#if !defined(__APPLE__)
  const Result metal = run_command(cohort_program() + " simulate " + kWalker + " --backend metal");
  EXPECT_EQ(metal.code, 1);
  EXPECT_NE(metal.output.find("macOS"), std::string::npos) << metal.output;
#endif
  const Result missing = run_command(cohort_program() + " simulate /nowhere/x.xml");
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.output.find("/nowhere/x.xml"), std::string::npos) << missing.output;
  EXPECT_EQ(run_command(cohort_program() + " simulate " + kWalker + " --n-envs 0").code, 2);
  EXPECT_EQ(run_command(cohort_program() + " simulate " + kWalker + " --n-envs 1000000000").code, 1);
  write_file_atomically(
      path("unsupported.xml"),
      "<mujoco><worldbody><body><joint name='j' range='-1 1' limited='true'/><geom size='1'/></body></worldbody>"
      "<sensor><e_kinetic name='energy'/></sensor></mujoco>");
  const Result unsupported = run_command(cohort_program() + " simulate " + path("unsupported.xml"));
  EXPECT_EQ(unsupported.code, 1);
  EXPECT_NE(unsupported.output.find("energy"), std::string::npos) << unsupported.output;
  EXPECT_NE(unsupported.output.find("--engine mujoco"), std::string::npos) << unsupported.output;
  write_file_atomically(path("pgs.xml"),
                        "<mujoco><option solver='PGS'/><worldbody><body><joint name='j'/><geom size='1'/></body>"
                        "</worldbody></mujoco>");
  const Result pgs = run_command(cohort_program() + " simulate " + path("pgs.xml") + " --steps 1");
  EXPECT_EQ(pgs.code, 0) << pgs.output;
  EXPECT_NE(pgs.output.find("Newton"), std::string::npos) << pgs.output;
}

}  // namespace
}  // namespace cohort
