/// What `cohort evaluate` was told, and the files that it leaves.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/task_arguments.h"
#include "core/files.h"
#include "eval/episode_video.h"

namespace cohort::cli {

struct EvaluateArguments {
  TaskArguments task;
  std::string name;                       ///< of one task; or
  std::string benchmark;                  ///< of a suite of LIBERO's
  std::optional<std::int64_t> num_tasks;  ///< its first ones; else all
  std::string out, json, csv;
  std::vector<std::string> policies;
  std::optional<std::int64_t> episodes;  ///< of a task; else 50, of a benchmark 20
  std::int64_t max_steps = 0;
  std::uint64_t first_seed = 0;
  bool record_video = false;
  std::filesystem::path video_folder;
  eval::VideoSettings video;
};

/// The files that are asked for. They are opened before the episodes, so that a place that cannot be written is found
/// then, and appear at the end, whole.
class OutputFiles {
 public:
  explicit OutputFiles(const EvaluateArguments& arguments) {
    if (!arguments.out.empty()) {
      add(json_, std::filesystem::path(arguments.out) / "evaluation.json");
      add(csv_, std::filesystem::path(arguments.out) / "evaluation.csv");
    }
    if (!arguments.json.empty()) add(json_, arguments.json);
    if (!arguments.csv.empty()) add(csv_, arguments.csv);
  }

  void write(const std::string& json, const std::string& csv) {
    for (const auto& file : json_) file->write(0, json);
    for (const auto& file : csv_) file->write(0, csv);
    for (auto* files : {&json_, &csv_})
      for (const auto& file : *files) file->commit();
  }

 private:
  using Files = std::vector<std::unique_ptr<AtomicFile>>;
  static void add(Files& files, const std::filesystem::path& path) {
    files.push_back(std::make_unique<AtomicFile>(path));
  }
  Files json_, csv_;
};

/// A path that stays true when the folder is moved: relative to where the table lies.
inline std::string from_table(const EvaluateArguments& arguments, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  fs::path base = !arguments.out.empty() ? fs::path(arguments.out) : fs::path(arguments.json).parent_path();
  if (base.empty()) base = ".";
  return fs::absolute(file).lexically_relative(fs::absolute(base)).generic_string();
}

/// `cohort evaluate --benchmark`: every task of a suite, its episodes over all ranks.
void evaluate_benchmark(EvaluateArguments& arguments);

}  // namespace cohort::cli
