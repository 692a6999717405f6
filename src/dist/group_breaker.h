/// Breaks a group's connections when the agent says so: a rank that waits in a collective for one whose machine has
/// gone silent hears nothing by itself until its time limit, since nobody closes the connection.
///
///   const auto breaker = GroupBreaker::of_this_process(generation);   // before the group connects
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "rank/page.h"

namespace cohort::dist {

class GroupBreaker {
 public:
  /// From now until it is destroyed, shuts down every TCP connection that this process did not have before, once the
  /// agent breaks groups of this generation (rank::Page::broken_below). Null where there is no agent of ours.
  static std::unique_ptr<GroupBreaker> of_this_process(int generation);
  ~GroupBreaker();
  GroupBreaker(const GroupBreaker&) = delete;
  GroupBreaker& operator=(const GroupBreaker&) = delete;

 private:
  GroupBreaker(std::unique_ptr<rank::Page> page, std::uint32_t generation);
  void watch();
  void shut_down() const;

  const std::unique_ptr<rank::Page> page_;  ///< a view of its own: the rank may map its one anew at any time
  const std::uint32_t generation_;
  std::unordered_set<std::uint64_t> before_;  ///< inodes of sockets that are not the group's
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace cohort::dist
