#include "core/threads.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include "core/allocator.h"
#include "core/thread_team.h"

namespace cohort {
namespace {

TEST(ParallelFor, EveryIndexRunsOnceOnSeveralThreads) {
  for (const int threads : {1, 2, 7}) {
    std::vector<std::atomic<int>> runs(1000);
    std::atomic<int> foreign{0};
    const auto caller = std::this_thread::get_id();
    parallel_for(1000, threads, [&](std::int64_t i) {
      ++runs[static_cast<std::size_t>(i)];
      if (std::this_thread::get_id() != caller)
        ++foreign;
      else  // the others may be late on a busy machine
        while (threads > 1 && foreign == 0) std::this_thread::yield();
    });
    for (const auto& run : runs) ASSERT_EQ(run, 1);
    EXPECT_EQ(foreign > 0, threads > 1) << "without another thread it would wait for ever";
  }
  parallel_for(0, 4, [](std::int64_t) { FAIL(); });
}

TEST(ParallelFor, TheExceptionOfTheLowestIndexWinsAndNothingFurtherStarts) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<std::int64_t> highest{0};
    std::string message;
    try {
      parallel_for(100000, 4, [&](std::int64_t i) {
        std::int64_t seen = highest;
        while (i > seen && !highest.compare_exchange_weak(seen, i)) {
        }
        if (i >= 50) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "50");
    EXPECT_LT(highest, 100);
  }
}

TEST(ThreadTeam, EveryIndexRunsOnceWhetherItsThreadsSleepOrLook) {
  for (const int size : {1, 2, 5}) {
    ThreadTeam team(size);
    std::vector<std::atomic<int>> runs(100);
    int rounds = 0;
    for (const int pause_us : {0, 0, 20, 60, 500, 0, 5000}) {
      for (int repeat = 0; repeat < 20; ++repeat, ++rounds) {
        if (pause_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
        team.for_each(100, [&](std::int64_t i, int thread) {
          ++runs[static_cast<std::size_t>(i)];
          if (thread < 0 || thread >= size) ++runs[0];
        });
      }
    }
    for (const auto& run : runs) ASSERT_EQ(run, rounds);
  }
}

TEST(ThreadTeam, TheExceptionOfTheLowestIndexWinsAndTheTeamGoesOn) {
  ThreadTeam team(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::string message;
    try {
      team.for_each(10000, [](std::int64_t i, int) {
        if (i >= 50) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    EXPECT_EQ(message, "50");
  }
  std::atomic<int> ran{0};
  team.run([&](int) { ++ran; });
  EXPECT_EQ(ran, 3);
}

TEST(Threads, BlockedSignalsDoNotReachTheThreadButFaultsDo) {
  std::thread([] {
    block_signals_in_this_thread();
    sigset_t blocked;
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
    EXPECT_TRUE(::sigismember(&blocked, SIGTERM));
    EXPECT_TRUE(::sigismember(&blocked, SIGINT));
    EXPECT_FALSE(::sigismember(&blocked, SIGSEGV));
    EXPECT_FALSE(::sigismember(&blocked, SIGFPE));
  }).join();
}

TEST(Threads, ANameIsCutToWhatTheKernelKeeps) {
  std::thread([] {
    set_thread_name("a-name-that-is-too-long");
    char name[32];
    ASSERT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
    EXPECT_STREQ(name, "a-name-that-is-");
  }).join();
}

TEST(HostAllocator, MemoryIsAlignedAndAnImpossibleAmountIsAnError) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    void* memory = host_allocator().allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kAllocationAlignment, 0u);
    host_allocator().deallocate(memory, bytes);
  }
  try {
    host_allocator().allocate(~std::size_t{0});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("out of host memory"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace cohort
