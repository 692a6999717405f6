#include "data/hdf5/array_cache.h"

#include <utility>

namespace cohort::data {
namespace {

constexpr std::int64_t kEntryBytes = 128;  // about what the list and the table take per entry

}  // namespace

std::shared_ptr<const Hdf5Array> Hdf5ArrayCache::find(std::int64_t key) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return recent_.front().array;
}

void Hdf5ArrayCache::keep(std::int64_t key, std::shared_ptr<const Hdf5Array> array) {
  const std::int64_t bytes = array->bytes_held() + kEntryBytes;
  std::list<Entry> dropped;  // declared before the lock: destroyed behind it
  std::lock_guard lock(mutex_);
  if (bytes > budget_ || entries_.contains(key)) return;
  while (bytes_ + bytes > budget_) {
    bytes_ -= recent_.back().bytes;
    entries_.erase(recent_.back().key);
    dropped.splice(dropped.begin(), recent_, std::prev(recent_.end()));
  }
  recent_.push_front({key, std::move(array), bytes});
  entries_[key] = recent_.begin();
  bytes_ += bytes;
}

std::int64_t Hdf5ArrayCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace cohort::data
