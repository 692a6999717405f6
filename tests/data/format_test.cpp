// One more format of robot data: a registered one is written, opened, converted and inspected by what does it for all.
#include "data/format.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "data/conversion.h"
#include "data/convert.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/inspect.h"
#include "data/open_episodes.h"
#include "data/toy_set.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

using Actions = std::vector<std::vector<double>>;  // of each episode's steps

class LineEpisode final : public Episode {
 public:
  explicit LineEpisode(const std::vector<double>& actions) : actions_(actions) {}
  std::int64_t steps() const override { return static_cast<std::int64_t>(actions_.size()); }
  void read(std::size_t, std::int64_t begin, std::int64_t, std::span<float> out) const override { copy(begin, out); }
  void read(std::size_t, std::int64_t begin, std::int64_t, std::span<double> out) const override { copy(begin, out); }
  void read(std::size_t, std::int64_t begin, std::int64_t, std::span<std::int64_t> out) const override {
    copy(begin, out);
  }
  std::string_view text(std::size_t, std::int64_t) const override { return ""; }
  StoredImage image(std::size_t, std::int64_t, std::string&) const override { return {}; }
  std::string_view metadata(std::string_view) const override { return ""; }
  std::string location() const override { return "lines"; }

 private:
  template <class T>
  void copy(std::int64_t begin, std::span<T> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(actions_[static_cast<std::size_t>(begin) + i]);
  }
  const std::vector<double>& actions_;
};

/// A text file: a line per episode, with the action of each step, which this format calls `move`.
class LineEpisodes final : public EpisodeSource {
 public:
  explicit LineEpisodes(const fs::path& file) : name_(file.string()) {
    std::istringstream text(read_file(file));
    for (std::string line; std::getline(text, line);) {
      std::istringstream numbers(line);
      std::vector<double>& actions = actions_.emplace_back();
      for (double action; numbers >> action;) actions.push_back(action);
    }
  }
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(actions_.size()); }
  const std::vector<StepField>& fields() const override { return fields_; }
  const std::vector<std::string>& metadata_names() const override { return none_; }
  std::int64_t steps(std::int64_t e) const override { return open(e)->steps(); }
  std::shared_ptr<const Episode> open(std::int64_t e) const override {
    return std::make_shared<LineEpisode>(actions_[static_cast<std::size_t>(e)]);
  }
  std::int64_t bytes_when_open(std::int64_t, std::span<const std::size_t>) const override { return 0; }
  std::uint64_t content_hash() const override { return 1; }
  std::int64_t bytes_held() const override { return 0; }
  const std::vector<std::string>& skipped() const override { return none_; }
  std::string_view format_name() const override { return "lines"; }
  std::int64_t number(std::int64_t e) const override { return e + 1; }
  std::string schema_name(const std::string& field) const override { return field == "move" ? "action" : field; }

 private:
  std::string name_;
  Actions actions_;
  std::vector<StepField> fields_{{.name = "move", .shape = {1}}};
  std::vector<std::string> none_;
};

void write_lines(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, const fs::path& out,
                 const ConvertSettings& settings, ConvertReport& report) {
  std::size_t action = source.fields().size();
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const std::string name = schema_name(field_to_write(source, f, settings.rename).name);
    if (name == "action")
      action = f;
    else
      report.left_out.push_back(name + ": lines hold actions only");
  }
  COHORT_THROW_UNLESS(action < source.fields().size(), "{} has no action", source.name());
  std::string text;
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    std::vector<double> actions(static_cast<std::size_t>(episode->steps()));
    episode->read(action, 0, episode->steps(), std::span(actions));
    for (const double a : actions) text += format("{} ", a);
    text += "\n";
    count_converted(*episode, episodes.size(), out, report);
  }
  write_file_atomically(out, text);
  report.path = out;
}

class DataFormats : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_format(
        {.name = "lines",
         .title = "Lines",
         .contents = "a .lines file",
         .extensions = {".lines"},
         .probe = [](const fs::path& path) { return path.extension() == ".lines"; },
         .open = [](const fs::path& path, const OpenSettings&) { return std::make_unique<LineEpisodes>(path); },
         .write = write_lines,
         .recording_path = [](const fs::path& out, const std::string& name) { return out / (name + ".lines"); }});
  }
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
