// When the rows of a forecast are; the expected dates are pandas' date_range of the same frequency.
#include "tables/future_dates.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "tables/date_text.h"

namespace cohort::tables {
namespace {

std::vector<std::string> after(const std::vector<std::string>& known, Frequency frequency, std::int64_t count) {
  std::vector<double> dates;
  for (const std::string& text : known) {
    double seconds = 0;
    EXPECT_EQ(parse_date(text, DateOrder::kYearMonthDay, seconds), nullptr);
    dates.push_back(seconds);
  }
  std::vector<std::string> texts;
  for (const double date : dates_after(dates, frequency, count)) texts.push_back(format_date(date));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(FutureDates, GoOnByTheMedianStep) {
  EXPECT_EQ(after({"2016-07-01 00:00", "2016-07-01 01:00", "2016-07-01 02:00"}, Frequency::kHour, 2),
            (Texts{"2016-07-01 03:00:00", "2016-07-01 04:00:00"}));
  // A hole does not make the next step longer.
  EXPECT_EQ(after({"2016-07-01", "2016-07-02", "2016-07-03", "2016-07-20"}, Frequency::kDay, 1),
            (Texts{"2016-07-21 00:00:00"}));
}

TEST(FutureDates, MonthsKeepTheirDayAndMonthEndsStayMonthEnds) {
  EXPECT_EQ(after({"2023-10-31", "2023-11-30", "2023-12-31"}, Frequency::kMonth, 3),
            (Texts{"2024-01-31 00:00:00", "2024-02-29 00:00:00", "2024-03-31 00:00:00"}));
  EXPECT_EQ(after({"2023-11-15", "2023-12-15"}, Frequency::kMonth, 2),
            (Texts{"2024-01-15 00:00:00", "2024-02-15 00:00:00"}));
  EXPECT_EQ(after({"2023-06-30", "2023-09-30"}, Frequency::kQuarter, 2),
            (Texts{"2023-12-31 00:00:00", "2024-03-31 00:00:00"}));
}

TEST(FutureDates, BusinessDaysLeaveOutWeekends) {
  EXPECT_EQ(after({"2024-01-03", "2024-01-04", "2024-01-05"}, Frequency::kBusinessDay, 2),
            (Texts{"2024-01-08 00:00:00", "2024-01-09 00:00:00"}));
}

TEST(FutureDates, OneDateDoesNotTell) {
  const std::vector<double> one{0};
  EXPECT_THROW(dates_after(one, Frequency::kDay, 1), Error);
}

}  // namespace
}  // namespace cohort::tables
