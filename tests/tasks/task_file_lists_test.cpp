// What a message or a list says there is, the reader of task files takes: kinds, types and quantities.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "support/process.h"
#include "tasks/file/file_plan.h"
#include "tasks/file/quantities.h"
#include "tasks/file/task_content.h"
#include "tasks/registry.h"

namespace cohort::tasks {
namespace {

constexpr const char* kCart = R"(
<mujoco model="cart"><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0" range="-1 1"/>
  <geom name="box" size="0.1"/></body></worldbody><actuator><motor name="push" joint="rail"/></actuator></mujoco>)";
constexpr const char* kFile = R"yaml(
scene: {robot: {mjcf: cart.xml}}
simulation: {decimation: 4}
actions: {legs: {type: joint_effort}}
observations: {policy: {joint_pos: {}}}
)yaml";

class TaskFileLists : public ::testing::Test {
 protected:
  TaskFileLists() { write("cart.xml", kCart); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  /// What is wrong with the task; `more` may say a section of kFile otherwise.
  std::string complaint(const std::string& more) const {
    write("base.yaml", kFile);
    return message_of([&] { make_task(write("task.yaml", "include: base.yaml\n" + more), {}); });
  }
  /// The words behind `before`, with commas between them, up to what is no part of such a list.
  static std::vector<std::string> listed(const std::string& text, const std::string& before) {
    std::vector<std::string> words;
    std::size_t at = text.rfind(before);
    if (at == std::string::npos) return words;
    for (at += before.size();;) {
      const std::size_t end =
          std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at), text.size());
      words.push_back(text.substr(at, end - at));
      if (text.compare(end, 2, ", ") != 0) return words;
      at = end + 2;
    }
  }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(TaskFileLists, EveryTypeThatAMessageNamesIsTaken) {
  struct List {
    const char *begin, *end;  ///< of the section with a type between them
    const char* before;       ///< what the message says before the types
    const char* unknown;      ///< and of one that there is not
    std::size_t least;
  };
  for (const List& list : {List{"events: {a: {type: ", "}}", "there are ", "there is no event", 20},
                           List{"curriculum: {a: {type: ", "}}", "there are ", "there is no curriculum", 4},
                           List{"actions: {legs: {type: ", "}}", "is none of ", "is none of", 6},
                           List{"commands: {a: {type: ", "}}", "there are ", "is not supported", 3},
                           List{"scene: {thing: {", ": 0.1}}", "one of ", "says not what it is", 10}}) {
    const std::string none = complaint(std::string(list.begin) + "nothing" + list.end);
    EXPECT_NE(none.find(list.unknown), std::string::npos) << none;
    const std::vector<std::string> types = listed(none, list.before);
    EXPECT_GE(types.size(), list.least) << none;
    for (const std::string& type : types) {
      const std::string said = complaint(list.begin + type + list.end);
      EXPECT_EQ(said.find(list.unknown), std::string::npos) << type << ": " << said;
    }
  }
}

TEST_F(TaskFileLists, AWeightWithTheWrongSignIsAskedAbout) {
  const auto remarks = [&](const std::string& rewards) {
    const std::string base = write("base.yaml", kFile), task = write("task.yaml", "include: base.yaml\n" + rewards);
    return plan_of_file(task, read_content(task), false).remarks;
  };
  const std::vector<std::string> wrong = remarks(
      "rewards: {action_rate_l2: 0.01, slow: {term: joint_vel_l2, weight: 0.1}, near: {term: posture, std: 1, weight: "
      "-1}}");
  ASSERT_EQ(wrong.size(), 3u);
  EXPECT_NE(wrong[0].find("rewards.action_rate_l2 has the weight 0.01"), std::string::npos) << wrong[0];
  EXPECT_NE(wrong[0].find("is -0.01 meant?"), std::string::npos) << wrong[0];
  EXPECT_NE(wrong[1].find("rewards.slow has the weight 0.1, and what it measures (speed of joints)"), std::string::npos)
      << wrong[1];
  EXPECT_NE(wrong[2].find("is to be wanted: is 1 meant?"), std::string::npos) << wrong[2];
  EXPECT_TRUE(
      remarks("rewards: {action_rate_l2: -0.01, near: {term: posture, std: 1}, is_alive: -0.1, own: {formula: 1, "
              "weight: -1}}")
          .empty());
}

TEST_F(TaskFileLists, EveryQuantityThatIsListedIsOne) {
  const auto of_formula = [&](const std::string& formula) { return complaint("metrics: {a: '" + formula + "'}"); };
  const std::string none = of_formula("sum(nothing)");
  EXPECT_NE(none.find("no quantity or function 'nothing'"), std::string::npos) << none;
  for (const QuantityEntry& entry : quantity_entries()) {
    const std::string name = entry.name, said = of_formula("sum(" + name + ")");
    EXPECT_EQ(said.find("no quantity or function '" + name + "'"), std::string::npos) << said;
  }
  for (const std::string& what : listed(of_formula("sum(robot.nothing)"), "it has ")) {
    const std::string said = of_formula("sum(robot." + what + ")");
    EXPECT_EQ(said.find("robot has no '" + what + "'"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace cohort::tasks
