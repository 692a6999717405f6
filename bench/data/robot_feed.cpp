// Robot data on one core against the Python side of a training loop, in alternated pairs: windows of HDF5 demos in
// batches against h5py under torch's DataLoader, and JPEGs against torchvision.
//
//   taskset -c 0 bench_robot_feed --rlds FOLDER --work FOLDER [--python PYTHON] [--pairs 9]
//
// PYTHON has torch, torchvision and h5py. FOLDER of --rlds gives the JPEGs: a data set's version folder; --work gets
// the HDF5 files, made once by the peer. Neither side has worker threads, both see the same windows in the same order.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>

#include "comparison.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "data/images/codec.h"
#include "data/loader.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"
#include "data/sampler.h"
#include "peer.h"
#include "program.h"

namespace {

using namespace cohort;
using namespace cohort::data;
namespace fs = std::filesystem;

/// As robot_feed.py cuts them.
std::shared_ptr<const RobotWindows> windows_of(const fs::path& file) {
  RobotDataSettings settings;
  settings.paths = {file.string()};
  settings.actions = {"actions"};
  settings.action_normalization = {"none"};
  settings.proprio = {"obs/robot0_eef_pos", "obs/robot0_eef_quat", "obs/robot0_gripper_qpos"};
  settings.images = {"obs/agentview_image", "obs/robot0_eye_in_hand_image"};
  settings.image_transforms = {"resize(84, 84)"};
  settings.statistics_cache = "never";
  settings.threads = 1;
  return std::make_shared<const RobotWindows>(settings);
}

struct Pass {
  double seconds = 0;
  std::int64_t count = 0;
  double sum = 0;  ///< of some values, to see that both sides read the same
};

Pass windows_pass(const RobotWindows& windows, Loader& loader, std::uint64_t seed) {
  std::size_t action = 0, wrist = 0;
  const std::vector<FieldSpec> fields = windows.fields();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].name == "action") action = f;
    if (fields[f].name == "image/obs/robot0_eye_in_hand_image") wrist = f;
  }
  Pass pass;
  pass.seconds = bench::seconds_of([&] {
    std::vector<std::int64_t> order = torch_randperm(windows.size(), seed), ids = order;
    loader.start_epoch(0, std::move(order), std::move(ids));
    while (const LoadedBatch batch = loader.next()) {
      const auto actions = batch.fields()[action].span<float>();
      const auto* frames = static_cast<const std::uint8_t*>(batch.fields()[wrist].data);
      for (std::int64_t s = 0; s < batch.size(); ++s) {
        pass.sum += static_cast<double>(actions[static_cast<std::size_t>((s * 16 + 15) * 7)]);
        pass.sum += frames[s * 2 * 84 * 84 * 3 + (5 * 84 + 5) * 3 + 1];
      }
      pass.count += batch.size();
    }
  });
  return pass;
}

/// Every JPEG of a set, one behind the other, each behind its length.
std::vector<std::string> write_jpegs(const fs::path& rlds, const fs::path& file) {
  std::vector<std::string> jpegs;
  std::string all, scratch;
  const auto source = open_episodes(rlds);
  for (std::int64_t e = 0; e < source->size(); ++e) {
    const auto episode = source->open(e);
    for (std::size_t f = 0; f < source->fields().size(); ++f)
      for (std::int64_t t = 0; source->fields()[f].kind == StepKind::kImage && t < episode->steps(); ++t) {
        const std::string_view bytes = episode->image(f, t, scratch).bytes;
        const auto length = static_cast<std::uint32_t>(bytes.size());
        all.append(reinterpret_cast<const char*>(&length), 4).append(bytes);
        jpegs.emplace_back(bytes);
      }
  }
  write_file_atomically(file, all);
  return jpegs;
}

Pass jpeg_pass(const std::vector<std::string>& jpegs) {
  Pass pass{.count = static_cast<std::int64_t>(jpegs.size())};
  Image image;
  pass.seconds = bench::seconds_of([&] {
    for (const std::string& jpeg : jpegs) {
      decode_image(jpeg, 3, image);
      pass.sum += image.pixels[0];
    }
  });
  return pass;
}

/// `tolerance`: of the sums, as a part of them.
void compare(const std::string& what, const char* unit, bench::Peer& peer, const std::string& command, int pairs,
             double tolerance, const std::function<Pass()>& run) {
  Pass ours, theirs;
  const auto our_side = [&] {
    ours = run();
    return ours.seconds;
  };
  const auto their_side = [&] {
    std::istringstream answer(peer.ask(command));
    answer >> theirs.seconds >> theirs.count >> theirs.sum;
    return theirs.seconds;
  };
  const auto seconds = bench::take_turns({{"peer", their_side}, {"ours", our_side}}, pairs);
  COHORT_THROW_UNLESS(ours.count == theirs.count && std::abs(ours.sum - theirs.sum) <= tolerance * std::abs(ours.sum),
                      "{}: the two sides saw other samples: {} with sum {}, and {} with sum {}", what, ours.count,
                      ours.sum, theirs.count, theirs.sum);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds[0].size(); ++i) ratios.push_back(seconds[0][i] / seconds[1][i]);
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  const auto count = static_cast<double>(ours.count);
  std::printf("%-52s %9.0f %9.0f %s/s  %6.2f (%.2f to %.2f)\n", what.c_str(), count / bench::median(seconds[1]),
              count / bench::median(seconds[0]), unit, bench::median(ratios), *low, *high);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  bench::Options options("HDF5 windows and JPEGs against h5py under torch's DataLoader and against torchvision.");
  std::string rlds, work, python = bench::environment_or("COHORT_PYTHON", "python3");
  int pairs = 9;
  options.add("--rlds", rlds, "version folder of an RLDS data set with JPEGs").required();
  options.add("--work", work, "folder for files that the benchmark makes").required();
  options.add("--python", python, "with torch, torchvision and h5py");
  options.add("--pairs", pairs).at_least(1);
  if (!options.parse(argc, argv)) return options.exit_code();
  bench::Peer peer({python, std::string(COHORT_SOURCE_DIR) + "/bench/data/robot_feed.py", work});
  const std::string ready = peer.read_line();
  COHORT_THROW_UNLESS(ready.starts_with("ready "), "the Python peer did not start");
  std::printf("%s\n", bench::machine_line(ready.substr(6)).c_str());
  std::printf("medians of %d pairs: ours, the peer's, ours / theirs\n", pairs);
  const fs::path jpegs_file = fs::path(work) / "frames.jpegs";
  const std::vector<std::string> jpegs = write_jpegs(rlds, jpegs_file);
  // Decoders of libjpeg-turbo's family differ by a grey level in a pixel.
  compare("JPEG decode against torchvision", "images", peer, "jpeg " + jpegs_file.string(), pairs, 0.02,
          [&] { return jpeg_pass(jpegs); });
  for (const char* name : {"plain", "gzip", "lzf"}) {
    const fs::path file = fs::path(work) / (std::string(name) + ".hdf5");
    const auto windows = windows_of(file);
    Loader loader(windows, {.batch_size = 16, .workers = 0});
    compare(std::string("HDF5 windows, ") + name + ", against h5py and DataLoader", "samples", peer,
            "windows " + file.string() + " 3", pairs, 1e-6, [&] { return windows_pass(*windows, loader, 3); });
  }
  peer.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return cohort::bench::run_program("robot_feed", [&] { return run(argc, argv); });
}
