/// Memory that the ranks of one machine share, and a place where they meet: sums between processes without sockets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cohort::dist {

class Group;

class NodeMemory {
 public:
  /// `bytes_per_rank` for each rank, 64-byte aligned, zeroed. Collective. Null on every rank where the ranks do not all
  /// run on one machine (and in one container), or where /dev/shm has no room, of which rank 0's log warns. `group`
  /// must outlive it.
  static std::unique_ptr<NodeMemory> open(Group& group, std::size_t bytes_per_rank);
  ~NodeMemory();
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  /// The part of a rank; every rank may read and write all parts.
  std::byte* part(int rank) const;
  /// Returns when all ranks have come here as often as this one: what they wrote before is visible after it. Throws
  /// Error naming a rank that has ended, or when one is later than the group's collective_timeout; `operation` says
  /// what for, as in Group::explain.
  void meet(const char* operation);

 private:
  struct Counter;  // one per rank, on a cache line of its own
  NodeMemory(Group& group, void* memory, std::size_t size, std::size_t bytes_per_rank);
  Counter& counter(int rank) const;

  Group& group_;
  void* memory_;
  std::size_t size_;
  std::size_t bytes_per_rank_;
  std::uint32_t meetings_ = 0;
};

}  // namespace cohort::dist
