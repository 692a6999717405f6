/// Runs of `cohort train ppo` in a folder of the test's own, with few environments.
#pragma once
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/process.h"

namespace cohort::testing {

using Words = std::vector<std::string>;

class TrainPpo : public ::testing::Test {
 protected:
  fs::path out() const { return folder_.path() / "out"; }
  Words command(const std::string& name, const Words& more, const std::string& task = "cartpole-balance") const {
    Words words{cohort_path(),  "train",
                "ppo",          "task=" + task,
                "name=" + name, "output_dir=" + out().string(),
                "n_envs=32",    "num_steps_per_env=16",
                "charts=false"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Outcome train(const std::string& name, const Words& more, const std::string& task = "cartpole-balance") const {
    return run(command(name, more, task), {{"OMP_NUM_THREADS", "1"}});
  }
  fs::path latest(const std::string& name) const { return fs::canonical(out() / name / "latest"); }

  TemporaryFolder folder_;
};

}  // namespace cohort::testing
