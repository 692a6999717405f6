// Samples per second that a loader feeds: ours against torch.utils.data.DataLoader with as many workers, on the same
// sliding windows, in turns. An epoch's time holds everything from the new permutation to the last batch.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "comparison.h"
#include "core/error.h"
#include "core/log.h"
#include "data/loader.h"
#include "data/sampler.h"
#include "peer.h"
#include "program.h"
#include "tables/date_text.h"
#include "tables/forecast_windows.h"

namespace {
using namespace cohort;

/// ((row * 7919 + column * 104729) % 1009) / 8: the peer makes the same table.
tables::Table invented_table(std::int64_t rows, int columns) {
  tables::Table table("invented");
  std::vector<double> values(static_cast<std::size_t>(rows));
  const double start = tables::seconds_since_epoch(2016, 7, 1);
  for (std::int64_t row = 0; row < rows; ++row)
    values[static_cast<std::size_t>(row)] = start + 3600.0 * static_cast<double>(row);
  table.add(tables::Column("date", values, tables::ColumnKind::kDate));
  for (int c = 0; c < columns; ++c) {
    for (std::int64_t row = 0; row < rows; ++row)
      values[static_cast<std::size_t>(row)] = static_cast<double>((row * 7919 + c * 104729) % 1009) / 8;
    table.add(tables::Column(format("c{}", c), values));
  }
  return table;
}

int run(int argc, char** argv) {
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  std::int64_t rows = 17420, seq_len = 96, label_len = 48, pred_len = 24, batch = 32;
  int columns = 7, rounds = 10, prefetch = 2;
  std::vector<int> workers{0, 1, 2};
  bench::Options options("Samples per second of a loader: ours and torch.utils.data.DataLoader");
  options.add("--python", python, "Python with torch (or COHORT_PYTHON)");
  options.add("--rows", rows, "rows of the table");
  options.add("--columns", columns, "columns of the table");
  options.add("--seq-len", seq_len);
  options.add("--label-len", label_len);
  options.add("--pred-len", pred_len);
  options.add("--batch", batch, "samples per batch");
  options.add("--prefetch", prefetch, "batches ahead per worker, on both sides");
  options.add("--workers", workers, "numbers of workers to measure with");
  options.add("--rounds", rounds, "alternated rounds");
  if (!options.parse(argc, argv)) return options.exit_code();
  const tables::Table table = invented_table(rows, columns);
  const tables::WindowSettings windows{.seq_len = seq_len, .label_len = label_len, .pred_len = pred_len, .freq = "h"};
  const auto series = tables::ForecastSeries::make(table, {0, rows}, windows, {.kind = "none"});
  const auto dataset = std::make_shared<tables::ForecastWindows>(series, tables::RowRange{0, rows}, "training");

  bench::Peer peer({python, COHORT_SOURCE_DIR "/bench/data/loader_feed.py", format("{}", rows), format("{}", columns),
                    format("{}", seq_len), format("{}", label_len), format("{}", pred_len), format("{}", batch),
                    format("{}", prefetch)});
  const std::string ready = peer.read_line();
  COHORT_THROW_UNLESS(ready.starts_with("ready "), "the Python peer did not start");
  std::printf("%s\n", bench::machine_line(ready.substr(6)).c_str());
  std::printf("%lld windows of %lld + %lld rows x %d columns, batches of %lld\n",
              static_cast<long long>(dataset->size()), static_cast<long long>(seq_len),
              static_cast<long long>(pred_len), columns, static_cast<long long>(batch));
  std::printf("%7s %18s %22s %14s\n", "workers", "ours, samples/s", "DataLoader, samples/s", "ours / theirs");
  for (const int count : workers) {
    data::Loader loader(dataset, {.batch_size = batch, .workers = count, .prefetch_factor = prefetch});
    const data::DistributedSampler sampler(dataset->size(), {});
    std::uint64_t epoch = 0;
    double our_sum = 0;
    const auto ours = [&] {
      double sum = 0;
      const double taken = bench::seconds_of([&] {
        data::EpochShare share = sampler.share(epoch);
        loader.start_epoch(epoch, std::move(share.indices), std::move(share.sample_ids));
        while (data::LoadedBatch loaded = loader.next()) {
          const ArrayView& x = loaded.fields()[0];
          const auto* first = static_cast<const float*>(x.data);
          for (std::int64_t s = 0; s < loaded.size(); ++s) sum += static_cast<double>(first[s * x.strides[0]]);
        }
      });
      ++epoch;
      our_sum = sum;
      return taken;
    };
    const auto theirs = [&] {
      std::istringstream answer(peer.ask(format("{}", count)));
      double seconds = 0, sum = 0;
      answer >> seconds >> sum;
      COHORT_THROW_UNLESS(std::abs(sum - our_sum) <= 1e-6 * std::abs(our_sum),
                          "the two sides saw other samples: {} and {}", our_sum, sum);
      return seconds;
    };
    const auto seconds = bench::take_turns({{"ours", ours}, {"DataLoader", theirs}}, rounds);
    std::vector<double> ratio;
    for (std::size_t i = 0; i < seconds[0].size(); ++i) ratio.push_back(seconds[1][i] / seconds[0][i]);
    const auto samples = static_cast<double>(dataset->size());
    std::printf("%7d %18.0f %22.0f %14.1f\n", count, samples / bench::median(seconds[0]),
                samples / bench::median(seconds[1]), bench::median(ratio));
    std::fflush(stdout);
  }
  std::printf("medians of %d alternated epochs\n", rounds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("loader_feed", [&] { return run(argc, argv); });
}
