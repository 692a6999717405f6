// Reading RLDS on one core against tensorflow-datasets and tf.data, in alternated pairs.
//
//   taskset -c 0 bench_rlds_read --rlds FOLDER [--python PYTHON] [--pairs 9]
//
// PYTHON has tensorflow-cpu and tensorflow-datasets. FOLDER is a data set's version folder. A pass goes over the whole
// set, from opening it on; files lie in the system's cache. tf.data verifies every record's checksum each time, and so
// do we but where the line says otherwise.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "comparison.h"
#include "core/error.h"
#include "data/images/codec.h"
#include "data/rlds/rlds_episodes.h"
#include "peer.h"
#include "program.h"

namespace {

using namespace cohort;
using namespace cohort::data;

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

/// Whole steps: numbers, texts, and every frame decoded.
std::int64_t read_steps(const EpisodeSource& source) {
  std::size_t characters = 0;
  for (std::int64_t e = 0; e < source.size(); ++e) {
    const auto episode = source.open(e);
    for (std::size_t f = 0; f < source.fields().size(); ++f)
      if (source.fields()[f].kind == StepKind::kText)
        for (std::int64_t t = 0; t < episode->steps(); ++t) characters += episode->text(f, t).size();
  }
  COHORT_CHECK(characters < std::size_t{1} << 40, "texts of {} bytes", characters);
  read_images(source);
  return read_numbers(source);
}

struct Case {
  const char* what;
  const char* unit;
  std::string command;  ///< of the peer
  std::function<std::int64_t()> pass;
};

void compare(const Case& one, bench::Peer& peer, int pairs, double megabytes) {
  std::int64_t count = 0, their_count = 0;
  const auto ours = [&] { return bench::seconds_of([&] { count = one.pass(); }); };
  const auto theirs = [&] {
    std::istringstream answer(peer.ask(one.command));
    double seconds = 0;
    answer >> seconds >> their_count;
    return seconds;
  };
  const auto seconds = bench::take_turns({{"peer", theirs}, {"ours", ours}}, pairs);
  COHORT_THROW_UNLESS(count == their_count, "{}: the two sides saw {} and {}", one.what, count, their_count);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds[0].size(); ++i) ratios.push_back(seconds[0][i] / seconds[1][i]);
  const double our_time = bench::median(seconds[1]), their_time = bench::median(seconds[0]);
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("%-66s %9.0f %9.0f %s/s  %6.0f MB/s  %6.2f (%.2f to %.2f)\n", one.what,
              static_cast<double>(count) / our_time, static_cast<double>(count) / their_time, one.unit,
              megabytes / our_time, bench::median(ratios), *low, *high);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  bench::Options options("Reading RLDS against its Python peers.");
  std::string rlds, python = bench::environment_or("COHORT_PYTHON", "python3");
  int pairs = 9;
  options.add("--rlds", rlds, "version folder of an RLDS data set").required();
  options.add("--python", python, "with tensorflow and tensorflow-datasets");
  options.add("--pairs", pairs).at_least(1);
  if (!options.parse(argc, argv)) return options.exit_code();
  bench::Peer peer({python, std::string(COHORT_SOURCE_DIR) + "/bench/data/rlds_read.py", rlds});
  const std::string ready = peer.read_line();
  COHORT_THROW_UNLESS(ready.starts_with("ready "), "the Python peer did not start");
  std::printf("%s\n", bench::machine_line(ready.substr(6)).c_str());
  const RldsSettings always{.checksums = "always", .cache_bytes = 0, .threads = 1};
  const RldsEpisodes kept(rlds, {.checksums = "first", .cache_bytes = 64 << 20, .threads = 1});
  double bytes = 0;
  for (std::int64_t r = 0; r < kept.records().size(); ++r)
    bytes += static_cast<double>(kept.records().payload(r).size());
  std::printf("%lld episodes, %.1f MB; medians of %d pairs: ours, the peer's, our bytes of records, ours / theirs\n",
              static_cast<long long>(kept.size()), bytes / 1e6, pairs);
  const std::vector<Case> cases{{"numbers of all steps; tfds without decoding", "steps", "undecoded",
                                 [&] { return read_numbers(RldsEpisodes(rlds, always)); }},
                                {"numbers of all steps; tf.data's parser, numbers alone", "steps", "parsed",
                                 [&] { return read_numbers(RldsEpisodes(rlds, always)); }},
                                {"numbers, set opened and verified before; tfds without decoding", "steps", "undecoded",
                                 [&] { return read_numbers(kept); }},
                                {"all frames decoded; tf.data from undecoded trajectories", "images", "frames",
                                 [&] { return read_images(RldsEpisodes(rlds, always)); }},
                                {"whole steps, frames decoded; tfds as it reads by default", "steps", "decoded",
                                 [&] { return read_steps(RldsEpisodes(rlds, always)); }}};
  for (const Case& one : cases) compare(one, peer, pairs, bytes / 1e6);
  peer.finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return cohort::bench::run_program("rlds_read", [&] { return run(argc, argv); });
}
