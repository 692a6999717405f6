#include "data/hdf5/hdf5_episodes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/config.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/files.h"
#include "data/episode_cache.h"
#include "data/hdf5/metadata.h"

namespace cohort::data {
namespace fs = std::filesystem;
using Json = nlohmann::json;

void describe(config::Fields& fields, Hdf5Settings& settings) {
  fields.add("filter_key", settings.filter_key, "of robomimic files: only the demos that mask/<filter_key> names");
  fields.add_choice("on_corrupt", settings.on_corrupt, {"error", "skip"},
                    "what a damaged episode does: end the work, or be left out, counted and named");
  fields.add("cache_bytes", settings.cache_bytes, "bytes of opened episodes that are kept for reuse");
}

namespace {

bool is_image(const Hdf5Array& array) {
  return array.shape.size() == 4 && array.element.bytes == 1 && array.element.kind == Hdf5Element::Kind::kUnsigned &&
         (array.shape[3] == 1 || array.shape[3] == 3);
}

StepField make_field(const std::string& name, const Hdf5Array& array) {
  StepField field{.name = name, .type = array.element.element_type()};
  field.shape.assign(array.shape.begin() + 1, array.shape.end());
  if (is_image(array)) field.kind = StepKind::kImage;
  if (array.element.kind == Hdf5Element::Kind::kUnsigned && array.element.bytes == 8) field.stored_type = "uint64";
  return field;
}

class Hdf5Episode final : public Episode {
 public:
  Hdf5Episode(std::shared_ptr<const MappedFile> file, std::string location, std::int64_t steps,
              const std::vector<StepField>& fields, std::vector<std::pair<std::string, Hdf5Array>> arrays,
              Hdf5Attributes metadata)
      : file_(std::move(file)),
        location_(std::move(location)),
        steps_(steps),
        fields_(fields),
        metadata_(std::move(metadata)) {
    for (const StepField& field : fields) {
      const auto found =
          std::find_if(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == field.name; });
      COHORT_THROW_UNLESS(found != arrays.end(), "{}: lacks the field {} that other episodes have", location_,
                          field.name);
      const StepField here = make_field(field.name, found->second);
      COHORT_THROW_UNLESS(found->second.shape[0] == steps, "{}: {} has {} rows, but the episode has {} steps",
                          location_, field.name, found->second.shape[0], steps);
      COHORT_THROW_UNLESS(here.kind == field.kind && (here.shape == field.shape || field.kind == StepKind::kImage),
                          "{}: {} has another shape than in the first episode", location_, field.name);
      arrays_.push_back(std::move(found->second));
    }
  }

  ~Hdf5Episode() override {
    for (const Hdf5Array& array : arrays_) release_pages(*file_, array);
  }

  std::int64_t steps() const override { return steps_; }

  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const override {
    read_numbers(field, begin, count, out);
  }
  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const override {
    read_numbers(field, begin, count, out);
  }

  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const override {
    COHORT_THROW_UNLESS(field >= arrays_.size() || arrays_[field].element.kind != Hdf5Element::Kind::kFloat,
                        "{}: the field {} holds floating-point numbers, no integers", location_, fields_[field].name);
    read_numbers(field, begin, count, out);
  }

  std::string_view text(std::size_t field, std::int64_t) const override {
    throw Error(format("{}: the field {} holds no texts", location_, fields_[field].name));
  }

  StoredImage image(std::size_t field, std::int64_t step, std::string& scratch) const override {
    check_steps(field, step, 1);
    COHORT_THROW_UNLESS(fields_[field].kind == StepKind::kImage, "{}: the field {} holds no images", location_,
                        fields_[field].name);
    const Hdf5Array& array = arrays_[field];
    StoredImage image{
        .encoding = ImageEncoding::kRaw, .height = array.shape[1], .width = array.shape[2], .channels = array.shape[3]};
    image.bytes = rows_in_place(*file_, array, step, 1);
    if (image.bytes.empty() && array.row_bytes() > 0) {
      thread_local std::string inflating;
      scratch.resize(static_cast<std::size_t>(array.row_bytes()));
      read_rows(*file_, array, step, 1, scratch.data(), inflating);
      image.bytes = scratch;
    }
    return image;
  }

  std::string_view metadata(std::string_view name) const override {
    for (const auto& [key, text] : metadata_)
      if (key == name) return text;
    return "";
  }

  std::string location() const override { return location_; }

  std::int64_t bytes() const {
    std::size_t total = sizeof(*this) + location_.capacity();
    for (const auto& [key, text] : metadata_) total += key.capacity() + text.capacity();
    auto held = static_cast<std::int64_t>(total);
    for (const Hdf5Array& array : arrays_) {
      held += array.bytes_held();
      if (array.layout == Hdf5Layout::kContiguous) held += array.shape[0] * array.row_bytes();
      for (const Hdf5Chunk& chunk : array.chunks) held += static_cast<std::int64_t>(chunk.bytes);
    }
    return held;
  }

 private:
  void check_steps(std::size_t field, std::int64_t begin, std::int64_t count) const {
    COHORT_CHECK(field < fields_.size() && begin >= 0 && count >= 0 && begin + count <= steps_,
                 "steps [{}, {}) of field {} are asked from an episode of {}", begin, begin + count, field, steps_);
  }

  template <class T>
  void read_numbers(std::size_t field, std::int64_t begin, std::int64_t count, std::span<T> out) const {
    check_steps(field, begin, count);
    COHORT_THROW_UNLESS(fields_[field].kind == StepKind::kNumber, "{}: the field {} holds images", location_,
                        fields_[field].name);
    const Hdf5Array& array = arrays_[field];
    COHORT_CHECK(out.size() == static_cast<std::size_t>(count * array.row_elements()), "room for {} values, not {}",
                 out.size(), count * array.row_elements());
    thread_local std::string rows, inflating;
    rows.resize(static_cast<std::size_t>(count * array.row_bytes()));
    read_rows(*file_, array, begin, count, rows.data(), inflating);
    convert_elements(array.element, rows.data(), out);
  }

  const std::shared_ptr<const MappedFile> file_;
  const std::string location_;
  const std::int64_t steps_;
  const std::vector<StepField>& fields_;
  std::vector<Hdf5Array> arrays_;
  const Hdf5Attributes metadata_;
};

/// demo_2 stands before demo_10.
bool by_number(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& name) {
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    std::int64_t value = -1;
    std::from_chars(name.data() + digits, name.data() + name.size(), value);
    return std::pair(name.substr(0, digits), value);
  };
  return number(a) < number(b);
}

/// What most arrays have as their first extent.
std::int64_t usual_length(const std::vector<std::pair<std::string, std::int64_t>>& lengths) {
  std::map<std::int64_t, int> votes;
  for (const auto& [name, length] : lengths) ++votes[length];
  std::int64_t best = 0;
  int most = 0;
  for (const auto& [length, count] : votes)
    if (count >= most) {
      most = count;
      best = length;
    }
  return best;
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (entry.is_regular_file() && (extension == ".hdf5" || extension == ".h5")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  COHORT_THROW_UNLESS(!files.empty(), "{} holds no .hdf5 or .h5 file", folder.string());
  return files;
}

}  // namespace

struct Hdf5Episodes::Impl {
  struct File {
    fs::path path;
    Hdf5Attributes metadata;  // from the manifest
    std::weak_ptr<const MappedFile> mapping;
  };
  struct Place {
    std::size_t file;
    std::string group;
    std::int64_t steps;
  };

  Impl(const fs::path& path, const Hdf5Settings& wanted)
      : settings(wanted), name(path.string()), cache(wanted.cache_bytes) {
    find_files(path);
    for (std::size_t f = 0; f < files.size(); ++f) skipping(files[f].path.string(), [&] { list_episodes(f); });
    COHORT_THROW_UNLESS(!episodes.empty(), "{} holds no sound episode{}", name,
                        skipped.empty() ? "" : "; the first fault: " + skipped.front());
    find_fields();
  }

  template <class Body>
  void skipping(const std::string& where, const Body& body) {
    if (settings.on_corrupt != "skip") return body();
    try {
      body();
    } catch (const Error& e) {
      const std::string what = e.what();
      skipped.push_back(what.starts_with(where) ? what : where + ": " + what);
    }
  }

  void find_files(const fs::path& path) {
    std::error_code error;
    COHORT_THROW_UNLESS(fs::exists(path, error), "there is no file or folder {}", path.string());
    if (fs::is_directory(path)) {
      for (const fs::path& file : files_below(path)) files.push_back({file, {}, {}});
    } else if (path.extension() == ".json") {
      read_manifest(path);
    } else {
      files.push_back({path, {}, {}});
    }
  }

  void read_manifest(const fs::path& path) {
    const Json list = Json::parse(read_file(path), nullptr, false);
    COHORT_THROW_UNLESS(list.is_array() && !list.empty(), "{} is no JSON list of trajectories", path.string());
    for (const Json& item : list) {
      File file;
      const Json* where = item.is_object() && item.contains("path") ? &item["path"] : &item;
      COHORT_THROW_UNLESS(where->is_string(), "{}: entry {} names no path", path.string(), files.size());
      file.path = path.parent_path() / where->get<std::string>();
      if (item.is_object())
        for (const auto& [key, value] : item.items())
          if (key != "path" && value.is_string()) file.metadata.emplace_back(key, value.get<std::string>());
      files.push_back(std::move(file));
    }
  }

  void list_episodes(std::size_t f) {
    const Hdf5Metadata file(files[f].path);
    const std::string where = files[f].path.string();
    if (!file.has("/data")) {
      COHORT_THROW_UNLESS(settings.filter_key.empty(),
                          "{} has no group data with demos, so filter_key={} selects nothing", where,
                          settings.filter_key);
      add_episode(f, file, "/");
      return;
    }
    std::vector<std::string> demos = file.groups("/data");
    if (!settings.filter_key.empty()) {
      const std::string mask = "/mask/" + settings.filter_key;
      std::string masks;
      if (file.has("/mask"))
        for (const std::string& key : file.data_sets("/mask")) masks += (masks.empty() ? "" : ", ") + key;
      COHORT_THROW_UNLESS(file.has(mask), "{} has no {}; its masks are {}", where, mask,
                          masks.empty() ? "not there" : masks);
      const std::vector<std::string> chosen = file.texts(mask);
      for (const std::string& demo : chosen)
        COHORT_THROW_UNLESS(std::find(demos.begin(), demos.end(), demo) != demos.end(),
                            "{}: {} names {}, which is not in the file", where, mask, demo);
      demos = chosen;
    }
    std::sort(demos.begin(), demos.end(), by_number);
    COHORT_THROW_UNLESS(!demos.empty(), "{}: the group data holds no demos", where);
    for (const std::string& demo : demos)
      skipping(where + ": /data/" + demo, [&] { add_episode(f, file, "/data/" + demo); });
  }

  void add_episode(std::size_t f, const Hdf5Metadata& file, const std::string& group) {
    const auto lengths = file.lengths(group);
    std::int64_t steps = usual_length(lengths);
    for (const auto& [key, value] : file.attributes(group))
      if (key == "num_samples") {
        double number = 0;
        std::from_chars(value.data(), value.data() + value.size(), number);
        steps = static_cast<std::int64_t>(number);
      }
    COHORT_THROW_UNLESS(steps > 0, "{}: {} is an empty episode; remove it, or set on_corrupt=skip to go on without it",
                        files[f].path.string(), group);
    episodes.push_back({f, group, steps});
  }

  void find_fields() {
    // A field has a row per step in the first and in the last episode: in one of them an array may have as many rows by
    // chance.
    std::map<std::string, int> rows;
    for (const Place* place : {&episodes.front(), &episodes.back()})
      for (const auto& [key, length] : Hdf5Metadata(files[place->file].path).lengths(place->group))
        if (length == place->steps) ++rows[key];
    const Place& first = episodes.front();
    for (const auto& [key, array] : Hdf5Metadata(files[first.file].path).arrays(first.group))
      if (rows[key] == 2) fields.push_back(make_field(key, array));
    COHORT_THROW_UNLESS(!fields.empty(), "{}: {} has no array with a row per step", files[first.file].path.string(),
                        first.group);
    for (const auto& [key, text] : all_metadata(Hdf5Metadata(files[first.file].path), first))
      metadata_names.push_back(key);
  }

  Hdf5Attributes all_metadata(const Hdf5Metadata& file, const Place& place) const {
    Hdf5Attributes all = files[place.file].metadata;
    const auto add = [&](const Hdf5Attributes& attributes, const std::string& prefix) {
      for (const auto& [key, text] : attributes) {
        all.emplace_back(prefix + key, text);
        if (key != "problem_info") continue;
        const Json info = Json::parse(text, nullptr, false);
        if (info.is_object() && info.contains("language_instruction") && info["language_instruction"].is_string())
          all.emplace_back("language_instruction", info["language_instruction"].get<std::string>());
      }
    };
    add(file.attributes(place.group), "");
    if (place.group != "/") add(file.attributes("/data"), "data/");
    if (std::none_of(all.begin(), all.end(), [](const auto& attribute) { return attribute.first == "file_path"; }))
      all.emplace_back("file_path", files[place.file].path.string());
    return all;
  }

  std::string location(const Place& place) const {
    return files[place.file].path.string() + (place.group == "/" ? "" : ": " + place.group);
  }

  std::shared_ptr<const MappedFile> map(std::size_t f) const {
    std::lock_guard lock(mutex);
    if (auto mapping = files[f].mapping.lock()) return mapping;
    auto mapping = std::make_shared<const MappedFile>(files[f].path);
    files[f].mapping = mapping;
    return mapping;
  }

  std::shared_ptr<const Hdf5Episode> make(std::int64_t episode) const {
    const Place& place = episodes[static_cast<std::size_t>(episode)];
    const Hdf5Metadata file(files[place.file].path);
    return std::make_shared<const Hdf5Episode>(map(place.file), location(place), place.steps, fields,
                                               file.arrays(place.group), all_metadata(file, place));
  }

  Hdf5Settings settings;
  std::string name;
  mutable std::mutex mutex;  // of the mappings
  mutable std::vector<File> files;
  std::vector<Place> episodes;
  std::vector<StepField> fields;
  std::vector<std::string> metadata_names, skipped;
  mutable EpisodeCache cache;
};

Hdf5Episodes::Hdf5Episodes(const fs::path& path, const Hdf5Settings& settings)
    : impl_(std::make_unique<Impl>(path, settings)) {}
Hdf5Episodes::~Hdf5Episodes() = default;

std::string Hdf5Episodes::episode_name(std::int64_t episode) const {
  const Impl::Place& place = impl_->episodes[static_cast<std::size_t>(episode)];
  return place.group == "/" ? impl_->files[place.file].path.string() : place.group.substr(1);
}
std::pair<fs::path, std::string> Hdf5Episodes::place(std::int64_t episode) const {
  const Impl::Place& place = impl_->episodes[static_cast<std::size_t>(episode)];
  return {impl_->files[place.file].path, place.group};
}
const std::string& Hdf5Episodes::name() const {
  return impl_->name;
}
std::int64_t Hdf5Episodes::size() const {
  return static_cast<std::int64_t>(impl_->episodes.size());
}
const std::vector<StepField>& Hdf5Episodes::fields() const {
  return impl_->fields;
}
const std::vector<std::string>& Hdf5Episodes::metadata_names() const {
  return impl_->metadata_names;
}
std::int64_t Hdf5Episodes::steps(std::int64_t episode) const {
  return impl_->episodes[static_cast<std::size_t>(episode)].steps;
}
const std::vector<std::string>& Hdf5Episodes::skipped() const {
  return impl_->skipped;
}

std::shared_ptr<const Episode> Hdf5Episodes::open(std::int64_t episode) const {
  COHORT_CHECK(episode >= 0 && episode < size(), "episode {} of {}", episode, size());
  return impl_->cache.get(episode, [&]() -> EpisodeCache::Made {
    auto opened = impl_->make(episode);
    const std::int64_t bytes = opened->bytes();
    return {std::move(opened), bytes};
  });
}

std::uint64_t Hdf5Episodes::content_hash() const {
  ContentHash hash;
  for (const Impl::File& file : impl_->files) {
    const MappedFile bytes(file.path);
    hash.add(bytes.size());
    hash.add(crc32c(bytes.bytes().substr(0, std::size_t{1} << 20)));
    hash.add(static_cast<std::uint64_t>(fs::last_write_time(file.path).time_since_epoch().count()));
  }
  for (const Impl::Place& place : impl_->episodes) {
    hash.add(place.file);
    hash.add(place.group);
  }
  return hash.value();
}

std::int64_t Hdf5Episodes::bytes_held() const {
  std::size_t tables = 0;
  for (const Impl::File& file : impl_->files) tables += sizeof(file) + file.path.native().capacity();
  for (const Impl::Place& place : impl_->episodes) tables += sizeof(place) + place.group.capacity();
  return static_cast<std::int64_t>(tables) + impl_->cache.bytes();
}

}  // namespace cohort::data
