/// What the writers of all formats share when data are converted: every source is seen under one schema (fields named
/// observation/…, action, reward, is_terminal, texts and numbers per episode with their types), and a format writes that
/// schema in its own terms (data/format.h).
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/convert.h"
#include "data/episodes.h"
#include "data/images/codec.h"

namespace cohort::data {

/// The path of an episode's texts and numbers in the schema.
inline constexpr std::string_view kMetadata = "episode_metadata/";
/// In the place of kMetadata where the rest alone is an attribute of another meaning.
inline constexpr std::string_view kMetadataAttribute = "episode_metadata_";

/// What robomimic asks of a file from no environment that it knows.
inline constexpr const char* kNoEnvironment = R"({"env_name": "", "type": 1, "env_kwargs": {}})";

/// Metadata of a source: names of the step fields, one per line, whose text is metadata of the episode.
inline constexpr const char* kStepTexts = "data/step_texts";

/// A field of the source with its name in the schema, or the source's where names are kept.
StepField field_to_write(const EpisodeSource& source, std::size_t f, bool rename);

/// obs/… and observation/…, actions and action, rewards and reward, dones and is_terminal: robomimic's name, or the
/// schema's.
std::string robomimic_name(const std::string& name);
std::string schema_name(const std::string& name);

/// An attribute's name for a field or metadata of the schema.
std::string attribute_name(std::string name);

/// The picture's pixels.
void to_image(const StoredImage& stored, Image& image);

bool is_float(ElementType type);

/// The number that a metadata's text says.
struct Scalar {
  std::int64_t integer = 0;  ///< of any other type; uint64 as the same 64 bits
  float real = 0;            ///< of floats
};

/// Nothing where the text says no number of this type.
std::optional<Scalar> parse_scalar(std::string_view text, const std::string& type);

/// Metadata of all episodes that are converted, with types that hold for all of them: others are texts, which the
/// report says, as it does what the source has beyond what it gives.
std::vector<MetadataType> metadata_to_write(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                                            ConvertReport& report);

/// Counts an episode that was written. Throws Stopped where a stop is wanted.
void count_converted(const Episode& episode, std::size_t episodes, const std::filesystem::path& out,
                     ConvertReport& report);
/// Throws Stopped where a stop is wanted.
void stop_conversion_if_wanted(std::size_t episodes, const std::filesystem::path& out);

}  // namespace cohort::data
