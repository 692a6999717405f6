// Lines that are no rows, and fields that are numbers with something around them: what spreadsheets, databases and
// dashboards write beside the numbers.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/log.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "tables/csv.h"
#include "tables/date_text.h"

namespace cohort::tables::lines {
namespace {

using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

Table parse(std::string_view text, const CsvSettings& settings = {}, CsvReport* report = nullptr) {
  return parse_csv(text, "t.csv", settings, report);
}

Numbers numbers(const Table& table, const char* name) {
  const auto values = table.column(name).float64();
  return {values.begin(), values.end()};
}

std::string log_of(std::string_view text, const CsvSettings& settings) {
  const data::OwnFolder folder;
  const std::string file = (folder.path() / "t.log").string();
  log::add_file(file);
  parse(text, settings);
  log::flush();
  log::remove_file(file);
  return read_file(file);
}

const std::string kRows = "2024-03-01,20,1.5\n2024-03-02,21,1.75\n2024-03-03,19,2\n";

TEST(CsvLines, ThoseThatTheSettingsNameAreNoRows) {
  const std::string text = "Station 7\n\ntime,temp,load\n,degC,kW\n" + kRows + "Total,60,5.25\n\nexported today\n";
  CsvSettings settings;
  settings.skip_lines = {"1-2", "4", "8", "10"};
  CsvReport report;
  const Table table = parse(text, settings, &report);
  EXPECT_EQ(table.names(), (Texts{"time", "temp", "load"}));
  EXPECT_EQ(numbers(table, "load"), (Numbers{1.5, 1.75, 2}));
  EXPECT_EQ(report.skipped_rows, 0);
  // In pieces of any size, by any number of threads.
  for (const std::int64_t bytes : {7, 16, 64}) {
    settings.chunk_bytes = bytes;
    EXPECT_EQ(numbers(parse(text, settings), "temp"), (Numbers{20, 21, 19})) << bytes;
  }
  for (const char* wrong : {"0", "-1", "x", "3-2", "1-", "2.5", ""}) {
    settings.skip_lines = {wrong};
    EXPECT_ERROR(parse(text, settings), "data.csv.skip_lines=");
  }
}

TEST(CsvLines, ARowThatIsLeftOutSoIsTold) {
  CsvSettings settings;
  settings.skip_lines = {"2"};
  EXPECT_NE(log_of("time,temp,load\n" + kRows, settings)
                .find("data.csv.skip_lines leaves out 1 line(s) that look like rows, the first one line 2"),
            std::string::npos);
  EXPECT_EQ(log_of("time,temp,load\n,degC,kW\n" + kRows, settings).find("look like rows"), std::string::npos);
}

TEST(CsvLines, WhatIsNoRowIsNamedWithTheSettingThatLeavesItOut) {
  const std::string names = "time,temp,load\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {names + ",degC,kW\n" + kRows, "data.csv.skip_lines=2"},
      {names + "YYYY,degC,kW\n" + kRows, "data.csv.skip_lines=2"},
      {names + kRows + "Total,60,5.25\n", "data.csv.skip_lines=5"},
      {names + kRows + ",60,5.25\n", "data.csv.skip_lines=5"},
      {names + kRows + names + kRows, "data.csv.skip_lines=5"},
      {names + kRows + "\nexported today\n", "data.csv.skip_lines=6"},
      {"Station 7\n\n" + names + kRows, "line 3: leave out what is above it with data.csv.skip_lines=1-2"},
      {"Station 7,,\n" + names + kRows, "line 2: leave out what is above it with data.csv.skip_lines=1"}};
  for (const auto& [text, remedy] : cases) {
    SCOPED_TRACE(text);
    EXPECT_ERROR(parse(text), remedy);
    CsvSettings settings;
    settings.skip_lines = {remedy.substr(remedy.find('=') + 1)};
    if (text.find(names, names.size()) == std::string::npos || !text.starts_with("time"))
      EXPECT_EQ(parse(text, settings).rows(), 3) << "the remedy works";
  }
  // A title hides the separator.
  EXPECT_ERROR(parse("Bericht 7\n\nDatum;Last\n2024-03-01;1,5\n2024-03-02;1,5\n"), "data.csv.skip_lines=1-2");
  // A value that is wrong in a row is none of that.
  try {
    parse("a,b\n1,2\n3,x\n");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("skip_lines"), std::string::npos) << error.what();
  }
}

// Whoever follows a message sets the list anew: what the last message named must be in it.
TEST(CsvLines, RemediesRepeatWhatIsSetAndNameAllColumnsAtOnce) {
  const std::string text = "host,tags,time,mean,unit\na,,2024-03-01,1,x\na,,2024-03-02,2,x\n";
  EXPECT_ERROR(parse(text), "leave it out with data.csv.skip_columns=host,tags,unit,");
  CsvSettings settings;
  settings.skip_columns = {"host"};
  settings.text_columns = {"unit"};
  EXPECT_ERROR(parse(text, settings), "leave the column out with data.csv.skip_columns=host,tags");
  settings = {.missing_values = {"unavailable"}};
  EXPECT_ERROR(parse("a,b\n1,2\n3,unknown\n", settings), "say so with data.csv.missing_values=unavailable,unknown");
  settings = {.skip_lines = {"9"}};
  EXPECT_ERROR(parse("a,b\n1,2\n3\n", settings), "data.csv.skip_lines=9,3");
}

TEST(CsvFields, UnitsBesideNumbersAreNamedAndLeftOut) {
  const std::string text = "a,b,c\n20.5 °C,$3,40%\n-1 °C,$4.5,50 %\n";
  EXPECT_ERROR(parse(text),
               "'20.5 °C' is no number; is '°C' a unit, the same one in the whole column? Then set "
               "'data.csv.units=[\"°C\"]'");
  CsvSettings settings;
  settings.units = {"°C"};
  EXPECT_ERROR(parse(text, settings), "Then set 'data.csv.units=[\"°C\",\"$\"]'");
  settings.units = {"°C", "$", "%"};
  const Table table = parse(text, settings);
  EXPECT_EQ(numbers(table, "a"), (Numbers{20.5, -1}));
  EXPECT_EQ(numbers(table, "b"), (Numbers{3, 4.5}));
  EXPECT_EQ(numbers(table, "c"), (Numbers{40, 50})) << "as they are written";
  // No W with something before it.
  EXPECT_ERROR(parse("a,b\n1 W,2\n1 kW,3\n", CsvSettings{.units = {"W"}}), "is 'kW' a unit");
  EXPECT_ERROR(parse("a,b\n1,(98.2)\n"), "if brackets stand for a minus, write -98.2");
}

TEST(CsvFields, TrueAndFalseAreNumbersAndSoIsTheMinusOfTypesetting) {
  const Table table = parse("a,b\nTrue,−1.5\nFALSE,2\ntrue,3\n");
  EXPECT_EQ(numbers(table, "a"), (Numbers{1, 0, 1}));
  EXPECT_EQ(numbers(table, "b"), (Numbers{-1.5, 2, 3}));
  EXPECT_ERROR(parse("a,b\n1,on\n"), "'on' is no number");
}

TEST(CsvFields, NumbersOfAColumnOfDatesCountWhatTheSettingSays) {
  CsvSettings settings;
  settings.date_columns = {"t"};
  EXPECT_ERROR(parse("t,x\n45352.5,1\n", settings), "it is a number: say with data.csv.date_unit what it counts");
  const auto read = [&](const char* unit, const char* text) {
    settings.date_unit = unit;
    return numbers(parse(std::string("t,x\n") + text + ",1\n", settings), "t").front();
  };
  EXPECT_EQ(read("excel", "45352.5"), seconds_since_epoch(2024, 3, 1, 12));
  EXPECT_EQ(read("excel", "45352.041667"), seconds_since_epoch(2024, 3, 1, 1)) << "of whole seconds";
  EXPECT_EQ(read("s", "0.02"), 0.02);
  EXPECT_EQ(read("s", "946684800"), seconds_since_epoch(2000, 1, 1)) << "nine digits";
  EXPECT_EQ(read("ms", "946684800000"), seconds_since_epoch(2000, 1, 1)) << "twelve digits, that could be a date's";
  EXPECT_EQ(read("us", "20000"), 0.02);
  EXPECT_EQ(read("ns", "1709251200000000000"), seconds_since_epoch(2024, 3, 1));
  EXPECT_EQ(read("s", "2024-03-01"), seconds_since_epoch(2024, 3, 1)) << "a date stays one";
}

TEST(CsvFields, Utf16WithoutAMarkIsNamed) {
  std::string text;
  for (const char c : std::string("a,b\n1,2\n")) text += {c, '\0'};
  EXPECT_ERROR(parse(text),
               "text in UTF-16 without a mark of its byte order; write it as UTF-8 first (iconv -f UTF-16LE");
  EXPECT_ERROR(parse(std::string("\0", 1) + text), "iconv -f UTF-16BE");
  EXPECT_ERROR(parse(std::string("ab\0\0,\n", 6)), "byte 2 is zero");
}

TEST(CsvFields, AHeaderOfCommentsIsNamed) {
  EXPECT_ERROR(parse("#group,false,false\n#x,y,z\n,a,b\n,1,2\n"), "Then set data.csv.comment=#");
  EXPECT_ERROR(parse("a,site,site\n,temp,load\n1,2,3\n"), "leave this one out with data.csv.skip_lines=1");
}

}  // namespace
}  // namespace cohort::tables::lines
