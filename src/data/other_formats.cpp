#include "data/other_formats.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/command_line.h"
#include "core/format.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

struct Other {
  std::string_view ending;
  const char* what;
  const char* remedy;
};

constexpr const char* kDemos =
    "write its episodes as HDF5 first, a group data/demo_0, data/demo_1, ... for each, with actions and obs/NAME, a "
    "row per "
    "step";

constexpr std::array kOthers{
    Other{".npy", "a NumPy array", kDemos},
    Other{".bag", "a ROS bag", kDemos},
    Other{".mcap", "a ROS bag (MCAP)", kDemos},
    Other{".db3", "a ROS 2 bag", kDemos},
    Other{".pkl", "a pickle", kDemos},
    Other{".pickle", "a pickle", kDemos},
    Other{".pt", "a file of PyTorch", kDemos},
    Other{".pth", "a file of PyTorch", kDemos},
    Other{".mat", "a file of MATLAB", kDemos},
    Other{".csv", "a CSV table", "`cohort train informer` and `cohort train regressor` read it"},
    Other{".zip", "an archive", "unpack it and name what is in it"},
    Other{".gz", "an archive", "unpack it and name what is in it"},
    Other{".tgz", "an archive", "unpack it and name what is in it"},
    Other{".tar", "an archive", "unpack it and name what is in it"}};

/// The command that runs `body` with the names of what is read and of what is written.
std::string python(std::string_view body, const std::string& from) {
  std::string name = from;
  while (name.ends_with('/')) name.pop_back();
  return format("python3 -c {} {} {}", shell_quoted(std::string(body)), shell_quoted(name),
                shell_quoted(name + ".hdf5"));
}

bool is_zarr(const fs::path& path) {
  std::error_code error;
  const std::string name = path.filename().string();
  if (name.ends_with(".zarr.zip")) return true;
  return std::ranges::any_of(std::array{".zgroup", ".zarray", "zarr.json"},
                             [&](const char* file) { return fs::exists(path / file, error); });
}

std::string of_one(const fs::path& path) {
  const std::string name = path.string();
  if (is_zarr(path))
    return format(
        "{} is a Zarr store, which is not read; write it as HDF5 first: {}", name,
        python("import sys, zarr, h5py; c = lambda z, h: ([h.create_dataset(k, data=z[k][:]) for k in z.array_keys()], "
               "[c(z[k], h.create_group(k)) for k in z.group_keys()]); "
               "c(zarr.open(sys.argv[1], mode=\"r\"), h5py.File(sys.argv[2], \"w\"))",
               name));
  if (name.ends_with(".npz"))
    return format(
        "{} is an archive of NumPy arrays, which is not read; write the arrays as HDF5 first, observations as "
        "obs/NAME: {}",
        name,
        python(
            "import sys, os, glob, numpy, h5py; p = sys.argv[1]; f = h5py.File(sys.argv[2], \"w\"); "
            "[f.create_dataset(f\"data/demo_{i}/\" + (k if \"action\" in k else \"obs/\" + k), data=a[k]) for i, a in "
            "enumerate(map(numpy.load, sorted(glob.glob(p + \"/*.npz\")) if os.path.isdir(p) else [p])) for k in a]",
            name));
  for (const Other& other : kOthers)
    if (name.ends_with(other.ending)) return format("{} is {}, which is not read: {}", name, other.what, other.remedy);
  return "";
}

}  // namespace

std::string other_format(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error) || is_zarr(path)) return of_one(path);
  // The first file by name that is known stands for all; names of ROS 2's bags are those of their files.
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, error)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  const auto is_record = [](const fs::path& file) {
    return file.filename().string().find(".tfrecord") != std::string::npos;
  };
  if (std::ranges::any_of(files, is_record)) return "";
  for (const fs::path& file : files) {
    if (file.extension() == ".npz") {
      std::string said = of_one(file);
      const std::string whole = path.string(), one = file.string();
      for (std::size_t at; (at = said.find(one)) != std::string::npos;) said.replace(at, one.size(), whole);
      return said;
    }
    if (const std::string said = of_one(file); !said.empty() && !fs::is_directory(file, error)) return said;
  }
  for (const fs::path& file : files)
    if (is_zarr(file)) return of_one(file);
  return "";
}

}  // namespace cohort::data
