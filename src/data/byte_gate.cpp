#include "data/byte_gate.h"

#include <algorithm>

namespace cohort::data {

ByteGate::Pass ByteGate::enter(std::int64_t key, std::int64_t bytes) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto known = std::find_if(in_use_.begin(), in_use_.end(), [&](const InUse& one) { return one.key == key; });
    if (known != in_use_.end()) {
      ++known->users;
      return Pass(*this, key);
    }
    if (in_use_.empty() || bytes_ + bytes <= budget_) break;
    left_.wait(lock);
  }
  in_use_.push_back({key, bytes, 1});
  bytes_ += bytes;
  return Pass(*this, key);
}

void ByteGate::leave(std::int64_t key) {
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(in_use_.begin(), in_use_.end(), [&](const InUse& one) { return one.key == key; });
    if (--found->users > 0) return;
    bytes_ -= found->bytes;
    *found = in_use_.back();
    in_use_.pop_back();
  }
  left_.notify_all();
}

}  // namespace cohort::data
