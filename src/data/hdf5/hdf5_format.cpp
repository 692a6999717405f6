#include "data/hdf5/hdf5_format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "data/conversion.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/open_episodes.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

class ToHdf5 {
 public:
  ToHdf5(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, const ConvertSettings& settings,
         ConvertReport& report)
      : env_args_(settings.env_args.empty() ? kNoEnvironment : settings.env_args) {
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      const StepField field = field_to_write(source, f, settings.rename);
      if (field.kind == StepKind::kNumber && field.elements() < 0)
        report.left_out.push_back(format("{}: its size varies from step to step", field.name));
      else if (field.kind != StepKind::kNumber && !field.fault().empty())
        report.left_out.push_back(format("{}: it {}", field.name, field.fault()));
      else
        fields_.push_back({f, field, settings.rename ? robomimic_name(field.name) : field.name, ""});
    }
    name_metadata(source, episodes, report);
  }

  /// Of the group data, before the first demo.
  void write_head(Hdf5Writer& out) const {
    bool has_environment = false;
    for (const auto& [name, text, type] : head_) {
      out.attribute(name, text, type);
      has_environment = has_environment || name == "env_args";
    }
    if (!has_environment) out.attribute("env_args", env_args_);
    std::string texts;
    for (const Field& field : fields_)
      if (!field.attribute.empty()) texts += (texts.empty() ? "" : "\n") + field.field.name;
    if (!texts.empty()) out.attribute(head_name(kStepTexts), texts);
  }

  void write(const Episode& episode, Hdf5Writer& out) const {
    out.begin_demo(episode.steps());
    for (const Field& field : fields_) {
      if (field.field.kind == StepKind::kText)
        write_texts(episode, field, out);
      else if (field.field.kind == StepKind::kImage)
        write_images(episode, field, out);
      else
        write_numbers(episode, field, out);
    }
    for (const auto& [metadata, name] : metadata_)
      out.attribute(name, std::string(episode.metadata(metadata.name)), metadata.type);
  }

 private:
  struct Field {
    std::size_t index;
    StepField field;
    std::string name;       // in the new data set
    std::string attribute;  // of the demo, for a text that is the same in all steps
  };
  struct HeadAttribute {
    std::string name, text, type;
  };

  /// Finds names for the demo's attributes, and what the group data says about all of them. Goes through the episodes
  /// before the first is written: a text that changes in one of them is a data set in all.
  void name_metadata(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, ConvertReport& report) {
    const std::vector<MetadataType> all = metadata_to_write(source, episodes, report);
    std::vector<std::string> taken{"num_samples"};
    const auto is_free = [&](const std::string& name) {
      return std::find(taken.begin(), taken.end(), name) == taken.end();
    };
    for (Field& field : fields_) {
      if (field.field.kind != StepKind::kText || !is_free(attribute_name(field.field.name))) continue;
      field.attribute = attribute_name(field.field.name);
      taken.push_back(field.attribute);
    }
    for (const MetadataType& metadata : all)
      if (const std::string name = head_name(metadata.name); !name.empty())
        head_.push_back({name, std::string(source.open(episodes.front())->metadata(metadata.name)), metadata.type});
    for (const std::int64_t e : episodes) {
      const auto episode = source.open(e);
      for (Field& field : fields_)
        if (!field.attribute.empty() && changes(*episode, field.index)) field.attribute.clear();
      for (const MetadataType& metadata : all)
        std::erase_if(head_, [&](const HeadAttribute& head) {
          return head.name == head_name(metadata.name) && head.text != episode->metadata(metadata.name);
        });
    }
    for (const Field& field : fields_)
      if (field.field.kind == StepKind::kText && field.attribute.empty())
        report.left_out.push_back(
            format("{}: written as a data set of texts, for it changes within an episode; cohort does not read such",
                   field.field.name));
    for (const MetadataType& metadata : all) {
      const std::string head = head_name(metadata.name);
      if (std::any_of(head_.begin(), head_.end(), [&](const HeadAttribute& h) { return h.name == head; })) continue;
      std::string name = attribute_name(metadata.name);
      if (!is_free(name)) name.insert(0, kMetadataAttribute);
      while (!is_free(name)) name += '_';
      taken.push_back(name);
      metadata_.emplace_back(metadata, std::move(name));
    }
  }

  /// The attribute of `data` that a metadata was; empty where it was none.
  static std::string head_name(const std::string& metadata) {
    if (metadata.starts_with("data/")) return metadata.substr(5);
    return metadata == "episode_metadata/data_env_args" ? "env_args" : "";
  }

  static bool changes(const Episode& episode, std::size_t field) {
    for (std::int64_t t = 1; t < episode.steps(); ++t)
      if (episode.text(field, t) != episode.text(field, 0)) return true;
    return false;
  }

  static void write_texts(const Episode& episode, const Field& field, Hdf5Writer& out) {
    if (!field.attribute.empty()) return out.attribute(field.attribute, std::string(episode.text(field.index, 0)));
    std::vector<std::string> texts;
    for (std::int64_t t = 0; t < episode.steps(); ++t) texts.emplace_back(episode.text(field.index, t));
    out.add_texts(field.name, texts);
  }

  static void write_images(const Episode& episode, const Field& field, Hdf5Writer& out) {
    Image image;
    std::string scratch;
    std::vector<std::uint8_t> frames;
    std::array<std::int64_t, 4> shape{episode.steps(), 0, 0, 0};
    for (std::int64_t t = 0; t < episode.steps(); ++t) {
      const StoredImage stored = episode.image(field.index, t, scratch);
      COHORT_THROW_UNLESS(!stored.bytes.empty(), "{}: {} has no image in step {}, which an HDF5 array cannot hold",
                          episode.location(), field.field.name, t);
      to_image(stored, image);
      if (t == 0) shape = {episode.steps(), image.height, image.width, image.channels};
      COHORT_THROW_UNLESS(image.height == shape[1] && image.width == shape[2] && image.channels == shape[3],
                          "{}: the images of {} change their size in step {}, which an HDF5 array cannot hold",
                          episode.location(), field.field.name, t);
      frames.insert(frames.end(), image.pixels.begin(), image.pixels.end());
    }
    out.add(field.name, make_view(frames.data(), ElementType::kUInt8, shape), true);
  }

  static void write_numbers(const Episode& episode, const Field& field, Hdf5Writer& out) {
    std::vector<std::int64_t> shape{episode.steps()};
    shape.insert(shape.end(), field.field.shape.begin(), field.field.shape.end());
    const auto count = static_cast<std::size_t>(episode.steps() * field.field.elements());
    const auto floats = [&](auto sample, ElementType type) {
      std::vector<decltype(sample)> values(count);
      episode.read(field.index, 0, episode.steps(), std::span(values));
      out.add(field.name, make_view(values.data(), type, shape), false);
    };
    if (field.field.type == ElementType::kFloat64) return floats(double{}, ElementType::kFloat64);
    if (is_float(field.field.type)) return floats(float{}, ElementType::kFloat32);
    std::vector<std::int64_t> values(count);
    episode.read(field.index, 0, episode.steps(), std::span(values));
    const auto as = [&](auto sample, ElementType type) {
      using T = decltype(sample);
      std::vector<T> converted(count);
      std::transform(values.begin(), values.end(), converted.begin(), [](std::int64_t v) { return static_cast<T>(v); });
      out.add(field.name, make_view(converted.data(), type, shape), false);
    };
    switch (field.field.type) {
      case ElementType::kBool:
        return as(std::uint8_t{}, ElementType::kBool);
      case ElementType::kUInt8:
        return as(std::uint8_t{}, ElementType::kUInt8);
      case ElementType::kInt32:
        return as(std::int32_t{}, ElementType::kInt32);
      default:
        return out.add(field.name, make_view(values.data(), ElementType::kInt64, shape), false,
                       field.field.stored_type == "uint64");
    }
  }

  std::string env_args_;
  std::vector<Field> fields_;
  std::vector<HeadAttribute> head_;
  std::vector<std::pair<MetadataType, std::string>> metadata_;  // and the attribute's name
};

void write_hdf5(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, const fs::path& out,
                const ConvertSettings& settings, ConvertReport& report) {
  const ToHdf5 converter(source, episodes, settings, report);
  Hdf5Writer writer(out);
  converter.write_head(writer);
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    converter.write(*episode, writer);
    count_converted(*episode, episodes.size(), out, report);
  }
  writer.finish();
  report.path = out;
}

bool holds_hdf5(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return holds_hdf5_files(path);
  const std::string extension = path.extension().string();
  return extension == ".hdf5" || extension == ".h5" || extension == ".json";
}

std::unique_ptr<EpisodeSource> open_hdf5(const fs::path& path, const OpenSettings& settings) {
  const bool by_itself = settings.split == "auto";
  const bool all = settings.split == "whole" || settings.split == "all";
  return std::make_unique<Hdf5Episodes>(path, Hdf5Settings{.filter_key = all         ? ""
                                                                         : by_itself ? "train"
                                                                                     : settings.split,
                                                           .filter_key_optional = by_itself,
                                                           .on_corrupt = settings.on_corrupt,
                                                           .cache_bytes = settings.cache_bytes,
                                                           .threads = settings.threads,
                                                           .index_cache = settings.index_cache});
}

}  // namespace

DataFormat hdf5_format() {
  return {.name = "hdf5",
          .title = "HDF5",
          .contents = "a .hdf5 or .h5 file, a folder of such, or a .json manifest",
          .extensions = {".hdf5", ".h5"},
          .probe = holds_hdf5,
          .open = open_hdf5,
          .write = write_hdf5,
          .recording_path = [](const fs::path& out, const std::string& name) { return out / (name + ".hdf5"); }};
}

}  // namespace cohort::data
