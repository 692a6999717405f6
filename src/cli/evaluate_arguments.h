/// What `cohort evaluate` was told, and the files that it leaves.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/task_arguments.h"
#include "core/files.h"
#include "core/log.h"
#include "eval/episode_video.h"
#include "eval/video_files.h"

namespace cohort::cli {

struct EvaluateArguments {
  TaskArguments task;
  std::string name;                       ///< of one task; or
  std::string benchmark;                  ///< of a suite of LIBERO's
  std::optional<std::int64_t> num_tasks;  ///< its first ones; else all
  std::string out, json, csv;
  std::string html;  ///< a page of the best and the worst episode; "": none
  std::vector<std::string> policies;
  std::optional<std::int64_t> episodes;  ///< of a task; else 50, of a benchmark 20
  std::int64_t max_steps = 0;
  std::uint64_t first_seed = 0;
  bool record_video = false;
  std::filesystem::path video_folder;
  eval::VideoSettings video;
};

/// The files that are asked for. They are opened before the episodes, so that a place that cannot be written is found
/// then, and appear behind the episodes, whole. The videos of the evaluation whose table is replaced go with it.
class OutputFiles {
 public:
  explicit OutputFiles(const EvaluateArguments& arguments) {
    if (!arguments.out.empty()) {
      add(arguments.out + "/evaluation.json", true);
      add(arguments.out + "/evaluation.csv", false);
    }
    if (!arguments.json.empty()) add(arguments.json, true);
    if (!arguments.csv.empty()) add(arguments.csv, false);
    for (const Output& output : outputs_)
      if (output.is_json)
        for (std::filesystem::path& video : eval::videos_of_table(output.path)) earlier_.push_back(std::move(video));
  }

  /// Once more: with what has come since, in the place of the former ones.
  void write(const std::string& json, const std::string& csv) {
    for (Output& output : outputs_) {
      if (!output.file) output.file = std::make_unique<AtomicFile>(output.path);
      output.file->write(0, output.is_json ? json : csv);
    }
    for (Output& output : outputs_) {
      output.file->commit();
      output.file.reset();
    }
    std::size_t removed = 0;
    for (const std::filesystem::path& video : std::exchange(earlier_, {})) {
      std::error_code error;
      removed += std::filesystem::remove(video, error);
      if (error) log::warning("{} of an earlier evaluation stays: {}", video.string(), error.message());
    }
    if (removed > 0) log::info("{} videos of the evaluation that this table replaces are removed", removed);
  }

 private:
  struct Output {
    std::filesystem::path path;
    bool is_json;
    std::unique_ptr<AtomicFile> file;
  };
  void add(const std::filesystem::path& path, bool is_json) {
    outputs_.push_back({path, is_json, std::make_unique<AtomicFile>(path)});
  }
  std::vector<Output> outputs_;
  std::vector<std::filesystem::path> earlier_;  ///< videos of the tables that are replaced
};

/// A path that stays true when the folder is moved: relative to where the table lies.
inline std::string from_table(const EvaluateArguments& arguments, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  fs::path base = !arguments.out.empty() ? fs::path(arguments.out) : fs::path(arguments.json).parent_path();
  if (base.empty()) base = ".";
  return fs::absolute(file).lexically_relative(fs::absolute(base)).generic_string();
}

/// Where the videos are, with the whole path, for a browser or a file manager.
inline void say_videos(std::size_t count, const EvaluateArguments& arguments) {
  namespace fs = std::filesystem;
  log::info("{} video{} in {}", count, count == 1 ? " is" : "s are",
            fs::weakly_canonical(fs::absolute(arguments.video_folder)).string());
}

/// `cohort evaluate --benchmark`: every task of a suite, its episodes over all ranks.
void evaluate_benchmark(EvaluateArguments& arguments);

}  // namespace cohort::cli
