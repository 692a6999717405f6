/// The program as a user runs it, with a folder of its own: for tests of the commands that run tasks.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {

class TaskProgram : public ::testing::Test {
 protected:
  Outcome cohort(const std::vector<std::string>& words) const {
    std::vector<std::string> command{cohort_path()};
    command.insert(command.end(), words.begin(), words.end());
    return run(command, {{"OMP_NUM_THREADS", "1"}});
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// The message and exit code of something that is refused.
  static void expect_refused(const Outcome& outcome, int code, const std::string& message) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << message << "\n" << outcome.err;
  }
  /// All files below a folder with their bytes.
  std::map<std::string, std::string> content(const std::string& name) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path(name)))
      if (entry.is_regular_file()) files[fs::relative(entry.path(), path(name)).string()] = text_of(entry.path());
    return files;
  }
  void collect(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"collect", "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = cohort(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  /// A policy of a few steps: its figures are chance's, but it is saved and acts as any other.
  Outcome train(const std::string& file, const std::string& data, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"train",
                                   "policy",
                                   "--config",
                                   COHORT_SOURCE_DIR "/examples/policies/" + file + ".json",
                                   "data.paths=[" + path(data) + "]",
                                   "data.splits=train",
                                   "data.statistics_cache=never",
                                   "validation.splits=[]",
                                   "output_dir=" + path("runs"),
                                   "devices=cpu",
                                   "train.batch_size=16",
                                   "train.steps=4",
                                   "train.warmup_steps=0",
                                   "train.checkpoint.every=0",
                                   "train.validate_every=0",
                                   "rollout.enabled=false",
                                   "charts=false"};
    words.insert(words.end(), more.begin(), more.end());
    return cohort(words);
  }

  TemporaryFolder folder_;
};

}  // namespace cohort::testing
