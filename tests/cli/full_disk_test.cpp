// Output that does not fit, or cannot be written at all: a message, and nothing half-written.
#include "cli/task_program.h"

namespace cohort::testing {
namespace {

class SmallDisk : public TaskProgram {
 protected:
  void SetUp() override {
    if (run({"unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"}).code != 0)
      GTEST_SKIP() << "no file system can be mounted here: needs root or user namespaces";
    fs::create_directories(path("disk"));
  }
  /// `words` in a mount namespace of their own, where the folder "disk" is a file system with these options. The output
  /// ends with the names of all that is in it.
  Outcome on_disk(const std::string& options, const std::vector<std::string>& words,
                  const std::string& before = ":") const {
    std::string command = cohort_path();
    for (const std::string& word : words) command += " '" + word + "'";
    const std::string disk = path("disk");
    return run({"unshare", "-rm", "sh", "-c",
                "mount -t tmpfs -o " + options + " none '" + disk + "' && { " + before + "; " + command +
                    "; code=$?; find '" + disk + "' -type f; exit $code; }"},
               {{"OMP_NUM_THREADS", "1"}});
  }
};

TEST_F(SmallDisk, ARecordingThatDoesNotFitLeavesNoDataSet) {
  const std::vector<std::string> words{"collect",   "reach", "--episodes", "200",
                                       "--threads", "1",     "--out",      path("disk")};
  const Outcome full = on_disk("size=100k", words);
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(full.out.find("dataset_info.json"), std::string::npos) << full.out;
  const Outcome closed = on_disk("ro", words);
  EXPECT_EQ(closed.code, 1);
  EXPECT_NE(closed.err.find("Read-only file system"), std::string::npos) << closed.err;
}

TEST_F(SmallDisk, ALeRobotSetThatDoesNotFitLeavesNothingOfIt) {
  const std::vector<std::string> words{"collect", "reach",     "--episodes", "150",   "--format",
                                       "lerobot", "--threads", "1",          "--out", path("disk")};
  // The recording fits, the set beside it does not.
  const Outcome full = on_disk("size=600k", words);
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_NE(full.out.find("reach.recording/"), std::string::npos) << "goes on from there\n" << full.out;
  EXPECT_EQ(full.out.find("info.json"), std::string::npos) << full.out;
  EXPECT_EQ(full.out.find(".parquet"), std::string::npos) << full.out;
}

TEST_F(SmallDisk, AConversionThatDoesNotFitLeavesNothingOfIt) {
  const std::string source = std::string(COHORT_SOURCE_DIR) + "/tests/data/fixtures/filters.hdf5";
  for (const char* format : {"hdf5", "rlds"}) {
    SCOPED_TRACE(format);
    const Outcome full =
        on_disk("size=8k", {"data", "convert", source, "--to", format, "--index-cache", "never", "--out",
                            path("disk") + "/it" + (format == std::string("hdf5") ? ".hdf5" : "")});
    EXPECT_EQ(full.code, 1) << "no crash of the library either\n" << full.err;
    EXPECT_NE(full.err.find("cannot write"), std::string::npos) << full.err;
    EXPECT_EQ(full.out.find("/it"), std::string::npos) << full.out;
  }
}

TEST_F(SmallDisk, AnEvaluationThatDoesNotFitLeavesNoTable) {
  const std::vector<std::string> words{"evaluate",   "--task", "reach", "--policy",  "random",
                                       "--episodes", "40",     "--out", path("disk")};
  const Outcome full = on_disk("size=12k", words, "head -c 4096 /dev/zero > '" + path("disk") + "/other'");
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(full.out.find("evaluation."), std::string::npos) << full.out;
  const Outcome closed = on_disk("ro", words);
  EXPECT_EQ(closed.code, 1);
  EXPECT_NE(closed.err.find("Read-only file system"), std::string::npos) << closed.err;
  EXPECT_EQ(closed.out.find("random"), std::string::npos) << "found before an episode\n" << closed.out;
}

TEST_F(SmallDisk, VideosThatDoNotFitDoNotTakeTheTableAlong) {
  const std::vector<std::string> words{
      "evaluate", "--task",     "reach", "--policy",  "random", "--out",          path("kept"),         "--size",
      "32",       "--episodes", "3",     "--threads", "1",      "--record-video", "--video-output-dir", path("disk")};
  const Outcome full = on_disk("size=4k", words);
  EXPECT_EQ(full.code, 1);
  EXPECT_NE(full.err.find("No space left on device"), std::string::npos) << full.err;
  EXPECT_EQ(full.out.find(".mp4"), std::string::npos) << full.out;
  EXPECT_NE(full.out.find("95 % interval"), std::string::npos) << full.out;
  const auto json = parse_json<nlohmann::json>(read_file(path("kept/evaluation.json")));
  EXPECT_EQ(json.at("policies").at(0).at("table").size(), 3u);
  EXPECT_TRUE(json.at("videos").empty());
}

}  // namespace
}  // namespace cohort::testing
