// Windows of an HDF5 data set as Cohort reads them, its bytes inflated and copied by the threads that ask, against libhdf5,
// which serves one thread at a time (docs/design/decisions/hdf5.md), in turns.
//
//   bench_hdf5_read [--threads 2] [--rounds 7] [--windows 4000]
//
// Frames of 84 x 84 x 3 in chunks of one step, gzip 4 (as recordings and robomimic's pictures lie), and vectors of 7 float32 in
// one piece. A window is 16 steps from anywhere; both sides read the same.
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <hdf5.h>
#include <unistd.h>

#include "comparison.h"
#include "core/array_view.h"
#include "core/error.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/library_lock.h"
#include "data/hdf5/metadata.h"
#include "data/mapped_file.h"
#include "program.h"

namespace {

using namespace cohort;
using namespace cohort::data;
namespace fs = std::filesystem;

constexpr std::int64_t kSteps = 4000, kWindow = 16;

/// Frames with large areas of one colour and some noise: gzip takes out about as much as of a camera's.
void write_file(const fs::path& path) {
  std::vector<std::uint8_t> frames(static_cast<std::size_t>(kSteps) * 84 * 84 * 3);
  for (std::size_t i = 0; i < frames.size(); ++i)
    frames[i] = static_cast<std::uint8_t>((i / 4096) * 7 + (i % 5 == 0 ? (i * 2654435761u >> 24) % 8 : 0));
  std::vector<float> actions(static_cast<std::size_t>(kSteps) * 7);
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] = static_cast<float>(i % 1000) * 0.001f;
  Hdf5Writer writer(path);
  writer.begin_demo(kSteps);
  writer.add("frames", make_view(frames.data(), {kSteps, 84, 84, 3}), /*compress=*/true);
  writer.add("actions", make_view(actions.data(), {kSteps, 7}), /*compress=*/false);
  writer.finish();
}

/// Runs read(window, begin) for all windows on threads; returns the seconds and adds up a byte of each.
double pass(int threads, std::int64_t windows, const std::function<std::uint8_t(int, std::int64_t)>& read,
            std::uint64_t& sum) {
  std::atomic<std::int64_t> next{0};
  std::atomic<std::uint64_t> total{0};
  const double seconds = bench::seconds_of([&] {
    std::vector<std::thread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&, t] {
        for (std::int64_t w; (w = next++) < windows;)
          total += read(t, static_cast<std::int64_t>(static_cast<std::uint64_t>(w) * 2654435761u % (kSteps - kWindow)));
      });
    for (std::thread& one : team) one.join();
  });
  sum = total;
  return seconds;
}

void compare(const fs::path& file, const std::string& name, int threads, int rounds, std::int64_t windows) {
  const Hdf5Metadata metadata(file);
  const Hdf5Array array = metadata.array("/data/demo_0/" + name);
  const MappedFile mapped(file);
  const auto bytes = static_cast<std::size_t>(kWindow * array.row_bytes());
  std::vector<std::vector<char>> out(static_cast<std::size_t>(threads), std::vector<char>(bytes));
  std::vector<std::string> scratch(static_cast<std::size_t>(threads));
  const hid_t library = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = H5Dopen2(library, ("/data/demo_0/" + name).c_str(), H5P_DEFAULT);
  const hid_t type = H5Dget_type(set), space = H5Dget_space(set);
  std::vector<hsize_t> extent(array.shape.begin(), array.shape.end()), begin(extent.size(), 0);
  extent[0] = kWindow;
  const hid_t memory = H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr);
  const auto sample = [&](int t) { return static_cast<std::uint8_t>(out[static_cast<std::size_t>(t)][bytes / 2]); };
  const auto ours = [&](int t, std::int64_t at) {
    read_rows(mapped, array, at, kWindow, out[static_cast<std::size_t>(t)].data(),
              scratch[static_cast<std::size_t>(t)]);
    return sample(t);
  };
  const auto theirs = [&](int t, std::int64_t at) {
    const std::lock_guard lock(hdf5_library_lock());
    begin[0] = static_cast<hsize_t>(at);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, extent.data(), nullptr);
    COHORT_THROW_UNLESS(H5Dread(set, type, memory, space, H5P_DEFAULT, out[static_cast<std::size_t>(t)].data()) >= 0,
                        "libhdf5 does not read {}", name);
    return sample(t);
  };
  for (const int team : {1, threads}) {
    std::uint64_t own_sum = 0, library_sum = 0;
    const auto seconds = bench::take_turns({{"ours", [&] { return pass(team, windows, ours, own_sum); }},
                                            {"libhdf5", [&] { return pass(team, windows, theirs, library_sum); }}},
                                           rounds);
    COHORT_THROW_UNLESS(own_sum == library_sum, "{}: the sides read different bytes", name);
    std::vector<double> ratios;
    for (std::size_t r = 0; r < seconds[0].size(); ++r) ratios.push_back(seconds[1][r] / seconds[0][r]);
    std::printf("%-8s %d threads %10.0f %10.0f windows/s %8.2f\n", name.c_str(), team,
                static_cast<double>(windows) / bench::median(seconds[0]),
                static_cast<double>(windows) / bench::median(seconds[1]), bench::median(ratios));
  }
  H5Sclose(memory), H5Sclose(space), H5Tclose(type), H5Dclose(set), H5Fclose(library);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("bench_hdf5_read", [&] {
    int threads = 2, rounds = 7;
    std::int64_t windows = 4000;
    bench::Options options("Windows of HDF5 data sets: Cohort's reader against libhdf5");
    options.add("--threads", threads)
        .at_least(1)
        .add("--rounds", rounds)
        .at_least(1)
        .add("--windows", windows)
        .at_least(1);
    if (!options.parse(argc, argv)) return options.exit_code();
    const fs::path file = fs::temp_directory_path() / format("bench_hdf5_read_{}.hdf5", ::getpid());
    write_file(file);
    std::printf("%s\n%-18s %10s %10s %26s\n", bench::machine_line("").c_str(), "", "ours", "libhdf5", "times as fast");
    compare(file, "frames", threads, rounds, windows);
    compare(file, "actions", threads, rounds, windows * 50);
    fs::remove(file);
    return 0;
  });
}
