#include "tables/date_steps.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tables/date_text.h"

namespace cohort::tables {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kOneHour = 3600, kOneDay = 86400;

std::vector<double> dates_every(double step, int count) {
  std::vector<double> dates;
  for (int i = 0; i < count; ++i) dates.push_back(seconds_since_epoch(2024, 3, 1) + i * step);
  return dates;
}

TEST(DateSteps, EvenDatesAreNotTalkedAbout) {
  for (const double step : {1.0, 15 * 60.0, kOneHour, kOneDay, 7 * kOneDay})
    EXPECT_THAT(uneven_dates(dates_every(step, 50)), IsEmpty());
  std::vector<double> months, quarters, years, workdays;
  for (int m = 0; m < 36; ++m) {
    months.push_back(seconds_since_epoch(2019 + m / 12, m % 12 + 1, 1));
    if (m % 3 == 0) quarters.push_back(months.back());
    years.push_back(seconds_since_epoch(2000 + m, 1, 1));
  }
  for (int d = 0; d < 60; ++d)
    if (d % 7 < 5) workdays.push_back(seconds_since_epoch(2024, 1, 1) + d * kOneDay);  // a Monday
  EXPECT_THAT(uneven_dates(months), IsEmpty());
  EXPECT_THAT(uneven_dates(quarters), IsEmpty());
  EXPECT_THAT(uneven_dates(years), IsEmpty());
  EXPECT_THAT(uneven_dates(workdays), IsEmpty());
  EXPECT_THAT(uneven_dates({}), IsEmpty());
  EXPECT_THAT(uneven_dates(dates_every(kOneHour, 1)), IsEmpty());
}

TEST(DateSteps, GapsRepetitionsAndUnevenStepsAreCountedWithTheFirstRow) {
  std::vector<double> gap = dates_every(kOneHour, 200);
  for (std::size_t i = 91; i < gap.size(); ++i) gap[i] += 40 * kOneDay;
  EXPECT_THAT(uneven_dates(gap), ElementsAre(HasSubstr("have 1 gap, at row 92 (from 2024-03-04 18:00:00 to 2024-04-13 "
                                                       "19:00:00); windows take rows as 1 h apart and reach across")));
  for (std::size_t i = 150; i < gap.size(); ++i) gap[i] += 2 * kOneHour;
  EXPECT_THAT(uneven_dates(gap), ElementsAre(HasSubstr("have 2 gaps, first at row 92 (from 2024-03-04 18:00:00 to "
                                                       "2024-04-13 19:00:00), the longest of 40.04 days")));
  std::vector<double> twice = dates_every(kOneHour, 100);
  twice.insert(twice.begin() + 10, 5, twice[10]);
  EXPECT_THAT(uneven_dates(twice),
              ElementsAre(HasSubstr("are repeated 5 times, first at row 12 (2024-03-01 10:00:00)")));
  std::vector<double> uneven{0};
  for (int i = 0; i < 100; ++i) uneven.push_back(uneven.back() + (i % 4 == 0 ? 97 * 60 : 47 * 60));
  EXPECT_THAT(uneven_dates(uneven),
              ElementsAre(HasSubstr("are uneven: 25 of 100 steps are not the usual 47 min, first "
                                    "at row 2 (from 1970-01-01 00:00:00 to 1970-01-01 01:37:00)")));
  std::vector<double> late = dates_every(kOneHour, 100);
  late[50] += 300;
  EXPECT_THAT(uneven_dates(late),
              ElementsAre(HasSubstr("are uneven: 2 of 99 steps are not the usual 1 h, first at row 51")));
  std::vector<double> backwards = dates_every(kOneHour, 50);
  backwards[30] = backwards[20];
  EXPECT_THAT(uneven_dates(backwards),
              ElementsAre(HasSubstr("run backwards 1 times, first at row 31 (from 2024-03-02 05:00:00 to 2024-03-01 "
                                    "20:00:00); windows take rows in the order of the file"),
                          HasSubstr("have 1 gap, at row 32")));
  std::vector<double> month;  // April is missing
  for (const int m : {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12}) month.push_back(seconds_since_epoch(2023, m, 1));
  EXPECT_THAT(uneven_dates(month), ElementsAre(HasSubstr("have 1 gap, at row 4")));
}

// Sorting by date, or keeping one of each, would mix the series or throw all but one away.
TEST(DateSteps, SeveralSeriesInOneFileAreTold) {
  const std::vector<double> one = dates_every(kOneHour, 40);
  std::vector<double> stacked = one, in_turn;
  stacked.insert(stacked.end(), one.begin() + 5, one.end());
  stacked.insert(stacked.end(), one.begin(), one.end());
  EXPECT_THAT(
      uneven_dates(stacked),
      ElementsAre(HasSubstr("begin anew 2 times, first at row 41 (from 2024-03-02 15:00:00 to 2024-03-01 05:00:00): "
                            "the file seems to hold 3 series one below the other, which windows would go across: "
                            "make a column of each")));
  for (const double date : one) in_turn.insert(in_turn.end(), 2, date);
  EXPECT_THAT(
      uneven_dates(in_turn),
      ElementsAre(HasSubstr("are repeated 40 times in 80 rows, first at row 2 (2024-03-01 00:00:00): the file seems "
                            "to hold several series, a row of each in turn")));
  // The hour that comes twice when summer time ends, and the newest first, are no series.
  std::vector<double> autumn = dates_every(600, 200);
  for (std::size_t i = 100; i < autumn.size(); ++i) autumn[i] -= kOneHour;
  EXPECT_THAT(uneven_dates(autumn), ElementsAre(HasSubstr("run backwards 1 times, first at row 101")));
  EXPECT_THAT(uneven_dates(std::vector<double>(one.rbegin(), one.rend())),
              ElementsAre(HasSubstr("run backwards 39 times")));
}

}  // namespace
}  // namespace cohort::tables
