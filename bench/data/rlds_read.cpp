// Reading robot data on one core against tensorflow-datasets and h5py, in alternated pairs.
//
//   bench_rlds_read --rlds FOLDER [--hdf5 FILE] [--python PYTHON] [--pairs 9]
//
// PYTHON has tensorflow-cpu, tensorflow-datasets and h5py. FOLDER is a data set's version folder, e.g. one that the
// oracle make_rlds.py wrote. Each figure is the median over the pairs of passes over the whole set, files in the
// system's cache; checksums are verified by both.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>

#include "core/devices_cpu.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/images/codec.h"
#include "data/rlds/rlds_episodes.h"
#include "models/peer.h"

namespace {

using namespace cohort;
using namespace cohort::data;

double seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Every number of every step; returns the steps.
std::int64_t read_numbers(const EpisodeSource& source) {
  std::int64_t steps = 0;
  std::vector<float> values;
  for (std::int64_t e = 0; e < source.size(); ++e) {
    const auto episode = source.open(e);
    steps += episode->steps();
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      const StepField& field = source.fields()[f];
      if (field.kind != StepKind::kNumber || field.elements() < 0) continue;
      values.resize(static_cast<std::size_t>(episode->steps() * field.elements()));
      episode->read(f, 0, episode->steps(), std::span(values));
    }
  }
  return steps;
}

/// Every frame of every camera; returns the frames.
std::int64_t read_images(const EpisodeSource& source) {
  std::int64_t frames = 0;
  std::string scratch;
  Image image;
  for (std::int64_t e = 0; e < source.size(); ++e) {
    const auto episode = source.open(e);
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      if (source.fields()[f].kind != StepKind::kImage) continue;
      for (std::int64_t t = 0; t < episode->steps(); ++t, ++frames) {
        const StoredImage stored = episode->image(f, t, scratch);
        if (stored.encoding == ImageEncoding::kJpegOrPng) decode_image(stored.bytes, 3, image);
      }
    }
  }
  return frames;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void compare(const char* what, const char* unit, bench::Peer& peer, const std::string& command, int pairs,
             const std::function<std::int64_t()>& pass) {
  std::vector<double> ours, theirs;
  std::int64_t count = pass();
  peer.ask(command);  // warm up both
  for (int i = 0; i < pairs; ++i) {
    theirs.push_back(std::stod(peer.ask(command)));
    ours.push_back(seconds([&] { count = pass(); }));
  }
  const auto rate = [&](double s) { return static_cast<double>(count) / s; };
  std::printf("%-28s ours %12.0f %s/s   peer %12.0f %s/s   ratio %.2f\n", what, rate(median(ours)), unit,
              rate(median(theirs)), unit, median(theirs) / median(ours));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reading robot data against its Python peers.");
  std::string rlds, hdf5, python = "python3";
  int pairs = 9;
  app.add_option("--rlds", rlds, "version folder of an RLDS data set")->required();
  app.add_option("--hdf5", hdf5, "robomimic file");
  app.add_option("--python", python)->capture_default_str();
  app.add_option("--pairs", pairs)->capture_default_str()->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    bench::Peer peer({python, std::string(COHORT_SOURCE_DIR) + "/bench/data/rlds_read.py", rlds, hdf5});
    const std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
    const CpuDevice cpu = host_cpu();
    std::printf("%s, %d cores (one used), %s\npeer: %s\n", cpu.name.c_str(), cpu.cores, date, peer.read_line().c_str());
    // Opening is part of a pass, for the peer's passes begin with it too.
    const RldsSettings settings{.checksums = "always", .cache_bytes = 0, .threads = 1};
    compare("RLDS, numbers of all steps", "steps", peer, "steps", pairs,
            [&] { return read_numbers(RldsEpisodes(rlds, settings)); });
    compare("RLDS, all frames decoded", "images", peer, "images", pairs,
            [&] { return read_images(RldsEpisodes(rlds, settings)); });
    if (!hdf5.empty())
      compare("HDF5, all arrays", "steps", peer, "hdf5", pairs, [&] {
        const Hdf5Episodes episodes(hdf5, {.cache_bytes = 0});
        const std::int64_t steps = read_numbers(episodes);
        read_images(episodes);
        return steps;
      });
    peer.finish();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_rlds_read: %s\n", e.what());
    return 1;
  }
  return 0;
}
