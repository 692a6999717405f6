/// The formats of robot data. One more is a folder below data/ and a word in its CMakeLists.txt, or register_format():
///
///   DataFormat format{.name = "lines", .title = "Lines", .contents = "a .lines file", .extensions = {".lines"}};
///   format.probe = …; format.open = …; format.write = …;
///   register_format(std::move(format));
///
/// Training, `cohort data` and recordings then read and write it. What a source alone knows of its format (the schema's
/// names of its fields, types of its metadata, numbers of its episodes) it says as an EpisodeSource.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

struct OpenSettings;
struct ConvertSettings;
struct ConvertReport;

/// Some episodes of a source, at least one.
struct EpisodePart {
  const EpisodeSource* source = nullptr;
  std::vector<std::int64_t> episodes;
};

/// Pictures that are going to be written; 0: none.
struct PictureSize {
  int height = 0, width = 0;
};

struct DataFormat {
  std::string name;                          ///< as users write it
  std::string title;                         ///< as people call it
  std::string contents;                      ///< what lies at such a path, for messages
  std::vector<std::string> extensions = {};  ///< of a data set that is a file, the usual one first; else it is a folder
  int precedence = 0;           ///< of several formats whose files lie at one path the one with the highest is opened
  bool composes_state = false;  ///< one vector holds what the robot measures: ConvertSettings.lerobot.state chooses it
  bool codes_pictures = false;  ///< pictures are stored as ConvertSettings.lerobot.images and vcodec say
  /// Whether a data set of this format lies at a path.
  std::function<bool(const std::filesystem::path&)> probe;
  /// What a path is instead, where it nearly is one, with the remedy; else "". May be missing.
  std::function<std::string(const std::filesystem::path&)> hint;
  /// Throws Error naming file and field for what cannot be read.
  std::function<std::unique_ptr<EpisodeSource>(const std::filesystem::path&, const OpenSettings&)> open;
  /// Throws Error for what would keep write() from its end. May be missing.
  std::function<void(const ConvertSettings&, PictureSize)> check;
  /// Writes a source's episodes to a path at which nothing is, whole or not at all, and fills the report.
  std::function<void(const EpisodeSource&, const std::vector<std::int64_t>&, const std::filesystem::path&,
                     const ConvertSettings&, ConvertReport&)>
      write;
  /// Writes parts of sets of this format as one, without coding pictures again, with names and tasks changed as the
  /// settings say. Missing where the format cannot.
  std::function<void(const std::vector<EpisodePart>&, const std::filesystem::path&, const ConvertSettings&,
                     ConvertReport&)>
      edit;
  /// Where a recording of this name lies in a folder.
  std::function<std::filesystem::path(const std::filesystem::path&, const std::string&)> recording_path;
};

/// In the order in which messages name them.
const std::vector<DataFormat>& formats();

/// Not while other threads use formats. Throws Error for a name that is taken.
void register_format(DataFormat added);

/// Throws Error for a name that is none, naming all; `what`: "data are converted to", "the format of robot data is".
const DataFormat& find_format(std::string_view name, std::string_view what = "the format of robot data is");

/// The format that a source was opened by. Throws Error for a source of none.
const DataFormat& format_of(const EpisodeSource& source);

/// The first that has edit().
const DataFormat& editable_format();

/// "rlds, hdf5 or lerobot"
std::string format_names();

}  // namespace cohort::data
