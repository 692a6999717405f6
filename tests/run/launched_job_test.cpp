#include "run/launched_job.h"

#include <map>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "run/continue_command.h"

namespace cohort::run {
namespace {
namespace fs = std::filesystem;

rank::VariableLookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

LaunchedJob elastic(const std::string& id, int restarts, const std::string& logs = "/tmp/torchelastic_a/none_b") {
  return read_launched_job(
      variables({{"TORCHELASTIC_RUN_ID", id},
                 {"TORCHELASTIC_RESTART_COUNT", std::to_string(restarts)},
                 {"TORCHELASTIC_ERROR_FILE", logs + "/attempt_" + std::to_string(restarts) + "/0/error.json"}}));
}

class JobRuns : public ::testing::Test {
 protected:
  JobRuns() : scratch_("job-runs-test", "") {}
  fs::path runs() const { return scratch_.path(); }
  /// A run's folder as rank 0 leaves it.
  std::string begin(const std::string& time, const LaunchedJob& job, const std::vector<std::string>& arguments = {}) {
    const fs::path run = runs() / time;
    fs::create_directories(run);
    write_file_atomically(run / "training.log", "");
    record_job(run, job, arguments);
    return run.string();
  }

 private:
  TemporaryFolder scratch_;
};

TEST_F(JobRuns, ARestartFindsTheRunOfItsJobAndNoOther) {
  const std::string mine = begin("2026-11-26_10-00-00", elastic("a", 0));
  begin("2026-11-26_10-00-01", elastic("b", 0));
  begin("2026-11-26_10-00-02", {});
  EXPECT_EQ(find_run("", runs(), elastic("a", 1), {}), mine);
  EXPECT_EQ(find_run("", runs(), elastic("a", 0), {}), "") << "the first attempt begins a run";
  EXPECT_EQ(find_run("", runs(), elastic("c", 2), {}), "") << "no run of this job yet";
  EXPECT_EQ(find_run("elsewhere", runs(), elastic("a", 1), {}), "elsewhere") << "what is named holds";
}

TEST_F(JobRuns, TorchrunsJobsWithoutAnIdAreToldApartByTheirLogs) {
  begin("2026-11-26_10-00-00", elastic("none", 0, "/tmp/x/none_1"));
  const std::string second = begin("2026-11-26_10-00-01", elastic("none", 0, "/tmp/x/none_2"));
  begin("2026-11-26_10-00-02", elastic("none", 0, "/tmp/x/none_3"));
  EXPECT_EQ(find_run("", runs(), elastic("none", 1, "/tmp/x/none_2"), {}), second);
  EXPECT_EQ(find_run("", runs(), elastic("none", 1, "/tmp/x/none_4"), {}), "");
}

TEST_F(JobRuns, TwoRunsOfOneSlurmJobAreToldApartByTheirSettings) {
  const LaunchedJob job = read_launched_job(variables({{"SLURM_JOB_ID", "77"}, {"SLURM_RESTART_COUNT", "1"}}));
  EXPECT_TRUE(job.restarted());
  const std::string first = begin("2026-11-26_10-00-00", job, {"train.seed=1"});
  const std::string second = begin("2026-11-26_10-00-01", job, {"train.seed=2"});
  EXPECT_EQ(find_run("", runs(), job, {"train.seed=1"}), first);
  EXPECT_EQ(find_run("", runs(), job, {"train.seed=2"}), second);
  EXPECT_EQ(find_run("", runs(), job, {"train.seed=3"}), "");
}

TEST_F(JobRuns, ARequeuedJobFindsTheRunThatItsLauncherBegan) {
  // `cohort launch` in a batch script: its own number is another after the requeue, Slurm's is the same.
  const auto in_slurm = [](const char* launcher, const char* requeues) {
    return read_launched_job(
        variables({{"TORCHELASTIC_RUN_ID", launcher}, {"SLURM_JOB_ID", "77"}, {"SLURM_RESTART_COUNT", requeues}}));
  };
  const std::string run = begin("2026-11-26_10-00-00", in_slurm("host-1", "0"));
  EXPECT_EQ(find_run("", runs(), in_slurm("host-2", "1"), {}), run);
  EXPECT_EQ(find_run("", runs(), in_slurm("host-2", "0"), {}), "") << "another step of the same job";
}

TEST_F(JobRuns, AutoTakesTheJobsRunElseTheNewest) {
  EXPECT_EQ(find_run("auto", runs(), {}, {}), "") << "there is none";
  EXPECT_EQ(find_run("auto", runs() / "missing", {}, {}), "");
  const std::string mine = begin("2026-11-26_10-00-00", elastic("a", 0));
  const std::string newest = begin("2026-11-26_10-00-01", {});
  fs::create_directories(runs() / "2026-11-26_11-00-00");  // something of the user's
  EXPECT_EQ(find_run("auto", runs(), elastic("a", 0), {}), mine);
  EXPECT_EQ(find_run("auto", runs(), {}, {}), newest);
}

TEST_F(JobRuns, AJobIsRecordedOnceAndACountMustBeANumber) {
  const std::string run = begin("2026-11-26_10-00-00", elastic("a", 0), {"data.path=\xff.csv"});
  const std::string text = read_file(fs::path(run) / "jobs.jsonl");
  record_job(run, elastic("a", 1), {"data.path=\xff.csv"});
  EXPECT_EQ(read_file(fs::path(run) / "jobs.jsonl"), text);
  EXPECT_EQ(find_run("", runs(), elastic("a", 1), {"data.path=\xff.csv"}), run) << "bytes that are no UTF-8";
  EXPECT_THROW(read_launched_job(variables({{"SLURM_RESTART_COUNT", "often"}})), Error);
}

TEST(ContinueCommand, HoldsTheLaunchersFlagsOrNamesTheLauncher) {
  rank::Environment alone, launched;
  launched.source = rank::EnvironmentSource::kSlurm;
  const ContinueCommand one = continue_command("cohort", "out/a b", alone, variables({}));
  EXPECT_EQ(one.text, "cohort train resume='out/a b'");
  EXPECT_EQ(one.remark, "");
  EXPECT_EQ(continue_command("cohort", "out/r", launched, variables({})).remark, "under the same launcher (Slurm)");
  const ContinueCommand two = continue_command(
      "cohort", "out/r", launched, variables({{"COHORT_LAUNCH_COMMAND", "cohort launch --nproc_per_node=2"}}));
  EXPECT_EQ(two.text, "cohort launch --nproc_per_node=2 train resume=out/r");
  EXPECT_EQ(two.remark, "");
}

}  // namespace
}  // namespace cohort::run
