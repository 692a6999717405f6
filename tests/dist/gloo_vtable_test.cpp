// LibTorch carries a newer Gloo than the headers that we compile against. As long as no object of ours defines the
// virtual table of ProcessGroupGloo::GlooStore, the one inside LibTorch is used, and the difference is harmless.
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace {

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer;
  while (std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) text.append(buffer.data(), n);
  return text;
}

TEST(GlooHeaders, WeDefineNoVirtualTableOfGloosStore) {
  for (const char* file : {"/src/dist/libcohort_dist.a", "/tests/dist_worker"}) {
    const std::string symbols = output_of("nm -C " + std::string(COHORT_BINARY_DIR) + file + " 2>&1");
    ASSERT_NE(symbols.find("cohort::dist::make_gloo_backend"), std::string::npos) << "nm shows the symbols of " << file;
    std::istringstream lines(symbols);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("vtable for c10d::ProcessGroupGloo::GlooStore") == std::string::npos) continue;
      EXPECT_NE(line.find(" U "), std::string::npos) << file << " defines it: " << line;
    }
  }
}

}  // namespace
