#include "data/convert.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/files.h"
#include "core/stop_signal.h"
#include "core/utf8.h"
#include "data/convert_lerobot.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/hdf5_writer.h"
#include "data/hdf5/metadata.h"
#include "data/images/codec.h"
#include "data/kept_steps.h"
#include "data/lerobot/lerobot_episodes.h"
#include "data/rlds/example.h"
#include "data/rlds/rlds_episodes.h"
#include "data/rlds/rlds_writer.h"
#include "data/transforms/call.h"

namespace cohort::data {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 3> kFormatNames{
    {{"actions", "action"}, {"rewards", "reward"}, {"dones", "is_terminal"}}};

/// What robomimic asks of a file from no environment that it knows.
constexpr const char* kNoEnvironment = R"({"env_name": "", "type": 1, "env_kwargs": {}})";

/// Attribute of `data`: names of the step fields, one per line, whose text became an attribute of the demo.
constexpr const char* kStepTexts = "step_texts";

std::string renamed(const std::string& name, bool to_rlds, bool rename) {
  if (!rename) return name;
  for (const auto& [hdf5, rlds] : kFormatNames)
    if (name == (to_rlds ? hdf5 : rlds)) return to_rlds ? rlds : hdf5;
  if (to_rlds && name.starts_with("obs/")) return "observation/" + name.substr(4);
  if (!to_rlds && name.starts_with("observation/")) return "obs/" + name.substr(12);
  return name;
}

/// A field of LeRobot data under the name that RLDS data have for it: observation.images.front becomes
/// observation/images_front.
std::string name_in_rlds(std::string name) {
  constexpr std::string_view kObservation = "observation.";
  for (const auto& [lerobot, rlds] : {std::pair{"task", "language_instruction"}, std::pair{"next.reward", "reward"},
                                      std::pair{"next.done", "is_terminal"}})
    if (name == lerobot) return rlds;
  const bool observed = name.starts_with(kObservation);
  std::replace(name.begin(), name.end(), '.', '_');
  if (observed) name[kObservation.size() - 1] = '/';
  return name;
}

/// The field, with the name in RLDS where its set is of LeRobot and fields are renamed.
StepField field_to_write(const EpisodeSource& source, std::size_t f, bool rename) {
  StepField field = source.fields()[f];
  if (rename && dynamic_cast<const LeRobotEpisodes*>(&whole_source(source)))
    field.name = name_in_rlds(std::move(field.name));
  return field;
}

/// What a demo's attributes say about the file, not about the episode: it is written anew.
bool is_bookkeeping(const std::string& metadata) {
  return metadata == "num_samples" || metadata == "data/total" || metadata == std::string("data/") + kStepTexts;
}

constexpr std::string_view kMetadata = "episode_metadata/";
/// In the place of kMetadata where the rest alone is an attribute of another meaning.
constexpr std::string_view kMetadataAttribute = "episode_metadata_";

/// An attribute's name for a field or metadata of RLDS.
std::string attribute_name(std::string name) {
  if (name.starts_with(kMetadata)) name.erase(0, kMetadata.size());
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

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

void to_image(const StoredImage& stored, Image& image) {
  if (stored.encoding == ImageEncoding::kJpegOrPng) {
    const std::int64_t channels = image_header(stored.bytes).channels;
    decode_image(stored.bytes, channels <= 2 ? 1 : 3, image);
    return;
  }
  image.resize(stored.height, stored.width, stored.channels);
  std::copy(stored.bytes.begin(), stored.bytes.end(), image.pixels.begin());
}

bool is_float(ElementType type) {
  return type == ElementType::kFloat32 || type == ElementType::kFloat64 || type == ElementType::kFloat16 ||
         type == ElementType::kBFloat16;
}

/// The number that a metadata's text says.
struct Scalar {
  std::int64_t integer = 0;  // of any other type; uint64 as the same 64 bits
  float real = 0;            // of floats
};

/// Nothing where the text says no number of this type.
std::optional<Scalar> parse_scalar(std::string_view text, const std::string& type) {
  Scalar scalar;
  const auto whole = [&](auto& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (type == "bool") {
    scalar.integer = text == "true" || text == "1" ? 1 : 0;
    return scalar.integer == 1 || text == "false" || text == "0" ? std::optional(scalar) : std::nullopt;
  }
  if (type.starts_with("float")) {
    double value = 0;
    if (!whole(value)) return std::nullopt;
    scalar.real = static_cast<float>(value);
    return scalar;
  }
  if (type == "uint64") {
    std::uint64_t value = 0;
    if (!whole(value)) return std::nullopt;
    scalar.integer = static_cast<std::int64_t>(value);
    return scalar;
  }
  return whole(scalar.integer) ? std::optional(scalar) : std::nullopt;
}

/// What is said about every episode.
struct Metadata {
  std::string name;
  std::string type = "string";  // or the number's, as NumPy names it
};

/// Data sets below a group that are none of the source's fields, with the reason.
void list_unread(const Hdf5Metadata& file, const std::string& group, const std::string& prefix,
                 const EpisodeSource& source,
                 const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& shapes,
                 std::vector<std::string>& left_out) {
  const auto below = [&](const std::string& name) { return (group == "/" ? "" : group) + "/" + name; };
  for (const std::string& name : file.data_sets(group)) {
    const std::string path = prefix + name;
    if (std::any_of(source.fields().begin(), source.fields().end(), [&](const StepField& f) { return f.name == path; }))
      continue;
    const auto found = std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == path; });
    left_out.push_back(found == shapes.end()
                           ? path + ": no array of numbers"
                           : format("{}: its {} rows are not one per step of every episode", path, found->second[0]));
  }
  constexpr std::ptrdiff_t kDeepest = 8;
  if (std::count(prefix.begin(), prefix.end(), '/') >= kDeepest) return;
  for (const std::string& name : file.groups(group))
    list_unread(file, below(name), prefix + name + "/", source, shapes, left_out);
}

/// Metadata with their types, without bookkeeping; names what the source has beyond what it gives.
std::vector<Metadata> list_metadata(const EpisodeSource& source, std::int64_t episode, ConvertReport& report) {
  std::vector<Metadata> metadata;
  for (const std::string& name : source.metadata_names()) metadata.push_back({name});
  const auto find = [&](const std::string& name) {
    return std::find_if(metadata.begin(), metadata.end(), [&](const Metadata& m) { return m.name == name; });
  };
  const auto set_type = [&](const std::string& name, const std::string& type) {
    const auto known = find(name);
    if (known == metadata.end()) return false;
    known->type = type == "float16" || type == "bfloat16" ? "float32" : type;
    return true;
  };
  if (const auto* rlds = dynamic_cast<const RldsEpisodes*>(&whole_source(source))) {
    for (const FeatureLeaf& leaf : list_leaves(rlds->records().schema()))
      if (!leaf.key.starts_with("steps/") && !set_type(leaf.key, leaf.dtype))
        report.left_out.push_back(leaf.key + ": not one text or number per episode");
  } else if (const auto* hdf5 = dynamic_cast<const Hdf5Episodes*>(&whole_source(source))) {
    const auto [path, group] = hdf5->place(episode);
    const Hdf5Metadata file(path);
    const auto add = [&](const std::string& object, const std::string& prefix) {
      for (const auto& [name, type] : file.attribute_types(object))
        if (type.empty())
          report.left_out.push_back(format("the attribute {}{}: neither a text nor one number", prefix, name));
        else if (!set_type(prefix + name, type))
          report.left_out.push_back(format("the attribute {}{}: the first episode of the set lacks it", prefix, name));
    };
    add(group, "");
    if (group.starts_with("/data/"))
      add("/data", "data/");
    else if (group != "/")
      add("/", "file/");
    list_unread(file, group, "", source, file.shapes(group), report.left_out);
    if (file.has("/mask"))
      for (const std::string& mask : file.data_sets("/mask"))
        report.left_out.push_back(format("mask/{}: convert its demos by themselves, with --split {}", mask, mask));
  }
  if (dynamic_cast<const LeRobotEpisodes*>(&whole_source(source))) {
    // The steps' task says it.
    std::erase_if(metadata, [](const Metadata& m) { return m.name == "language_instruction"; });
    for (const std::string& line : source.left_out()) report.left_out.push_back(line);
  }
  std::erase_if(metadata, [](const Metadata& m) { return is_bookkeeping(m.name); });
  return metadata;
}

/// Names the splits of an RLDS set that are not selected.
void list_other_splits(const RldsRecords& records, ConvertReport& report) {
  const std::vector<SplitRange> selected = select_split(records.info(), records.split());
  for (const SplitInfo& split : records.info().splits)
    if (std::none_of(selected.begin(), selected.end(), [&](const SplitRange& r) { return r.split == split.name; }))
      report.left_out.push_back(format("the split {}: convert it by itself, with --split {}", split.name, split.name));
}

/// Goes through all episodes that are converted, before the first is: types that do not hold for all of them become
/// texts.
void check_types(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                 std::vector<Metadata>& metadata, ConvertReport& report) {
  if (std::all_of(metadata.begin(), metadata.end(), [](const Metadata& m) { return m.type == "string"; })) return;
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    for (Metadata& m : metadata)
      if (m.type != "string" && !parse_scalar(episode->metadata(m.name), m.type)) {
        report.left_out.push_back(
            format("the type of {}: written as texts, for {} has no {} there", m.name, episode->location(), m.type));
        m.type = "string";
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
      const std::string name = renamed(field.name, true, settings.rename);
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
    for (const std::string& text : split_text(first->metadata(std::string("data/") + kStepTexts), '\n')) {
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
    std::vector<Metadata> all = list_metadata(source, episodes.front(), report);
    check_types(source, episodes, all, report);
    for (const Metadata& metadata : all) {
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
  std::vector<std::pair<Metadata, std::string>> metadata_;       // and its name there
  std::vector<std::pair<std::string, std::string>> step_texts_;  // attribute, field
  Feature schema_;
};

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
        fields_.push_back({f, field, renamed(field.name, false, settings.rename), ""});
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
    if (!texts.empty()) out.attribute(kStepTexts, texts);
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
    std::vector<Metadata> all = list_metadata(source, episodes.front(), report);
    check_types(source, episodes, all, report);
    std::vector<std::string> taken{"num_samples"};
    const auto is_free = [&](const std::string& name) {
      return std::find(taken.begin(), taken.end(), name) == taken.end();
    };
    for (Field& field : fields_) {
      if (field.field.kind != StepKind::kText || !is_free(attribute_name(field.field.name))) continue;
      field.attribute = attribute_name(field.field.name);
      taken.push_back(field.attribute);
    }
    for (const Metadata& metadata : all)
      if (const std::string name = head_name(metadata.name); !name.empty())
        head_.push_back({name, std::string(source.open(episodes.front())->metadata(metadata.name)), metadata.type});
    for (const std::int64_t e : episodes) {
      const auto episode = source.open(e);
      for (Field& field : fields_)
        if (!field.attribute.empty() && changes(*episode, field.index)) field.attribute.clear();
      for (const Metadata& metadata : all)
        std::erase_if(head_, [&](const HeadAttribute& head) {
          return head.name == head_name(metadata.name) && head.text != episode->metadata(metadata.name);
        });
    }
    for (const Field& field : fields_)
      if (field.field.kind == StepKind::kText && field.attribute.empty())
        report.left_out.push_back(
            format("{}: written as a data set of texts, for it changes within an episode; cohort does not read such",
                   field.field.name));
    for (const Metadata& metadata : all) {
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
  std::vector<std::pair<Metadata, std::string>> metadata_;  // and the attribute's name
};

std::string stopped_text(std::size_t episodes, const std::filesystem::path& out) {
  return format("stopped before all {} episodes were converted; nothing is left at {}", episodes, out.string());
}

/// RLDS to RLDS: schema and records as they are, whatever the schema.
std::filesystem::path copy_records(const RldsEpisodes& source, const std::vector<std::int64_t>& episodes,
                                   const std::filesystem::path& out, const ConvertSettings& settings) {
  const std::filesystem::path& folder = source.records().folder();
  RldsWriter writer(out, source.records().schema(),
                    {.name = settings.name,
                     .description = "converted from " + source.name(),
                     .features_json = read_file(folder / "features.json")});
  for (const std::int64_t e : episodes) {
    if (const int signal = stop_wanted()) throw Stopped(signal, stopped_text(episodes.size(), out));
    writer.add(source.record(e));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().ends_with(".labels.txt")) writer.add_file(entry.path());
  return writer.finish();
}

}  // namespace

ConvertReport convert_episodes(const EpisodeSource& source, const std::filesystem::path& out,
                               const ConvertSettings& settings) {
  COHORT_THROW_UNLESS(settings.to == "rlds" || settings.to == "hdf5" || settings.to == "lerobot",
                      "data are converted to rlds, hdf5 or lerobot, not '{}'", settings.to);
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
    if (const int signal = stop_wanted()) throw Stopped(signal, stopped_text(episodes.size(), out));
    ++report.episodes;
    report.steps += episode.steps();
  };
  const auto* rlds = dynamic_cast<const RldsEpisodes*>(&source);
  if (rlds) list_other_splits(rlds->records(), report);
  if (settings.to == "lerobot") {
    for (const std::string& line : source.left_out()) report.left_out.push_back(line);
    convert_to_lerobot(source, episodes, out, settings, report);
  } else if (settings.to == "rlds" && rlds) {
    report.path = copy_records(*rlds, episodes, out, settings);
    report.episodes = static_cast<std::int64_t>(episodes.size());
    for (const std::int64_t e : episodes) report.steps += source.steps(e);
  } else if (settings.to == "rlds") {
    const ToRlds converter(source, episodes, settings, report);
    RldsWriter writer(out, converter.schema(),
                      {.name = settings.name, .description = "converted from " + source.name()});
    for (const std::int64_t e : episodes) {
      const auto episode = source.open(e);
      writer.add(converter.write(*episode));
      count(*episode);
    }
    report.path = writer.finish();
  } else {
    const ToHdf5 converter(source, episodes, settings, report);
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
