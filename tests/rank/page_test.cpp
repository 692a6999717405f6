// The page of memory that an agent and a rank share.
#include "rank/page.h"

#include <array>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace cohort::rank {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Runs `body` with the rank's view of the page in another process, which is killed by itself at the end.
void in_killed_process(const Page& page, const std::function<void(Page&)>& body) {
  const int descriptor = ::dup(page.descriptor());
  const pid_t pid = ::fork();
  if (pid == 0) {
    body(*Page::adopt(descriptor));
    ::raise(SIGKILL);
  }
  ::close(descriptor);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(RankPage, ABeatIsSeenByTheAgentAndOneThatNeverBeatsIsNotSilent) {
  const auto page = Page::make(true);
  EXPECT_EQ(page->phase(), Phase::kSilent);
  EXPECT_EQ(page->silent_for().count(), 0);
  in_killed_process(*page, [](Page& rank) {
    rank.beat(Phase::kTraining, 41);
    rank.beat(Phase::kValidation, 42);
    rank.set_ready(true);
  });
  EXPECT_EQ(page->phase(), Phase::kValidation);
  EXPECT_EQ(page->step(), 42);
  EXPECT_EQ(page->beats(), 2u);
  EXPECT_GT(page->silent_for().count(), 0);
  EXPECT_TRUE(page->ready());
  page->clear_for_next();
  EXPECT_EQ(page->phase(), Phase::kSilent);
  EXPECT_FALSE(page->ready());
}

TEST(RankPage, WhatARankKeptOutlivesItForTheOneThatTakesItsPlace) {
  const auto page = Page::make(true);
  const std::string of_7(100000, 'x'), of_8(100000, 'y');
  in_killed_process(*page, [&](Page& rank) {
    rank.set_note("outputs/run");
    rank.keep(6, bytes_of(std::string(100000, 'w')));
    rank.keep(7, bytes_of(of_7));
    rank.keep(8, bytes_of(of_8));
  });
  page->clear_for_next();
  const auto next = Page::adopt(::dup(page->descriptor()));
  EXPECT_EQ(next->note(), "outputs/run");
  EXPECT_EQ(next->kept(7), of_7);
  EXPECT_EQ(next->kept(8), of_8);
  EXPECT_EQ(next->kept(6), std::nullopt) << "only the last two are kept";
  EXPECT_EQ(next->kept(9), std::nullopt);
}

TEST(RankPage, WaitingRanksAreCalledOrSentAway) {
  const auto page = Page::make(true);
  const auto rank = Page::adopt(::dup(page->descriptor()));
  std::optional<std::uint32_t> called;
  std::thread waits([&] { called = rank->wait_for_generation(); });
  while (!page->waits_for_generation()) std::this_thread::yield();
  page->call_generation(1);
  waits.join();
  EXPECT_EQ(called, 1u);
  EXPECT_FALSE(page->waits_for_generation());
  std::thread sent([&] { called = rank->wait_for_generation(); });
  while (!page->waits_for_generation()) std::this_thread::yield();
  page->take_offer_back();
  sent.join();
  EXPECT_EQ(called, std::nullopt);
}

TEST(RankPage, WhatIsNoPageIsRefused) {
  EXPECT_THROW(Page::adopt(9999), Error);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_THROW(Page::adopt(ends[0]), Error);
  ::close(ends[1]);
  const auto page = Page::make(false);
  EXPECT_THROW(page->set_note(std::string(Page::kNote + 1, 'x')), Error);
}

TEST(RankPage, WhatARankParksIsThereForTheProcessOfTheNextRoundWhateverItKept) {
  const auto page = Page::make(true);
  const std::string large(3'000'000, 'x'), kept(10'000, 'k');
  in_killed_process(*page, [&](Page& rank) {
    rank.keep(7, bytes_of(kept));
    const std::array<std::string_view, 3> pieces{"head", large, "tail"};
    rank.park(pieces);
  });
  page->begin_round(true);
  EXPECT_EQ(page->phase(), Phase::kSilent);
  in_killed_process(*page, [&](Page& rank) {
    const auto parked = rank.parked();
    if (!parked || *parked != "head" + large + "tail" || rank.kept(7)) ::_exit(1);
    rank.keep(8, bytes_of(std::string(20'000, 'n')));  // grows over it
    if (rank.parked()) ::_exit(1);
  });
}

TEST(RankPage, WhatWasParkedTakesNoMemoryOnceItIsDropped) {
  const auto page = Page::make(true);
  const auto rank = Page::adopt(::dup(page->descriptor()));
  rank->keep(7, bytes_of("own"));
  const auto held = [&] {
    struct stat status {};
    EXPECT_EQ(::fstat(page->descriptor(), &status), 0);
    return status.st_blocks * 512;
  };
  const std::string large(8 << 20, 'x');
  const std::vector<std::string_view> pieces{large};
  for (int round = 0; round < 2; ++round) {
    rank->park(pieces);
    EXPECT_GE(held(), 8 << 20);
    EXPECT_EQ(rank->parked(), large);
    rank->drop_parked();
    EXPECT_LT(held(), 1 << 20) << "a whole state of the training";
    EXPECT_FALSE(rank->parked());
    EXPECT_EQ(rank->kept(7), "own");
  }
}

TEST(RankPage, ARankThatIsAskedToParkDoesNotWaitForACall) {
  const auto page = Page::make(true);
  const auto rank = Page::adopt(::dup(page->descriptor()));
  EXPECT_EQ(rank->broken_below(), 0u);
  page->break_groups(3);
  page->ask_to_park();
  EXPECT_EQ(rank->broken_below(), 3u);
  EXPECT_FALSE(rank->wait_for_generation());
  page->begin_round(true);
  EXPECT_FALSE(rank->park_asked());
  EXPECT_EQ(rank->broken_below(), 0u);
}

}  // namespace
}  // namespace cohort::rank
