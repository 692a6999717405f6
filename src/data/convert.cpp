#include "data/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/images/codec.h"
#include "data/rlds/example.h"
#include "data/rlds/rlds_writer.h"
#include "data/transforms/call.h"

namespace cohort::data {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 3> kNames{
    {{"actions", "action"}, {"rewards", "reward"}, {"dones", "is_terminal"}}};

/// What robomimic asks of a file from no environment that it knows.
constexpr const char* kNoEnvironment = R"({"env_name": "", "type": 1, "env_kwargs": {}})";

/// Attribute of `data`: names of the step fields, one per line, whose text became an attribute of the demo.
constexpr const char* kStepTexts = "step_texts";

std::string renamed(const std::string& name, bool to_rlds, bool rename) {
  if (!rename) return name;
  for (const auto& [hdf5, rlds] : kNames)
    if (name == (to_rlds ? hdf5 : rlds)) return to_rlds ? rlds : hdf5;
  if (to_rlds && name.starts_with("obs/")) return "observation/" + name.substr(4);
  if (!to_rlds && name.starts_with("observation/")) return "obs/" + name.substr(12);
  return name;
}

/// What a demo's attributes say about the file, not about the episode: it is written anew.
bool is_bookkeeping(const std::string& metadata) {
  return metadata == "num_samples" || metadata == "data/total" || metadata == std::string("data/") + kStepTexts;
}

/// An attribute's name for a field or metadata of RLDS.
std::string attribute_name(std::string name) {
  if (name.starts_with("episode_metadata/")) name.erase(0, 17);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

/// Puts a feature at "a/b/c" of a tree of dicts.
void insert(Feature& root, const std::string& path, Feature feature) {
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

void to_image(const StoredImage& stored, Image& image) {
  if (stored.encoding == ImageEncoding::kJpegOrPng) {
    const std::int64_t channels = image_header(stored.bytes).channels;
    decode_image(stored.bytes, channels <= 2 ? 1 : 3, image);
    return;
  }
  image.resize(stored.height, stored.width, stored.channels);
  std::copy(stored.bytes.begin(), stored.bytes.end(), image.pixels.begin());
}

const char* dtype_of(ElementType type) {
  return element_name(type);
}

struct Field {
  std::size_t index;
  StepField field;
  std::string name;  // in the new data set
};

class ToRlds {
 public:
  ToRlds(const EpisodeSource& source, const ConvertSettings& settings, ConvertReport& report) : settings_(settings) {
    Feature step = make_dict({});
    const auto first = source.open(0);
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      const StepField& field = source.fields()[f];
      const std::string name = renamed(field.name, true, settings.rename);
      if (field.kind == StepKind::kNumber && field.elements() < 0) {
        report.left_out.push_back(format("{}: its size varies from step to step", field.name));
        continue;
      }
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
        insert(step, name, make_tensor(dtype_of(field.type), field.shape));
      }
      fields_.push_back({f, field, name});
    }
    // Texts of the steps that a demo's attributes hold.
    const std::vector<std::string>& metadata_names = source.metadata_names();
    for (const std::string& text : split_text(first->metadata(std::string("data/") + kStepTexts), '\n')) {
      const std::string attribute = attribute_name(text);
      if (text.empty() || step.child(text) ||
          std::find(metadata_names.begin(), metadata_names.end(), attribute) == metadata_names.end())
        continue;
      insert(step, text, make_text());
      step_texts_.emplace_back(attribute, text);
    }
    // What RLDS readers expect of every step.
    for (const char* flag : {"is_first", "is_last", "is_terminal"})
      if (!step.child(flag)) {
        insert(step, flag, make_tensor("bool", {}));
        flags_.emplace_back(flag);
      }
    Feature root = make_dict({{"steps", make_steps(std::move(step))}});
    for (const std::string& metadata : source.metadata_names()) {
      std::string name = metadata.starts_with("episode_metadata/") ? metadata : "episode_metadata/" + metadata;
      std::replace(name.begin() + 17, name.end(), '/', '_');
      bool twice = false;
      for (const auto& [known, target] : metadata_) twice = twice || target == name;
      for (const auto& [attribute, text] : step_texts_) twice = twice || attribute == metadata;
      if (twice || is_bookkeeping(metadata) ||
          (metadata == "data/env_args" && first->metadata(metadata) == kNoEnvironment))
        continue;
      metadata_.emplace_back(metadata, name);
      insert(root, name, make_text());
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
    for (const auto& [metadata, name] : metadata_)
      example.add(name, std::vector<std::string>{std::string(episode.metadata(metadata))});
    return example.finish();
  }

 private:
  static void write_numbers(ExampleWriter& example, const std::string& key, const Field& field,
                            const Episode& episode) {
    const auto count = static_cast<std::size_t>(episode.steps() * field.field.elements());
    const ElementType type = field.field.type;
    if (type == ElementType::kFloat32 || type == ElementType::kFloat64 || type == ElementType::kFloat16 ||
        type == ElementType::kBFloat16) {
      std::vector<float> values(count);
      episode.read(field.index, 0, episode.steps(), std::span(values));
      example.add(key, values);
      return;
    }
    std::vector<double> values(count);
    episode.read(field.index, 0, episode.steps(), std::span(values));
    std::vector<std::int64_t> integers(count);
    std::transform(values.begin(), values.end(), integers.begin(),
                   [](double v) { return static_cast<std::int64_t>(v); });
    example.add(key, integers);
  }

  const ConvertSettings& settings_;
  std::vector<Field> fields_;
  std::vector<std::string> flags_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<std::pair<std::string, std::string>> step_texts_;  // attribute, field
  Feature schema_;
};

class ToHdf5 {
 public:
  ToHdf5(const EpisodeSource& source, const ConvertSettings& settings, ConvertReport& report) : source_(source) {
    for (std::size_t f = 0; f < source.fields().size(); ++f) {
      const StepField& field = source.fields()[f];
      if (field.kind == StepKind::kNumber && field.elements() < 0)
        report.left_out.push_back(format("{}: its size varies from step to step", field.name));
      else
        fields_.push_back({f, field, renamed(field.name, false, settings.rename)});
    }
  }

  /// Of the group data, before the first demo.
  void write_head(Hdf5Writer& out) const {
    out.attribute("env_args", kNoEnvironment);
    std::string texts;
    for (const Field& field : fields_)
      if (field.field.kind == StepKind::kText) texts += (texts.empty() ? "" : "\n") + field.field.name;
    if (!texts.empty()) out.attribute(kStepTexts, texts);
  }

  void write(const Episode& episode, Hdf5Writer& out) const {
    out.begin_demo(episode.steps());
    for (const Field& field : fields_) {
      if (field.field.kind == StepKind::kText)
        write_text(episode, field, out);
      else if (field.field.kind == StepKind::kImage)
        write_images(episode, field, out);
      else
        write_numbers(episode, field, out);
    }
    for (const std::string& name : source_.metadata_names()) {
      if (!is_bookkeeping(name)) out.attribute(attribute_name(name), std::string(episode.metadata(name)));
    }
  }

 private:
  static void write_text(const Episode& episode, const Field& field, Hdf5Writer& out) {
    const std::string first(episode.text(field.index, 0));
    for (std::int64_t t = 1; t < episode.steps(); ++t)
      COHORT_THROW_UNLESS(episode.text(field.index, t) == first,
                          "{}: the text {} changes within the episode, which an attribute of the demo cannot hold",
                          episode.location(), field.field.name);
    out.attribute(attribute_name(field.field.name), first);
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
    std::vector<double> values(static_cast<std::size_t>(episode.steps() * field.field.elements()));
    episode.read(field.index, 0, episode.steps(), std::span(values));
    const auto as = [&](auto sample, ElementType type) {
      using T = decltype(sample);
      std::vector<T> converted(values.size());
      std::transform(values.begin(), values.end(), converted.begin(), [](double v) { return static_cast<T>(v); });
      out.add(field.name, make_view(converted.data(), type, shape), false);
    };
    switch (field.field.type) {
      case ElementType::kFloat64:
        return out.add(field.name, make_view(values.data(), ElementType::kFloat64, shape), false);
      case ElementType::kBool:
        return as(std::uint8_t{}, ElementType::kBool);
      case ElementType::kUInt8:
        return as(std::uint8_t{}, ElementType::kUInt8);
      case ElementType::kInt32:
        return as(std::int32_t{}, ElementType::kInt32);
      case ElementType::kInt64:
      case ElementType::kInt16:
        return as(std::int64_t{}, ElementType::kInt64);
      default:
        return as(float{}, ElementType::kFloat32);
    }
  }

  const EpisodeSource& source_;
  std::vector<Field> fields_;
};

}  // namespace

ConvertReport convert_episodes(const EpisodeSource& source, const std::filesystem::path& out,
                               const ConvertSettings& settings) {
  COHORT_THROW_UNLESS(settings.to == "rlds" || settings.to == "hdf5", "data are converted to rlds or hdf5, not '{}'",
                      settings.to);
  COHORT_THROW_UNLESS(settings.image_encoding == "png" || settings.image_encoding == "jpeg",
                      "images are encoded as png or jpeg, not '{}'", settings.image_encoding);
  std::vector<std::int64_t> episodes = settings.episodes;
  if (episodes.empty()) {
    episodes.resize(static_cast<std::size_t>(source.size()));
    std::iota(episodes.begin(), episodes.end(), 0);
  }
  for (const std::int64_t episode : episodes)
    COHORT_THROW_UNLESS(episode >= 0 && episode < source.size(), "there is no episode {} among the {} of {}", episode,
                        source.size(), source.name());
  ConvertReport report;
  const auto count = [&](const Episode& episode) {
    ++report.episodes;
    report.steps += episode.steps();
  };
  if (settings.to == "rlds") {
    const ToRlds converter(source, settings, report);
    RldsWriter writer(out, converter.schema(),
                      {.name = settings.name, .description = "converted from " + source.name()});
    for (const std::int64_t e : episodes) {
      const auto episode = source.open(e);
      writer.add(converter.write(*episode));
      count(*episode);
    }
    report.path = writer.finish();
  } else {
    const ToHdf5 converter(source, settings, report);
    Hdf5Writer writer(out);
    converter.write_head(writer);
    for (const std::int64_t e : episodes) {
      const auto episode = source.open(e);
      converter.write(*episode, writer);
      count(*episode);
    }
    writer.finish();
    report.path = out;
  }
  return report;
}

}  // namespace cohort::data
