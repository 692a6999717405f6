// The guide's first task of one's own, as it is written: it is the example that lies in examples/tasks, short, and learns.
#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/process.h"
#include "tasks/registry.h"
#include "tasks/task_check.h"

namespace cohort::tasks {
namespace {

const std::string kSource = std::string(COHORT_SOURCE_DIR) + "/";

/// The first block of YAML behind the mention of a file.
std::string block_behind(const std::string& page, const std::string& mention) {
  const std::string begin = "```yaml\n";
  const std::size_t from = page.find(begin, page.find(mention));
  if (from == std::string::npos) return "";
  return page.substr(from + begin.size(), page.find("```", from + begin.size()) - from - begin.size());
}

TEST(TaskGuide, ItsDoublePendulumIsTheExampleInBothLanguagesAndHasAtMostFortyLines) {
  const std::string example = read_file(kSource + "examples/tasks/double_pendulum.yaml");
  for (const char* page : {"docs/guide/task_files.md", "docs/zh/task_files.md"})
    EXPECT_EQ(block_behind(read_file(kSource + page), "examples/tasks/double_pendulum.yaml"), example) << page;
  EXPECT_LE(std::ranges::count(example, '\n'), 40);
}

TEST(TaskGuide, WhatIsTypedFromItIsATaskThatKeepsWhatTrainingReliesOn) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "double_pendulum.xml") << read_file(kSource + "examples/tasks/double_pendulum.xml");
  std::ofstream(folder.path() / "my_task.yaml")
      << block_behind(read_file(kSource + "docs/guide/task_files.md"), "examples/tasks/double_pendulum.yaml");
  const std::string task = (folder.path() / "my_task.yaml").string();
  for (const CheckRow& row : check_task([&](int n) { return make_task(task, {.n_envs = n}); }))
    EXPECT_NE(row.outcome, CheckRow::Outcome::kFail) << row.name << ": " << row.found;
}

}  // namespace
}  // namespace cohort::tasks
