/// Episodes of robot data, whatever file they lie in: named fields per step, opened one at a time, read without copies
/// where the file allows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/array_view.h"
#include "core/fnv.h"

namespace cohort::data {

enum class StepKind : std::uint8_t { kNumber, kText, kImage };

/// A field that every step of every episode has.
struct StepField {
  std::string name;  ///< path below the step: "observation/gripper_position"
  StepKind kind = StepKind::kNumber;
  ElementType type = ElementType::kFloat32;  ///< numbers: as the schema declares them
  std::vector<std::int64_t> shape;           ///< of one step; images: height, width, channels; -1 where it varies
  std::string stored_type;  ///< of numbers and pixels, as the file names it: "uint16"; empty: `type`, of images uint8
  bool ragged = false;      ///< a sequence in every step, of another length each
  /// Elements of one step; -1 where it varies: such a field cannot be read as numbers, nor go into a batch.
  std::int64_t elements() const;
  /// stored_type, or what stands for it: "float32".
  std::string type_name() const;
  /// Why a text or an image cannot be taken from every step, to be put behind the field's name: "holds a sequence in
  /// every step"; empty where it can. Pixels must be uint8: others do not survive decoding.
  std::string fault() const;
};

/// How an image lies in the file.
enum class ImageEncoding : std::uint8_t { kJpegOrPng, kRaw };

struct StoredImage {
  ImageEncoding encoding = ImageEncoding::kJpegOrPng;
  /// Valid while the episode and the scratch memory that was handed in live. Empty: the step has no image.
  std::string_view bytes;
  std::int64_t height = 0, width = 0, channels = 0;  ///< of a raw image, uint8 (height, width, channels)
};

/// One episode, immutable. All functions may be called from several threads. Must not outlive its source.
class Episode {
 public:
  virtual ~Episode() = default;
  /// Number of steps.
  virtual std::int64_t steps() const = 0;
  /// Copies steps [begin, begin + count) of number field `field` as (count, elements). Throws Error on another kind of
  /// field, on one whose size varies, and where the file is damaged.
  virtual void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const = 0;
  virtual void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const = 0;
  /// Likewise of a field of integers or bools, exactly; uint64 as the same 64 bits. Throws Error on other numbers too.
  virtual void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const = 0;
  /// The text of a step; valid while the episode lives. Throws Error where a step has none or several (fault()).
  virtual std::string_view text(std::size_t field, std::int64_t step) const = 0;
  /// The image of a step, not decoded. `scratch` may be used and grown. Throws Error where a step has several.
  virtual StoredImage image(std::size_t field, std::int64_t step, std::string& scratch) const = 0;
  /// What is said about the whole episode: text `name` (as metadata_names() lists it), "" where there is none.
  virtual std::string_view metadata(std::string_view name) const = 0;
  /// Where it comes from, for messages: "…/droid-train.tfrecord-00000-of-00002: record at offset 0".
  virtual std::string location() const = 0;
};

/// Something that is said about every episode.
struct MetadataType {
  std::string name;             ///< as EpisodeSource::metadata_names() lists it
  std::string type = "string";  ///< or the number's, as NumPy names it
};

class EpisodeSource {
 public:
  virtual ~EpisodeSource() = default;
  /// For messages and statistics: the data set's name or path.
  virtual const std::string& name() const = 0;
  /// Number of episodes.
  virtual std::int64_t size() const = 0;
  virtual const std::vector<StepField>& fields() const = 0;
  /// Texts known per episode, e.g. "episode_metadata/file_path".
  virtual const std::vector<std::string>& metadata_names() const = 0;
  /// Steps of an episode, without opening it.
  virtual std::int64_t steps(std::int64_t episode) const = 0;
  /// Thread-safe. Throws Error naming file and offset or group when the episode is damaged.
  virtual std::shared_ptr<const Episode> open(std::int64_t episode) const = 0;
  /// About the bytes that an opened episode comes to hold when these of its fields are read; 0 where that is not known.
  virtual std::int64_t bytes_when_open(std::int64_t episode, std::span<const std::size_t> fields) const = 0;
  /// A number that changes when the content of the selected episodes does; keys caches.
  virtual std::uint64_t content_hash() const = 0;
  /// Bytes of memory that it holds now beside what opened episodes hold.
  virtual std::int64_t bytes_held() const = 0;
  /// Bytes of the files that it reads from; 0 where that is not known.
  virtual std::int64_t stored_bytes() const { return 0; }
  /// The file that an episode lies in and its place there: the same whatever part of the file was opened.
  virtual std::pair<std::filesystem::path, std::string> place(std::int64_t episode) const {
    return {name(), std::to_string(episode)};
  }
  /// Which part of the data it is, where something other than the caller's choice of files decides that, for people:
  /// "mask/train: 4 of 5 demos"; else empty.
  virtual std::string selection() const { return ""; }
  /// Episodes left out because they are damaged, with the reason; empty unless asked for by on_corrupt=skip.
  virtual const std::vector<std::string>& skipped() const = 0;
  /// How many those are: one fault may have taken several.
  virtual std::int64_t skipped_count() const { return static_cast<std::int64_t>(skipped().size()); }

  /// Names of a field's elements, such as joints; empty where the data name none.
  virtual std::vector<std::string> element_names(const std::string&) const { return {}; }

  /// What lies in the data and is no field, with the reason: "obs/tip: it has 13 rows in …, which has 12 steps".
  virtual std::vector<std::string> left_out() const { return {}; }
  /// The reason for what is called so; empty where the data have nothing of this name.
  virtual std::string why_no_field(const std::string&) const { return ""; }

  /// The name of the format that it was opened by (data/format.h); empty where it lies in no file.
  virtual std::string_view format_name() const { return ""; }
  /// The number that people know an episode by; of most formats its place, from 0 on.
  virtual std::int64_t number(std::int64_t episode) const { return episode; }
  /// The name that a field has in the schema of conversions (data/conversion.h): observation/…, action, reward,
  /// is_terminal, language_instruction.
  virtual std::string schema_name(const std::string& field_name) const { return field_name; }
  /// The types of what metadata_names() lists. `left_out` gets what the files of this episode say beyond that, and what
  /// else of them is no field, with the reason.
  virtual std::vector<MetadataType> metadata_types(std::int64_t episode, std::vector<std::string>& left_out) const;
  /// Splits of the data that are not opened, a line each: "the split test: convert it by itself, with --split test".
  virtual std::vector<std::string> unselected_splits() const { return {}; }
  /// Whether the files say how their compressed pictures' colours lie; else they may be BGR.
  virtual bool states_colours() const { return true; }

  /// Index into fields(), by the name or by what another format calls the same observation
  /// (core/observation_names.h). Throws Error saying why it is none, or naming the nearest field, and all fields.
  std::size_t field_index(std::string_view field_name) const;
};

/// False where no metadata has this name. Of half floats the type becomes float32.
bool set_metadata_type(std::vector<MetadataType>& metadata, const std::string& name, const std::string& type);

/// What messages about damaged data advise: the setting of a training, and of `cohort data`.
inline constexpr std::string_view kSkipDamaged = "set data.on_corrupt=skip (cohort data: --on-corrupt skip)";

/// Joins checksums and texts into a content hash.
class ContentHash {
 public:
  void add(std::uint64_t word) { hash_ = fnv1a_of(word, hash_); }
  void add(std::string_view text) {
    hash_ = fnv1a(text, hash_);
    add(static_cast<std::uint64_t>(text.size()));
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = kFnvBegin;
};

}  // namespace cohort::data
