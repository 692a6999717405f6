#include "tables/time_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "tables/date_text.h"

namespace cohort::tables {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double seconds_of(const std::string& date) {
  double seconds = 0;
  const char* fault = parse_date(date, DateOrder::kYearMonthDay, seconds);
  EXPECT_EQ(fault, nullptr) << date;
  return seconds;
}

// Written by make_time_feature_fixtures.py with Informer's own package.
TEST(TimeFeatures, EqualInformersForEveryFrequencyAndEncoding) {
  const auto fixture =
      parse_json<nlohmann::json>(read_file(COHORT_SOURCE_DIR "/tests/tables/time_feature_fixtures.json"));
  ASSERT_EQ(fixture["cases"].size(), 17u);
  for (const auto& expected : fixture["cases"]) {
    const auto freq = expected["freq"].get<std::string>();
    const TimeFeatures features(parse_frequency(freq), expected["timeenc"] == 1 ? "scaled" : "fields");
    for (std::size_t i = 0; i < fixture["dates"].size(); ++i) {
      const auto date = fixture["dates"][i].get<std::string>();
      const auto& row = expected["rows"][i];
      ASSERT_EQ(static_cast<std::size_t>(features.count()), row.size()) << freq;
      std::vector<float> out(row.size(), -77.0f);
      features.encode(seconds_of(date), out);
      for (std::size_t k = 0; k < row.size(); ++k)
        EXPECT_EQ(out[k], static_cast<float>(row[k].get<double>())) << date << ", freq " << freq << ", feature " << k;
    }
  }
}

TEST(TimeFeatures, NamesFollowTheReferencesOrder) {
  EXPECT_THAT(TimeFeatures(Frequency::kHour, "scaled").names(), ElementsAre("hour", "weekday", "day", "day_of_year"));
  EXPECT_THAT(TimeFeatures(Frequency::kMinute, "fields").names(),
              ElementsAre("month", "day", "weekday", "hour", "quarter_of_hour"));
  EXPECT_EQ(TimeFeatures(Frequency::kYear, "scaled").count(), 0);
}

TEST(TimeFeatures, FrequenciesAreReadInAnyCaseWithAMultiple) {
  EXPECT_EQ(parse_frequency("H"), Frequency::kHour);
  EXPECT_EQ(parse_frequency("15min"), Frequency::kMinute);
  EXPECT_EQ(parse_frequency("30T"), Frequency::kMinute);
  EXPECT_EQ(parse_frequency("a"), Frequency::kYear);
  EXPECT_EQ(parse_frequency("ME"), Frequency::kMonth);
  for (const char* bad : {"", "15", "hourly", "ms", "h1", "-1h"})
    EXPECT_THAT(message_of([&] { parse_frequency(bad); }), HasSubstr("is not known; use s, t (or min), h")) << bad;
  for (const Frequency f : {Frequency::kYear, Frequency::kQuarter, Frequency::kMonth, Frequency::kWeek, Frequency::kDay,
                            Frequency::kBusinessDay, Frequency::kHour, Frequency::kMinute, Frequency::kSecond})
    EXPECT_EQ(parse_frequency(frequency_letter(f)), f);
}

TEST(TimeFeatures, TheFrequencyIsFoundFromTheMedianStep) {
  const auto found = [](std::vector<std::string> dates) {
    std::vector<double> seconds;
    for (const std::string& date : dates) seconds.push_back(seconds_of(date));
    return infer_frequency(seconds);
  };
  EXPECT_EQ(found({"2016-07-01 00:00", "2016-07-01 01:00", "2016-07-01 02:00", "2016-07-09 00:00"}), Frequency::kHour);
  EXPECT_EQ(found({"2016-07-01 00:00", "2016-07-01 00:15", "2016-07-01 00:30"}), Frequency::kMinute);
  EXPECT_EQ(found({"2016-07-01 00:00:00", "2016-07-01 00:00:05"}), Frequency::kSecond);
  EXPECT_EQ(found({"2016-07-01", "2016-07-02", "2016-07-05", "2016-07-06"}), Frequency::kDay);
  EXPECT_EQ(found({"2016-07-01", "2016-07-08"}), Frequency::kWeek);
  EXPECT_EQ(found({"2015-01-01", "2015-02-01", "2015-03-01", "2015-04-01"}), Frequency::kMonth);
  EXPECT_EQ(found({"2015-01-01", "2015-04-01", "2015-07-01", "2015-10-01"}), Frequency::kQuarter);
  EXPECT_EQ(found({"2015-01-01", "2016-01-01", "2017-01-01"}), Frequency::kYear);
  EXPECT_THAT(message_of([&] { found({"2015-01-01"}); }),
              HasSubstr("the frequency of 1 date cannot be told; set data.windows.freq"));
}

TEST(TimeFeatures, WhatTheReferenceLacksIsAnError) {
  EXPECT_THAT(message_of([] { TimeFeatures(Frequency::kSecond, "fields"); }),
              HasSubstr("for freq s; use encoding 'scaled', or freq t"));
  EXPECT_THAT(message_of([] { TimeFeatures(Frequency::kHour, "timeF"); }), HasSubstr("scaled, fields"));
}

}  // namespace
}  // namespace cohort::tables
