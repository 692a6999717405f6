/// libhdf5 reads metadata in a process of its own, which lives as long as this one: where a damaged file makes the
/// library crash or go round in circles (1.10.8 does both), there is an error, and a new process for the next question.
/// A question may take 60 s of processor time, or COHORT_HDF5_SECONDS.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>

#include <sys/types.h>

#include "core/byte_stream.h"

namespace cohort::data {

enum class Hdf5Question : std::uint64_t {
  kOpen,
  kClose,
  kHas,
  kGroups,
  kDataSets,
  kAttributes,
  kAttributeTypes,
  kArrays,
  kArray,
  kShapes,
  kTexts,
};

class Hdf5Process {
 public:
  /// This process's; it is started when it is first asked. Forked children have one of their own.
  static Hdf5Process& instance();

  /// What Hdf5MetadataReader answers to `question` about `object` of the file at `path`, which is open under `number`
  /// or is opened (kClose: is closed, if it is open). Throws its Error, and Error naming the file when the library ends
  /// over it. Thread-safe.
  ByteReader ask(Hdf5Question question, std::uint64_t number, const std::string& path, const std::string& object);

 private:
  bool runs() const;
  void start();
  /// Why the process ended, where a question had `seconds`: "Segmentation fault".
  std::string end(int seconds);

  std::mutex mutex_;
  pid_t owner_ = -1;  // who started it
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace cohort::data
