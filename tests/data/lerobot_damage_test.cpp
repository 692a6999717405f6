// LeRobot data sets that are damaged or not as their meta/ says: named, or left out by name.
#include <gtest/gtest.h>

#include "data/expect_error.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot_fixture.h"
#include "data/open_episodes.h"
#include "formats/video_writer.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

constexpr const char* kSecondTable = "data/chunk-000/file-001.parquet";
constexpr const char* kSecondVideo = "videos/observation.images.front/chunk-000/file-001.mp4";

/// Reads a number field of an episode.
void read_lerobot_field(const EpisodeSource& source, std::int64_t e, const char* name) {
  const std::size_t field = source.field_index(name);
  const auto episode = source.open(e);
  std::vector<double> values(static_cast<std::size_t>(episode->steps() * source.fields()[field].elements()));
  episode->read(field, 0, episode->steps(), std::span(values));
}

std::unique_ptr<EpisodeSource> open_all(const fs::path& path, const char* on_corrupt = "error") {
  return open_episodes(path, {.split = "all", .on_corrupt = on_corrupt, .index_cache = "never"});
}

TEST(LeRobotDamage, APageThatChangedIsNamedAndItsEpisodesCanBeLeftOut) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  std::string bytes = read_file(set / kSecondTable);
  bytes[100] = static_cast<char>(bytes[100] ^ 0x55);  // in the first page of the first column, action
  write_file_atomically(set / kSecondTable, bytes);
  const auto source = open_all(set);
  EXPECT_ERROR(read_lerobot_field(*source, 3, "action"), "file-001.parquet: the column action is damaged: ");
  read_lerobot_field(*source, 3, "observation.state");
  read_lerobot_field(*source, 0, "action");
  const auto rest = open_all(set, "skip");
  EXPECT_LT(rest->size(), 5);
  EXPECT_GE(rest->size(), 3);
  ASSERT_FALSE(rest->skipped().empty());
  EXPECT_NE(rest->skipped()[0].find("episode 3: "), std::string::npos) << rest->skipped()[0];
}

TEST(LeRobotDamage, ATableThatWasCutIsNamed) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  fs::resize_file(set / kSecondTable, 5000);
  EXPECT_ERROR(open_all(set), "file-001.parquet: no sound Parquet file: ");
  EXPECT_EQ(open_all(set, "skip")->size(), 3);
  fs::resize_file(set / kSecondTable, 0);
  EXPECT_ERROR(open_all(set), "file-001.parquet is empty (0 bytes)");
  fs::remove(set / kSecondTable);
  EXPECT_ERROR(open_all(set), "there is no file ");
}

TEST(LeRobotDamage, AMissingVideoIsNamedAndItsEpisodesCanBeLeftOut) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  fs::remove(set / kSecondVideo);
  EXPECT_ERROR(open_all(set), "there is no video " + (set / kSecondVideo).string());
  EXPECT_EQ(open_episodes(set)->size(), 4);  // train needs it not
  const auto rest = open_all(set, "skip");
  EXPECT_EQ(rest->size(), 4);
  ASSERT_EQ(rest->skipped().size(), 1u);
  EXPECT_NE(rest->skipped()[0].find("episode 4: "), std::string::npos) << rest->skipped()[0];
}

TEST(LeRobotDamage, AVideoThatIsTooShortIsNamedBeforeAnyStepIsRead) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v21");
  const auto video = [&](int e) {
    return set / format("videos/chunk-{0:03}/observation.images.front/episode_{0:06}.mp4", e);
  };
  const std::string whole = read_file(video(1));
  fs::copy_file(video(0), video(1), fs::copy_options::overwrite_existing);
  EXPECT_ERROR(open_all(set),
               "episode_000001.mp4 is too short: it ends at 0.700 s after 7 frames, but episode 1 has 9 steps");
  EXPECT_EQ(open_all(set, "skip")->size(), 1);
  write_file_atomically(video(1), whole);
  const auto source = open_all(set);
  std::string cut = read_file(video(0)), scratch;
  write_file_atomically(video(0), cut.substr(0, cut.size() / 2));
  EXPECT_ERROR(open_all(set), "episode_000000.mp4");
  EXPECT_ERROR(source->open(0)->image(source->field_index("observation.images.front"), 0, scratch),
               "episode_000000.mp4: ");
  write_file_atomically(video(0), "");
  EXPECT_ERROR(open_all(set), "episode_000000.mp4 is empty (0 bytes)");
  write_file_atomically(video(0), "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_ERROR(open_all(set), "episode_000000.mp4 is a Git LFS pointer: fetch the file itself with `git lfs pull`");
}

TEST(LeRobotDamage, AGitLfsPointerInPlaceOfATableIsNamed) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  write_file_atomically(set / kSecondTable, pointer);
  EXPECT_ERROR(open_all(set), "file-001.parquet is a Git LFS pointer: fetch the file itself with `git lfs pull`");
  write_file_atomically(set / "meta/info.json", pointer);
  EXPECT_ERROR(open_all(set), "info.json is a Git LFS pointer: ");
}

TEST(LeRobotDamage, RowsAreFoundByTheirOwnNumbersWhereMetaNamesAnotherFile) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  fs::rename(set / kSecondTable, set / "data/chunk-000/file-007.parquet");
  const auto source = open_all(set);
  ASSERT_EQ(source->size(), 5);
  for (std::int64_t e = 0; e < 5; ++e) expect_lerobot_episode(*source, e, e);
  EXPECT_EQ(open_all(set, "skip")->size(), 5);
}

TEST(LeRobotDamage, WhatAnEpisodeIsToldComesFromItsRowsWhereTheListOfEpisodesDoesNotSayIt) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v21");
  replace_in(set / "meta/episodes.jsonl", "\"tasks\": [\"open the drawer\"], ", "");
  const auto source = open_all(set);
  EXPECT_EQ(source->open(0)->metadata("language_instruction"), "put the cube into the bowl");
  EXPECT_EQ(source->open(1)->metadata("language_instruction"), "open the drawer");
}

TEST(LeRobotDamage, ListsEditedByHandNameTheLineAndWhatToWrite) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v21");
  const fs::path tasks = set / "meta/tasks.jsonl";
  write_file_atomically(tasks, "\xEF\xBB\xBF" + read_file(tasks));  // a byte order mark
  EXPECT_EQ(open_all(set)->open(1)->metadata("language_instruction"), "open the drawer");
  write_file_atomically(tasks, "{\n  \"task_index\": 0,\n  \"task\": \"open the drawer\"\n}\n");
  EXPECT_ERROR(open_all(set), "tasks.jsonl: line 1 is no JSON object, but '{': the file has one object on each line");
  fs::remove(tasks);
  const std::string lines = read_file(set / "meta/episodes.jsonl");
  write_file_atomically(set / "meta/episodes.jsonl", lines.substr(0, lines.find('\n') + 1));
  EXPECT_ERROR(open_all(set), "write \"total_episodes\": 1 there, and \"splits\": {\"train\": \"0:1\"}");
}

TEST(LeRobotDamage, TablesThatAreNotWhatMetaSaysAreRefused) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  fs::copy_file(set / "data/chunk-000/file-000.parquet", set / kSecondTable, fs::copy_options::overwrite_existing);
  EXPECT_ERROR(open_all(set), "has 22 rows, but meta/ lists episodes of 19 steps in it");
  // The right number of rows, of the other episode.
  const auto old = copy_of_lerobot(folder, "v21");
  const auto table = [&](int e) { return old / format("data/chunk-{0:03}/episode_{0:06}.parquet", e); };
  fs::rename(table(0), old / "other");
  fs::rename(table(1), table(0));
  fs::rename(old / "other", table(1));
  replace_in(old / "meta/episodes.jsonl", "\"length\": 7", "\"length\": 9");
  replace_in(old / "meta/episodes.jsonl", "\"length\": 9}\n{", "\"length\": 9 }\n{");
  replace_in(old / "meta/episodes.jsonl", "\"length\": 9}", "\"length\": 7}");
  const auto video = [&](int e) {
    return old / format("videos/chunk-{0:03}/observation.images.front/episode_{0:06}.mp4", e);
  };
  fs::rename(video(0), old / "other");  // as long as its episode is said to be
  fs::rename(video(1), video(0));
  fs::rename(old / "other", video(1));
  EXPECT_ERROR(open_all(old)->open(0), "a row of the episode has the episode_index 1");
}

TEST(LeRobotDamage, FeaturesThatAreNotReadAreNamedWithTheReason) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  replace_in(set / "meta/info.json", "\"observation.noisy\"", "\"observation.quiet\"");
  const auto source = open_all(set);
  const std::string all = join(source->left_out(), "\n");
  EXPECT_NE(all.find("observation.phase: its dtype complex64 is not read"), std::string::npos) << all;
  EXPECT_NE(all.find("observation.quiet: meta/info.json names it, but "), std::string::npos) << all;
  EXPECT_NE(all.find("observation.noisy: a column of the tables that meta/info.json does not name"), std::string::npos)
      << all;
  EXPECT_ERROR(source->field_index("observation.phase"), "holds 'observation.phase', but it is no field: its dtype");
  EXPECT_ERROR(source->field_index("observation.stat"), "did you mean 'observation.state'?");
}

TEST(LeRobotDamage, ShapesAndTypesThatTheTablesDoNotHaveAreRefused) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  const fs::path info = set / "meta/info.json";
  const std::string before = read_file(info);
  replace_in(info, "7\n", "6\n");  // of the action
  EXPECT_ERROR(read_lerobot_field(*open_all(set), 0, "action"),
               "the column action holds 49 values in 7 rows, which is not 6 in each");
  write_file_atomically(info, before);
  replace_in(info, "\"dtype\": \"float32\"", "\"dtype\": \"int64\"");
  EXPECT_ERROR(read_lerobot_field(*open_all(set), 0, "action"), "holds FLOAT, but meta/info.json says int64");
  write_file_atomically(info, before);
  replace_in(info, "64,\n    96", "48,\n    96");
  EXPECT_ERROR(open_all(set),
               "its pictures are 64 x 96, but meta/info.json says 48 x 96 (height x width) of "
               "observation.images.front");
}

TEST(LeRobotDamage, AVideoOfAnotherRateIsMatchedByNumberWhereItHasAFrameForEachStep) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v21");
  const fs::path video = set / "videos/chunk-001/observation.images.front/episode_000001.mp4";
  const auto source = open_all(set);
  const std::size_t front = source->field_index("observation.images.front");
  std::vector<std::string> frames(9);
  for (std::int64_t t = 0; t < 9; ++t) {
    std::string scratch;
    const StoredImage image = source->open(1)->image(front, t, scratch);
    frames[static_cast<std::size_t>(t)] = std::string(image.bytes);
  }
  const auto write = [&](int count) {
    fs::remove(video);
    VideoWriter writer(video, 96, 64, /*fps=*/30);
    for (int t = 0; t < count; ++t) {
      const std::string& frame = frames[static_cast<std::size_t>(t % 9)];
      writer.add({reinterpret_cast<const std::uint8_t*>(frame.data()), frame.size()});
    }
    writer.finish();
  };
  write(9);
  const auto squeezed = open_all(set);
  for (std::int64_t t = 0; t < 9; ++t) {
    std::string scratch;
    EXPECT_EQ(shown_number(squeezed->open(1)->image(front, t, scratch)), lerobot_begin(1) + t) << "step " << t;
  }
  // Without a frame for each step no step can be found: before anything is read.
  write(10);
  EXPECT_ERROR(open_all(set),
               "episode_000001.mp4 is too short: it ends at 0.333 s after 10 frames, but episode 1 has 9 "
               "steps, to 0.900 s");
}

TEST(LeRobotDamage, AFrameThatFfmpegPaintsOverIsAnErrorAndSoIsWhatIsMadeFromIt) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const fs::path video = folder.path() / "whole.mp4", damaged = folder.path() / "damaged.mp4";
  constexpr int kFrames = 24, kSide = 64;
  {
    VideoWriter writer(video, kSide, kSide, 10, {.key_every = 12, .independent_parts = true});
    std::vector<std::uint8_t> pixels(std::size_t{3} * kSide * kSide);
    for (int t = 0; t < kFrames; ++t) {
      for (std::size_t i = 0; i < pixels.size(); ++i)
        pixels[i] = static_cast<std::uint8_t>(
            (i / 3 % kSide * (i / 3 / kSide + 1) + std::size_t{9} * static_cast<std::size_t>(t)) % 251);
      writer.add(pixels);
    }
    writer.finish();
  }
  // Also over frames that nobody asks for. Bits that decode as others are no fault that FFmpeg could tell.
  const auto frames = [&](const fs::path& file, std::vector<std::string>& faults) {
    std::string pixels;
    for (int t = 0; t < kFrames; t += 3) {
      try {
        VideoFrames(0).read(file, 0.1 * t, 0.01, pixels);
      } catch (const Error& error) {
        faults.emplace_back(error.what());
      }
    }
  };
  std::vector<std::string> faults;
  frames(video, faults);
  EXPECT_TRUE(faults.empty()) << faults.front();
  const std::string bytes = read_file(video);
  for (std::size_t i = 1; i <= 12; ++i) {
    std::string changed = bytes;
    const std::size_t at = bytes.size() / 4 + i * bytes.size() / 18;
    for (std::size_t k = 0; k < 60; ++k)
      changed[at + k] = static_cast<char>(changed[at + k] ^ static_cast<char>(37 * k + 11 * i + 1));
    write_file_atomically(damaged, changed);
    frames(damaged, faults);
  }
  const auto has = [&](const char* part) {
    return std::any_of(faults.begin(), faults.end(),
                       [&](const std::string& f) { return f.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(has("damaged.mp4: the frame at ")) << faults.size();
  EXPECT_TRUE(has("is made from it: copy the video again"));
}

TEST(LeRobotDamage, TasksAreReadFromWhicheverListThereIsAndEachHasItsNumber) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v21");
  const std::string lines = read_file(set / "meta/tasks.jsonl");
  const auto told = [](const fs::path& path) {
    return std::string(open_all(path)->open(1)->metadata("language_instruction"));
  };
  const std::string before = told(set);
  EXPECT_EQ(before, lerobot_task(1));
  // A set of version 3 that has version 2's list, as one that was converted by half.
  const auto half = copy_of_lerobot(folder, "v3");
  fs::remove(half / "meta/tasks.parquet");
  EXPECT_EQ(told(half), lerobot_task(1)) << "meta/episodes says it, too";
  std::vector<std::string> left_out;
  EXPECT_EQ(open_all(half)->metadata_types(1, left_out).front().name, "language_instruction")
      << "it is written by who converts: no field of the steps says it";
  write_file_atomically(half / "meta/tasks.jsonl", lines);
  const auto source = open_all(half);
  std::string text(source->open(1)->text(source->field_index("task"), 0));
  EXPECT_EQ(text, lerobot_task(1));
  // The task of an episode as a text, not in a list.
  replace_in(set / "meta/episodes.jsonl", "[\"open the drawer\"]", "\"pull it\"");
  EXPECT_EQ(told(set), "pull it");
  replace_in(set / "meta/tasks.jsonl", "\"task_index\": 1", "\"task_index\": 0");
  EXPECT_ERROR(open_all(set), "task_index 0 stands there twice, the first time for 'put the cube into the bowl'");
}

TEST(LeRobotDamage, AnInfoThatCannotBeIsRefusedByItsKey) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  const fs::path info = set / "meta/info.json";
  const std::string before = read_file(info);
  const std::vector<std::array<std::string, 3>> faults{
      {"v3.0", "v1.6", "codebase_version is v1.6; read are v2.0, v2.1 and v3: convert the data with LeRobot's"},
      {"v3.0", "v4.0", "codebase_version is v4.0; read are v2.0, v2.1 and v3: it is newer than this version of Cohort"},
      {"\"fps\": 10", "\"fps\": 0", "fps is 0, not a number above 0"},
      {"\"total_episodes\": 5", "\"total_episodes\": 6", "total_episodes is 6, but meta/episodes lists 5 episodes"},
      {"\"4:5\"", "\"4:9\"", "the split val is \"4:9\"; it is FIRST:END within the 5 episodes"},
      {"{file_index:03d}.parquet", "{file:03d}.parquet", "a path names {file:03d}, which is not known"},
      {"\"features\"", "\"featurs\"", "it names no features"},
      {"\"dtype\": \"float32\"", "\"type\": \"float32\"", "the feature action has no dtype"},
      {"{\n", "\n", "is no JSON: look for a comma that is missing or one too many"},
      {"\"codebase_version\"", ",\"codebase_version\"", "info.json: line 2 is no JSON"}};
  for (const auto& [from, to, said] : faults) {
    write_file_atomically(info, before);
    replace_in(info, from, to);
    EXPECT_ERROR(open_all(set), said);
  }
  fs::remove_all(set / "meta/episodes");
  write_file_atomically(info, before);
  EXPECT_ERROR(open_all(set), "there is no .parquet file in ");
}

TEST(LeRobotDamage, WhateverByteChangesTheOnlyAnswerIsAnError) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  std::uint64_t random = 20261126;
  const auto next = [&](std::size_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((random >> 33) % below);
  };
  int refused = 0;
  for (const char* file : {kSecondTable, kSecondVideo, "meta/episodes/chunk-000/file-000.parquet", "meta/tasks.parquet",
                           "meta/info.json"}) {
    const std::string sound = read_file(set / file);
    for (int k = 0; k < 40; ++k) {
      std::string bytes = sound;
      for (std::size_t changes = 1 + next(3); changes > 0; --changes)
        bytes[next(bytes.size())] = static_cast<char>(next(256));
      if (k % 8 == 0) bytes.resize(next(bytes.size()));
      write_file_atomically(set / file, bytes);
      try {
        const auto source = open_all(set);
        std::string scratch;
        for (std::size_t f = 0; f < source->fields().size(); ++f) {
          const auto episode = source->open(source->size() - 1);
          if (source->fields()[f].kind == StepKind::kImage)
            episode->image(f, 0, scratch);
          else if (source->fields()[f].kind == StepKind::kText)
            episode->text(f, 0);
          else
            read_lerobot_field(*source, source->size() - 1, source->fields()[f].name.c_str());
        }
      } catch (const Error&) {
        ++refused;
      }
    }
    write_file_atomically(set / file, sound);
  }
  EXPECT_GT(refused, 50);
}

TEST(LeRobotDamage, AFileOfASetOrAFolderOfSetsNamesWhatToName) {
  EXPECT_ERROR(open_episodes(fixture("lerobot/v3") / kSecondTable),
               "is one file of a LeRobot data set: name the set's");
  EXPECT_ERROR(open_episodes(fixture("lerobot")), "holds LeRobot data sets: name one of ");
  EXPECT_ERROR(open_episodes(fixture("arm"), {.format = "lerobot"}), "has no meta/info.json: name the folder");
  EXPECT_ERROR(open_episodes(fixture("arm"), {.format = "lerobt"}), "auto, rlds, hdf5 or lerobot, not 'lerobt'");
}

TEST(LeRobotDamage, PathsAreFilledAsPythonFormatsThem) {
  const std::vector<std::pair<std::string, std::int64_t>> numbers{{"chunk_index", 2}, {"file_index", 1234}};
  EXPECT_EQ(fill_path("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4", numbers, "top", "x"),
            "videos/top/chunk-002/file-1234.mp4");
  EXPECT_EQ(fill_path("{chunk_index}", numbers, "", "x"), "2");
  EXPECT_ERROR(fill_path("a{b", numbers, "", "info.json"), "info.json: a path has { without }");
}

}  // namespace
}  // namespace cohort::data
