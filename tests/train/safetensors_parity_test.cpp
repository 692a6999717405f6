#include <torch/types.h>

#include "core/files.h"
#include "train/python_peer.h"
#include "train/safetensors.h"

namespace cohort::train {
namespace {

TEST(SafetensorsParity, ThePackageReadsOursAndWeReadItsToTheByte) {
  COHORT_NEEDS_PYTHON();
  const auto folder = fresh_folder("safetensors_parity");
  ASSERT_EQ(run_python("safetensors_parity.py", {"write", (folder / "theirs").string()}), 0);
  const auto file = read_safetensors(folder / "theirs");
  ASSERT_EQ(file.tensors.size(), 13u);
  write_safetensors(folder / "ours", file.tensors, file.metadata);
  EXPECT_EQ(read_file(folder / "ours"), read_file(folder / "theirs"));
  EXPECT_EQ(run_python("safetensors_parity.py", {"judge", (folder / "ours").string()}), 0);
}

}  // namespace
}  // namespace cohort::train
