/// What `accelerate config` writes (default_config.yaml), as flags of `cohort launch`: every key is done, without effect
/// here, or refused by name.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace cohort::cli {

struct AccelerateFile {
  std::vector<std::string> flags;  ///< "--num_processes=2", ...
  std::vector<std::string> notes;  ///< which they are
};

/// `typed`: names of the flags of the command line, with low lines; each outranks what the file says of the same thing.
/// Throws UsageError naming every key that cannot be done, Error for a file that cannot be read.
AccelerateFile read_accelerate_file(const std::string& path, const std::set<std::string>& typed);

}  // namespace cohort::cli
