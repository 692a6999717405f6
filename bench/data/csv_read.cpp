// Reading CSV files into columns: ours against pandas (its C engine) and pyarrow in the same run, in turns. The files
// are invented; what every side has read is compared before its time counts.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "comparison.h"
#include "core/error.h"
#include "core/philox.h"
#include "peer.h"
#include "program.h"
#include "tables/csv.h"
#include "tables/date_text.h"

namespace {
using namespace cohort;

/// A kind of file that people have.
struct FileKind {
  const char* name;
  const char* what;
  int columns;   // of numbers
  int decimals;  // digits behind the mark; -1: as many as the float64 needs
  bool dated;    // a column of dates before them
  bool texts;    // a column of quoted texts behind them
};

constexpr FileKind kKinds[] = {
    {"full", "12 columns of float64 in full", 12, -1, false, false},
    {"short", "12 columns with 4 decimals", 12, 4, false, false},
    {"dated", "a column of dates and 7 of numbers, as ETTh1.csv", 7, -1, true, false},
    {"quoted", "6 columns with 4 decimals and one of quoted texts", 6, 4, false, true},
};

std::int64_t write_file(const std::filesystem::path& path, const FileKind& kind, std::int64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  std::string text;
  if (kind.dated) text += "date,";
  for (int c = 0; c < kind.columns; ++c) text += format("{}c{}", c > 0 ? "," : "", c);
  text += kind.texts ? ",note\n" : "\n";
  const RandomStream random(1, RandomPurpose::kTest, 0, 0);
  std::int64_t written = 0, rows = 0;
  std::uint64_t index = 0;
  const double start = tables::seconds_since_epoch(2016, 7, 1);
  for (; written + static_cast<std::int64_t>(text.size()) < bytes; ++rows) {
    if (kind.dated) text += tables::format_date(start + 60.0 * static_cast<double>(rows)) + ",";
    for (int c = 0; c < kind.columns; ++c) {
      // Sums of two normal floats at different scales have as many digits as a float64 can have.
      const double value =
          static_cast<double>(random.normal(index)) + 1e-8 * static_cast<double>(random.normal(index + 1));
      index += 2;
      char number[64];
      char* end =
          kind.decimals < 0
              ? std::to_chars(number, number + sizeof number, value).ptr
              : std::to_chars(number, number + sizeof number, value, std::chars_format::fixed, kind.decimals).ptr;
      if (c > 0) text += ',';
      text.append(number, end);
    }
    if (kind.texts) text += format(",\"row {}, said \"\"{}\"\"\"", rows, random.bits(index) % 1000);
    text += '\n';
    if (text.size() > (1 << 20)) {
      file << text;
      written += static_cast<std::int64_t>(text.size());
      text.clear();
    }
  }
  file << text;
  COHORT_THROW_UNLESS(file.good(), "cannot write {}", path.string());
  return rows;
}

/// Rows and the sum of the first column of numbers.
std::string summary(const tables::Table& table) {
  double sum = 0;
  for (const double value : table.column("c0").float64()) sum += value;
  return format("{} {:.6f}", table.rows(), sum);
}

int run(int argc, char** argv) {
  std::string python = bench::environment_or("COHORT_PYTHON", "python3");
  std::string folder = (std::filesystem::temp_directory_path() / "cohort_bench_csv").string();
  std::int64_t megabytes = 200;
  int rounds = 10;
  std::vector<int> threads{1, 2};
  std::vector<std::string> only;
  bench::Options options("Reading CSV files: ours, pandas and pyarrow");
  options.add("--python", python, "Python with pandas and pyarrow (or COHORT_PYTHON)");
  options.add("--folder", folder, "where the files are written; they are read from the system's cache");
  options.add("--megabytes", megabytes, "size of each file");
  options.add("--rounds", rounds, "alternated rounds");
  options.add("--threads", threads, "numbers of threads to measure with (pandas always has one)");
  options.add("--files", only, "full, short, dated, quoted; all by default");
  if (!options.parse(argc, argv)) return options.exit_code();
  std::filesystem::create_directories(folder);
  bench::Peer peer({python, COHORT_SOURCE_DIR "/bench/data/csv_read.py"});
  const std::string ready = peer.read_line();
  COHORT_THROW_UNLESS(ready.starts_with("ready "), "the Python peer did not start");
  std::printf("%s\n", bench::machine_line(ready.substr(6)).c_str());
  std::printf("%-8s %7s %9s %12s %12s %12s %14s %14s\n", "file", "threads", "MB", "ours GB/s", "pandas GB/s",
              "pyarrow GB/s", "pandas / ours", "pyarrow / ours");
  for (const FileKind& kind : kKinds) {
    if (!only.empty() && std::find(only.begin(), only.end(), kind.name) == only.end()) continue;
    const std::filesystem::path path = std::filesystem::path(folder) / format("{}.csv", kind.name);
    write_file(path, kind, megabytes * 1000000);
    const auto bytes = static_cast<double>(std::filesystem::file_size(path));
    for (const int count : threads) {
      tables::CsvSettings settings;
      settings.threads = count;
      if (kind.texts) settings.text_columns = {"note"};
      std::string expected;
      const auto ask = [&](const char* reader) {
        std::istringstream answer(
            peer.ask(format("{} {} {} {}", reader, count, kind.dated ? "date" : "-", path.string())));
        double seconds = 0, sum = 0;
        std::int64_t rows = 0;
        answer >> seconds >> rows >> sum;
        // pandas rounds the last bit of some numbers otherwise: compare sums to 6 decimals and a margin of one.
        double ours = 0;
        std::int64_t our_rows = 0;
        std::istringstream(expected) >> our_rows >> ours;
        COHORT_THROW_UNLESS(rows == our_rows && std::abs(sum - ours) < 1e-5, "{} read {} rows and {}, ours {}", reader,
                            rows, sum, expected);
        return seconds;
      };
      const auto seconds = bench::take_turns(
          {{"ours",
            [&] {
              tables::Table table;
              const double taken = bench::seconds_of([&] { table = tables::read_csv(path, settings); });
              expected = summary(table);
              return taken;
            }},
           {"pandas", [&] { return ask("pandas"); }},
           {"pyarrow", [&] { return ask("pyarrow"); }}},
          rounds);
      std::vector<double> pandas_ratio, arrow_ratio;
      for (std::size_t i = 0; i < seconds[0].size(); ++i) {
        pandas_ratio.push_back(seconds[1][i] / seconds[0][i]);
        arrow_ratio.push_back(seconds[2][i] / seconds[0][i]);
      }
      const auto speed = [bytes](const std::vector<double>& s) { return bytes / bench::median(s) / 1e9; };
      std::printf("%-8s %7d %9.0f %12.3f %12.3f %12.3f %14.2f %14.2f\n", kind.name, count, bytes / 1e6,
                  speed(seconds[0]), speed(seconds[1]), speed(seconds[2]), bench::median(pandas_ratio),
                  bench::median(arrow_ratio));
      std::fflush(stdout);
    }
    std::filesystem::remove(path);
  }
  std::printf("medians of %d alternated rounds; pandas reads with one thread in every row\n", rounds);
  for (const FileKind& kind : kKinds) std::printf("  %s: %s\n", kind.name, kind.what);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("csv_read", [&] { return run(argc, argv); });
}
