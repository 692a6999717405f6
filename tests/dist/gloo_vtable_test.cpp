// LibTorch carries a newer Gloo than the headers that we compile against. As long as no object of ours defines the
// virtual table of ProcessGroupGloo::GlooStore, the one inside LibTorch is used, and the difference is harmless.
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "support/command.h"

namespace {

TEST(GlooHeaders, WeDefineNoVirtualTableOfGloosStore) {
  for (const char* file : {"/src/dist/libcohort_dist.a", "/tests/dist_worker"}) {
    const std::string symbols = cohort::test::run_command("nm -C " COHORT_BINARY_DIR + std::string(file)).output;
    ASSERT_NE(symbols.find("cohort::dist::make_gloo_backend"), std::string::npos) << "nm shows the symbols of " << file;
    std::istringstream lines(symbols);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("vtable for c10d::ProcessGroupGloo::GlooStore") == std::string::npos) continue;
      EXPECT_NE(line.find(" U "), std::string::npos) << file << " defines it: " << line;
    }
  }
}

}  // namespace
