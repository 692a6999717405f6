// What a recording with pictures writes per second: episodes of a task's expert, simulated, drawn, encoded and written
// (record::record, which `cohort collect` calls), in both formats.
//
//   recorder_bench [--task pick-and-place] [--episodes 64] [--size 128] [--encoding png]
//
// pixels: MB of uncompressed pictures that a core turns into data in a second; file: MB of the files that result.
#include <cstdio>
#include <ctime>
#include <filesystem>

#include <unistd.h>

#include "comparison.h"
#include "core/error.h"
#include "core/format.h"
#include "program.h"
#include "record/recording.h"
#include "tasks/actor.h"
#include "tasks/registry.h"

namespace cohort::bench {
namespace {

namespace fs = std::filesystem;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double size_of(const fs::path& path) {
  if (fs::is_regular_file(path)) return static_cast<double>(fs::file_size(path));
  double sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) sum += static_cast<double>(entry.file_size());
  return sum;
}

struct Arguments {
  std::string task = "pick-and-place";
  std::vector<std::string> encodings{"png", "jpeg"};
  int episodes = 64, size = 128, n_envs = 64, rounds = 3;
};

int run(int argc, char** argv) {
  Arguments a;
  Options line("MB per second that a recording with pictures writes.");
  line.add("--task", a.task);
  line.add("--encoding", a.encodings, "png, jpeg");
  line.add("--episodes", a.episodes).at_least(1);
  line.add("--size", a.size, "px, of square pictures of the task's first camera").at_least(1);
  line.add("--n-envs", a.n_envs).at_least(1);
  line.add("--rounds", a.rounds).at_least(1);
  if (!line.parse(argc, argv)) return line.exit_code();
  const auto task =
      tasks::make_task(a.task, {.n_envs = a.n_envs, .threads = 1, .pictures = {.height = a.size, .width = a.size}});
  COHORT_THROW_UNLESS(!task->spec().cameras.empty(), "{} has no camera", a.task);
  const auto expert = task->make_expert(0);
  COHORT_THROW_UNLESS(expert, "{} has no expert", a.task);
  const fs::path out = fs::temp_directory_path() / format("cohort_recorder_{}", static_cast<int>(getpid()));
  std::printf("# %s\n", machine_line(format("{}, {} episodes with pictures of {} x {}, one thread", a.task, a.episodes,
                                            a.size, a.size))
                            .c_str());
  std::puts("format,encoding,pictures,seconds,pictures_per_s,pixels_mb_per_s,file_mb,file_mb_per_s");
  for (const char* kind : {"none", "rlds", "hdf5"}) {
    for (const std::string& encoding : a.encodings) {
      record::RecordingSettings settings;
      settings.format = kind == std::string("none") ? "rlds" : kind;
      settings.episodes = a.episodes;
      settings.silent = true;
      if (kind != std::string("none")) {
        settings.pictures = {.cameras = {task->spec().cameras.front()}, .height = a.size, .width = a.size};
        settings.pictures.encoding = encoding;
      }
      std::vector<double> seconds;
      double steps = 0, bytes = 0;
      for (int round = 0; round < a.rounds; ++round) {
        fs::remove_all(out);
        const double begin = processor_seconds();
        const record::RecordingReport report = record::record(*task, *expert, out, settings);
        seconds.push_back(processor_seconds() - begin);
        steps = static_cast<double>(report.steps), bytes = size_of(report.path);
      }
      fs::remove_all(out);
      const double taken = median(seconds), pixels = 3e-6 * a.size * a.size * steps;
      const bool pictures = kind != std::string("none");
      std::printf("%s,%s,%.0f,%.2f,%.0f,%.1f,%.2f,%.1f\n", pictures ? kind : "rlds without pictures",
                  pictures ? encoding.c_str() : "", pictures ? steps : 0, taken, pictures ? steps / taken : 0,
                  pictures ? pixels / taken : 0, 1e-6 * bytes, 1e-6 * bytes / taken);
      std::fflush(stdout);
      if (!pictures) break;
    }
  }
  return 0;
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  return cohort::bench::run_program("recorder_bench", [&] { return cohort::bench::run(argc, argv); });
}
