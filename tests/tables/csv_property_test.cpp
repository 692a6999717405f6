/// Invented tables, written as CSV and read back; and invented garbage.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/random_text.h"
#include "tables/csv.h"
#include "tables/csv_chunks.h"

namespace cohort::tables {
namespace {
using data::TestRandom;

struct Invented {
  std::string text;
  std::vector<std::vector<double>> numbers;     // by number column
  std::vector<std::vector<std::string>> texts;  // by text column
  CsvSettings settings;
};

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string invent_text(TestRandom& random, char separator, bool& needs_quotes) {
  const std::string alphabet = std::string("abc 0.\"\n\r,;") + separator + "\xc3\xa9";
  std::string text;
  const int length = random.below(random.chance(0.1) ? 90 : 12);
  for (int i = 0; i < length; ++i)
    text += alphabet[static_cast<std::size_t>(random.below(static_cast<int>(alphabet.size())))];
  needs_quotes = text.find_first_of(std::string("\n\r") + separator) != std::string::npos ||
                 (!text.empty() && text.front() == '"');
  return text;
}

Invented invent_table(std::uint64_t seed) {
  TestRandom random(seed);
  Invented table;
  const char separator = ",;\t|"[random.below(4)];
  const std::string line_end = random.chance(0.5) ? "\n" : "\r\n";
  const int columns = 1 + random.below(6), rows = 1 + random.below(60);
  std::vector<bool> is_text;
  table.settings.separator = separator == '\t' ? "tab" : std::string(1, separator);
  for (int c = 0; c < columns; ++c) {
    is_text.push_back(columns > 1 && random.chance(0.4));  // a lone empty text would be a blank line
    const std::string name = format("c{}", c);
    if (is_text.back()) {
      table.settings.text_columns.push_back(name);
      table.texts.emplace_back();
    } else {
      table.numbers.emplace_back();
    }
    table.text += (c > 0 ? std::string(1, separator) : "") + (random.chance(0.2) ? quoted(name) : name);
  }
  table.text += line_end;
  for (int r = 0; r < rows; ++r) {
    std::size_t number = 0, text = 0;
    std::string line;
    for (int c = 0; c < columns; ++c) {
      if (c > 0) line += separator;
      if (is_text[static_cast<std::size_t>(c)]) {
        bool needs_quotes = false;
        const std::string value = invent_text(random, separator, needs_quotes);
        line += needs_quotes || random.chance(0.3) ? quoted(value) : value;
        table.texts[text++].push_back(value);
      } else {
        double value = std::bit_cast<double>((std::uint64_t{random.bits()} << 32) | random.bits());
        if (!std::isfinite(value) || random.chance(0.5)) value = random.normal();
        char buffer[64];
        const std::string written(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
        line += random.chance(0.1) ? quoted(written) : random.chance(0.1) ? " " + written : written;
        table.numbers[number++].push_back(value);
      }
    }
    // A line of blanks would be no record.
    if (line.find_first_not_of(" \t") == std::string::npos) line.insert(0, "\"\"");
    table.text += line + (random.chance(0.05) ? line_end : "") + (r + 1 < rows || random.chance(0.5) ? line_end : "");
  }
  table.settings.header = "yes";
  table.settings.detect_dates = false;
  return table;
}

TEST(CsvProperty, FindNearFindsTheFirstByteAtAnyDistance) {
  // Every distance across the words and the call behind them; bytes that differ from the wanted one in one bit.
  for (int length = 0; length <= 80; ++length) {
    for (int at = 0; at <= length + 4; ++at) {
      std::string text(static_cast<std::size_t>(length + 16), '#');
      for (std::size_t i = 1; i < text.size(); i += 2) text[i] = '\xa2';
      text[static_cast<std::size_t>(at)] = '"';
      text[static_cast<std::size_t>(at + 3)] = '"';
      const char* begin = text.data();
      EXPECT_EQ(find_near(begin, begin + length, '"') - begin, std::min(at, length));
    }
  }
}

TEST(CsvProperty, TablesAreReadAsTheyWereWrittenForAnyPiecesAndThreads) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Invented table = invent_table(seed);
    TestRandom random(seed + 1000000);
    for (int way = 0; way < 3; ++way) {
      table.settings.chunk_bytes = way == 0 ? 1 << 20 : 1 + random.below(way == 1 ? 8 : 100);
      table.settings.threads = 1 + random.below(3);
      const Table read = parse_csv(table.text, "invented", table.settings);
      std::size_t number = 0, text = 0;
      for (const Column& column : read.columns()) {
        if (column.kind() == ColumnKind::kText) {
          const auto& expected = table.texts[text++];
          ASSERT_EQ(column.size(), static_cast<std::int64_t>(expected.size())) << seed << "\n" << table.text;
          for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_EQ(column.texts()[i], expected[i]) << seed << " row " << i << "\n" << table.text;
        } else {
          const auto& expected = table.numbers[number++];
          ASSERT_EQ(column.size(), static_cast<std::int64_t>(expected.size())) << seed << "\n" << table.text;
          for (std::size_t i = 0; i < expected.size(); ++i)
            ASSERT_EQ(std::bit_cast<std::uint64_t>(column.float64()[i]), std::bit_cast<std::uint64_t>(expected[i]))
                << seed << " row " << i << "\n"
                << table.text;
        }
      }
      ASSERT_EQ(number, table.numbers.size());
      ASSERT_EQ(text, table.texts.size());
    }
  }
}

/// Reads whatever it is: the result is a table or an Error, and the same one for any pieces and threads.
std::string outcome(const std::string& text, CsvSettings settings, std::int64_t chunk_bytes, int threads) {
  settings.chunk_bytes = chunk_bytes;
  settings.threads = threads;
  try {
    const Table table = parse_csv(text, "mutant", settings);
    std::string result = format("{} rows:", table.rows());
    for (const Column& column : table.columns()) {
      result += " " + column.name();
      for (std::int64_t i = 0; i < column.size(); ++i)
        result += column.kind() == ColumnKind::kText ? format(" '{}'", column.texts()[static_cast<std::size_t>(i)])
                                                     : format(" {:x}", std::bit_cast<std::uint64_t>(column.at(i)));
    }
    return result;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CsvProperty, MutatedTablesNeverCrashAndTheirOutcomeDoesNotDependOnThePieces) {
  const std::string bytes = std::string("\"\n\r,;\t|.eE+-0#9 \xff\xef\xbb\xbf\x01") + '\0';
  int errors = 0, tables = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Invented table = invent_table(seed % 200);
    TestRandom random(seed);
    if (random.chance(0.3)) table.settings = CsvSettings();
    if (random.chance(0.3)) table.settings.missing = random.chance(0.5) ? "drop_row" : "forward_fill";
    if (random.chance(0.2)) table.settings.comment = "#";
    if (random.chance(0.2)) table.settings.precision = "float32";
    std::string& text = table.text;
    for (int mutation = 0; mutation < 1 + random.below(6) && !text.empty(); ++mutation) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<int>(text.size())));
      const char byte = bytes[static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())))];
      switch (random.below(5)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.erase(at, 1 + static_cast<std::size_t>(random.below(4)));
          break;
        case 3:
          text.resize(at);
          break;
        default:
          text.insert(at, text.substr(at / 2, 20));
      }
    }
    const std::string expected = outcome(text, table.settings, 1 << 20, 1);
    expected.find(" rows:") == std::string::npos ? ++errors : ++tables;
    ASSERT_EQ(outcome(text, table.settings, 1 + random.below(40), 1 + random.below(3)), expected) << seed << "\n"
                                                                                                  << text;
  }
  // Both happen, so that the test sees both.
  EXPECT_GT(errors, 400);
  EXPECT_GT(tables, 400);
}

TEST(CsvProperty, RandomBytesNeverCrash) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    TestRandom random(seed);
    std::string text;
    const int length = 1 + random.below(300);
    const bool printable = random.chance(0.7);
    for (int i = 0; i < length; ++i)
      text += printable ? ",\n\"1a.;\r\t -e"[random.below(12)] : static_cast<char>(random.below(256));
    const std::string expected = outcome(text, {}, 1 << 20, 1);
    ASSERT_EQ(outcome(text, {}, 1 + random.below(20), 2), expected) << seed;
  }
}

}  // namespace
}  // namespace cohort::tables
