/// Opened episodes kept for reuse under a budget of bytes; the least recently used one goes first.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "data/episodes.h"

namespace cohort::data {

class EpisodeCache {
 public:
  using Made = std::pair<std::shared_ptr<const Episode>, std::int64_t>;  ///< the episode and the bytes it holds

  explicit EpisodeCache(std::int64_t budget) : budget_(budget) {}

  /// The episode, from the cache or from `make`, which runs without the lock. An episode that is larger than the whole
  /// budget is handed out but not kept.
  std::shared_ptr<const Episode> get(std::int64_t key, const std::function<Made()>& make);
  /// Held by the cache now.
  std::int64_t bytes() const;

 private:
  struct Entry {
    std::int64_t key;
    std::shared_ptr<const Episode> episode;
    std::int64_t bytes;
  };
  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::list<Entry> recent_;  // first: used last
  std::unordered_map<std::int64_t, std::list<Entry>::iterator> entries_;
  std::int64_t bytes_ = 0;
};

}  // namespace cohort::data
