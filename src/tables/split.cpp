#include "tables/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/config.h"
#include "core/error.h"
#include "core/philox.h"

namespace cohort::tables {
namespace {

// Epochs draw their orders from id 0 of the same purpose.
constexpr std::uint64_t kSplitId = 1;

struct Counts {
  std::int64_t train = 0, validation = 0, test = 0;
};

Counts months_of_30_days(std::int64_t rows, std::int64_t rows_per_hour, const SplitSettings& settings,
                         const std::string& table) {
  const std::int64_t month = std::int64_t{30} * 24 * rows_per_hour;
  const Counts counts{12 * month, 4 * month, 4 * month};
  COHORT_THROW_UNLESS(
      rows >= 20 * month,
      "{}: the split {} takes 12 + 4 + 4 months of 30 days = {} rows, but there are {}; use data.split.kind=time, "
      "which splits by fractions, or set data.split.rows",
      table, settings.kind, 20 * month, rows);
  return counts;
}

Counts given_counts(std::int64_t rows, const SplitSettings& settings, const std::string& table) {
  const std::vector<int>& given = settings.rows;
  COHORT_THROW_UNLESS(given.size() == 3,
                      "data.split.rows takes 3 numbers, the rows that train, validate and test, not {}", given.size());
  for (int count : given) COHORT_THROW_UNLESS(count >= 0, "data.split.rows: {} is negative", count);
  const Counts counts{given[0], given[1], given[2]};
  const std::int64_t wanted = counts.train + counts.validation + counts.test;
  COHORT_THROW_UNLESS(wanted <= rows, "{}: data.split.rows takes {} + {} + {} = {} rows, but there are {}", table,
                      counts.train, counts.validation, counts.test, wanted, rows);
  COHORT_THROW_UNLESS(counts.train > 0,
                      "data.split.rows leaves no row to train on; its first number must be at least 1");
  return counts;
}

Counts counts_of_fractions(std::int64_t rows, const SplitSettings& settings, const std::string& table) {
  const double train = settings.train_fraction, test = settings.test_fraction;
  COHORT_THROW_UNLESS(train > 0 && train <= 1, "data.split.train_fraction must be above 0 and at most 1, not {}",
                      train);
  COHORT_THROW_UNLESS(test >= 0 && test < 1, "data.split.test_fraction must be at least 0 and below 1, not {}", test);
  constexpr double kRounding = 1e-9;  // 0.7 + 0.3 may come out above 1
  COHORT_THROW_UNLESS(
      train + test <= 1 + kRounding,
      "data.split.train_fraction + data.split.test_fraction = {} + {} is above 1; the two must leave the rest to "
      "validate",
      train, test);
  Counts counts;
  // Rounded down as the reference does; where nothing is meant to validate, rounding leaves no stray row there.
  const bool validates = train + test < 1 - kRounding;
  counts.test = static_cast<std::int64_t>(static_cast<double>(rows) * test);
  counts.train = validates ? static_cast<std::int64_t>(static_cast<double>(rows) * train) : rows - counts.test;
  counts.validation = rows - counts.train - counts.test;
  const auto check = [&](std::int64_t count, const char* part, double fraction) {
    COHORT_THROW_UNLESS(count > 0,
                        "{}: the {} part would be empty: {:.3g} of {} rows is less than one; give more rows or "
                        "set data.split.rows",
                        table, part, fraction, rows);
  };
  check(counts.train, "training", train);
  if (test > 0) check(counts.test, "test", test);
  if (validates) check(counts.validation, "validation", 1 - train - test);
  return counts;
}

Counts count_rows(std::int64_t rows, const SplitSettings& settings, const std::string& table) {
  const std::string& kind = settings.kind;
  COHORT_THROW_UNLESS(kind == "time" || kind == "random" || kind == "ett_hour" || kind == "ett_minute",
                      "data.split.kind '{}' is not one of time, random, ett_hour, ett_minute", kind);
  COHORT_THROW_UNLESS(rows > 0, "{}: there are no rows to split", table);
  if (kind == "ett_hour" || kind == "ett_minute") {
    COHORT_THROW_UNLESS(settings.rows.empty(),
                        "data.split.rows and data.split.kind={} both fix the borders; set only one", kind);
    return months_of_30_days(rows, kind == "ett_hour" ? 1 : 4, settings, table);
  }
  return settings.rows.empty() ? counts_of_fractions(rows, settings, table) : given_counts(rows, settings, table);
}

std::vector<std::int64_t> rows_of(RowRange range) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(range.size()));
  std::iota(rows.begin(), rows.end(), range.begin);
  return rows;
}

TimeSplit in_order(const Counts& counts) {
  const std::int64_t first = counts.train, second = first + counts.validation;
  return {{0, first}, {first, second}, {second, second + counts.test}};
}

}  // namespace

void describe(config::Fields& fields, SplitSettings& s) {
  fields.add_choice(
      "kind", s.kind, {"time", "random", "ett_hour", "ett_minute"},
      "time: first rows train, last ones test; random: by seed; ett_*: the published borders of the ETT data");
  fields.add("train_fraction", s.train_fraction, "share of the rows that trains");
  fields.add("test_fraction", s.test_fraction, "share of the rows that tests; the rest validates");
  fields.add("rows", s.rows, "rows that train, validate and test, e.g. 8640,2880,2880, instead of the fractions");
  fields.add("seed", s.seed, "seed of a random split");
}

TimeSplit split_by_time(std::int64_t rows, const SplitSettings& settings, const std::string& table) {
  COHORT_THROW_UNLESS(
      settings.kind != "random",
      "{}: rows in random order hold no windows in time; use data.split.kind=time (or ett_hour, ett_minute)", table);
  // The ETT borders and fractions as in data/data_loader.py of github.com/zhouhaoyi/Informer2020.
  return in_order(count_rows(rows, settings, table));
}

RowSplit split_rows(std::int64_t rows, const SplitSettings& settings, const std::string& table) {
  const TimeSplit ranges = in_order(count_rows(rows, settings, table));
  if (settings.kind != "random") return {rows_of(ranges.train), rows_of(ranges.validation), rows_of(ranges.test)};
  COHORT_THROW_UNLESS(rows < std::int64_t{1} << 32, "{}: {} rows are too many for a random split (at most 2^32 - 1)",
                      table, rows);
  // Fisher and Yates, from the front.
  const RandomStream random(settings.seed, RandomPurpose::kDataOrder, kSplitId, 0);
  std::vector<std::int64_t> order = rows_of({0, rows});
  for (std::int64_t i = 0; i + 1 < rows; ++i) {
    const std::uint32_t offset = random.below(static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(rows - i));
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(i + offset)]);
  }
  const auto part = [&](RowRange range) {
    std::vector<std::int64_t> chosen(order.begin() + range.begin, order.begin() + range.end);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  };
  return {part(ranges.train), part(ranges.validation), part(ranges.test)};
}

}  // namespace cohort::tables
