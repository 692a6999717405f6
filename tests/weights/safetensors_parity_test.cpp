#include <torch/types.h>

#include "core/files.h"
#include "support/fresh_folder.h"
#include "support/python.h"
#include "weights/safetensors.h"
#include "weights/torch_zip_writer.h"

namespace cohort::weights {
namespace {

TEST(SafetensorsParity, ThePackageReadsOursAndWeReadItsToTheByte) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("safetensors_parity");
  ASSERT_TRUE(test::python_agrees("weights/safetensors_parity.py", {"write", (folder / "theirs").string()}));
  const auto file = read_safetensors(folder / "theirs");
  ASSERT_EQ(file.tensors.size(), 13u);
  write_safetensors(folder / "ours", file.tensors, file.metadata);
  EXPECT_EQ(read_file(folder / "ours"), read_file(folder / "theirs"));
  EXPECT_TRUE(test::python_agrees("weights/safetensors_parity.py", {"judge", (folder / "ours").string()}));
}

TEST(TorchZipParity, TorchLoadsOursWithWeightsOnly) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("torch_zip_parity");
  const NamedTensors tensors{{"a", at::randn({3, 5})}, {"b", at::randn({7}).to(at::kBFloat16)}, {"c", at::arange(4)}};
  write_torch_file(folder / "state.pt", tensors, {{"instruction", "öffne"}});
  write_torch_file(folder / "alone.pt", {{"", tensors[0].second}});
  write_safetensors(folder / "state.safetensors", tensors);
  EXPECT_TRUE(test::python_agrees(
      "weights/torch_zip_parity.py",
      {(folder / "state.pt").string(), (folder / "alone.pt").string(), (folder / "state.safetensors").string()}));
}

}  // namespace
}  // namespace cohort::weights
