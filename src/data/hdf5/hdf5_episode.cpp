#include "data/hdf5/hdf5_episode.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/hdf5/episode_layout.h"

namespace cohort::data {

Hdf5Array find_field_array(const Hdf5Metadata& file, const std::string& group, const std::string& location,
                           std::int64_t steps, const StepField& field) {
  const std::string remedy = format("mend or remove it, or {} to go on without such episodes", kSkipDamaged);
  const std::string path = (group == "/" ? "/" : group + "/") + field.name;
  COHORT_THROW_UNLESS(file.has(path), "{}: lacks the field {} that other episodes have; {}", location, field.name,
                      remedy);
  Hdf5Array array = file.array(path);
  COHORT_THROW_UNLESS(has_row_per_step(array.shape[0], steps), "{}: {} has {} rows, but the episode has {} steps; {}",
                      location, field.name, array.shape[0], steps, remedy);
  const StepField here = make_step_field(field.name, array);
  COHORT_THROW_UNLESS(here.kind == field.kind && (here.shape == field.shape || field.kind == StepKind::kImage),
                      "{}: {} has another shape than in other episodes; {}", location, field.name, remedy);
  return array;
}

Hdf5Episode::Hdf5Episode(const Hdf5EpisodeDetails& details, std::int64_t number, std::shared_ptr<const MappedFile> file,
                         std::string location, Hdf5Rows rows, const std::vector<StepField>& fields)
    : details_(details),
      number_(number),
      file_(std::move(file)),
      location_(std::move(location)),
      rows_(rows),
      fields_(fields),
      arrays_(fields.size()),
      known_(fields.size()),
      unpacked_(fields.size()),
      known_unpacked_(fields.size()) {}

Hdf5Episode::~Hdf5Episode() {
  for (const auto& array : arrays_)
    if (array) release_pages(*file_, *array, rows_.first, rows_.count);
}

void Hdf5Episode::check_steps(std::size_t field, std::int64_t begin, std::int64_t count) const {
  COHORT_CHECK(field < fields_.size() && begin >= 0 && count >= 0 && begin + count <= rows_.count,
               "steps [{}, {}) of field {} are asked from an episode of {}", begin, begin + count, field, rows_.count);
}

const Hdf5Array& Hdf5Episode::array_of(std::size_t field) const {
  if (const Hdf5Array* known = known_[field].load(std::memory_order_acquire)) return *known;
  std::unique_lock lock(mutex_);
  if (!arrays_[field]) {
    arrays_[field] = details_.array(number_, field);
    known_[field].store(arrays_[field].get(), std::memory_order_release);
    lock.unlock();
    const Hdf5Array& array = *arrays_[field];  // which other episodes may share
    details_.count_bytes(number_, array.stored_bytes() / std::max<std::int64_t>(array.shape[0], 1) * rows_.count);
  }
  return *arrays_[field];
}

const std::string* Hdf5Episode::unpacked(std::size_t field, const Hdf5Array& array) const {
  constexpr std::int64_t kMostBytes = 16 << 20;
  const std::int64_t bytes = rows_.count * array.row_bytes();
  if (array.layout != Hdf5Layout::kChunked || array.filters.empty() || rows_.count + 1 >= array.shape[0] ||
      bytes > kMostBytes)
    return nullptr;
  if (const std::string* known = known_unpacked_[field].load(std::memory_order_acquire)) return known;
  std::string rows(static_cast<std::size_t>(bytes), '\0'), inflating;
  read_rows(*file_, array, rows_.first, rows_.count, rows.data(), inflating);  // two threads may do so, one is kept
  std::unique_lock lock(mutex_);
  if (!unpacked_[field]) {
    unpacked_[field] = std::make_unique<const std::string>(std::move(rows));
    known_unpacked_[field].store(unpacked_[field].get(), std::memory_order_release);
    lock.unlock();
    details_.count_bytes(number_, bytes);
  }
  return known_unpacked_[field].load(std::memory_order_acquire);
}

const Hdf5Attributes& Hdf5Episode::all_metadata() const {
  std::unique_lock lock(mutex_);
  if (!metadata_) {
    metadata_ = details_.metadata(number_);
    std::size_t bytes = 0;
    for (const auto& [key, text] : *metadata_) bytes += sizeof(key) + sizeof(text) + key.capacity() + text.capacity();
    lock.unlock();
    details_.count_bytes(number_, static_cast<std::int64_t>(bytes));
  }
  return *metadata_;
}

template <class T>
void Hdf5Episode::read_numbers(std::size_t field, std::int64_t begin, std::int64_t count, std::span<T> out) const {
  check_steps(field, begin, count);
  COHORT_THROW_UNLESS(fields_[field].kind == StepKind::kNumber, "{}: the field {} holds images", location_,
                      fields_[field].name);
  const Hdf5Array& array = array_of(field);
  COHORT_CHECK(out.size() == static_cast<std::size_t>(count * array.row_elements()), "room for {} values, not {}",
               out.size(), count * array.row_elements());
  if (const std::string* kept = unpacked(field, array))
    return convert_elements(array.element, kept->data() + begin * array.row_bytes(), out);
  thread_local std::string rows, inflating;
  rows.resize(static_cast<std::size_t>(count * array.row_bytes()));
  read_rows(*file_, array, rows_.first + begin, count, rows.data(), inflating);
  convert_elements(array.element, rows.data(), out);
}

void Hdf5Episode::read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const {
  read_numbers(field, begin, count, out);
}

void Hdf5Episode::read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const {
  read_numbers(field, begin, count, out);
}

void Hdf5Episode::read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const {
  COHORT_THROW_UNLESS(field >= fields_.size() || array_of(field).element.kind != Hdf5Element::Kind::kFloat,
                      "{}: the field {} holds floating-point numbers, no integers", location_, fields_[field].name);
  read_numbers(field, begin, count, out);
}

std::string_view Hdf5Episode::text(std::size_t field, std::int64_t) const {
  throw Error(format("{}: the field {} holds no texts", location_, fields_[field].name));
}

StoredImage Hdf5Episode::image(std::size_t field, std::int64_t step, std::string& scratch) const {
  check_steps(field, step, 1);
  COHORT_THROW_UNLESS(fields_[field].kind == StepKind::kImage, "{}: the field {} holds no images", location_,
                      fields_[field].name);
  const Hdf5Array& array = array_of(field);
  const bool packed = is_packed_pictures(fields_[field].name, array), planes = !packed && is_channels_first(array);
  StoredImage image;
  if (!packed)
    image = {.encoding = ImageEncoding::kRaw,
             .bytes = {},
             .height = array.shape[planes ? 2 : 1],
             .width = array.shape[planes ? 3 : 2],
             .channels = array.shape[planes ? 1 : 3]};
  image.bytes = rows_in_place(*file_, array, rows_.first + step, 1);
  thread_local std::string inflating, stored_planes;
  if (image.bytes.empty() && array.row_bytes() > 0) {
    std::string& row = planes ? stored_planes : scratch;
    row.resize(static_cast<std::size_t>(array.row_bytes()));
    read_rows(*file_, array, rows_.first + step, 1, row.data(), inflating);
    image.bytes = row;
  }
  if (!planes) return image;
  const auto pixels = static_cast<std::size_t>(image.height * image.width);
  const auto channels = static_cast<std::size_t>(image.channels);
  scratch.resize(pixels * channels);
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < pixels; ++i) scratch[i * channels + c] = image.bytes[c * pixels + i];
  image.bytes = scratch;
  return image;
}

std::string_view Hdf5Episode::metadata(std::string_view name) const {
  for (const auto& [key, text] : all_metadata())
    if (key == name) return text;
  return "";
}

std::int64_t Hdf5Episode::bytes() const {
  return static_cast<std::int64_t>(sizeof(*this) + location_.capacity() +
                                   fields_.size() * (sizeof(arrays_[0]) + sizeof(known_[0])));
}

}  // namespace cohort::data
