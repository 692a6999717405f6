#include "data/conversion.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "core/stop_signal.h"

namespace cohort::data {
namespace {

/// robomimic's name and the schema's.
constexpr std::array<std::pair<const char*, const char*>, 3> kRobomimicNames{
    {{"actions", "action"}, {"rewards", "reward"}, {"dones", "is_terminal"}}};

/// What is said about the file, not about the episode: it is written anew.
bool is_bookkeeping(const std::string& metadata) {
  return metadata == "num_samples" || metadata == "data/total" || metadata == kStepTexts;
}

}  // namespace

StepField field_to_write(const EpisodeSource& source, std::size_t f, bool rename) {
  StepField field = source.fields()[f];
  if (rename) field.name = source.schema_name(field.name);
  return field;
}

std::string robomimic_name(const std::string& name) {
  for (const auto& [robomimic, schema] : kRobomimicNames)
    if (name == schema) return robomimic;
  return name.starts_with("observation/") ? "obs/" + name.substr(12) : name;
}

std::string schema_name(const std::string& name) {
  for (const auto& [robomimic, schema] : kRobomimicNames)
    if (name == robomimic) return schema;
  return name.starts_with("obs/") ? "observation/" + name.substr(4) : name;
}

std::string attribute_name(std::string name) {
  if (name.starts_with(kMetadata)) name.erase(0, kMetadata.size());
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
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

std::vector<MetadataType> metadata_to_write(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                                            ConvertReport& report) {
  std::vector<MetadataType> metadata = source.metadata_types(episodes.front(), report.left_out);
  std::erase_if(metadata, [](const MetadataType& m) { return is_bookkeeping(m.name); });
  if (std::all_of(metadata.begin(), metadata.end(), [](const MetadataType& m) { return m.type == "string"; }))
    return metadata;
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    for (MetadataType& m : metadata)
      if (m.type != "string" && !parse_scalar(episode->metadata(m.name), m.type)) {
        report.left_out.push_back(
            format("the type of {}: written as texts, for {} has no {} there", m.name, episode->location(), m.type));
        m.type = "string";
      }
  }
  return metadata;
}

void stop_conversion_if_wanted(std::size_t episodes, const std::filesystem::path& out) {
  if (const int signal = stop_wanted())
    throw Stopped(
        signal, format("stopped before all {} episodes were converted; nothing is left at {}", episodes, out.string()));
}

void count_converted(const Episode& episode, std::size_t episodes, const std::filesystem::path& out,
                     ConvertReport& report) {
  stop_conversion_if_wanted(episodes, out);
  ++report.episodes;
  report.steps += episode.steps();
}

}  // namespace cohort::data
