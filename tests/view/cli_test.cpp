// Pages that programs write, and the server that one is.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/command.h"

namespace cohort {
namespace {

namespace fs = std::filesystem;
using test::run_command;

std::string cohort() {
  return std::string(std::getenv("COHORT_BIN")) + "/cohort ";
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class ViewCommand : public testing::Test {
 protected:
  std::string in_folder(const std::string& name) const { return (folder_.path() / name).string(); }
  TemporaryFolder folder_{"cohort-view-cli"};
};

TEST_F(ViewCommand, SimulateWritesOnePageThatAsksNobody) {
  const std::string page = in_folder("run.html");
  const std::string command = cohort() + "simulate " COHORT_SOURCE_DIR "/tests/sim/models/walker.xml --steps 200 ";
  const auto r = run_command(command + "--n-envs 3 --html " + page);
  ASSERT_EQ(r.code, 0) << r.output;
  const std::string text = read_file(page);
  EXPECT_EQ(count(text, "class=\"scene\""), 1u);
  EXPECT_EQ(count(text, "class=\"poses\""), 1u);
  EXPECT_EQ(count(text, "https://"), 0u);
  const auto wrong = run_command(command + "--html " + in_folder("run.txt"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.output.find("a page's name ends in .html"), std::string::npos) << wrong.output;
}

TEST_F(ViewCommand, AnEvaluationsBestAndWorstEpisodeAreOnAPageThatItsTableNames) {
  const std::string out = in_folder("evaluation");
  const auto r = run_command(cohort() + "evaluate --task reach --policy expert --episodes 3 --n-envs 3 --out " + out +
                             " --html " + out + "/episodes.html");
  ASSERT_EQ(r.code, 0) << r.output;
  EXPECT_EQ(count(read_file(out + "/episodes.html"), "class=\"poses\""), 2u);
  EXPECT_NE(read_file(out + "/evaluation.json").find("\"page\": \"episodes.html\""), std::string::npos);
  const auto flat =
      run_command(cohort() + "evaluate --task push-t --policy random --episodes 1 --html " + in_folder("t.html"));
  EXPECT_NE(flat.code, 0);
  EXPECT_NE(flat.output.find("no scene in three dimensions"), std::string::npos) << flat.output;
}

TEST_F(ViewCommand, RecordedEpisodesAndTheirDataSetHavePages) {
  const std::string attempts = in_folder("attempts.html"), data = in_folder("data.html");
  const auto r = run_command(cohort() + "collect reach --episodes 3 --n-envs 3 --format hdf5 --name reach --out " +
                             in_folder("set") + " --html " + attempts);
  ASSERT_EQ(r.code, 0) << r.output;
  EXPECT_GE(count(read_file(attempts), "class=\"poses\""), 3u);
  const auto inspected = run_command(cohort() + "data inspect " + in_folder("set/reach.hdf5") + " --html " + data);
  ASSERT_EQ(inspected.code, 0) << inspected.output;
  EXPECT_EQ(count(read_file(data), "class=\"data\""), 1u);
  EXPECT_NE(inspected.output.find("episodes in " + data), std::string::npos) << inspected.output;
}

/// Its output until it has said all that it says, and its exit code once it was told to end.
test::CommandOutcome told_to_end(const std::string& view, const std::string& said) {
  return run_command(view + " > " + said + " 2>&1 & p=$!; for i in $(seq 1200); do grep -q Ctrl-C " + said +
                     " && break; kill -0 $p || break; sleep 0.05; done; kill -TERM $p; wait $p; code=$?; cat " + said +
                     "; exit $code");
}

TEST_F(ViewCommand, ATasksFileAndAManifestOfDataAreShown) {
  const auto file =
      told_to_end(cohort() + "view " COHORT_SOURCE_DIR "/examples/tasks/double_pendulum.yaml", in_folder("task.txt"));
  EXPECT_EQ(file.code, 0) << file.output;
  EXPECT_NE(file.output.find("double_pendulum: open http://127.0.0.1:"), std::string::npos) << file.output;
  const auto manifest = told_to_end(
      cohort() + "view " COHORT_SOURCE_DIR "/tests/data/fixtures/droid_hdf5/manifest.json", in_folder("data.txt"));
  EXPECT_EQ(manifest.code, 0) << manifest.output;
  EXPECT_NE(manifest.output.find("manifest.json: open http://127.0.0.1:"), std::string::npos) << manifest.output;
  const std::string table = in_folder("table.csv");
  write_file_atomically(table, "a,b\n1,2\n");
  const auto other = run_command(cohort() + "view " + table);
  EXPECT_NE(other.code, 0);
  EXPECT_NE(other.output.find("no task's file (.yaml)"), std::string::npos) << other.output;
}

TEST_F(ViewCommand, TheServerSaysItsAddressAndEndsWhenItIsTold) {
  const auto r =
      told_to_end(cohort() + "view " COHORT_SOURCE_DIR "/tests/sim/models/walker.xml", in_folder("model.txt"));
  EXPECT_EQ(r.code, 0) << r.output;
  EXPECT_NE(r.output.find("open http://127.0.0.1:"), std::string::npos) << r.output;
  EXPECT_NE(r.output.find("/?token="), std::string::npos) << r.output;
  EXPECT_NE(r.output.find("ssh -L "), std::string::npos) << r.output;
  const auto task =
      told_to_end(cohort() + "view reach --policy expert --policy random --n-envs 2", in_folder("task.txt"));
  EXPECT_EQ(task.code, 0) << task.output;
  EXPECT_NE(task.output.find("reach: open http://127.0.0.1:"), std::string::npos) << task.output;
  const auto empty = run_command(cohort() + "evaluate " + in_folder("") + " --episodes 1");
  EXPECT_NE(empty.output.find("knows its task"), std::string::npos) << empty.output;
  const auto none = run_command(cohort() + "view push-t");
  EXPECT_NE(none.code, 0);
  EXPECT_NE(none.output.find("no scene in three dimensions"), std::string::npos) << none.output;
}

TEST_F(ViewCommand, ARunThatPlaysEpisodesIsShownInItsTask) {
  const auto data = run_command(cohort() + "collect reach --episodes 2 --n-envs 2 --format hdf5 --name reach --out " +
                                in_folder("set"));
  ASSERT_EQ(data.code, 0) << data.output;
  const auto run = run_command(cohort() + "train policy " + in_folder("set/reach.hdf5") +
                               " model.algorithm=bc 'model.bc.actor_layer_dims=[8]' train.steps=1 rollout.enabled=true "
                               "rollout.task=reach rollout.n=1 rollout.rate=1 charts=false name=run output_dir=" +
                               in_folder("out"));
  ASSERT_EQ(run.code, 0) << run.output;
  const std::string latest = in_folder("out/run/latest"), copied = in_folder("copied");
  fs::copy(fs::canonical(latest + "/checkpoints/last"), copied, fs::copy_options::recursive);
  for (const std::string& shown : {latest, latest + "/checkpoints", latest + "/checkpoints/last", copied}) {
    const auto r = told_to_end(cohort() + "view " + shown, in_folder("run.txt"));
    EXPECT_EQ(r.code, 0) << r.output;
    EXPECT_NE(r.output.find("task reach, in which " + shown + " has learnt"), std::string::npos) << r.output;
    EXPECT_NE(r.output.find("reach: open http://127.0.0.1:"), std::string::npos) << r.output;
  }
}

}  // namespace
}  // namespace cohort
