#include "core/command_line.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/command.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

TEST(CommandLine, AShellReadsAQuotedWordBack) {
  EXPECT_EQ(shell_quoted("--nproc_per_node=2"), "--nproc_per_node=2") << "what needs no quotes has none";
  for (const std::string word : {"a b.csv", "it's", "$HOME", "", "a\"b\\c", "*", "new\nline"}) {
    const std::string text = test::run_command("printf '<%s>' " + shell_quoted(word)).output;
    EXPECT_EQ(text, "<" + word + ">");
  }
}

TEST(CommandLine, AProgramIsCalledByItsNameWherePathLeadsToIt) {
  const TemporaryFolder folder("command-line-test", "");
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder.path() / name);
    write_file_atomically(folder.path() / name / "tool", "");
  }
  const std::string before = std::getenv("PATH");
  const std::string a = (folder.path() / "a").string(), b = (folder.path() / "b").string();
  ::setenv("PATH", (a + ":" + b).c_str(), 1);
  EXPECT_EQ(typed_name(a + "/tool"), "tool");
  EXPECT_EQ(typed_name(b + "/tool"), b + "/tool") << "the shell would take the other one";
  ::setenv("PATH", "", 1);
  EXPECT_EQ(typed_name(a + "/tool"), a + "/tool");
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace cohort
