// Trainings whose ranks a scheduler starts, without a launcher of ours: a real Slurm on this machine (Debian: slurm-wlm
// munge) and a real mpirun (openmpi-bin).
#include <optional>

#include <gtest/gtest.h>

#include "cli/training.h"

namespace cohort::testing {
namespace {

bool has_program(const std::string& name) {
  return run({"/bin/sh", "-c", "command -v " + name}).code == 0;
}

/// Runs a script inside a Slurm cluster of this machine alone; nothing where that cannot be had, with the reason in
/// `why`.
std::optional<Outcome> in_slurm(const std::string& script, std::string& why) {
  TemporaryFolder folder;
  const Outcome outcome = run({COHORT_SOURCE_DIR "/tests/cli/with_slurm", (folder.path() / "slurm").string(),
                               std::to_string(free_port()), std::to_string(free_port()), "/bin/bash", "-c", script},
                              Training::variables({{"SLURM_JOB_ID", ""}}));
  if (outcome.code != 77) return outcome;
  why = outcome.err;
  return std::nullopt;
}

/// The words as a script has them.
std::string command(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += "'" + word + "' ";
  return line;
}

TEST(TrainSchedulers, SrunStartsTheRanks) {
  const Training training;
  std::string why;
  const auto outcome = in_slurm("srun -n 2 " + command(training.alone("run", {"train.steps=20"})), why);
  if (!outcome) GTEST_SKIP() << why;
  EXPECT_EQ(outcome->code, 0) << outcome->err;
  const std::string log = text_of(training.outputs() / "run" / "latest" / "training.log");
  EXPECT_TRUE(contains(log, "world: rank 0 of 2 (local rank 0 of 2), from Slurm")) << log;
  EXPECT_TRUE(contains(log, "training finished")) << log;
  EXPECT_EQ(training.runs("run").size(), 1u);
}

TEST(TrainSchedulers, AfterSlurmsNoticeARequeuedJobGoesOnWithItsRun) {
  const Training training;
  const fs::path script = training.path() / "job.sh";
  // The notice makes the ranks save and end with 128 + its number, whereupon the script asks to be queued again.
  write_file_atomically(script, "#!/bin/bash\n#SBATCH --ntasks=2 --requeue --open-mode=append --output=" +
                                    (training.path() / "log").string() + "\nsrun " +
                                    command(training.alone("run", {"train.steps=400"})) +
                                    "\nif [ $? = 138 ]; then scontrol requeue $SLURM_JOB_ID; fi\n");
  const std::string metrics = (training.outputs() / "run" / "latest" / "metrics.jsonl").string();
  std::string why;
  const auto outcome = in_slurm(
      "job=$(sbatch --parsable " + script.string() + "); until [ -s " + metrics +
          " ]; do sleep 0.1; done\n"
          "state() { scontrol -o show job $job | sed 's/.*JobState=\\([A-Z]*\\).*/\\1/'; }\n"
          "scancel --signal=USR1 $job; until scontrol -o show job $job | grep -q Restarts=1; do sleep 0.2; done\n"
          "until s=$(state); [ \"$s\" = COMPLETED ] || [ \"$s\" = FAILED ]; do sleep 0.2; done; echo \"$s\"",
      why);
  if (!outcome) GTEST_SKIP() << why;
  const std::string said = text_of(training.path() / "log");
  EXPECT_EQ(outcome->out, "COMPLETED\n") << outcome->err << said;
  ASSERT_EQ(training.runs("run").size(), 1u) << said;
  const std::string log = text_of(training.outputs() / "run" / "latest" / "training.log");
  EXPECT_TRUE(contains(log, "training stopped by a signal")) << said;
  EXPECT_TRUE(contains(log, "restart 1 of the job by Slurm: going on with its run ")) << said;
  EXPECT_TRUE(contains(log, "training finished")) << said;
}

TEST(TrainSchedulers, MpirunStartsTheRanks) {
  if (!has_program("mpirun")) GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
  const Training training;
  const std::vector<std::string> mpirun = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n",
                                           "2",      cohort_path()};
  const Outcome outcome =
      run(training.after(mpirun, "run", {"train.steps=20"}), Training::variables({{"SLURM_JOB_ID", ""}}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "world: rank 0 of 2 (local rank 0 of 2), from Open MPI")) << outcome.err;
  EXPECT_EQ(training.runs("run").size(), 1u);
}

}  // namespace
}  // namespace cohort::testing
