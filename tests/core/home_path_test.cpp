#include "core/home_path.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/error.h"
#include "core/message_of.h"

namespace cohort {
namespace {

class HomePath : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HOME", "/home/ada", 1);
    ::setenv("DATA", "/data/", 1);
    ::unsetenv("NOWHERE");
  }
};

TEST_F(HomePath, FrontsThatShellsWouldHaveReplacedAreReplaced) {
  EXPECT_EQ(with_home("~/runs"), "/home/ada/runs");
  EXPECT_EQ(with_home("$HOME/runs"), "/home/ada/runs");
  EXPECT_EQ(with_home("${DATA}/droid"), "/data/droid");
  EXPECT_EQ(with_home("$DATA"), "/data/");
}

TEST_F(HomePath, OtherTextsStayAsTheyAre) {
  for (const std::string text : {"", "~", "runs", "a/~/b", "~ada/runs", "~x", "./~", "$", "$/x", "$3.50", "$1/2",
                                 "$NOWHERE", "${HOME", "${}/x", "$HOME$DATA/x", "pick up $DATA/x"})
    EXPECT_EQ(with_home(text), text);
}

TEST_F(HomePath, AVariableThatIsNotSetIsNamed) {
  EXPECT_EQ(message_of([] { with_home("$NOWHERE/x"); }),
            "$NOWHERE/x: the environment variable NOWHERE is not set: set it, or write the whole path");
}

TEST_F(HomePath, OfAWordTheValueIsRead) {
  EXPECT_EQ(word_with_home("--out=~/a.png"), "--out=/home/ada/a.png");
  EXPECT_EQ(word_with_home("data.path=$HOME/a.csv"), "data.path=/home/ada/a.csv");
  EXPECT_EQ(word_with_home("~/a=b.csv"), "/home/ada/a=b.csv");
  EXPECT_EQ(word_with_home("a b=~/c"), "a b=~/c");
  EXPECT_EQ(word_with_home("--flag"), "--flag");
}

// A settings file with "output_dir": "~/runs" made a folder that is called ~.
TEST_F(HomePath, SettingsOfFilesAndOfTheCommandLineHaveThem) {
  std::string folder;
  std::vector<std::string> paths;
  config::Fields fields;
  fields.add("output_dir", folder, "of all runs");
  fields.add("paths", paths, "data sets");
  fields.apply_json({{"output_dir", "~/runs"}, {"paths", {"$DATA/a", "b"}}}, "c.json");
  EXPECT_EQ(folder, "/home/ada/runs");
  EXPECT_EQ(paths, (std::vector<std::string>{"/data/a", "b"}));
  fields.apply_override("paths=[~/a, c]");
  EXPECT_EQ(paths, (std::vector<std::string>{"/home/ada/a", "c"}));
  fields.apply_override("paths=[~, NA]");
  EXPECT_EQ(paths, (std::vector<std::string>{"~", "NA"})) << "what stands for a missing value";
  EXPECT_NE(message_of([&] { fields.apply_override("output_dir=$NOWHERE/a"); }).find("NOWHERE is not set"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort
