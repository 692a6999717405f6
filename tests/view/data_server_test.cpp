// The server of a data set's page: whatever it is told, it answers, and goes on.
#include "view/data_server.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/shown_data.h"
#include "core/format.h"
#include "data/open_episodes.h"

namespace cohort::view {
namespace {

TEST(DataServing, TenThousandRandomMessagesEndNothing) {
  const auto source = data::open_episodes(COHORT_SOURCE_DIR "/tests/data/fixtures/lerobot/v3");
  const auto session = cli::make_data_session(*source, 1);
  DataServer server(*session, {});
  while (session->read_on()) {
  }
  std::mt19937 random(5);
  const auto one_of = [&](const std::vector<std::string>& all) { return all[random() % all.size()]; };
  const std::vector<std::string> numbers{"0",   "1",     "2",   "7",    "16",    "17",  "-1",   "1073741823",
                                         "1e3", "1e999", "0.5", "null", "\"1\"", "[0]", "true", "18446744073709551615"};
  const std::vector<std::string> rules{
      "min_steps(3)",    "finite(action)",        "min_steps(", "none(1)",       "",
      "min_steps(1e99)", "finite(no_such_field)", ")(",         "min_steps(-5)", "\\u0000"};
  int answered = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::string text;
    switch (random() % 4) {
      case 0:
        for (unsigned k = random() % 60; k > 0; --k) text += static_cast<char>(random());
        break;
      case 1:
        for (unsigned k = random() % 20; k > 0; --k)
          text +=
              one_of({"{", "}", "[", "]", ":", ",", "\"do\"", "\"episode\"", "\"which\"", "0", "\"\\ud800\"", "NaN"});
        break;
      case 2:
        text = format(R"({{"do":"filter","rules":["{}","{}"]}})", one_of(rules), one_of(rules));
        break;
      default:
        text =
            format(R"({{"do":"{}","which":{},"first":{},"count":{}}})", one_of({"episode", "pictures", "filter", "x"}),
                   one_of(numbers), one_of(numbers), one_of({"0", "1", "17", "-1", "{}"}));
    }
    const std::string said = server.apply(text);
    ASSERT_FALSE(said.empty()) << text;
    answered += said.find("\"error\"") == std::string::npos;
  }
  EXPECT_GT(answered, 100) << "few of the messages made sense";
  EXPECT_NE(server.apply(std::string(5000, '[')).find("too long"), std::string::npos);
  EXPECT_NE(server.apply(std::string(4000, '[')).find("error"), std::string::npos);
  EXPECT_EQ(server.apply(R"json({"do":"filter","rules":["min_steps(1)"]})json").find("error"), std::string::npos);
  EXPECT_EQ(server.apply(R"({"do":"episode","which":0})").find("\"error\""), std::string::npos);
}

}  // namespace
}  // namespace cohort::view
