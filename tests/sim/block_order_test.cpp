// Environments that share blocks: who lies where, and that it changes no bit.
#include "sim/backends/cpu/block_order.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/simulate.h"

namespace cohort::sim {
namespace {

constexpr int kWidth = 8;

TEST(BlockOrder, EnvironmentsWithMostContactsComeFirstAndOthersInTheirOrder) {
  const std::vector<int> contacts{9, 9, 9,  // of others
                                  0, 3, 0, 0, -7, 0, 0, 260, 0, 0, 3, 0, 300, 0, 0, 1};
  BlockOrder order;
  const int* const envs = order.sort(contacts.data(), 3, 16, kWidth, 64);
  ASSERT_NE(envs, nullptr);
  // More than can be told apart are alike, and fewer than none are none.
  EXPECT_EQ(std::vector<int>(envs, envs + 16),
            (std::vector<int>{10, 15, 4, 13, 18, 3, 5, 6, 7, 8, 9, 11, 12, 14, 16, 17}));
}

TEST(BlockOrder, PaysWhereBlocksAreSparedEnough) {
  // Two blocks of 6 contacts become one: 3 each are spared.
  std::vector<int> contacts(2 * kWidth, 0);
  contacts[0] = contacts[kWidth] = 6;
  BlockOrder order;
  EXPECT_NE(order.sort(contacts.data(), 0, 2 * kWidth, kWidth, 3 * 64 - 1), nullptr);
  EXPECT_EQ(order.sort(contacts.data(), 0, 2 * kWidth, kWidth, 3 * 64), nullptr);
  // As they lie they are sorted.
  std::sort(contacts.rbegin(), contacts.rend());
  EXPECT_EQ(order.sort(contacts.data(), 0, 2 * kWidth, kWidth, 0), nullptr);
  EXPECT_EQ(order.sort(contacts.data(), 0, kWidth, kWidth, 0), nullptr);
}

/// Every ninth of the environments lies under a heap of the others' things, which hang in the air.
Job scattered(LaneWidth lanes, int n) {
  Job job{.file = "pile.xml", .n = n, .steps = 40, .lanes = lanes};
  job.before_step = [](Scene& scene, int s) {
    for (int e = 0; e < scene.n_envs() && s == 0; ++e) {
      const std::size_t nq = static_cast<std::size_t>(scene.info().nq);
      std::vector<float> q = scene.get_qpos({e});
      for (std::size_t i = 2; i < nq; i += 7) q[i] = e % 9 == 4 ? 0.1f + 0.01f * static_cast<float>(i) : 5 + q[i];
      q[0] += 0.001f * static_cast<float>(e);
      scene.set_qpos(q, {e});
    }
    if (s == 0) scene.randomize_parameter(Parameter::kDofDamping, 0.0, 0.3);
    // One stands still in its place.
    if (s == 10) scene.set_qvel(std::vector<float>(static_cast<std::size_t>(scene.info().nv), 1e30f), {3});
  };
  return job;
}

TEST(BlockOrder, ChangesNoBit) {
  constexpr int kEnvs = BlockOrder::kMost + 16;
  const std::vector<float> alone = simulate(scattered(LaneWidth::kScalar, kEnvs));
  for (LaneWidth width : widths()) {
    Job job = scattered(width, kEnvs);
    const auto prepare = job.before_step;
    bool sorted = false;
    job.before_step = [&](Scene& scene, int s) {
      prepare(scene, s);
      if (s != 30) return;
      const int* const contacts = static_cast<int*>(scene.view(Field::kContactCount).data);
      BlockOrder order;
      sorted = order.sort(contacts, 0, BlockOrder::kMost, kWidth, 3 * 64) != nullptr;
    };
    EXPECT_TRUE(same_bits(simulate(job), alone)) << to_string(width);
    EXPECT_TRUE(sorted) << "no environment leaves its place here";
  }
}

}  // namespace
}  // namespace cohort::sim
