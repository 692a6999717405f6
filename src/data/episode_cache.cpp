#include "data/episode_cache.h"

namespace cohort::data {

std::shared_ptr<const Episode> EpisodeCache::get(std::int64_t key, const std::function<Made()>& make) {
  {
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return recent_.front().episode;
    }
  }
  auto [episode, bytes] = make();
  std::list<Entry> dropped;  // declared before the lock: destroyed behind it
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second->episode;  // another thread was faster
  if (bytes > budget_) return episode;
  while (bytes_ + bytes > budget_) {
    bytes_ -= recent_.back().bytes;
    entries_.erase(recent_.back().key);
    dropped.splice(dropped.begin(), recent_, std::prev(recent_.end()));
  }
  recent_.push_front({key, episode, bytes});
  entries_[key] = recent_.begin();
  bytes_ += bytes;
  return episode;
}

std::int64_t EpisodeCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace cohort::data
