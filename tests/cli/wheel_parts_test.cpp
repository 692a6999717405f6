// What a program of the wheel says where the wheels beside it are missing or of another version.
#include "cli/wheel_parts.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/command_line.h"
#include "core/error.h"
#include "core/files.h"
#include "support/fresh_folder.h"

namespace cohort::cli {
namespace {
namespace fs = std::filesystem;

class WheelParts : public ::testing::Test {
 protected:
  void SetUp() override {
    site_ = test::fresh_folder("wheel_parts") / "lib" / "python3" / "site-packages";
    fs::create_directories(site_ / "cohort" / "bin");
    put("cohort/__main__.py", "");
  }
  void put(const std::string& name, const std::string& text) {
    fs::create_directories((site_ / name).parent_path());
    write_file_atomically(site_ / name, text);
  }
  void put_torch(const std::string& version, const std::string& cuda) {
    put("torch/version.py",
        "from typing import Optional\n__version__ = '" + version + "'\ncuda: Optional[str] = " + cuda + "\n");
  }
  /// Empty where all is well.
  std::string message(const std::string& program = "cohort/bin/cohort-train") {
    try {
      check_wheel_parts(site_ / program, "2.11");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  fs::path site_;
};

TEST_F(WheelParts, AMissingPyTorchIsNamedWithTheCommandThatBringsIt) {
  EXPECT_NE(message().find("cohort-train needs PyTorch 2.11 beside"), std::string::npos) << message();
  EXPECT_NE(message().find("pip install 'torch==2.11.*'"), std::string::npos) << message();
}

TEST_F(WheelParts, AnotherMinorVersionIsNamedBesideTheWantedOne) {
  put_torch("2.1.0+cpu", "None");  // 2.1 is no beginning of 2.11
  EXPECT_NE(message().find("is 2.1.0+cpu: pip install 'torch=="), std::string::npos) << message();
  put_torch("3.0.0", "None");
  EXPECT_NE(message().find("is 3.0.0"), std::string::npos) << message();
  put("torch/version.py", "");
  EXPECT_NE(message().find("is of an unknown version"), std::string::npos) << message();
}

TEST_F(WheelParts, TheBuildForCpusNeedsNoLibraryOfCuda) {
  put_torch("2.11.3+cpu", "None");
  EXPECT_EQ(message(), "");
}

// A generation of CUDA that no machine has, so that the system's linker knows none of its libraries.
TEST_F(WheelParts, AMissingLibraryOfCudaIsNamedWithItsWheel) {
  put_torch("2.11.0+cu9990", "'999.0'");
  EXPECT_NE(message().find("needs libcudart.so.999"), std::string::npos) << message();
  put("nvidia/cu999/lib/libcudart.so.999", "");
  EXPECT_NE(message().find("needs libcupti.so.999"), std::string::npos) << message();
  EXPECT_NE(message().find("pip install 'nvidia-cuda-cupti==999.*'"), std::string::npos) << message();
  put("nvidia/cu999/lib/libcupti.so.999", "");
  EXPECT_EQ(message(), "");
}

TEST_F(WheelParts, ABuildOutsideOfAWheelIsNotLookedAt) {
  fs::remove(site_ / "cohort" / "__main__.py");
  EXPECT_EQ(message(), "");
  EXPECT_EQ(message("bin/cohort-train"), "");
}

TEST_F(WheelParts, ABuildWithoutLibTorchAsksForNone) {
  check_wheel_parts(site_ / "cohort/bin/cohort-train", "");
}

TEST_F(WheelParts, TheScriptThatPipMakesIsTheNameToType) {
  const fs::path environment = site_.parent_path().parent_path().parent_path(),
                 program = site_ / "cohort" / "bin" / "cohort";
  put("cohort/bin/cohort", "");
  fs::create_directories(environment / "bin");
  write_file_atomically(environment / "bin" / "cohort", "#!python\n");
  const char* path = std::getenv("PATH");
  const std::string before = path != nullptr ? path : "";
  ::setenv("PATH", (environment / "bin").c_str(), 1);
  const std::string in_path = typed_name(program);
  // As uv links it.
  fs::create_directories(environment / "links");
  fs::create_symlink(environment / "bin" / "cohort", environment / "links" / "cohort");
  ::setenv("PATH", (environment / "links").c_str(), 1);
  const std::string linked = typed_name(program);
  // Another program of this name.
  fs::remove(environment / "links" / "cohort");
  write_file_atomically(environment / "links" / "cohort", "#!sh\n");
  const std::string other = typed_name(program);
  ::setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(in_path, "cohort");
  EXPECT_EQ(linked, "cohort");
  EXPECT_EQ(other, program.string());
}

}  // namespace
}  // namespace cohort::cli
