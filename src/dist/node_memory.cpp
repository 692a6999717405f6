#include "dist/node_memory.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <stdexcept>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "dist/group.h"
#include "dist/recovery.h"

namespace cohort::dist {
namespace {
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLine = 64;
// A rank that is as fast as this one comes within microseconds; sleeping and waking costs some ten of them.
constexpr int kSpins = 4000;
constexpr auto kNap = std::chrono::milliseconds(20);
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);  // whether a rank has ended

std::size_t rounded(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Sleeps while `word` is `value`, at most kNap.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  timespec limit{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kNap).count()};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

struct Descriptor {
  int value = -1;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
};

/// Makes (rank 0) or opens the block and maps it; null with the reason.
void* map_block(const std::string& name, std::size_t size, bool make, std::string& reason) {
  const Descriptor file{shm_open(name.c_str(), make ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600)};
  // fallocate, not ftruncate alone: pages that /dev/shm has no room for would end the process with SIGBUS later.
  int error = file.value < 0 ? errno : 0;
  if (error == 0 && make) error = posix_fallocate(file.value, 0, static_cast<off_t>(size));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.value, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  if (error == 0) return memory;
  reason = std::strerror(error);
  return nullptr;
}

}  // namespace

struct NodeMemory::Counter {
  alignas(kLine) std::atomic<std::uint32_t> meetings;
  std::atomic<std::uint32_t> sleepers;  ///< ranks that wait for this counter
};

std::unique_ptr<NodeMemory> NodeMemory::open(Group& group, std::size_t bytes_per_rank) {
  static_assert(sizeof(Counter) == kLine && std::atomic<std::uint32_t>::is_always_lock_free);
  if (group.world_size() == 1) return nullptr;
  // Agreed upon: a rank that could not read the others' entries must not leave them waiting.
  for (const std::string& answer : group.all_gather_bytes(group.on_one_machine() ? "yes" : "no"))
    if (answer != "yes") return nullptr;
  const std::size_t part = rounded(bytes_per_rank);
  const std::size_t size = static_cast<std::size_t>(group.world_size()) * (kLine + part);
  const bool make = group.rank() == 0;
  std::random_device random;
  const std::string name = group.broadcast_bytes(format("/cohort-{:08x}{:08x}", random(), random()));
  std::string reason;
  void* memory = make ? map_block(name, size, true, reason) : nullptr;
  group.barrier();
  if (!make) memory = map_block(name, size, false, reason);
  std::string problem;
  const std::vector<std::string> reasons = group.all_gather_bytes(reason);
  // All have it open, or have failed to: the name is not needed any more, and nothing is left behind by a killed job.
  if (make) shm_unlink(name.c_str());
  for (const std::string& other : reasons)
    if (!other.empty()) problem = other;
  if (!problem.empty()) {
    if (memory != nullptr) munmap(memory, size);
    if (make)
      log::warning("the ranks cannot share {} KiB of memory in /dev/shm ({}): gradients travel through sockets",
                   size / 1024, problem);
    return nullptr;
  }
  return std::unique_ptr<NodeMemory>(new NodeMemory(group, memory, size, part));
}

NodeMemory::NodeMemory(Group& group, void* memory, std::size_t size, std::size_t bytes_per_rank)
    : group_(group), memory_(memory), size_(size), bytes_per_rank_(bytes_per_rank) {}

NodeMemory::~NodeMemory() {
  munmap(memory_, size_);
}

std::byte* NodeMemory::part(int rank) const {
  return static_cast<std::byte*>(memory_) + static_cast<std::size_t>(group_.world_size()) * kLine +
         static_cast<std::size_t>(rank) * bytes_per_rank_;
}

NodeMemory::Counter& NodeMemory::counter(int rank) const {
  return static_cast<Counter*>(memory_)[rank];
}

void NodeMemory::meet(const char* operation) {
  ++meetings_;
  Counter& own = counter(group_.rank());
  own.meetings.store(meetings_, std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_seq_cst) != 0) wake_all(own.meetings);
  const auto begin = Clock::now();
  auto next_look = begin + kBetweenLooks;
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    if (rank == group_.rank()) continue;
    Counter& other = counter(rank);
    // Counts may wrap around: only their difference means something.
    const auto late = [&] {
      return static_cast<std::int32_t>(other.meetings.load(std::memory_order_acquire) - meetings_) < 0;
    };
    for (int spin = 0; spin < kSpins && late(); ++spin) pause();
    if (!late()) continue;
    const WaitingForOthers waiting;
    while (late()) {
      other.sleepers.fetch_add(1, std::memory_order_seq_cst);
      const std::uint32_t seen = other.meetings.load(std::memory_order_seq_cst);
      if (static_cast<std::int32_t>(seen - meetings_) < 0) sleep_on(other.meetings, seen);
      other.sleepers.fetch_sub(1, std::memory_order_seq_cst);
      const auto now = Clock::now();
      if (now < next_look) continue;
      next_look = now + kBetweenLooks;
      // It may have come here and ended since: then it is not late.
      if (group_.a_rank_has_ended() && late())
        throw group_.explain(std::runtime_error("a rank that shares memory with this one is gone"), operation,
                             Group::Waited{now - begin, std::nullopt});
      if (now - begin > group_.options().collective_timeout)
        throw group_.explain(std::runtime_error(format("timed out in memory that rank {} shares", rank)), operation,
                             Group::Waited{now - begin, std::nullopt});
    }
  }
}

}  // namespace cohort::dist
