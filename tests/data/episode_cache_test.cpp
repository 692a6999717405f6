// The budget of opened episodes, and what was found out about them, which one process at a time finds out.
#include "data/episode_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/byte_gate.h"
#include "data/episode_notes.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/rlds/rlds_episodes.h"

namespace cohort::data {
namespace {

/// Knows how many bytes of its kind are there now.
class Weighed final : public Episode {
 public:
  static inline std::int64_t there = 0;
  explicit Weighed(std::int64_t bytes) : bytes_(bytes) { there += bytes; }
  ~Weighed() override { there -= bytes_; }
  std::int64_t steps() const override { return 1; }
  void read(std::size_t, std::int64_t, std::int64_t, std::span<float>) const override {}
  void read(std::size_t, std::int64_t, std::int64_t, std::span<double>) const override {}
  void read(std::size_t, std::int64_t, std::int64_t, std::span<std::int64_t>) const override {}
  std::string_view text(std::size_t, std::int64_t) const override { return ""; }
  StoredImage image(std::size_t, std::int64_t, std::string&) const override { return {}; }
  std::string_view metadata(std::string_view) const override { return ""; }
  std::string location() const override { return "weighed"; }

 private:
  const std::int64_t bytes_;
};

constexpr std::int64_t kBudget = 100;

/// Opens an episode of so many bytes, and notes the most that were there while it was made.
std::shared_ptr<const Episode> open(EpisodeCache& cache, std::int64_t key, std::int64_t bytes, std::int64_t& most) {
  return cache.get(key, bytes, [&]() -> EpisodeCache::Made {
    auto episode = std::make_shared<Weighed>(bytes);
    most = std::max(most, Weighed::there);
    return {episode, bytes};
  });
}

TEST(EpisodeCache, RoomIsMadeBeforeAnEpisodeIsOpened) {
  EpisodeCache cache(kBudget);
  std::int64_t most = 0;
  for (std::int64_t key = 0; key < 20; ++key) open(cache, key % 7, 40, most);
  EXPECT_LE(most, kBudget);
  EXPECT_EQ(cache.bytes(), 80) << "two are kept";
  open(cache, 100, 3 * kBudget, most);
  EXPECT_EQ(most, 3 * kBudget) << "one that is larger than all stands alone";
  EXPECT_EQ(Weighed::there, 0) << "and is not kept";
}

TEST(EpisodeCache, EpisodesInUseCountAndAreNotOpenedTwice) {
  EpisodeCache cache(kBudget);
  std::int64_t most = 0;
  std::vector<std::shared_ptr<const Episode>> used;
  for (std::int64_t key = 0; key < 4; ++key) used.push_back(open(cache, key, 40, most));
  EXPECT_EQ(cache.bytes(), 160) << "nobody waits";
  EXPECT_EQ(open(cache, 3, 40, most), used[3]) << "though it is not kept";
  used.clear();
  EXPECT_LE(cache.bytes(), kBudget);
  EXPECT_EQ(cache.bytes(), Weighed::there);
  most = 0;
  open(cache, 9, 40, most);
  EXPECT_LE(most, kBudget);
}

TEST(EpisodeCache, WhatGrowsInUseMakesOthersGo) {
  EpisodeCache cache(kBudget);
  std::int64_t most = 0;
  open(cache, 1, 40, most);
  const auto used = open(cache, 2, 40, most);
  cache.grow(2, 50);
  EXPECT_EQ(cache.bytes(), 90) << "the first one went";
  EXPECT_EQ(Weighed::there, 40);
  cache.grow(2, 50);
  EXPECT_EQ(cache.bytes(), 140) << "counts while it is in use";
  EXPECT_EQ(open(cache, 2, 40, most), used);
}

TEST(EpisodeCache, ReservedRoomIsGivenBackWhereOpeningFails) {
  EpisodeCache cache(kBudget);
  std::int64_t most = 0;
  EXPECT_ERROR(cache.get(1, kBudget, []() -> EpisodeCache::Made { throw Error("damaged"); }), "damaged");
  open(cache, 2, 60, most);
  open(cache, 3, 40, most);
  EXPECT_EQ(cache.bytes(), kBudget);
}

TEST(ByteGate, WhatIsInUseAtOnceFitsIntoTheBudgetOrIsAlone) {
  // Thing k weighs 30 + 10 k, the last one more than the budget.
  constexpr int kThings = 8;
  constexpr int kRounds = 400;
  ByteGate gate(kBudget);
  {                                                                   // nobody waits here
    const auto first = gate.enter(0, 30), again = gate.enter(0, 30);  // one thing may have several users
    const auto small = gate.enter(1, 40);                             // small things are used at the same time
  }
  std::mutex mutex;
  std::array<int, kThings> users{};
  std::atomic<std::int64_t> faults{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        const int key = (round * 5 + t * 3 + round / 7) % kThings;
        const auto pass = gate.enter(key, 30 + 10 * key);
        {
          std::lock_guard lock(mutex);
          ++users[static_cast<std::size_t>(key)];
          std::int64_t bytes = 0;
          int things = 0;
          for (int k = 0; k < kThings; ++k) {
            if (users[static_cast<std::size_t>(k)] == 0) continue;
            bytes += 30 + 10 * k, ++things;
          }
          if (bytes > kBudget && things > 1) ++faults;
        }
        std::this_thread::yield();
        std::lock_guard lock(mutex);
        --users[static_cast<std::size_t>(key)];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, 0);
}

TEST(EpisodeNotes, OneAtATimeFindsOut) {
  OwnFolder folder;
  const RldsEpisodes episodes(fixture("arm"), {.index_cache = "never"});
  const EpisodeNotes notes(episodes, fixture("arm"), folder.path().string());
  std::atomic<int> searches{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const auto answer = notes.answer(
          "how many", [](const nlohmann::json& known) { return known == 5; },
          [&] {
            ++searches;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            return nlohmann::json(5);
          });
      EXPECT_EQ(answer, 5);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(searches, 1);
}

}  // namespace
}  // namespace cohort::data
