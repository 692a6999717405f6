// What is opened at a path, and what is said about a folder that holds something else than was thought.
#include "data/open_episodes.h"

#include <fstream>

#include <gtest/gtest.h>

#include "data/disjoint.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/hdf5/metadata.h"
#include "data/local_path.h"
#include "data/robot_windows.h"
#include "data/toy_set.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

class OpenEpisodes : public ::testing::Test {
 protected:
  /// folder/NAME/toy/1.0.0 with two episodes.
  fs::path set(const std::string& name) const {
    return write_toy_set(folder_.path() / name, {{.fields = {{"action", {1, 2, 3}}}}, {.fields = {{"action", {4, 5}}}}},
                         {{"action", 1}});
  }
  OwnFolder folder_;
};

TEST_F(OpenEpisodes, ACopyWithoutItsInfoSaysWhatIsMissing) {
  const fs::path version = set("copy");
  fs::remove(version / "dataset_info.json");
  for (const fs::path& path : {version, version.parent_path(), folder_.path() / "copy"}) {
    EXPECT_ERROR(open_episodes(path), version.string() + " holds TFRecord files, but no dataset_info.json");
    EXPECT_ERROR(open_episodes(path, {.format = "rlds"}), "copy it (and features.json) from where");
  }
  const fs::path other = set("other");
  fs::remove(other / "features.json");
  EXPECT_ERROR(open_episodes(other), other.string() + " has dataset_info.json, but no features.json");
}

TEST_F(OpenEpisodes, AFolderOfSeveralSetsListsThem) {
  const fs::path first = set("one"), second = set("two");
  fs::rename(first.parent_path(), folder_.path() / "sets_first");
  fs::rename(second.parent_path(), folder_.path() / "sets_second");
  fs::create_directories(folder_.path() / "sets");
  fs::rename(folder_.path() / "sets_first", folder_.path() / "sets/first");
  fs::rename(folder_.path() / "sets_second", folder_.path() / "sets/second");
  const fs::path sets = folder_.path() / "sets";
  EXPECT_ERROR(open_episodes(sets), sets.string() + " holds several RLDS data sets: name one of " +
                                        (sets / "first/1.0.0").string() + ", " + (sets / "second/1.0.0").string());
  EXPECT_EQ(open_episodes(sets / "second")->size(), 2) << "a set under another name than its own";
}

TEST_F(OpenEpisodes, AddressesAreRefusedWithTheCommandThatCopies) {
  EXPECT_ERROR(open_episodes("gs://gresearch/robotics/droid"), "is an address, and only local files are read");
  EXPECT_ERROR(open_episodes("gs://gresearch/robotics/droid"), "gsutil -m cp -r gs://gresearch/robotics/droid FOLDER");
  EXPECT_ERROR(open_episodes("s3://bucket/lift.hdf5", {.format = "hdf5"}), "aws s3 cp --recursive");
  EXPECT_ERROR(open_episodes("https://example.org/a.hdf5"), "curl -LO https://example.org/a.hdf5");
  EXPECT_ERROR(open_episodes("file:///data/droid"), "write the path without file://");
  EXPECT_ERROR(open_episodes(folder_.path() / "a:b"), "there is no file or folder");
  EXPECT_EQ(message_of([] { refuse_address("C:/data"); }), "");
}

TEST_F(OpenEpisodes, FoldersAndFilesThatAreNeitherSaySo) {
  fs::create_directories(folder_.path() / "nothing");
  EXPECT_ERROR(open_episodes(folder_.path() / "nothing"), "no dataset_info.json in");
  EXPECT_ERROR(open_episodes(folder_.path() / "nothing"), "there is no .hdf5 or .h5 file in it either");
  const fs::path version = set("a");
  EXPECT_ERROR(open_episodes(version / "toy-train.tfrecord-00000-of-00001"),
               "is one shard of an RLDS data set: name its folder, " + version.string());
}

TEST_F(OpenEpisodes, OtherFormatsAreNamedWithWhatMakesThemReadable) {
  const auto file = [&](const std::string& name) {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path;
  };
  const std::string folder = folder_.path().string();
  file("pusht.zarr/.zgroup");
  EXPECT_ERROR(open_episodes(folder_.path() / "pusht.zarr"),
               "pusht.zarr is a Zarr store, which is not read; write it as HDF5");
  EXPECT_ERROR(open_episodes(folder_.path() / "pusht.zarr/"), folder + "/pusht.zarr " + folder + "/pusht.zarr.hdf5");
  EXPECT_ERROR(open_episodes(file("umi.zarr.zip")), "is a Zarr store");
  EXPECT_ERROR(open_episodes(file("one.npz")), folder + "/one.npz " + folder + "/one.npz.hdf5");
  file("many/b.npz");
  file("many/a.npz");
  EXPECT_ERROR(open_episodes(folder_.path() / "many"), folder + "/many " + folder + "/many.hdf5");
  EXPECT_ERROR(open_episodes(file("run.bag")),
               "run.bag is a ROS bag, which is not read: write its episodes as HDF5 first");
  file("bag/metadata.yaml");
  file("bag/bag_0.db3");
  EXPECT_ERROR(open_episodes(folder_.path() / "bag"), "bag/bag_0.db3 is a ROS 2 bag");
  EXPECT_ERROR(open_episodes(file("demos.pkl")), "is a pickle");
  EXPECT_ERROR(open_episodes(file("a.csv")), "`cohort train informer`");
}

TEST_F(OpenEpisodes, LinksThatLeadNowhereAreNoDataUnlessTheirNameSaysSo) {
  const fs::path arm = folder_.path() / "arm", mixed = folder_.path() / "mixed";
  fs::create_directories(mixed / "below");
  fs::copy(fixture("arm"), arm, fs::copy_options::recursive);
  for (const fs::path& folder : {folder_.path(), arm, mixed}) {
    fs::create_symlink("loop", folder / "loop");
    fs::create_symlink("not there", folder / "lost");
  }
  fs::create_directory_symlink("..", mixed / "below/up");
  EXPECT_GT(open_episodes(arm)->size(), 0);
  EXPECT_GT(open_episodes(folder_.path())->size(), 0) << "the only data set in a folder";
  EXPECT_ERROR(open_episodes(mixed), "there is no .hdf5 or .h5 file in it either");
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  fs::copy_file(fixture("masks.hdf5"), mixed / "masks.hdf5");
  EXPECT_EQ(open_episodes(mixed)->size(), 2);
  fs::create_symlink("user@host.17", mixed / ".#masks.hdf5");
  EXPECT_EQ(open_episodes(mixed)->size(), 2) << "an editor's lock";
  fs::create_symlink("b.hdf5", mixed / "b.hdf5");
  EXPECT_ERROR(open_episodes(mixed),
               "b.hdf5: is a link that leads nowhere (Too many levels of symbolic links): remove");
  fs::remove(mixed / "b.hdf5");
  fs::create_symlink("gone.h5", mixed / "c.h5");
  EXPECT_ERROR(open_episodes(mixed), "c.h5: is a link that leads nowhere (No such file or directory)");
}

TEST_F(OpenEpisodes, AMaskThatIsAskedForByNameIsThereOrAnError) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const fs::path masks = fixture("masks.hdf5"), without = fixture("libero.hdf5");
  EXPECT_EQ(open_episodes(masks, {.split = "train"})->size(), 2);
  EXPECT_EQ(open_episodes(masks)->size(), 2) << "without a name: mask/train";
  EXPECT_EQ(open_episodes(without)->size(), 2) << "without a name, in a file without masks: all";
  EXPECT_EQ(open_episodes(without, {.split = "all"})->size(), 2);
  EXPECT_ERROR(open_episodes(without, {.split = "train"}), "has no /mask/train, and no other masks");
  EXPECT_ERROR(open_episodes(masks, {.split = "best"}), "its masks are once, train, twice, valid");
  EXPECT_ERROR(open_episodes(masks, {.split = "twice"}), "/mask/twice names demo_0 more than once");
}

TEST_F(OpenEpisodes, SetsWithoutAnEpisodeInCommonAreDisjointWhateverTheirPaths) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  const fs::path link = folder_.path() / "link.hdf5";
  fs::create_symlink(fixture("masks.hdf5"), link);
  const auto windows = [](const fs::path& path, const std::string& split, const std::string& actions) {
    RobotDataSettings settings;
    settings.paths = {path.string()};
    settings.splits = {split};
    settings.actions = {actions};
    settings.action_normalization = {"none"};
    settings.statistics_cache = "never";
    return RobotWindows(settings);
  };
  const RobotWindows train(windows(fixture("masks.hdf5"), "train", "actions"));
  EXPECT_ERROR(check_disjoint(train, windows(link, "valid", "actions")),
               "1 of 2 episodes that validate are also trained on, the first is");
  EXPECT_ERROR(check_disjoint(train, windows(link, "valid", "actions")), "masks.hdf5: /data/demo_1;");
  const fs::path arm = fixture("arm");
  EXPECT_EQ(
      message_of([&] { check_disjoint(windows(arm, "train[:60%]", "action"), windows(arm, "train[60%:]", "action")); }),
      "");
  EXPECT_ERROR(check_disjoint(windows(arm, "train[:60%]", "action"), windows(arm, "train", "action")),
               "3 of 5 episodes that validate are also trained on");
}

}  // namespace
}  // namespace cohort::data
