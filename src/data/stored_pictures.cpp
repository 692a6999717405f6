#include "data/stored_pictures.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/images/codec.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kEpisodesLookedAt = 32;

std::string place_of(const Episode& episode, const StepField& field, std::int64_t step) {
  return format("{}: {} of step {}", episode.location(), field.name, step);
}

/// Height and width; 0 where there is no picture.
std::pair<std::int64_t, std::int64_t> size_of(const StoredImage& picture) {
  if (picture.bytes.empty()) return {0, 0};
  if (picture.encoding == ImageEncoding::kRaw) return {picture.height, picture.width};
  const Image header = image_header(picture.bytes);
  return {header.height, header.width};
}

}  // namespace

std::string picture_fault(const StoredImage& picture) {
  if (picture.bytes.empty() || picture.encoding == ImageEncoding::kRaw) return "";
  try {
    image_header(picture.bytes);
  } catch (const Error& error) {
    return error.what();
  }
  // Rows of a table may be filled up with zeros behind the picture.
  const std::size_t end = picture.bytes.find_last_not_of('\0') + 1;
  constexpr std::size_t kBehind = 4096;  // bytes that some writers put behind a picture
  const std::string_view last = picture.bytes.substr(end > kBehind ? end - kBehind : 0, std::min(end, kBehind));
  const bool jpeg = picture.bytes.starts_with("\xff\xd8");
  if (last.find(jpeg ? "\xff\xd9" : "IEND") == std::string_view::npos)
    return format("the {} ends early: its last mark is missing", jpeg ? "JPEG" : "PNG");
  return "";
}

std::string picture_remedy(const StoredImage& picture) {
  return picture_fault(picture).empty()
             ? ""
             : format("; copy the file again, or {} to go on without such episodes", kSkipDamaged);
}

void check_stored_picture(const Episode& episode, const StepField& field, std::size_t index, std::int64_t step) {
  std::string scratch;
  const std::string fault = picture_fault(episode.image(index, step, scratch));
  COHORT_THROW_UNLESS(fault.empty(), "{}: {}", place_of(episode, field, step), fault);
}

void check_stored_pictures(const Episode& episode, const std::vector<StepField>& fields) {
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].kind != StepKind::kImage || fields[f].ragged) continue;
    for (std::int64_t step = 0; step < episode.steps(); ++step) check_stored_picture(episode, fields[f], f, step);
  }
}

void check_first_pictures(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                          std::span<const std::size_t> fields, bool may_be_missing, int threads) {
  const auto all = std::ssize(episodes);
  const std::int64_t count = std::min(all, kEpisodesLookedAt);
  if (count == 0 || fields.empty()) return;
  const auto chosen = [&](std::int64_t i) {
    return episodes[static_cast<std::size_t>(count == 1 ? 0 : i * (all - 1) / (count - 1))];
  };
  struct Seen {
    std::pair<std::int64_t, std::int64_t> size;
    std::string where;
  };
  std::vector<std::vector<Seen>> seen(static_cast<std::size_t>(count), std::vector<Seen>(fields.size()));
  parallel_for(count, threads, [&](std::int64_t i) {
    const auto episode = source.open(chosen(i));
    std::string scratch;
    for (std::size_t f = 0; f < fields.size() && episode->steps() > 0; ++f) {
      const StepField& field = source.fields()[fields[f]];
      const StoredImage picture = episode->image(fields[f], 0, scratch);
      const std::string where = place_of(*episode, field, 0);
      COHORT_THROW_UNLESS(!picture.bytes.empty() || may_be_missing,
                          "{}: there is no image; set data.missing_image=black to go on with a black one", where);
      const std::string fault = picture_fault(picture);
      COHORT_THROW_UNLESS(fault.empty(), "{}: {}{}", where, fault, picture_remedy(picture));
      seen[static_cast<std::size_t>(i)][f] = {size_of(picture), where};
    }
  });
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const StepField& field = source.fields()[fields[f]];
    std::pair<std::int64_t, std::int64_t> usual{0, 0};
    if (field.shape.size() == 3 && field.shape[0] > 0 && field.shape[1] > 0) usual = {field.shape[0], field.shape[1]};
    const bool said = usual.first > 0;
    std::int64_t others = 0;
    const Seen* first = nullptr;
    for (const std::vector<Seen>& of : seen) {
      if (of[f].size.first == 0) continue;
      if (usual.first == 0) usual = of[f].size;
      if (of[f].size == usual) continue;
      ++others;
      if (first == nullptr) first = &of[f];
    }
    if (first != nullptr)
      log::warning(
          "{}: it has {} x {} pixels (height x width), but {} {} x {}; so it is in {} of {} episodes looked at: "
          "each is resized as data.image_transforms say",
          first->where, first->size.first, first->size.second,
          said ? "the data's description says" : "the first one has", usual.first, usual.second, others, count);
  }
}

}  // namespace cohort::data
