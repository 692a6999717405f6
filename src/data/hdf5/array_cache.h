/// Where the arrays of episodes lie, kept so that libhdf5, which serves one thread at a time and looks chunks up one by
/// one, is asked once for each. The arrays used least recently go first.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "data/hdf5/array.h"

namespace cohort::data {

class Hdf5ArrayCache {
 public:
  /// budget: bytes of descriptions; a chunk takes 24.
  explicit Hdf5ArrayCache(std::int64_t budget) : budget_(budget) {}

  /// Nothing where it is not known. `key`: a number for episode and field.
  std::shared_ptr<const Hdf5Array> find(std::int64_t key);
  void keep(std::int64_t key, std::shared_ptr<const Hdf5Array> array);
  std::int64_t bytes() const;

 private:
  struct Entry {
    std::int64_t key;
    std::shared_ptr<const Hdf5Array> array;
    std::int64_t bytes;
  };
  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::list<Entry> recent_;  // first: used last
  std::unordered_map<std::int64_t, std::list<Entry>::iterator> entries_;
  std::int64_t bytes_ = 0;
};

}  // namespace cohort::data
