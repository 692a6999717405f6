/// How fast the ranks of a job exchange sums, measured: what gradients cost before a training is started.
///
///   const dist::GroupSpeed speed = dist::measure_group(*group);   // on every rank
#pragma once
#include <cstdint>

namespace cohort::dist {

class Group;

struct GroupSpeed {
  int world_size = 1;
  double latency = 0;      ///< s, of an all-reduce of one number: the median of many
  std::int64_t bytes = 0;  ///< of the large all-reduce
  double seconds = 0;      ///< that it took, the best of a few
  /// Bytes a second that each rank sends and receives then: 2 (n - 1) / n of the data for each of n ranks, which no
  /// algorithm can do without (NVIDIA's nccl-tests, doc/PERFORMANCE.md, "bus bandwidth").
  double bandwidth = 0;
};

/// Collective; takes a few seconds at most. All ranks get the slowest rank's figures. Throws Error as Group does.
GroupSpeed measure_group(Group& group);

}  // namespace cohort::dist
