#include "data/rlds/rlds_format.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/utf8.h"
#include "data/conversion.h"
#include "data/open_episodes.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/example.h"
#include "data/rlds/rlds_episodes.h"
#include "data/rlds/rlds_writer.h"
#include "data/transforms/call.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

/// Puts a feature at "a/b/c" of a tree of dicts.
void insert(Feature& root, const std::string& path, Feature feature) {
  const std::size_t at_byte = find_not_utf8(path);
  COHORT_THROW_UNLESS(
      at_byte == std::string::npos,
      "the name {} is not UTF-8 at byte {}, and names in RLDS are: rename it in the HDF5 file first, in "
      "Python f.move(OLD, NEW) of h5py",
      quoted_bytes(path), at_byte);
  Feature* at = &root;
  const std::vector<std::string> parts = split_text(path, '/');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto found = std::find_if(at->children.begin(), at->children.end(),
                                    [&](const auto& child) { return child.first == parts[i]; });
    if (i + 1 == parts.size()) {
      COHORT_THROW_UNLESS(found == at->children.end(), "the field {} would be written twice", path);
      at->children.emplace_back(parts[i], std::move(feature));
    } else if (found == at->children.end()) {
      at = &at->children.emplace_back(parts[i], make_dict({})).second;
    } else {
      COHORT_THROW_UNLESS(found->second.kind == FeatureKind::kDict, "the field {} is a group and a value", path);
      at = &found->second;
    }
  }
}

class ToRlds {
 public:
  ToRlds(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, const ConvertSettings& settings,
         ConvertReport& report)
      : settings_(settings) {
    Feature step = make_dict({});
    const auto first = source.open(episodes.front());
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      const StepField field = field_to_write(source, f, settings.rename);
      const std::string name = settings.rename ? schema_name(field.name) : field.name;
      if (field.kind == StepKind::kNumber && field.elements() < 0) {
        report.left_out.push_back(format("{}: its size varies from step to step", field.name));
        continue;
      }
      if (field.kind != StepKind::kNumber && !field.fault().empty()) {
        report.left_out.push_back(format("{}: it {}", field.name, field.fault()));
        continue;
      }
      bool flag = false;
      if (field.kind == StepKind::kImage) {
        std::string scratch;
        const StoredImage stored = first->image(f, 0, scratch);
        FeatureEncoding encoding = settings.image_encoding == "jpeg" ? FeatureEncoding::kJpeg : FeatureEncoding::kPng;
        if (stored.encoding == ImageEncoding::kJpegOrPng)
          encoding = stored.bytes.starts_with("\x89PNG") ? FeatureEncoding::kPng : FeatureEncoding::kJpeg;
        std::vector<std::int64_t> shape = field.shape;
        shape.resize(3, -1);
        if (shape[2] < 0) shape[2] = 3;
        insert(step, name, make_image(shape[0], shape[1], shape[2], encoding));
      } else if (field.kind == StepKind::kText) {
        insert(step, name, make_text());
      } else {
        flag = field.shape.empty() && is_flag(name);
        insert(step, name,
               make_tensor(flag                            ? "bool"
                           : field.stored_type == "uint64" ? "uint64"
                                                           : element_name(field.type),
                           field.shape));
      }
      fields_.push_back({f, field, name, flag});
    }
    // Texts of the steps that a demo's attributes hold.
    const std::vector<std::string>& metadata_names = source.metadata_names();
    for (const std::string& text : split_text(first->metadata(kStepTexts), '\n')) {
      const std::string attribute = attribute_name(text);
      if (text.empty() || step.child(text) ||
          std::find(metadata_names.begin(), metadata_names.end(), attribute) == metadata_names.end())
        continue;
      insert(step, text, make_text());
      step_texts_.emplace_back(attribute, text);
    }
    // What RLDS readers expect of every step.
    for (const char* flag : kFlags)
      if (!step.child(flag)) {
        insert(step, flag, make_tensor("bool", {}));
        flags_.emplace_back(flag);
      }
    Feature root = make_dict({{"steps", make_steps(std::move(step))}});
    for (const MetadataType& metadata : metadata_to_write(source, episodes, report)) {
      std::string name = metadata.name;
      if (name.starts_with(kMetadataAttribute)) name.erase(0, kMetadataAttribute.size());
      if (!name.starts_with(kMetadata)) name.insert(0, kMetadata);
      std::replace(name.begin() + kMetadata.size(), name.end(), '/', '_');
      bool is_text = false;
      for (const auto& [attribute, text] : step_texts_) is_text = is_text || attribute == metadata.name;
      if (is_text || (metadata.name == "data/env_args" && first->metadata(metadata.name) == kNoEnvironment)) continue;
      if (std::any_of(metadata_.begin(), metadata_.end(), [&](const auto& known) { return known.second == name; })) {
        report.left_out.push_back(format("{}: {} has another value already", metadata.name, name));
        continue;
      }
      insert(root, name, metadata.type == "string" ? make_text() : make_tensor(metadata.type, {}));
      metadata_.emplace_back(metadata, std::move(name));
    }
    schema_ = std::move(root);
  }

  const Feature& schema() const { return schema_; }

  std::string write(const Episode& episode) const {
    ExampleWriter example;
    const std::int64_t steps = episode.steps();
    for (const Field& field : fields_) {
      const std::string key = "steps/" + field.name;
      if (field.field.kind == StepKind::kNumber) {
        write_numbers(example, key, field, episode);
        continue;
      }
      std::vector<std::string> values;
      std::string scratch;
      Image image;
      for (std::int64_t t = 0; t < steps; ++t) {
        if (field.field.kind == StepKind::kText) {
          values.emplace_back(episode.text(field.index, t));
          continue;
        }
        const StoredImage stored = episode.image(field.index, t, scratch);
        if (stored.encoding == ImageEncoding::kJpegOrPng) {
          values.emplace_back(stored.bytes);
        } else {
          to_image(stored, image);
          values.push_back(settings_.image_encoding == "jpeg" ? encode_jpeg(image) : encode_png(image));
        }
      }
      example.add(key, values);
    }
    for (const std::string& flag : flags_) {
      std::vector<std::int64_t> values(static_cast<std::size_t>(steps), 0);
      (flag == "is_first" ? values.front() : values.back()) = 1;
      example.add("steps/" + flag, values);
    }
    for (const auto& [attribute, text] : step_texts_)
      example.add("steps/" + text,
                  std::vector<std::string>(static_cast<std::size_t>(steps), std::string(episode.metadata(attribute))));
    for (const auto& [metadata, name] : metadata_) {
      const std::string_view text = episode.metadata(metadata.name);
      if (metadata.type == "string") {
        example.add(name, std::vector<std::string>{std::string(text)});
        continue;
      }
      const std::optional<Scalar> scalar = parse_scalar(text, metadata.type);
      COHORT_THROW_UNLESS(scalar, "{}: {} is '{}', no {}", episode.location(), metadata.name, text, metadata.type);
      if (metadata.type.starts_with("float"))
        example.add(name, std::vector<float>{scalar->real});
      else
        example.add(name, std::vector<std::int64_t>{scalar->integer});
    }
    return example.finish();
  }

 private:
  struct Field {
    std::size_t index;
    StepField field;
    std::string name;  // in the new data set
    bool flag;         // becomes a bool, as RLDS readers expect it
  };

  static constexpr std::array<const char*, 3> kFlags{"is_first", "is_last", "is_terminal"};

  static bool is_flag(const std::string& name) { return std::find(kFlags.begin(), kFlags.end(), name) != kFlags.end(); }

  static void write_numbers(ExampleWriter& example, const std::string& key, const Field& field,
                            const Episode& episode) {
    const auto count = static_cast<std::size_t>(episode.steps() * field.field.elements());
    if (is_float(field.field.type)) {
      std::vector<float> values(count);
      episode.read(field.index, 0, episode.steps(), std::span(values));
      if (!field.flag) return example.add(key, values);
      std::vector<std::int64_t> flags(count);
      for (std::size_t t = 0; t < count; ++t) {
        check_flag(field, episode, t, values[t] == 0 || values[t] == 1);
        flags[t] = values[t] == 1 ? 1 : 0;
      }
      return example.add(key, flags);
    }
    std::vector<std::int64_t> values(count);
    episode.read(field.index, 0, episode.steps(), std::span(values));
    for (std::size_t t = 0; field.flag && t < count; ++t)
      check_flag(field, episode, t, values[t] == 0 || values[t] == 1);
    example.add(key, values);
  }

  static void check_flag(const Field& field, const Episode& episode, std::size_t step, bool good) {
    COHORT_THROW_UNLESS(good,
                        "{}: {} is neither 0 nor 1 in step {}, but {} is a flag in RLDS; keep the name with "
                        "--keep-names, or convert other episodes",
                        episode.location(), field.field.name, step, field.name);
  }

  const ConvertSettings& settings_;
  std::vector<Field> fields_;
  std::vector<std::string> flags_;
  std::vector<std::pair<MetadataType, std::string>> metadata_;   // and its name there
  std::vector<std::pair<std::string, std::string>> step_texts_;  // attribute, field
  Feature schema_;
};

/// RLDS to RLDS: schema and records as they are, whatever the schema.
std::filesystem::path copy_records(const RldsEpisodes& source, const std::vector<std::int64_t>& episodes,
                                   const std::filesystem::path& out, const ConvertSettings& settings) {
  const std::filesystem::path& folder = source.records().folder();
  RldsWriter writer(out, source.records().schema(),
                    {.name = settings.name,
                     .description = "converted from " + source.name(),
                     .features_json = read_file(folder / "features.json")});
  for (const std::int64_t e : episodes) {
    stop_conversion_if_wanted(episodes.size(), out);
    writer.add(source.record(e));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().ends_with(".labels.txt")) writer.add_file(entry.path());
  return writer.finish();
}

void write_rlds(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, const fs::path& out,
                const ConvertSettings& settings, ConvertReport& report) {
  if (const auto* rlds = dynamic_cast<const RldsEpisodes*>(&source)) {
    report.path = copy_records(*rlds, episodes, out, settings);
    report.episodes = static_cast<std::int64_t>(episodes.size());
    for (const std::int64_t e : episodes) report.steps += source.steps(e);
    return;
  }
  const ToRlds converter(source, episodes, settings, report);
  RldsWriter writer(out, converter.schema(), {.name = settings.name, .description = "converted from " + source.name()});
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    writer.add(converter.write(*episode));
    count_converted(*episode, episodes.size(), out, report);
  }
  report.path = writer.finish();
}

/// What keeps a path from being RLDS data; empty where nothing does.
std::string missing_in(const fs::path& path) {
  try {
    find_dataset_folder(path);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

bool holds_rlds(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && missing_in(path).empty();
}

std::string rlds_hint(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error))  // a shard that lies there shows what the folder was meant to be
    return missing_in(path) + (find_shard(path) ? ""
                                                : "; there is no .hdf5 or .h5 file in it either, nor meta/info.json "
                                                  "(LeRobot)");
  if (path.filename().string().find(".tfrecord") == std::string::npos) return "";
  return format("{} is one shard of an RLDS data set: name its folder, {}", path.string(),
                path.parent_path().empty() ? "." : path.parent_path().string());
}

std::unique_ptr<EpisodeSource> open_rlds(const fs::path& path, const OpenSettings& settings) {
  const bool is_train = settings.split == "auto" || settings.split == "whole";
  return std::make_unique<RldsEpisodes>(path, RldsSettings{.split = is_train ? "train" : settings.split,
                                                           .on_corrupt = settings.on_corrupt,
                                                           .checksums = settings.checksums,
                                                           .cache_bytes = settings.cache_bytes,
                                                           .threads = settings.threads,
                                                           .index_cache = settings.index_cache});
}

}  // namespace

DataFormat rlds_format() {
  return {.name = "rlds",
          .title = "RLDS",
          .contents = "a folder with dataset_info.json (RLDS)",
          .precedence = 1,
          .probe = holds_rlds,
          .hint = rlds_hint,
          .open = open_rlds,
          .write = write_rlds,
          .recording_path = [](const fs::path& out, const std::string& name) { return out / name / "1.0.0"; }};
}

}  // namespace cohort::data
