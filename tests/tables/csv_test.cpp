#include "tables/csv.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "data/expect_error.h"
#include "tables/csv_chunks.h"
#include "tables/date_text.h"

namespace cohort::tables {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

Numbers numbers(const Table& table, const char* name) {
  const auto values = table.column(name).float64();
  return {values.begin(), values.end()};
}

Texts texts(const Table& table, const char* name) {
  Texts list;
  const TextArray& values = table.column(name).texts();
  for (std::size_t i = 0; i < values.size(); ++i) list.emplace_back(values[i]);
  return list;
}

Table parse(std::string_view text, const CsvSettings& settings = {}, CsvReport* report = nullptr) {
  return parse_csv(text, "t.csv", settings, report);
}

class ScratchFolder {
 public:
  ScratchFolder() : path_(std::filesystem::temp_directory_path() / format("cohort_csv_test_{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(Csv, ColumnsAreFoundByTheNamesInTheHeader) {
  CsvReport report;
  const Table table = parse("a,b,c\n1,2,3\n4,5,6.5\n", {}, &report);
  EXPECT_EQ(table.names(), (Texts{"a", "b", "c"}));
  EXPECT_EQ(numbers(table, "a"), (Numbers{1, 4}));
  EXPECT_EQ(numbers(table, "c"), (Numbers{3, 6.5}));
  EXPECT_EQ(report.rows, 2);
  EXPECT_TRUE(report.has_header);
  EXPECT_ERROR(table.column("d"), "t.csv: there is no column 'd'");
  EXPECT_ERROR(table.column("aa"), "did you mean 'a'?");
}

TEST(Csv, LineEndsByteOrderMarksAndBlankLinesDoNotMatter) {
  for (const char* text : {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n", "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4",
                           "\xef\xbb\xbf"
                           "a,b\n1,2\n3,4\n",
                           "\n\na,b\n\n1,2\n  \n3,4\n\n\n", "\r\na,b\r\n\r\n1,2\r\n3,4\r\n\r\n", "a,b\n1,2\n3,4\n   ",
                           " a , b \n 1,2 \n3\t, 4\n", "\"a\",\"b\"\n\"1\",\"2\"\n\"3\",\"4\"\n"}) {
    const Table table = parse(text);
    EXPECT_EQ(table.names(), (Texts{"a", "b"})) << text;
    EXPECT_EQ(numbers(table, "a"), (Numbers{1, 3})) << text;
    EXPECT_EQ(numbers(table, "b"), (Numbers{2, 4})) << text;
  }
}

TEST(Csv, SeparatorsAreToldApart) {
  for (const auto& [text, separator] : std::vector<std::pair<const char*, char>>{{"a,b\n1,2\n", ','},
                                                                                 {"a;b\n1;2\n", ';'},
                                                                                 {"a\tb\n1\t2\n", '\t'},
                                                                                 {"a|b\n1|2\n", '|'},
                                                                                 {"sep=;\na;b\n1;2\n", ';'},
                                                                                 {"sep=|\r\na|b\r\n1|2\r\n", '|'}}) {
    CsvReport report;
    const Table table = parse(text, {}, &report);
    EXPECT_EQ(report.separator, separator);
    EXPECT_EQ(numbers(table, "b"), Numbers{2}) << text;
  }
  CsvSettings settings;
  settings.separator = ":";
  EXPECT_EQ(numbers(parse("a:b\n1:2\n", settings), "b"), Numbers{2});
  settings.separator = "tab";
  EXPECT_EQ(numbers(parse("a\tb\n1\t2\n", settings), "b"), Numbers{2});
  // A comma inside texts or as decimal mark does not outvote the real separator.
  settings = {};
  settings.decimal = ",";
  EXPECT_EQ(numbers(parse("x;y\n1,5;2,25\n3;4,75\n", settings), "y"), (Numbers{2.25, 4.75}));
  EXPECT_EQ(numbers(parse("one\n1\n2\n"), "one"), (Numbers{1, 2}));
}

TEST(Csv, AMissingHeaderIsNoticed) {
  CsvReport report;
  Table table = parse("1,2\n3,4\n", {}, &report);
  EXPECT_FALSE(report.has_header);
  EXPECT_EQ(table.names(), (Texts{"column_0", "column_1"}));
  EXPECT_EQ(numbers(table, "column_0"), (Numbers{1, 3}));
  // Dates and missing values are no names either; the count 0,1,2 is one: pandas writes it over unnamed columns.
  parse("2016-07-01,1.5\n2016-07-02,2.5\n", {}, &report);
  EXPECT_FALSE(report.has_header);
  table = parse("0,1,2\n5,6,7\n", {}, &report);
  EXPECT_TRUE(report.has_header);
  EXPECT_EQ(table.rows(), 1);
  table = parse(",x\n0,5\n1,6\n");
  EXPECT_EQ(table.names(), (Texts{"column_0", "x"}));
  CsvSettings settings;
  settings.header = "no";
  settings.text_columns = {"column_0"};
  settings.columns = {"column_0"};
  EXPECT_EQ(texts(parse("a,b\n1,2\n", settings), "column_0"), (Texts{"a", "1"}));
  settings = {};
  settings.header = "yes";
  EXPECT_EQ(parse("1,2\n3,4\n", settings).names(), (Texts{"1", "2"}));
}

TEST(Csv, QuotedFieldsHoldSeparatorsLineEndsAndQuotes) {
  CsvSettings settings;
  settings.text_columns = {"t"};
  const Table table = parse(
      "t,x\n"
      "\"a,b\",1\n"
      "\"two\nlines\",2\n"
      "\"say \"\"hi\"\"\",3\n"
      "\"\",4\n"
      "plain \"quote\" inside,5\n"
      "\"\"\"\",6\n"
      "  kept blanks ,7\n"
      "\"crlf\r\nin it\",\"8\"\r\n"
      ",9\n",
      settings);
  EXPECT_EQ(texts(table, "t"), (Texts{"a,b", "two\nlines", "say \"hi\"", "", "plain \"quote\" inside", "\"",
                                      "  kept blanks ", "crlf\r\nin it", ""}));
  EXPECT_EQ(numbers(table, "x"), (Numbers{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Csv, CommentLinesAreSkippedWhereAskedForEvenWithQuotesInThem) {
  CsvSettings settings;
  settings.comment = "#";
  settings.text_columns = {"t"};
  for (const std::int64_t chunk : {1, 3, 7, 16, 1 << 20}) {
    settings.chunk_bytes = chunk;
    const Table table = parse(
        "# written by \"me\nt,x\n#,\"never closed\n\"a\n# no comment\",1\n# end, \"\n#\nb,2\n# last \"quote", settings);
    EXPECT_EQ(texts(table, "t"), (Texts{"a\n# no comment", "b"})) << chunk;
    EXPECT_EQ(numbers(table, "x"), (Numbers{1, 2})) << chunk;
  }
}

TEST(Csv, MissingValuesFollowThePolicy) {
  const char* text = "d,a,b\n2020-01-01,1,10\n2020-01-02,NA,20\n2020-01-03,3,\n2020-01-04,4,nan\n2020-01-05,5,50\n";
  EXPECT_ERROR(parse(text),
               "t.csv: line 3, column 'a': the value is missing ('NA'); leave such rows out with "
               "data.csv.missing=drop_row");
  CsvSettings settings;
  settings.missing = "drop_row";
  CsvReport report;
  Table table = parse(text, settings, &report);
  EXPECT_EQ(numbers(table, "a"), (Numbers{1, 5}));
  EXPECT_EQ(numbers(table, "b"), (Numbers{10, 50}));
  EXPECT_EQ(numbers(table, "d").back(), seconds_since_epoch(2020, 1, 5));
  EXPECT_EQ(report.dropped_rows, 3);
  EXPECT_EQ(report.first_dropped_line, 3);
  settings.missing = "forward_fill";
  table = parse(text, settings, &report);
  EXPECT_EQ(numbers(table, "a"), (Numbers{1, 1, 3, 4, 5}));
  EXPECT_EQ(numbers(table, "b"), (Numbers{10, 20, 20, 20, 50}));
  EXPECT_EQ(report.missing_values, 3);
  settings.missing = "keep";
  table = parse(text, settings);
  EXPECT_TRUE(std::isnan(numbers(table, "a")[1]));
  EXPECT_TRUE(std::isnan(numbers(table, "b")[2]));
  EXPECT_EQ(numbers(table, "b")[4], 50);

  settings.missing = "forward_fill";
  EXPECT_ERROR(parse("a,b\n1,\n2,3\n", settings),
               "line 2, column 'b': the value is missing, and there is none above it for forward_fill");
  EXPECT_ERROR(parse("d,a\n2020-01-01,1\n,2\n", settings),
               "line 3, column 'd': the value is missing; a date cannot be filled");
  settings.missing = "drop_row";
  EXPECT_ERROR(parse("a,b\n1,\n2,\n", settings), "t.csv: all 2 rows hold missing values; none is left");
  settings.missing_values = {"?", "-9999"};
  EXPECT_EQ(numbers(parse("a,b\n?,1\n2,-9999\n3,4\n5,-9999.0\n", settings), "a"), Numbers{3});
  settings.missing = "mean";
  EXPECT_ERROR(parse("a\n1\n", settings), "data.csv.missing=mean: write error, drop_row");
}

TEST(Csv, DroppedRowsLeaveNoTextsBehind) {
  CsvSettings settings;
  settings.missing = "drop_row";
  settings.text_columns = {"t", "u"};
  for (const std::int64_t chunk : {5, 1 << 20}) {
    settings.chunk_bytes = chunk;
    const Table table = parse("t,x,u\na,1,A\nb,,B\nc,3,C\nd,,D\ne,5,E\n", settings);
    EXPECT_EQ(texts(table, "t"), (Texts{"a", "c", "e"}));
    EXPECT_EQ(texts(table, "u"), (Texts{"A", "C", "E"}));
    EXPECT_EQ(numbers(table, "x"), (Numbers{1, 3, 5}));
  }
}

TEST(Csv, DatesBecomeSecondsSinceTheEpoch) {
  Table table = parse("date,x\n2016-07-01 00:00:00,1\n2016-07-01 01:00:00,2\n");
  EXPECT_EQ(table.column("date").kind(), ColumnKind::kDate);
  EXPECT_EQ(numbers(table, "date"), (Numbers{1467331200, 1467334800}));
  EXPECT_EQ(table.names(ColumnKind::kNumber), Texts{"x"});
  CsvSettings settings;
  settings.date_columns = {"day"};
  settings.columns = {"day"};
  EXPECT_EQ(numbers(parse("day,x\n20160701,1\n", settings), "day"), Numbers{1467331200});
  settings = {};
  settings.date_order = "dmy";
  EXPECT_EQ(numbers(parse("day,x\n01/07/2016 00:00,1\n", settings), "day"), Numbers{1467331200});
  EXPECT_ERROR(parse("day,x\n01/07/2016,1\n"),
               "line 2, column 'day': '01/07/2016' is no date of the order ymd: the year stands last: set "
               "data.csv.date_order=dmy or mdy");
  EXPECT_ERROR(parse("day,x\n2016-07-01,1\n2016-02-30,1\n"),
               "line 3, column 'day': '2016-02-30' is no date of the order ymd: the month has no such day");
  settings.detect_dates = false;
  EXPECT_ERROR(parse("day,x\n2016-07-01,1\n", settings), "'2016-07-01' is no number");
  // The first value of a column may be missing: the first one present decides.
  settings = {};
  settings.missing = "drop_row";
  EXPECT_EQ(numbers(parse("day,x\n,1\n2016-07-01,2\n", settings), "day"), Numbers{1467331200});
}

TEST(Csv, ColumnsAreReadInTheOrderAskedForAndOthersNotAtAll) {
  CsvSettings settings;
  settings.columns = {"c", "a"};
  const Table table = parse("a,b,c\n1,text,3\n4,,6\n", settings);
  EXPECT_EQ(table.names(), (Texts{"c", "a"}));
  EXPECT_EQ(numbers(table, "c"), (Numbers{3, 6}));
  settings.columns = {"a", "cc"};
  EXPECT_ERROR(parse("a,b,c\n1,2,3\n", settings),
               "t.csv: data.csv.columns names the column 'cc', which the file does not have (did you mean 'c'?); it "
               "has: a, b, c");
  settings.columns = {"a", "a"};
  EXPECT_ERROR(parse("a,b\n1,2\n", settings), "columns names 'a' twice");
  settings = {};
  settings.text_columns = {"zz"};
  EXPECT_ERROR(parse("a,b\n1,2\n", settings), "text_columns names the column 'zz'");
  settings = {};
  settings.date_columns = {"zz"};
  EXPECT_ERROR(parse("a,b\n1,2\n", settings), "date_columns names the column 'zz'");
}

TEST(Csv, Float32ColumnsHoldTheNearestFloat32) {
  CsvSettings settings;
  settings.precision = "float32";
  settings.missing = "forward_fill";
  const Table table = parse("d,a\n2020-01-01,0.1\n2020-01-02,\n2020-01-03,1e-50\n2020-01-04,inf\n", settings);
  ASSERT_TRUE(table.column("a").is_float32());
  const auto values = table.column("a").float32();
  EXPECT_EQ(values[0], 0.1f);
  EXPECT_EQ(values[1], 0.1f);
  EXPECT_EQ(values[2], 0.0f);
  EXPECT_TRUE(std::isinf(values[3]));
  EXPECT_FALSE(table.column("d").is_float32());  // seconds since 1970 need more than 24 bits
  EXPECT_EQ(table.column("a").at(0), static_cast<double>(0.1f));
  EXPECT_ERROR(parse("a\n1e39\n", settings),
               "line 2, column 'a': '1e39' is too large for float32; set data.csv.precision=float64");
}

TEST(Csv, ThousandsMayBeSetApart) {
  CsvSettings settings;
  settings.decimal = ",", settings.thousands = ".";
  const Table german = parse("a;b;c\n1.282,6;12;-1.234.567\n999,5;1.000;0,125\n", settings);
  EXPECT_EQ(german.column("a").at(0), 1282.6);
  EXPECT_EQ(german.column("a").at(1), 999.5);
  EXPECT_EQ(german.column("b").at(1), 1000);
  EXPECT_EQ(german.column("c").at(0), -1234567);
  settings.decimal = ".", settings.thousands = ",";
  EXPECT_EQ(parse("a,b\n\"1,282.6\",2\n", settings).column("a").at(0), 1282.6);
  settings.thousands = "space";
  EXPECT_EQ(parse("a;b\n1 282.5;2\n", settings).column("a").at(0), 1282.5);
  EXPECT_EQ(parse("a;b\n1\u202f282.5;2\n", settings).column("a").at(0), 1282.5);
  settings.thousands = "apostrophe";
  EXPECT_EQ(parse("a;b\n1'282.5;2\n1\u2019000;3\n", settings).column("a").at(1), 1000);
  for (const char* wrong : {"12'34", "1'2345", "'123", "1234'567", "1'000'00", "1'", "1'00x"})
    EXPECT_ERROR(parse("a;b\n1;2\n" + std::string(wrong) + ";2\n", settings), "is no number");
  settings.thousands = "x";
  EXPECT_ERROR(parse("a\n1\n", settings), "data.csv.thousands='x' is neither none");
  settings.thousands = ".";
  EXPECT_ERROR(parse("a\n1\n", settings), "data.csv.thousands and data.csv.decimal are both '.'");
  // Who has not said so is told how.
  EXPECT_ERROR(parse("a;b\n1.282,6;2\n"),
               "'1.282,6' is no number; is the decimal mark ',' and are thousands set apart by "
               "'.'? Then set data.csv.thousands=. data.csv.decimal=,");
  settings.decimal = ",", settings.thousands = "none";
  EXPECT_ERROR(parse("a;b\n1.282,6;2\n", settings), "; are thousands set apart by '.'? Then set data.csv.thousands=.");
  settings.decimal = ".";
  EXPECT_ERROR(parse("a;b\n1,282;2\n", settings),
               "is the decimal mark ','? Then set data.csv.decimal=,, or are thousands "
               "set apart by ','? Then set data.csv.thousands=,");
  EXPECT_ERROR(parse("a;b\n1 282;2\n", settings), "are thousands set apart? Then set data.csv.thousands=space");
}

TEST(Csv, AWrongTypeIsNamedByLineColumnAndText) {
  EXPECT_ERROR(
      parse("a,b\n1,2\n3,abc\n"),
      "t.csv: line 3, column 'b': 'abc' is no number; keep the column as texts with data.csv.text_columns=b, leave it "
      "out with data.csv.skip_columns=b, or, if this stands for a missing value, say so with "
      "data.csv.missing_values=abc");
  EXPECT_ERROR(parse("a;b\n1,5;2\n"),
               "line 2, column 'a': '1,5' is no number; is the decimal mark ','? Then set data.csv.decimal=,");
  EXPECT_ERROR(parse("a,b\n1,2\n\n\"3\n4\",5\n"), "line 4, column 'a': '3\\n4' is no number");
  // The line is that of the field, which quoted line ends before it push down.
  CsvSettings settings;
  settings.text_columns = {"a"};
  EXPECT_ERROR(parse("a,b\n\"x\ny\nz\",oops\n", settings), "line 4, column 'b': 'oops' is no number");
  EXPECT_ERROR(parse("a,b\n\"x\ny\",1\nz,oops\n", settings), "line 4, column 'b': 'oops' is no number");
  EXPECT_ERROR(parse("a\n1\n\x01\x02\xff\n"), "line 3, column 'a': '\\x01\\x02\\xff' is no number");
  EXPECT_ERROR(parse("a\n1\n温度\n"), "line 3, column 'a': '温度' is no number");
  EXPECT_ERROR(parse("a\n1\n" + std::string(100, 'x') + "\n"), "'" + std::string(40, 'x') + "...' is no number");
  EXPECT_ERROR(parse("a\n1\n1.5.5\n"), "'1.5.5' is no number");
  EXPECT_ERROR(parse("a,b\n1,2 3\n"), "'2 3' is no number");
}

TEST(Csv, RaggedRowsAreNamedWithBothCounts) {
  EXPECT_ERROR(parse("a,b,c\n1,2,3\n4,5\n"), "t.csv: line 3 has 2 fields, but 3 columns stand in the header (too few");
  EXPECT_ERROR(parse("a,b,c\n1,2,3,4\n"), "t.csv: line 2 has 4 fields, but 3 columns stand in the header (too many");
  EXPECT_ERROR(parse("1,2,3\n4,5\n"), "t.csv: line 2 has 2 fields, but 3 are in the first line");
  EXPECT_ERROR(parse("a,b\n1,2\n3\n"), "line 3 has 1 field, but 2 columns");
  // A wrong count explains a wrong type, not the other way round.
  EXPECT_ERROR(parse("a,b,c\n1,2,3\ntotal\n"), "line 3 has 1 field, but 3 columns");
  EXPECT_ERROR(parse("a,b\n1,\"x,y\"\n3,\"x\",\"y\"\n4,5\n",
                     [] {
                       CsvSettings s;
                       s.text_columns = {"b"};
                       return s;
                     }()),
               "line 3 has 3 fields, but 2 columns");
}

TEST(Csv, BrokenQuotesAreNamedByLine) {
  EXPECT_ERROR(parse("a,b\n1,2\n3,\"4\n5,6\n"), "t.csv: the quote that opens in line 3 is never closed");
  EXPECT_ERROR(parse("\"a,b\n1,2\n"), "t.csv: the quote that opens in line 1 is never closed");
  EXPECT_ERROR(parse("a,b\n\"1,2\n"), "t.csv: the quote that opens in line 2 is never closed");
  EXPECT_ERROR(parse("a,b\n1,\"2\" x\n"), "line 2, column 'b': there is text after the closing quote of a field");
}

TEST(Csv, HeadersAreChecked) {
  EXPECT_ERROR(parse("a,b,a\n1,2,3\n"),
               "t.csv: the header names the column 'a' twice, as field 1 and field 3; rename one");
  EXPECT_ERROR(parse("a,b\n"), "t.csv has a header (2 columns: a, b) but no rows");
  EXPECT_ERROR(parse("a,b"), "t.csv has a header (2 columns: a, b) but no rows");
  EXPECT_ERROR(parse("a,b\n\n  \n"), "t.csv has a header (2 columns: a, b) but no rows");
  EXPECT_ERROR(parse("\n \n\r\n"), "t.csv holds no table: it has only blank lines");
  CsvSettings settings;
  settings.columns = {"b"};
  EXPECT_EQ(numbers(parse("a,b,a\n1,2,3\n", settings), "b"), Numbers{2});  // what is not read may be ambiguous
}

TEST(Csv, WhatIsNoTableOfTextIsRefused) {
  using namespace std::string_literals;
  EXPECT_ERROR(parse("\x1f\x8b\x08 rest\n"), "t.csv is no CSV file but compressed with gzip; unpack it first (gunzip)");
  EXPECT_ERROR(parse("PK\x03\x04 rest\n"), "a ZIP archive or a spreadsheet (xlsx)");
  EXPECT_ERROR(parse("PAR1 rest\n"), "a Parquet file");
  EXPECT_ERROR(parse("\xff\xfe"
                     "a\0,\0b\0\n\0"s),
               "text in UTF-16");
  EXPECT_ERROR(parse("a,b\n1,\0\n"s), "t.csv is no CSV file: byte 6 is zero, which no text holds");
  EXPECT_ERROR(parse("a,b\r1,2\r"), "line ends of CR only");
}

TEST(Csv, FilesThatCannotBeReadAreNamed) {
  const ScratchFolder folder;
  EXPECT_ERROR(read_csv(folder.path() / "none.csv"), "none.csv: No such file or directory");
  EXPECT_ERROR(read_csv(folder.path()), "is a folder; name a CSV file in it");
  EXPECT_ERROR(read_csv(folder.write("empty.csv", "")), "empty.csv is empty (0 bytes)");
  EXPECT_ERROR(parse(""), "t.csv is empty (0 bytes)");
  EXPECT_ERROR(read_csv(""), "no CSV file was named; set data.path");
  EXPECT_ERROR(read_csv(folder.write("page.csv", "\n<!DOCTYPE HTML><html><body>Sign in</body></html>\n")),
               "page.csv is a web page, not the file itself: download it again");
}

TEST(Csv, ADateInTwoColumnsIsReadAsOne) {
  const Table table = parse("date,time,a\n2016-07-01,13:05:00,1\n2016-07-02,00:30:00,2\n");
  EXPECT_EQ(table.names(ColumnKind::kNumber), std::vector<std::string>{"a"});
  EXPECT_EQ(numbers(table, "date"),
            (Numbers{seconds_since_epoch(2016, 7, 1, 13, 5), seconds_since_epoch(2016, 7, 2, 0, 30)}));
  EXPECT_ERROR(parse("date,time,a\n2016-07-01,13:05:00,1\n2016-07-02,noon,2\n"),
               "line 3, column 'time': 'noon' is no time of day, as the column's first value is");
  // A time beside a date that has one, or beside none, is no part of a date.
  EXPECT_ERROR(parse("date,time,a\n2016-07-01 10:00,13:05:00,1\n"), "'13:05:00' is no number");
  EXPECT_ERROR(parse("a,time\n1,13:05:00\n"), "'13:05:00' is no number");
}

TEST(Csv, LinesOfCommentsBeforeTheHeaderAreNamedWithTheSetting) {
  EXPECT_ERROR(parse("# by x\n# in kW\na,b\n1,2\n3,4\n"), "Then set data.csv.comment=#");
}

TEST(Csv, FilesAndPipesReadAsTextsDo) {
  const ScratchFolder folder;
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += format("{},{}\n", i, i * 0.5);
  const auto path = folder.write("t.csv", text);
  CsvSettings settings;
  settings.chunk_bytes = 100;
  const Numbers expected = numbers(parse(text), "b");
  EXPECT_EQ(numbers(read_csv(path, settings), "b"), expected);
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << text; });
  EXPECT_EQ(numbers(read_csv(pipe, settings), "b"), expected);
  writer.join();
}

TEST(Csv, AFileThatShrinksWhileItIsReadIsAnError) {
  const ScratchFolder folder;
  std::string text = "a\n";
  for (int i = 0; i < 50000; ++i) text += format("{}\n", i);
  const auto path = folder.write("t.csv", text);
  const CsvSource source = CsvSource::open(path);
  std::filesystem::resize_file(path, 1000);
  std::string bytes(text.size(), ' ');
  EXPECT_ERROR(source.read(0, source.size(), bytes.data()), "became shorter while it was read");
}

TEST(Csv, TheFirstFaultOfTheFileIsReportedForAnyPiecesAndThreads) {
  std::string text = "a,b\n";
  for (int i = 0; i < 3000; ++i) text += i == 1200 ? "1,first\n" : i > 1200 && i % 7 == 0 ? "bad\n" : "1,2\n";
  for (const std::int64_t chunk : {10, 100, 1000, 1 << 20})
    for (const int threads : {1, 2, 4}) {
      CsvSettings settings;
      settings.chunk_bytes = chunk;
      settings.threads = threads;
      EXPECT_ERROR(parse(text, settings), "line 1202, column 'b': 'first' is no number");
    }
}

TEST(Csv, MoreRowsThanEstimatedAreReadAllTheSame) {
  // Long rows where the estimate looks, short ones in between.
  std::string text = "x,t\n";
  std::int64_t rows = 0;
  const std::string filler(300, 'f');
  const auto bytes = static_cast<std::size_t>(6 << 20);
  for (; text.size() < bytes / 6; ++rows) text += format("{},{}\n", rows, filler);
  for (; text.size() < bytes / 6 + bytes / 10; ++rows) text += format("{},\n", rows);
  for (; text.size() < bytes; ++rows) text += format("{},{}\n", rows, filler);
  CsvSettings settings;
  settings.text_columns = {"t"};
  const CsvSource source = CsvSource::memory(text, "t.csv");
  ASSERT_LT(estimate_rows(source, find_layout(source, settings)), rows);
  const Table table = parse(text, settings);
  ASSERT_EQ(table.rows(), rows);
  for (std::int64_t i = 0; i < rows; ++i) ASSERT_EQ(table.column("x").at(i), static_cast<double>(i));
  EXPECT_EQ(table.column("t").texts()[static_cast<std::size_t>(rows - 1)], filler);
}

TEST(Csv, SettingsAreBoundAndChecked) {
  CsvSettings settings;
  config::Fields fields;
  fields.section("data", [&] { describe(fields, settings); });
  fields.apply_override("data.missing=forward_fill");
  fields.apply_override("data.text_columns=a,b");
  EXPECT_EQ(settings.missing, "forward_fill");
  EXPECT_EQ(settings.text_columns, (Texts{"a", "b"}));
  EXPECT_ERROR(fields.apply_override("data.header=maybe"), "auto|yes|no");
  const auto with = [](auto change) {
    CsvSettings s;
    change(s);
    return s;
  };
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.separator = "ab"; })),
               "data.csv.separator='ab' is neither auto, tab");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.separator = "1"; })), "data.csv.separator='1' is neither");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.separator = s.decimal = ","; })),
               "data.csv.separator and data.csv.decimal are both ','");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.decimal = "x"; })),
               "data.csv.decimal='x' is neither . nor ,");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.comment = "//"; })), "data.csv.comment='//' is longer");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.threads = -4; })),
               "data.csv.threads=-4 must not be negative");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.header = "x"; })),
               "data.csv.header=x: write auto, yes or no");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.precision = "half"; })),
               "data.csv.precision=half: write float64 or float32");
  EXPECT_ERROR(parse("a\n1\n", with([](CsvSettings& s) { s.date_order = "ydm"; })),
               "data.csv.date_order=ydm: write ymd");
}

}  // namespace
}  // namespace cohort::tables
