/// Small files that spare the next run what this one has found out by reading the data: statistics, where records lie,
/// which episodes pass the filters.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

class KeptFiles {
 public:
  /// setting: never; a folder; or auto: beside the data (in the folder `data`, or that of the file `data`), and where
  /// that cannot be written $XDG_CACHE_HOME/cohort or ~/.cache/cohort.
  KeptFiles(const std::filesystem::path& data, const std::string& setting);

  /// False for never.
  bool any() const { return !folders_.empty(); }
  /// The content of the first file of this name, and where it lies.
  struct Kept {
    std::string content;
    std::filesystem::path path;
  };
  std::optional<Kept> read(const std::string& name) const;
  /// To the first folder that takes it, whole or not at all. That none does costs the next run time, nothing else: it
  /// is only logged.
  void write(const std::string& name, std::string_view content) const;

 private:
  std::vector<std::filesystem::path> folders_;
};

}  // namespace cohort::data
