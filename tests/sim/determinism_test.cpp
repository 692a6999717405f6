// A thousand steps of a thousand environments: what an environment does is the same to the last bit whoever is
// simulated beside it, in which order, on how many threads and in how many processes, and how wide the lanes are.
// Needs the optimised build for its length; the short form, for more models, is `Bits` in engine_test.cpp.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "sim/simulate.h"

namespace cohort::sim {
namespace {

constexpr int kSteps = 1000, kMany = 1000;

/// Of environments [first, first + n) of all.
std::vector<float> part(const std::vector<float>& all, int first, int n) {
  const auto one = static_cast<std::ptrdiff_t>(all.size() / kMany);
  return {all.begin() + first * one, all.begin() + (first + n) * one};
}

class ThousandSteps : public ::testing::TestWithParam<const char*> {
 protected:
  static Job job(int n) { return {.file = GetParam(), .n = n, .steps = kSteps}; }
};

TEST_P(ThousandSteps, HaveTheSameBitsForAnyBatchThreadsLanesOrderAndProcesses) {
  Job all = job(kMany);
  all.threads = 2;
  const std::vector<float> truth = simulate(all);
  for (float x : truth) ASSERT_TRUE(std::isfinite(x));
  ASSERT_FALSE(same_bits(part(truth, 0, 1), part(truth, 1, 1))) << "the environments are all alike";
  for (int n : {1, 7, 16, 64}) {  // what 16 do is committed as a hash: BitsCommitted in engine_test.cpp
    EXPECT_TRUE(same_bits(simulate(job(n)), part(truth, 0, n))) << n;
    EXPECT_TRUE(same_bits(simulate(job(n)), part(truth, 0, n))) << n << ", again";
  }
  for (LaneWidth width : widths()) {
    Job some = job(64);
    some.lanes = width;
    some.threads = 3;
    EXPECT_TRUE(same_bits(simulate(some), part(truth, 0, 64))) << to_string(width);
  }

  // The last first: every environment gets the controls of its counterpart.
  Job reversed = job(kMany);
  reversed.before_step = [](Scene& scene, int) {
    const std::vector<float> ctrl = scene.get_ctrl();
    const std::size_t nu = ctrl.size() / kMany;
    std::vector<float> other(ctrl.size());
    for (std::size_t e = 0; e < kMany; ++e) {
      std::copy_n(ctrl.begin() + static_cast<std::ptrdiff_t>(e * nu), nu,
                  other.begin() + static_cast<std::ptrdiff_t>((kMany - 1 - e) * nu));
    }
    scene.set_ctrl(other);
  };
  const std::vector<float> backwards = simulate(reversed);
  for (int e = 0; e < kMany; ++e) {
    ASSERT_TRUE(same_bits(part(backwards, e, 1), part(truth, kMany - 1 - e, 1))) << "environment " << e;
  }

  // Two processes with half of them each, at the same time.
  const std::filesystem::path path = std::filesystem::temp_directory_path() / format("cohort_half_{}.bits", getpid());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  const auto half = [](int first) {
    Job some = job(kMany / 2);
    some.first = first;
    return simulate(some);
  };
  if (child == 0) {
    const std::vector<float> bits = half(kMany / 2);
    write_file_atomically(path, std::string(reinterpret_cast<const char*>(bits.data()), bits.size() * sizeof(float)));
    _exit(0);
  }
  EXPECT_TRUE(same_bits(half(0), part(truth, 0, kMany / 2)));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const std::string text = read_file(path);
  std::vector<float> theirs(text.size() / sizeof(float));
  std::memcpy(theirs.data(), text.data(), text.size());
  EXPECT_TRUE(same_bits(theirs, part(truth, kMany / 2, kMany / 2)));
  std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(Models, ThousandSteps,
                         ::testing::Values("walker.xml", "biped.xml", "arm_plain.xml", "tendons.xml"),
                         [](const auto& each) {
                           const std::string file = each.param;
                           return file.substr(0, file.find('.'));
                         });

/// What makes the lanes of a block differ: of the humanoids above some touch themselves and some do not.
TEST(ThousandStepsOfHumanoids, TouchThemselvesInSomeEnvironmentsOnly) {
  Job run{.file = "biped.xml", .n = 64, .steps = kSteps};
  int touching = 0, looked = 0;
  run.before_step = [&](Scene& scene, int s) {
    if (s % 100 != 50) return;
    for (int e = 0; e < 64; ++e) {
      const std::vector<Contact> list = scene.get_contacts(e);
      touching += std::any_of(list.begin(), list.end(), [](const Contact& c) { return c.link1 > 0 && c.link2 > 0; });
      ++looked;
    }
  };
  simulate(run);
  EXPECT_GT(touching, looked / 20);
  EXPECT_LT(touching, looked - looked / 20);
}

}  // namespace
}  // namespace cohort::sim
