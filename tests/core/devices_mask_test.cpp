#include "core/devices_mask.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "support/command.h"

namespace cohort {
namespace {

/// Texts that people and schedulers put into CUDA_VISIBLE_DEVICES.
const std::vector<std::string> kMasks = {"",         "0",           "0,1",          "1,0",         "2,3,",
                                         "0,2,-1,1", "-1",          "NoDevFiles",   "0, 1",        " 2",
                                         "1gpu2,2",  "0,0",         "1,2,1",        "01,2",        "+1",
                                         "3,x,1",    ",1",          "GPU-8932f937", "GPU-a,GPU-b", "GPU-a, GPU-b",
                                         "GPU-a,1",  "GPU-a,GPU-a", "MIG-1,MIG-2",  "MIG-1,GPU-2", "MIG-GPU-1/2/3",
                                         "0,GPU-1",  "gpu-1"};

TEST(DeviceMask, NothingIsNoMaskAndEmptyShowsNothing) {
  EXPECT_FALSE(parse_mask(std::nullopt).set);
  EXPECT_TRUE(parse_mask("").set);
  EXPECT_TRUE(parse_mask("").entries.empty());
}

TEST(DeviceMask, EndsAtTheFirstInvalidEntryAndSaysWhich) {
  const DeviceMask mask = parse_mask("2,0,gpu,1");
  EXPECT_EQ(mask.entries, (std::vector<std::string>{"2", "0"}));
  EXPECT_NE(mask.problem.find("'gpu'"), std::string::npos);
}

/// PyTorch's reading of the same texts, by its own code.
TEST(DeviceMaskAgainstTorch, ReadsEveryTextAsPyTorchDoes) {
  const char* python = std::getenv("COHORT_PYTHON");
  ASSERT_NE(python, nullptr);
  nlohmann::json texts = kMasks;
  setenv("COHORT_MASKS", json_text(texts).c_str(), 1);
  const std::string script =
      "import json,os\nfrom torch.cuda import _parse_visible_devices as p\nout=[]\n"
      "for t in json.loads(os.environ['COHORT_MASKS']):\n os.environ['CUDA_VISIBLE_DEVICES']=t\n"
      " out.append([str(x) for x in p()])\nprint(json.dumps(out))";
  const std::string command = format("'{}' -c \"{}\"", python, script);
  const test::CommandOutcome outcome = test::run_command("(" + command + " 2>/dev/null)");
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto expected = parse_json<nlohmann::json>(outcome.output);
  ASSERT_EQ(expected.size(), kMasks.size());
  for (std::size_t i = 0; i < kMasks.size(); ++i)
    EXPECT_EQ(parse_mask(kMasks[i]).entries, expected[i].get<std::vector<std::string>>()) << "'" << kMasks[i] << "'";
}

}  // namespace
}  // namespace cohort
