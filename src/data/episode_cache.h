/// Opened episodes kept for reuse under a budget of bytes; the least recently used one goes first. Episodes that are in
/// use and those that are being opened count too: before one more is opened, those that nobody uses make room for it.
/// Nobody is made to wait, so episodes that are in use at the same time may be more than the budget: a ByteGate before
/// the cache bounds those.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

class EpisodeCache {
 public:
  using Made = std::pair<std::shared_ptr<const Episode>, std::int64_t>;  ///< the episode and the bytes it holds

  explicit EpisodeCache(std::int64_t budget) : budget_(budget) {}

  /// The episode, from the cache or from `make`, which runs without the lock; room for `expected` bytes is made before
  /// that. An episode for which there is no room is handed out but not kept.
  std::shared_ptr<const Episode> get(std::int64_t key, std::int64_t expected, const std::function<Made()>& make);
  /// An episode that was handed out came to hold so many bytes more.
  void grow(std::int64_t key, std::int64_t more);
  /// Held by the cache and by those who use episodes now.
  std::int64_t bytes() const;

 private:
  struct Entry {
    std::int64_t key;
    std::shared_ptr<const Episode> episode;
    std::int64_t bytes;
  };
  /// Handed out and not kept: counts as long as it is in use.
  struct Lent {
    std::int64_t key;
    std::weak_ptr<const Episode> episode;
    std::int64_t bytes;
  };
  // All of these are called with the lock.
  std::shared_ptr<const Episode> find(std::int64_t key);
  std::int64_t counted() const;
  void make_room(std::int64_t bytes, std::list<Entry>& dropped);

  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::list<Entry> recent_;  // first: used last
  std::unordered_map<std::int64_t, std::list<Entry>::iterator> entries_;
  std::vector<Lent> lent_;
  std::int64_t bytes_ = 0;    // of the entries
  std::int64_t opening_ = 0;  // expected of those that are being made
};

}  // namespace cohort::data
