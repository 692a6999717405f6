/// Small files that spare the next run what this one has found out by reading the data: statistics, where records lie,
/// which episodes pass the filters.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

class KeptFiles {
 public:
  /// setting: never; a folder; or auto: $XDG_CACHE_HOME/cohort or ~/.cache/cohort, since others share the folders that
  /// data lie in; beside the data (in the folder `data`, or that of the file `data`) only in a run's folder of this
  /// user. What already lies beside the data is read.
  KeptFiles(const std::filesystem::path& data, const std::string& setting);

  /// False for never.
  bool any() const { return !read_from_.empty(); }
  /// The content of the first file of this name, and where it lies.
  struct Kept {
    std::string content;
    std::filesystem::path path;
  };
  std::optional<Kept> read(const std::string& name) const;
  /// Whole or not at all, with a line of the log that says where `what` is kept now. That it cannot be kept costs the
  /// next run time, nothing else: it is only logged.
  void write(const std::string& name, std::string_view content, const std::string& what) const;

  /// One process of this machine at a time finds out what belongs into a file: the ranks of a run ask for the same, and
  /// those who come later find the file there. Lasts as long as the object.
  class Turn {
   public:
    explicit Turn(const std::string& name);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::filesystem::path path_;
    int file_ = -1;
  };
  /// Waits for a turn; look again with read() before finding out. Where no lock can be had, or nothing is kept, nobody
  /// waits.
  std::unique_ptr<Turn> turn(const std::string& name) const { return any() ? std::make_unique<Turn>(name) : nullptr; }

 private:
  std::vector<std::filesystem::path> read_from_;
  std::filesystem::path write_to_;  ///< empty: nowhere
};

}  // namespace cohort::data
