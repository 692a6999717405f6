// Names of columns: in other encodings, missing, of row counters; and whether the remedies in messages work.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/config.h"
#include "core/log.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "tables/csv.h"
#include "tables/csv_layout.h"

namespace cohort::tables {
namespace {
using data::OwnFolder;

using ColumnNames = std::vector<std::string>;

Table read_text(const std::string& text, const CsvSettings& settings = {}) {
  return parse_csv(text, "t.csv", settings);
}

/// The settings that the remedies of a message name, which a shell would hand over.
CsvSettings with_remedy(const std::string& message, const std::string& setting, CsvSettings settings = {}) {
  config::Fields fields;
  fields.section("data", [&] { fields.section("csv", [&] { describe(fields, settings); }); });
  const std::size_t at = message.find("data.csv." + setting + "=");
  EXPECT_NE(at, std::string::npos) << message;
  if (at == std::string::npos) return settings;
  std::string text =
      message.substr(at, message.find_first_of(at > 0 && message[at - 1] == '\'' ? "'" : " ,;", at) - at);
  fields.apply_override(text);
  return settings;
}

/// What parsing logs.
std::string log_of(const std::string& text, const CsvSettings& settings = {}) {
  OwnFolder folder;
  const std::string file = (folder.path() / "training.log").string();
  log::add_file(file);
  read_text(text, settings);
  log::flush();
  log::remove_file(file);
  return read_file(file);
}

TEST(CsvNames, NamesThatAreNotUtf8AreToldWithTheByteAndTheCommandThatConverts) {
  const std::string gbk = "date,\xB7\xE7\xCB\xD9,a\n2024-03-01,1,2\n2024-03-02,2,3\n";
  EXPECT_ERROR(read_text(gbk), "t.csv: the names of the columns are not UTF-8 at byte 5 (line 1, '\\xb7')");
  EXPECT_ERROR(read_text(gbk), "iconv -f ENCODING -t UTF-8 t.csv > NEW, where ENCODING is gbk for Chinese");
  EXPECT_ERROR(read_text("a,Temp \xB0"
                         "C\n1,2\n"),
               "not UTF-8 at byte 7");
  EXPECT_EQ(read_text("a,温度\n1,2\n").names(), (ColumnNames{"a", "温度"}));
  // Elsewhere any bytes will do.
  CsvSettings settings;
  settings.text_columns = {"t"};
  EXPECT_EQ(read_text("t,a\n\xB7\xE7,2\n", settings).column("t").texts()[0], "\xB7\xE7");
}

TEST(CsvNames, AColumnWithoutNameAndValuesIsLeftOutAndThatIsSaid) {
  const std::string all = "a,b,\n1,2,\n3,4,\n5,6, \n", rows = "a,b\n1,2,\n3,4,\n", none = "1,2,\n3,4,\n";
  EXPECT_EQ(read_text(all).names(), (ColumnNames{"a", "b"}));
  EXPECT_EQ(read_text(rows).names(), (ColumnNames{"a", "b"})) << "the header ends without a separator";
  EXPECT_EQ(read_text(none).names(), (ColumnNames{"column_0", "column_1"}));
  EXPECT_EQ(read_text(all).column("b").at(2), 6);
  EXPECT_NE(log_of(all).find("t.csv: field 3 has no name and is empty in every row; it is left out"),
            std::string::npos);
  EXPECT_EQ(log_of("a,b\n1,2\n").find("left out"), std::string::npos);
  // A value further down is not lost.
  std::string late = "a,\n";
  for (int i = 0; i < 300; ++i) late += i == 250 ? "1,x\n" : "1,\n";
  EXPECT_ERROR(read_text(late),
               "t.csv: line 252, column 'column_1': this column has no name and is empty in the first 100 "
               "rows, so it is left out, but here it holds 'x'");
  EXPECT_EQ(read_text(late, with_remedy(message_of([&] { read_text(late); }), "text_columns"))
                .column("column_1")
                .texts()[250],
            "x");
  // What is asked for is read, or is an error.
  CsvSettings settings;
  settings.columns = {"column_2"};
  EXPECT_ERROR(read_text(all, settings), "column 'column_2': the value is missing");
  // A column with a name is missed.
  EXPECT_ERROR(read_text("a,b\n1,\n2,\n"), "the value is missing, as in each of the first 2 rows");
}

TEST(CsvNames, PrintedRemediesWork) {
  const auto fault_of = [](const std::string& text, const CsvSettings& settings) {
    return message_of([&] { read_text(text, settings); });
  };
  const std::string empty = "a,b,c\n1,,3\n4,,6\n", holes = "a,b\n1,2\n,3\n4,5\n", words = "a,\"my, b\"\n1,x\n2,y\n";
  EXPECT_EQ(read_text(empty, with_remedy(fault_of(empty, {}), "skip_columns")).names(), (ColumnNames{"a", "c"}));
  CsvSettings drop;
  drop.missing = "drop_row";
  EXPECT_EQ(read_text(empty, with_remedy(fault_of(empty, drop), "skip_columns", drop)).names(),
            (ColumnNames{"a", "c"}));
  CsvSettings fill;
  fill.missing = "forward_fill";
  EXPECT_EQ(read_text(empty, with_remedy(fault_of(empty, fill), "skip_columns", fill)).names(),
            (ColumnNames{"a", "c"}));
  EXPECT_EQ(read_text(holes, with_remedy(fault_of(holes, {}), "missing")).rows(), 2);
  EXPECT_EQ(read_text(words, with_remedy(fault_of(words, {}), "skip_columns")).names(), ColumnNames{"a"});
  EXPECT_EQ(column_setting("data.csv.skip_columns", {"a", "b"}), "data.csv.skip_columns=a,b");
  EXPECT_EQ(column_setting("data.csv.skip_columns", {"my 'b', \"c\""}),
            R"('data.csv.skip_columns=["my '\''b'\'', \"c\""]')");
  CsvSettings twice;
  twice.columns = twice.skip_columns = {"a"};
  EXPECT_ERROR(read_text("a,b\n1,2\n", twice), "data.csv.columns and data.csv.skip_columns both name 'a'");
}

TEST(CsvNames, AColumnThatOnlyCountsTheRowsIsWarnedOf) {
  const auto table = [](const std::string& name, int first, int step) {
    std::string text = name + ",load\n";
    for (int i = 0; i < 40; ++i) text += std::to_string(first + i * step) + "," + std::to_string(i * i % 17) + "\n";
    return text;
  };
  const std::string unnamed = log_of(table("", 7, 1));
  EXPECT_NE(unnamed.find("t.csv: column 'column_0', which has no name in the file, only counts the rows, from 7 to 46"),
            std::string::npos)
      << unnamed;
  EXPECT_NE(unnamed.find("leave it out with data.csv.skip_columns=column_0"), std::string::npos) << unnamed;
  EXPECT_NE(log_of(table("id", 1, 1)).find("column 'id' only counts the rows, from 1 to 40"), std::string::npos);
  EXPECT_EQ(log_of(table("year", 1980, 1)).find("counts the rows"), std::string::npos) << "a name, and no row number";
  EXPECT_EQ(log_of(table("", 0, 2)).find("counts the rows"), std::string::npos);
  // Rows that were dropped leave holes in the numbers.
  CsvSettings drop;
  drop.missing = "drop_row";
  std::string holes = table("id", 0, 1);
  holes.replace(holes.find("5,8\n"), 4, "5,\n");
  EXPECT_NE(log_of(holes, drop).find("column 'id' only counts the rows, from 0 to 39"), std::string::npos);
}

TEST(CsvNames, ANumberThatStandsForMissingValuesIsNamedAndTheRemedyReadsItAsMissing) {
  std::string text = "load,heat,kind\n";
  for (int i = 0; i < 60; ++i)
    text += format("{},{},{}\n", i % 9 == 4 ? "-9999.0" : format("{:.2f}", 20 + i * 7 % 13 * 0.31),
                   i == 30 ? "-9999" : format("{}", 300 + i * i % 41), i % 2);
  const std::string said = log_of(text);
  EXPECT_NE(
      said.find("t.csv: column 'load' is -9999 in 7 of 60 rows, and all others are from 20 to 23.72; likewise in "
                "'heat' (1); where that stands for a missing value, say so with data.csv.missing_values=-9999 and "
                "data.csv.missing=forward_fill (the value above) or drop_row"),
      std::string::npos)
      << said;
  const CsvSettings told = with_remedy(said, "missing_values");
  EXPECT_ERROR(read_text(text, told), "the value is missing");
  CsvSettings filled = told;
  filled.missing = "forward_fill";
  const Table table = read_text(text, filled);
  EXPECT_EQ(table.rows(), 60);
  for (const double v : table.column("load").float64()) EXPECT_GE(v, 20);
  EXPECT_EQ(log_of(text, filled).find("stands for"), std::string::npos) << "what is missing is no number any more";
  CsvSettings single;
  single.precision = "float32";
  EXPECT_NE(log_of(text, single).find("data.csv.missing_values=-9999 "), std::string::npos);
}

}  // namespace
}  // namespace cohort::tables
