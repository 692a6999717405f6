// LeRobot sets made of others: some of their episodes, several as one, other names and tasks; videos are not coded again.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "data/convert.h"
#include "data/expect_error.h"
#include "data/format.h"
#include "data/lerobot/lerobot_episodes.h"
#include "data/lerobot_fixture.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

LeRobotEpisodes all_of(const fs::path& path) {
  return LeRobotEpisodes(path, {.split = "all"});
}

/// Action and front picture of every step of an episode are those of the fixture's episode `number`.
void expect_episode_of_fixture(const LeRobotEpisodes& source, std::int64_t place, std::int64_t number,
                               const std::string& camera = "observation.images.front") {
  SCOPED_TRACE(format("episode {} of the new set, {} of the fixture", place, number));
  const auto episode = source.open(place);
  ASSERT_EQ(episode->steps(), kLeRobotSteps[static_cast<std::size_t>(number)]);
  const std::size_t action = source.field_index("action"), front = source.field_index(camera);
  std::string scratch;
  for (std::int64_t t = 0; t < episode->steps(); ++t) {
    std::vector<double> values(static_cast<std::size_t>(source.fields()[action].elements()));
    episode->read(action, t, 1, std::span(values));
    EXPECT_EQ(values[1], lerobot_value("action", number, t, 1));
    EXPECT_EQ(shown_number(episode->image(front, t, scratch)), lerobot_begin(number) + t);
  }
}

TEST(LeRobotEdit, EpisodesAreDeletedAndVideosAreTheSameFiles) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const LeRobotEpisodes source = all_of(fixture("lerobot/v3"));
  ConvertReport report;
  const auto out = folder.path() / "some";
  find_format("lerobot").edit({{&source, {0, 2, 4}}}, out, {}, report);
  EXPECT_EQ(report.episodes, 3);
  const LeRobotEpisodes made = all_of(out);
  ASSERT_EQ(made.size(), 3);
  for (std::int64_t e = 0; e < 3; ++e) {
    EXPECT_EQ(made.number(e), e);
    expect_episode_of_fixture(made, e, 2 * e);
    EXPECT_EQ(made.open(e)->metadata("language_instruction"), lerobot_task(2 * e));
  }
  const auto front = made.field_index("observation.images.front");
  const fs::path before = source.video(0, source.field_index("observation.images.front"))->file;
  EXPECT_EQ(read_file(made.video(0, front)->file), read_file(before));
  EXPECT_NE(read_file(out / "meta/info.json").find(format("\"video.codec\": \"{}\"", read_video_index(before).codec)),
            std::string::npos);
}

TEST(LeRobotEdit, SetsAreMergedOneBehindTheOther) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const LeRobotEpisodes one = all_of(fixture("lerobot/v3")), other = all_of(fixture("lerobot/v3"));
  std::vector<std::int64_t> all(5);
  std::iota(all.begin(), all.end(), 0);
  ConvertReport report;
  find_format("lerobot").edit({{&one, all}, {&other, {3}}}, folder.path() / "both", {}, report);
  const LeRobotEpisodes made = all_of(folder.path() / "both");
  ASSERT_EQ(made.size(), 6);
  for (std::int64_t e = 0; e < 6; ++e) expect_episode_of_fixture(made, e, e < 5 ? e : 3);
}

TEST(LeRobotEdit, NamesAndTasksAreChangedAndWrongOnesAreRefused) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const LeRobotEpisodes source = all_of(fixture("lerobot/v3"));
  ConvertReport report;
  ConvertSettings settings;
  settings.lerobot.renamed = {{"observation.images.front", "observation.images.top"}};
  settings.lerobot.retasked = {{"open the drawer", "pull the drawer"}};
  find_format("lerobot").edit({{&source, {0, 1}}}, folder.path() / "renamed", settings, report);
  const LeRobotEpisodes made = all_of(folder.path() / "renamed");
  expect_episode_of_fixture(made, 1, 1, "observation.images.top");
  EXPECT_EQ(made.open(0)->metadata("language_instruction"), "put the cube into the bowl");
  EXPECT_EQ(made.open(1)->metadata("language_instruction"), "pull the drawer");
  // A set and its renamed copy do not fit together, and that is said with both names.
  EXPECT_ERROR(find_format("lerobot").edit({{&source, {0}}, {&made, {0}}}, folder.path() / "both", {}, report),
               "only the second has observation.images.top");
  settings.lerobot.retasked = {{"close the drawer", "x"}};
  EXPECT_ERROR(find_format("lerobot").edit({{&source, {0, 1}}}, folder.path() / "told", settings, report),
               "no episode has the task 'close the drawer'; the tasks are 'open the drawer', 'put the cube");
  EXPECT_FALSE(fs::exists(folder.path() / "told"));
  settings.lerobot.renamed = {{"observation.images.fornt", "observation.images.top"}};
  EXPECT_ERROR(find_format("lerobot").edit({{&source, {0}}}, folder.path() / "x", settings, report),
               "observation.images.front");
}

}  // namespace
}  // namespace cohort::data
