// RDT's fine-tuning data: an HDF5 file per episode, compressed pictures below observations/images, the list of
// instructions beside the files (fixtures/make_rdt_fixture.py).
#include <filesystem>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "data/fixture_folder.h"
#include "data/images/codec.h"
#include "data/instruction_texts.h"
#include "data/open_episodes.h"
#include "data/robot_windows.h"
#include "data/sample_memory.h"
#include "support/fresh_folder.h"

namespace cohort::data {
namespace {

TEST(RdtEpisodes, PicturesNumbersAndInstructionsAreRead) {
  const auto source = open_episodes(fixture("rdt").string(), {});
  const auto expected = parse_json<nlohmann::json>(read_file(fixture("rdt_expected.json")));
  ASSERT_EQ(source->size(), 2);
  const std::size_t high = source->field_index("observations/images/cam_high"),
                    wrist = source->field_index("observations/images/cam_right_wrist"),
                    qpos = source->field_index("observations/qpos");
  EXPECT_EQ(source->fields()[high].kind, StepKind::kImage);
  for (std::int64_t e = 0; e < 2; ++e) {
    const auto& facts = expected[static_cast<std::size_t>(e)];
    const auto episode = source->open(e);
    ASSERT_EQ(episode->steps(), facts.at("steps").get<std::int64_t>());
    std::string scratch;
    Image image;
    const StoredImage last = episode->image(high, episode->steps() - 1, scratch);
    EXPECT_EQ(last.encoding, ImageEncoding::kJpegOrPng);
    decode_image(last.bytes, 3, image);
    EXPECT_EQ(image.pixels, facts.at("last").get<std::vector<std::uint8_t>>());
    decode_image(episode->image(wrist, 2, scratch).bytes, 3, image);
    ASSERT_EQ(image.pixels.size(), 16u * 24 * 3);
    for (const std::uint8_t pixel : image.pixels) ASSERT_NEAR(pixel, facts.at("flat").get<int>(), 2);
    std::vector<float> row(14);
    episode->read(qpos, episode->steps() - 1, 1, row);
    EXPECT_EQ(row, facts.at("qpos").get<std::vector<float>>());
  }
  EXPECT_TRUE(has_instructions(*source, "language_instruction"));
  EXPECT_EQ(distinct_instructions(*source, "language_instruction", 1), std::vector<std::string>{"hand over the pan"});
}

TEST(RdtEpisodes, BecomeWindowsWithTheGrippersRescaled) {
  RobotDataSettings settings;
  settings.paths = {fixture("rdt").string()};
  settings.actions = {"action[0:6]", "action[6:7] | scale(0.5)"};
  settings.action_normalization = {"none"};
  settings.proprio = {"observations/qpos[0:6]", "observations/qpos[6:7] | scale(0.5)"};
  settings.images = {"observations/images/cam_high", "observations/images/cam_right_wrist"};
  settings.image_transforms = {"resize(8, 8)"};
  settings.instruction = "language_instruction";
  settings.statistics_cache = settings.index_cache = "never";
  const RobotWindows windows(settings);
  EXPECT_EQ(windows.size(), 13);
  EXPECT_EQ(windows.instructions(), std::vector<std::string>{"hand over the pan"});
  const Sample sample(windows, 12, 0);
  const auto expected = parse_json<nlohmann::json>(read_file(fixture("rdt_expected.json")));
  const auto proprio = sample.floats("proprio");
  EXPECT_FLOAT_EQ(proprio[13], 0.5f * expected[1].at("qpos")[6].get<float>()) << "the newest frame's gripper";
}

TEST(RdtEpisodes, PicturesOfOpenCvGetTheirRedAndBlueBack) {
  // The reference decodes by OpenCV and takes its B, G, R for R, G, B: that is what was recorded.
  RobotDataSettings settings;
  settings.paths = {fixture("rdt").string()};
  settings.actions = {"action"};
  settings.action_normalization = {"none"};
  settings.images = {"observations/images/cam_high"};
  settings.image_transforms = {"resize(10, 14)"};
  settings.observation_steps = 1;
  settings.statistics_cache = settings.index_cache = "never";
  const auto stored = parse_json<nlohmann::json>(read_file(fixture("rdt_expected.json")))[1]
                          .at("last")
                          .get<std::vector<std::uint8_t>>();
  for (const char* colours : {"rgb", "bgr"}) {
    SCOPED_TRACE(colours);
    settings.image_colours = colours;
    const RobotWindows windows(settings);
    const Sample sample(windows, windows.size() - 1, 0);
    const auto& pixels = sample.memory[sample.field("image/observations/images/cam_high")];
    ASSERT_EQ(pixels.size(), stored.size());
    const bool swapped = settings.image_colours == "bgr";
    EXPECT_EQ(windows.summary().find("data.image_colours=bgr puts them right") != std::string::npos, !swapped)
        << "whoever leaves it out is told what there is\n"
        << windows.summary();
    for (std::size_t i = 0; i < stored.size(); ++i)
      ASSERT_EQ(static_cast<int>(pixels[i]), static_cast<int>(stored[swapped ? i - i % 3 + 2 - i % 3 : i])) << i;
  }
  settings.image_colours = "grb";
  EXPECT_NE(message_of([&] { RobotWindows{settings}; }).find("image_colours is rgb or bgr, not 'grb'"),
            std::string::npos);
  // The reference's own data are such.
  const auto agilex = parse_json<nlohmann::json>(read_file(COHORT_SOURCE_DIR "/configs/rdt_agilex.json"));
  EXPECT_EQ(agilex.at("data").at("image_colours"), "bgr");
}

TEST(RdtEpisodes, AListWithoutAnInstructionIsNamed) {
  const auto folder = test::fresh_folder("rdt_episodes");
  std::filesystem::copy_file(fixture("rdt") / "task/episode_0.hdf5", folder / "episode_0.hdf5");
  write_file_atomically(folder / "expanded_instruction_gpt-4-turbo.json", R"({"simplified_instruction": ["x"]})");
  EXPECT_NE(message_of([&] { (void)open_episodes(folder.string(), {}); }).find("has no text instruction"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::data
