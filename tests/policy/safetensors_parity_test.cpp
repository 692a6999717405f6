#include <torch/types.h>

#include "core/files.h"
#include "policy/safetensors.h"
#include "support/fresh_folder.h"
#include "support/python.h"

namespace cohort::policy {
namespace {

TEST(SafetensorsParity, ThePackageReadsOursAndWeReadItsToTheByte) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("safetensors_parity");
  ASSERT_TRUE(test::python_agrees("policy/safetensors_parity.py", {"write", (folder / "theirs").string()}));
  const auto file = read_safetensors(folder / "theirs");
  ASSERT_EQ(file.tensors.size(), 13u);
  write_safetensors(folder / "ours", file.tensors, file.metadata);
  EXPECT_EQ(read_file(folder / "ours"), read_file(folder / "theirs"));
  EXPECT_TRUE(test::python_agrees("policy/safetensors_parity.py", {"judge", (folder / "ours").string()}));
}

}  // namespace
}  // namespace cohort::policy
