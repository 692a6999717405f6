// The policy of tests/train/linear_policy.h for the programs, which find it when this library is loaded before them.
#include "train/linear_policy.h"

namespace {
[[maybe_unused]] const std::string& kName = cohort::testing::linear();
}
