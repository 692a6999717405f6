/// The claim of a run's folder by the one process that writes there: a file `run.lock` in it, which goes with the claim.
///
///   const RunClaim claim(folder);   // throws Error, naming the holder, where another process trains there
///
/// The file is locked (flock), says who holds it and since when, and is written again every `beat`. A lock alone would
/// not do: the kernel keeps it for a process that is stopped, and a file server for one whose machine is cut off.
/// Whoever finds it locked looks at the holder: on this machine (and in this table of processes) whether it runs, else
/// whether it beats. One that runs or beats keeps the folder; from one that is stopped, gone or silent it is taken
/// over. Should that one go on some day, it finds the file to be another's within a beat, and ends.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace cohort::report {

struct ClaimLimits {
  std::chrono::milliseconds beat{2000};      ///< between signs of life
  std::chrono::milliseconds silence{20000};  ///< without one, a holder that cannot be looked at counts as gone
};

class RunClaim {
 public:
  /// Throws Error where a process that is alive holds the folder, saying which and what to do, and where the file cannot
  /// be written. Takes up to `silence` where the holder is on another machine. Where the file system has no locks, a
  /// warning says so.
  explicit RunClaim(const std::filesystem::path& folder, const ClaimLimits& limits = {});
  ~RunClaim();
  RunClaim(const RunClaim&) = delete;
  RunClaim& operator=(const RunClaim&) = delete;

 private:
  class Beats;
  std::filesystem::path file_;
  int lock_ = -1;  ///< file descriptor
  std::unique_ptr<Beats> beats_;
};

}  // namespace cohort::report
