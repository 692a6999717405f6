/// Lets threads use things at the same time as far as their bytes fit into a budget; the others wait their turn.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace cohort::data {

class ByteGate {
 public:
  explicit ByteGate(std::int64_t budget) : budget_(budget) {}

  /// The right to use a thing, until it is destroyed.
  class Pass {
   public:
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { gate_.leave(key_); }

   private:
    friend class ByteGate;
    Pass(ByteGate& gate, std::int64_t key) : gate_(gate), key_(key) {}
    ByteGate& gate_;
    std::int64_t key_;
  };

  /// Waits until the thing `key` of so many bytes is in use already, fits beside those that are, or is the only one:
  /// whoever is alone goes on, whatever the thing weighs. A thread that has a pass must not enter again: it would wait
  /// for itself.
  [[nodiscard]] Pass enter(std::int64_t key, std::int64_t bytes);

 private:
  struct InUse {
    std::int64_t key, bytes;
    int users;
  };
  void leave(std::int64_t key);

  const std::int64_t budget_;
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<InUse> in_use_;  // as many as threads, at most
  std::int64_t bytes_ = 0;
};

}  // namespace cohort::data
