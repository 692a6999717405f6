#include "data/episode_cache.h"

#include <algorithm>

namespace cohort::data {

std::shared_ptr<const Episode> EpisodeCache::get(std::int64_t key, std::int64_t expected,
                                                 const std::function<Made()>& make) {
  std::list<Entry> dropped;  // declared before the locks: destroyed behind them
  {
    std::lock_guard lock(mutex_);
    if (auto known = find(key)) return known;
    make_room(expected, dropped);
    opening_ += expected;
  }
  dropped.clear();  // lets go of its pages before others are read
  Made made;
  try {
    made = make();
  } catch (...) {
    std::lock_guard lock(mutex_);
    opening_ -= expected;
    throw;
  }
  const auto& [episode, bytes] = made;
  std::lock_guard lock(mutex_);
  opening_ -= expected;
  if (auto known = find(key)) return known;  // another thread was faster
  make_room(bytes, dropped);
  if (counted() + bytes > budget_) {
    lent_.push_back({key, episode, bytes});
    return episode;
  }
  recent_.push_front({key, episode, bytes});
  entries_[key] = recent_.begin();
  bytes_ += bytes;
  return episode;
}

void EpisodeCache::grow(std::int64_t key, std::int64_t more) {
  std::list<Entry> dropped;
  std::lock_guard lock(mutex_);
  for (Lent& lent : lent_)
    if (lent.key == key) lent.bytes += more;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second->bytes += more;
  bytes_ += more;
  make_room(0, dropped);
  const auto still = entries_.find(key);
  if (counted() <= budget_ || still == entries_.end()) return;
  lent_.push_back({key, still->second->episode, still->second->bytes});
  bytes_ -= still->second->bytes;
  dropped.splice(dropped.begin(), recent_, still->second);
  entries_.erase(still);
}

std::int64_t EpisodeCache::bytes() const {
  std::lock_guard lock(mutex_);
  return counted() - opening_;
}

std::shared_ptr<const Episode> EpisodeCache::find(std::int64_t key) {
  if (const auto found = entries_.find(key); found != entries_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second);
    return recent_.front().episode;
  }
  for (const Lent& lent : lent_)
    if (lent.key == key)
      if (auto episode = lent.episode.lock()) return episode;
  return nullptr;
}

std::int64_t EpisodeCache::counted() const {
  std::int64_t bytes = bytes_ + opening_;
  for (const Lent& lent : lent_)
    if (!lent.episode.expired()) bytes += lent.bytes;
  return bytes;
}

/// Drops those that nobody uses, the least recently used first, until there is room for so many bytes more.
void EpisodeCache::make_room(std::int64_t bytes, std::list<Entry>& dropped) {
  std::erase_if(lent_, [](const Lent& lent) { return lent.episode.expired(); });
  for (auto at = recent_.end(); at != recent_.begin() && counted() + bytes > budget_;) {
    const auto entry = std::prev(at);
    if (entry->episode.use_count() > 1) {  // only the cache can hand it out again, and its lock is held
      at = entry;
      continue;
    }
    bytes_ -= entry->bytes;
    entries_.erase(entry->key);
    dropped.splice(dropped.begin(), recent_, entry);
  }
}

}  // namespace cohort::data
