// A rank for tests of the launcher's watch: it beats as a training does, and then behaves as it is told.
//   beating_worker hang FILE                       rank 1 hangs once rank 0 waits for it, as the file says
//   beating_worker validation|busy|talk SECONDS
//   beating_worker fail SECONDS FOLDER             ranks 0, 1 and 2 come to one step, which files in the folder say;
//                                                  then 0 and 1 end by themselves, rank 1 so much later; the other,
//                                                  and those that take their places, end well when called
// After some steps it prints "pid N".
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <unistd.h>

#include "rank/page.h"

namespace {

namespace rank = cohort::rank;
using Clock = std::chrono::steady_clock;

/// A function whose name shows in a stack.
[[gnu::noinline]] void wait_for_nothing() {
  for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  rank::Page* const page = rank::own_page();
  const char* rank = std::getenv("RANK");
  if (argc < 3 || !page || !rank) return 2;
  const bool hangs = std::strcmp(argv[1], "hang") == 0, is_one = std::strcmp(rank, "1") == 0;
  if (std::strcmp(argv[1], "fail") == 0) {
    if (std::getenv("COHORT_RECOVERY")) return page->wait_for_generation() ? 0 : 4;
    page->set_ready(true);
    page->beat(rank::Phase::kTraining, 5);
    // A rank that fails before another is in its training steps is another story.
    const std::string folder = argc > 3 ? argv[3] : ".";
    if (std::FILE* file = std::fopen((folder + "/" + rank).c_str(), "w")) std::fclose(file);
    for (const char* other : {"/0", "/1", "/2"}) {
      while (::access((folder + other).c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!is_one && std::strcmp(rank, "0") != 0) return page->wait_for_generation() ? 0 : 5;
    if (is_one) std::this_thread::sleep_for(std::chrono::duration<double>(std::atof(argv[2])));
    return 3;
  }
  const auto length = std::chrono::duration<double>(hangs ? 0 : std::atof(argv[2]));
  for (int step = 0; step < 40 || (hangs && is_one && ::access(argv[2], F_OK) != 0); ++step) {
    page->beat(rank::Phase::kTraining, step);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (step != 30) continue;
    std::printf("pid %d\n", static_cast<int>(::getpid()));
    std::fflush(stdout);
  }
  if (hangs) {
    if (is_one) {
      page->beat(rank::Phase::kTraining, 1000);  // so that the other has been silent for longer
    } else {
      page->wait_for_others(true);
      if (std::FILE* file = std::fopen(argv[2], "w")) std::fclose(file);
    }
    wait_for_nothing();
  } else if (std::strcmp(argv[1], "validation") == 0) {
    page->beat(rank::Phase::kValidation, 40);
    std::this_thread::sleep_for(length);
  } else if (std::strcmp(argv[1], "talk") == 0) {
    // More than pipes and the launcher hold.
    const std::string line(1023, '.');
    for (int step = 40; step < 440; ++step) {
      page->beat(rank::Phase::kTraining, step);
      for (int i = 0; i < 16; ++i) std::puts(line.c_str());
      std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } else {
    for (const auto end = Clock::now() + length; Clock::now() < end;) {
    }
  }
  page->beat(rank::Phase::kTraining, 41);
  return 0;
}
