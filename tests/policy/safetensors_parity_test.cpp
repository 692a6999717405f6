#include <torch/types.h>

#include "core/files.h"
#include "policy/safetensors.h"
#include "train/python_peer.h"

namespace cohort::policy {
namespace {

TEST(SafetensorsParity, ThePackageReadsOursAndWeReadItsToTheByte) {
  COHORT_NEEDS_PYTHON();
  const auto folder = train::fresh_folder("safetensors_parity");
  ASSERT_EQ(train::run_python("policy/safetensors_parity.py", {"write", (folder / "theirs").string()}), 0);
  const auto file = read_safetensors(folder / "theirs");
  ASSERT_EQ(file.tensors.size(), 13u);
  write_safetensors(folder / "ours", file.tensors, file.metadata);
  EXPECT_EQ(read_file(folder / "ours"), read_file(folder / "theirs"));
  EXPECT_EQ(train::run_python("policy/safetensors_parity.py", {"judge", (folder / "ours").string()}), 0);
}

}  // namespace
}  // namespace cohort::policy
