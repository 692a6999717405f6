// Memory of a process that trains from an RLDS set, for sets of 1, 10 and 100 times a size: the shards of a small set
// are linked many times over. What must stay flat is the anonymous memory; pages of mapped files belong to the system's
// cache and are listed beside it.
//
//   bench_robot_memory --rlds FOLDER --action FIELD [--image FIELD ...] [--budget-mib 64] [--batches 200]
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "data/loader.h"
#include "data/rlds/dataset_info.h"
#include "data/robot_windows.h"
#include "program.h"

namespace {

using namespace cohort;
using namespace cohort::data;
namespace fs = std::filesystem;

/// A field of /proc/self/status in KiB.
long status_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stol(line.substr(field.size() + 1));
  return 0;
}

/// The set with every shard of its train split linked `times` over.
fs::path repeat(const fs::path& folder, const fs::path& into, int times) {
  DatasetInfo info = parse_dataset_info(read_file(folder / "dataset_info.json"), folder.string());
  const DatasetInfo once = info;
  SplitInfo* train = nullptr;
  for (SplitInfo& split : info.splits)
    if (split.name == "train") train = &split;
  COHORT_THROW_UNLESS(train, "{} has no split train", folder.string());
  const SplitInfo small = *train;
  train->shard_lengths.clear();
  for (int i = 0; i < times; ++i)
    train->shard_lengths.insert(train->shard_lengths.end(), small.shard_lengths.begin(), small.shard_lengths.end());
  fs::create_directories(into);
  for (std::size_t s = 0; s < train->shard_lengths.size(); ++s)
    fs::create_symlink(
        fs::absolute(folder / shard_name(once, small, static_cast<std::int64_t>(s % small.shard_lengths.size()))),
        into / shard_name(info, *train, static_cast<std::int64_t>(s)));
  write_file_atomically(into / "dataset_info.json", write_dataset_info(info));
  fs::copy_file(folder / "features.json", into / "features.json");
  return into;
}

void measure(const fs::path& folder, int times, const RobotDataSettings& wanted, std::int64_t budget, int batches) {
  RobotDataSettings settings = wanted;
  settings.paths = {folder.string()};
  const auto windows = std::make_shared<RobotWindows>(settings);
  Loader loader(windows, {.batch_size = 16, .workers = 1, .memory_budget_bytes = budget});
  std::int64_t first = 0;
  long early = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int b = 0; b < batches; ++b) {
    if (b % 50 == 0) {  // epochs of 800 samples, over all of the set
      std::vector<std::int64_t> indices;
      for (std::int64_t i = 0; i < 800; ++i) indices.push_back((first + i * 7919) % windows->size());
      first += 800;
      loader.start_epoch(static_cast<std::uint64_t>(b / 50), indices, indices);
    }
    loader.next();
    if (b == batches / 4) early = status_kib("RssAnon");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "x%-4d %8lld windows   anonymous %7.1f MiB (a quarter of the way: %.1f), mapped pages %7.1f MiB, %.0f "
      "samples/s\n",
      times, static_cast<long long>(windows->size()), static_cast<double>(status_kib("RssAnon")) / 1024,
      static_cast<double>(early) / 1024, static_cast<double>(status_kib("RssFile")) / 1024, 16.0 * batches / seconds);
}

/// Where the repeated sets lie; goes away with the object.
struct Folder {
  fs::path path = fs::temp_directory_path() / format("cohort_robot_memory_{}", ::getpid());
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

int run(int argc, char** argv) {
  bench::Options options("Memory of the loader against the size of the set.");
  std::string rlds;
  RobotDataSettings settings;
  settings.statistics_cache = "never";
  settings.action_normalization = {"none"};
  int budget_mib = 64, batches = 200;
  options.add("--rlds", rlds, "version folder of an RLDS data set").required();
  options.add("--action", settings.actions, "component of the action").required();
  options.add("--image", settings.images, "image field");
  options.add("--budget-mib", budget_mib, "of the loader, and of opened episodes");
  options.add("--batches", batches).at_least(4);
  if (!options.parse(argc, argv)) return options.exit_code();
  settings.cache_bytes = std::int64_t{budget_mib} << 20;
  const Folder folder;
  std::printf("%s, budget %d MiB for batches and %d MiB for opened episodes\n", host_cpu().name.c_str(), budget_mib,
              budget_mib);
  std::fflush(stdout);
  int status = 0;
  for (const int times : {1, 10, 100}) {
    const fs::path repeated = folder.path / std::to_string(times);
    repeat(rlds, repeated, times);
    const pid_t child = ::fork();  // a process each: what one frees, the next must not reuse
    COHORT_THROW_UNLESS(child >= 0, "cannot start a process");
    if (child == 0) {
      const int code = bench::run_program("robot_memory", [&] {
        measure(repeated, times, settings, std::int64_t{budget_mib} << 20, batches);
        return 0;
      });
      std::fflush(stdout);
      ::_exit(code);
    }
    int result = 0;
    ::waitpid(child, &result, 0);
    if (result != 0) status = 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return cohort::bench::run_program("robot_memory", [&] { return run(argc, argv); });
}
