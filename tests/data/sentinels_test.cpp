// Numbers that stand for missing values, among values of sensors as they are.
#include "data/sentinels.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace cohort::data {
namespace {

/// 200 values about a middle, with `number` in every `every`-th place; 0: nowhere.
std::vector<double> with(double number, int every, double middle = 20, double spread = 8) {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i)
    values.push_back(every > 0 && i % every == every - 1 ? number
                                                         : middle + spread * std::sin(i * 1.7) * std::cos(i * 0.3));
  return values;
}

TEST(Sentinels, UsualOnesAreFoundWhereverTheyStand) {
  for (const double number : {-9999.0, -999.0, 9999.0, 99999.0, -999.9, 1e20, 9.96921e36, -32768.0, 65535.0}) {
    for (const int every : {2, 7, 200}) {
      const auto found = find_sentinels(with(number, every));
      ASSERT_EQ(found.size(), 1u) << number << " every " << every;
      EXPECT_EQ(found[0].value, number);
      EXPECT_EQ(found[0].count, 200 / every);
      EXPECT_TRUE(found[0].low >= 12 && found[0].high <= 28) << found[0].low << " " << found[0].high;
    }
    std::vector<float> single;
    for (const double v : with(number, 7)) single.push_back(static_cast<float>(v));
    EXPECT_EQ(find_sentinels(single).size(), 1u) << number;
  }
  EXPECT_EQ(sentinel_text(static_cast<double>(-999.9f), true), "-999.9");
}

TEST(Sentinels, AnyNumberThatRepeatsFarFromAllOthersIsOne) {
  EXPECT_EQ(find_sentinels(with(-1, 50, 350, 20)).at(0).value, -1) << "four times";
  EXPECT_TRUE(find_sentinels(with(-1, 100, 350, 20)).empty()) << "twice may be chance";
  std::vector<double> several = with(-9999, 10);
  several[3] = several[33] = several[63] = -999;
  several[4] = several[44] = several[84] = 1e20;
  const auto found = find_sentinels(several);
  ASSERT_EQ(found.size(), 3u);
  for (const Sentinel& sentinel : found) EXPECT_TRUE(sentinel.low >= 12 && sentinel.high <= 28);
}

TEST(Sentinels, ValuesAsTheyAreAreNone) {
  EXPECT_TRUE(find_sentinels(with(0, 0)).empty());
  EXPECT_TRUE(find_sentinels(with(12, 5)).empty()) << "a sensor that is clipped";
  EXPECT_TRUE(find_sentinels(with(0, 3)).empty()) << "zeros nearer than the others span";
  EXPECT_TRUE(find_sentinels(std::vector<double>(200, -9999)).empty()) << "nothing else is there";
  std::vector<double> classes, flags, rain, counter;
  for (int i = 0; i < 200; ++i) {
    classes.push_back(i % 4 == 3 ? 99 : i % 4);
    flags.push_back(i % 17 == 0 ? 1 : 0);
    rain.push_back(i % 11 == 0 ? 0.2 * (i / 11) * (i / 11) : 0);
    counter.push_back(i);
  }
  for (const auto& values : {classes, flags, rain, counter}) EXPECT_TRUE(find_sentinels(values).empty());
  std::vector<double> infinite = with(0, 0);
  infinite[3] = infinite[5] = infinite[9] = std::numeric_limits<double>::infinity();
  infinite[4] = std::nan("");
  EXPECT_TRUE(find_sentinels(infinite).empty()) << "those are said elsewhere";
}

}  // namespace
}  // namespace cohort::data
