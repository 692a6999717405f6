/// A small training through the command line, for tests that stop, kill or continue it.
#pragma once
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/files.h"
#include "support/process.h"

namespace cohort::testing {

class Training {
 public:
  Training() {
    std::string text = "p,q,r\n";
    for (int i = 0; i < 400; ++i)
      text += std::to_string(std::sin(i)) + "," + std::to_string(std::cos(1.7 * i)) + "," +
              std::to_string(std::sin(i) * std::cos(1.7 * i)) + "\n";
    write_file_atomically(folder_.path() / "table.csv", text);
  }

  fs::path path() const { return folder_.path(); }
  fs::path outputs() const { return folder_.path() / "out"; }

  /// The words behind `cohort` (or behind a launcher): ten steps are an epoch of two ranks at batch 16.
  std::vector<std::string> words(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"train",
                                    "regressor",
                                    "data.path=" + (folder_.path() / "table.csv").string(),
                                    "data.columns.n_targets=1",
                                    "train.batch_size=16",
                                    "train.checkpoint.save_best=false",
                                    "train.log_every=1",
                                    "loader.workers=1",
                                    "charts=false",
                                    "tensorboard=false",
                                    "backend=cpu",
                                    "output_dir=" + outputs().string(),
                                    "name=" + name};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> after(std::vector<std::string> launcher, const std::string& name,
                                 const std::vector<std::string>& more = {}) const {
    const std::vector<std::string> own = words(name, more);
    launcher.insert(launcher.end(), own.begin(), own.end());
    return launcher;
  }
  std::vector<std::string> alone(const std::string& name, const std::vector<std::string>& more = {}) const {
    return after({cohort_path()}, name, more);
  }

  /// The folders of the runs of that name.
  std::vector<fs::path> runs(const std::string& name) const {
    std::vector<fs::path> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(outputs() / name, error))
      if (!entry.is_symlink()) found.push_back(entry.path());
    return found;
  }
  /// Step of the newest line of metrics.
  int step(const std::string& name) const {
    const std::vector<std::string> lines = lines_of(text_of(outputs() / name / "latest" / "metrics.jsonl"));
    if (lines.empty()) return 0;
    const std::size_t at = lines.back().find("\"step\":");
    return at == std::string::npos ? 0 : std::atoi(lines.back().c_str() + at + 7);
  }

  std::string log(const std::string& name) const { return text_of(outputs() / name / "latest" / "training.log"); }
  /// The processes that the ranks of the newest run of that name began as, by its log. Fails where one is missing.
  std::vector<pid_t> pids(const std::string& name, int ranks) const {
    const std::string text = log(name);
    std::vector<pid_t> found;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string mark = "rank " + std::to_string(rank) + " on host ";
      const std::size_t line = text.find(mark),
                        at = text.find("(pid ", line == std::string::npos ? line : line + mark.size());
      found.push_back(at == std::string::npos ? 0 : std::atoi(text.c_str() + at + 5));
      if (found.back() <= 0)
        throw std::runtime_error("the log does not name rank " + std::to_string(rank) + ":\n" + text);
    }
    return found;
  }
  /// The process that a rank is, or was last, by its status.
  pid_t last_pid(const std::string& name, int rank) const {
    const std::string text =
        text_of(outputs() / name / "latest" / "ranks" / ("rank_" + std::to_string(rank) + ".json"));
    const std::size_t at = text.find("\"pid\":");
    return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + 6);
  }

  /// One thread for each operation: several trainings share the machine's cores.
  static std::map<std::string, std::string> variables(std::map<std::string, std::string> more = {}) {
    more.emplace("OMP_NUM_THREADS", "1");
    return more;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace cohort::testing
