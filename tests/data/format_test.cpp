// One more format of robot data: a registered one is written, opened, converted and inspected by what does it for all.
#include "data/format.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "data/convert.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/inspect.h"
#include "data/lines_format.h"
#include "data/open_episodes.h"
#include "data/toy_set.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

using Actions = std::vector<std::vector<double>>;  // of each episode's steps

class DataFormats : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_format(lines_format()); }
  OwnFolder folder_;
};

Actions actions_of(const EpisodeSource& source) {
  Actions all;
  for (std::int64_t e = 0; e < source.size(); ++e) {
    const auto episode = source.open(e);
    std::vector<double>& actions = all.emplace_back(static_cast<std::size_t>(episode->steps()));
    episode->read(source.field_index(source.fields().size() == 1 ? source.fields()[0].name : "action"), 0,
                  episode->steps(), std::span(actions));
  }
  return all;
}

TEST_F(DataFormats, ARegisteredFormatIsWrittenOpenedConvertedAndInspected) {
  const Actions actions{{1, 2, 3}, {4, 5}};
  const ToyEpisode first{.fields = {{"action", std::vector<float>{1, 2, 3}}}};
  const ToyEpisode second{.fields = {{"action", std::vector<float>{4, 5}}}};
  const fs::path toy = write_toy_set(folder_.path() / "toy", {first, second}, {{"action", 1}});
  const fs::path file = find_format("lines").recording_path(folder_.path(), "arm");
  const ConvertReport report = convert_episodes(*open_episodes(toy), file, {.to = "lines"});
  EXPECT_EQ(report.episodes, 2);
  EXPECT_EQ(report.steps, 5);

  const auto lines = open_episodes(file);
  EXPECT_EQ(format_of(*lines).title, "Lines");
  EXPECT_EQ(actions_of(*lines), actions);
  EXPECT_NE(inspect_text(*lines).find("move"), std::string::npos) << inspect_text(*lines);

  const auto kept = open_episodes(file, {.format = "lines", .step_filter = "idle(move, 1.5, none)"});
  EXPECT_EQ(kept->format_name(), "lines");
  EXPECT_EQ(kept->number(0), 1);
  EXPECT_EQ(actions_of(*kept), (Actions{{2, 3}, {4, 5}}));

  const ConvertReport back = convert_episodes(*lines, folder_.path() / "back", {.to = "rlds"});
  EXPECT_EQ(actions_of(*open_episodes(back.path)), actions) << "under the schema's name of the field";
  const ConvertReport own = convert_episodes(*lines, folder_.path() / "own", {.to = "rlds", .rename = false});
  EXPECT_ERROR(open_episodes(own.path)->field_index("action"), "move");
}

TEST_F(DataFormats, MessagesNameAllThatAreRegisteredOnce) {
  EXPECT_EQ(format_names(), "rlds, hdf5, lerobot or lines");
  EXPECT_ERROR(open_episodes(folder_.path(), {.format = "csv"}),
               "the format of robot data is auto, rlds, hdf5, lerobot or lines, not 'csv'");
  write_file_atomically(folder_.path() / "notes.txt", "x");
  EXPECT_ERROR(open_episodes(folder_.path() / "notes.txt"), "a .json manifest, a .lines file");
  EXPECT_ERROR(register_format({.name = "lines"}), "there is a format 'lines' already");
}

}  // namespace
}  // namespace cohort::data
