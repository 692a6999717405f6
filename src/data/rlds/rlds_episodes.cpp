#include "data/rlds/rlds_episodes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/threads.h"
#include "data/episode_cache.h"
#include "data/stored_pictures.h"

namespace cohort::data {
namespace {

constexpr std::string_view kSteps = "steps/";

/// A leaf below `steps`, and which field it is.
struct StepLeaf {
  FeatureLeaf leaf;
  std::int64_t elements;  // of one step; -1 where it varies
};

class RldsEpisode final : public Episode {
 public:
  RldsEpisode(const RldsRecords& records, std::int64_t index, const std::vector<StepLeaf>& leaves,
              const std::vector<FeatureLeaf>& metadata, const std::vector<StepField>& fields, std::int64_t steps)
      : records_(records),
        index_(index),
        leaves_(leaves),
        fields_(fields),
        steps_(steps),
        example_(records.payload(index)),
        values_(leaves.size()),
        loaded_(leaves.size()) {
    for (std::size_t f = 0; f < leaves.size(); ++f)
      if (!is_late(leaves[f])) values_[f] = load(f);
    for (const FeatureLeaf& leaf : metadata) {
      const LeafValues values = read_leaf(example_, leaf);
      std::string text;
      if (!values.texts.empty())
        text = values.texts.front();
      else if (values.list.kind() == ListKind::kInt64 && values.list.size() > 0) {
        std::int64_t number = 0;
        values.list.read(0, std::span(&number, 1));
        text = leaf.dtype == "uint64" ? std::to_string(static_cast<std::uint64_t>(number)) : std::to_string(number);
      } else if (values.list.kind() == ListKind::kFloat && values.list.size() > 0) {
        float number = 0;
        values.list.read(0, std::span(&number, 1));
        text = format("{}", number);
      }
      metadata_.emplace_back(leaf.key, std::move(text));
    }
  }

  ~RldsEpisode() override { records_.release(index_); }

  std::int64_t steps() const override { return steps_; }

  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const override {
    const std::int64_t elements = number_elements(field, begin, count, out.size());
    const ExampleList& list = values(field).list;
    if (list.kind() == ListKind::kFloat)
      list.read(begin * elements, out);
    else
      read_other(field, begin, count, elements, out);
  }

  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const override {
    const std::int64_t elements = number_elements(field, begin, count, out.size());
    const ExampleList& list = values(field).list;
    if (list.kind() != ListKind::kFloat) return read_other(field, begin, count, elements, out);
    float piece[256];
    for (std::size_t done = 0; done < out.size();) {
      const std::size_t n = std::min(out.size() - done, std::size(piece));
      list.read(begin * elements + static_cast<std::int64_t>(done), std::span(piece, n));
      std::copy_n(piece, n, out.data() + done);
      done += n;
    }
  }

  void read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<std::int64_t> out) const override {
    const std::int64_t elements = number_elements(field, begin, count, out.size());
    const FeatureLeaf& leaf = leaves_[field].leaf;
    const LeafValues& values = this->values(field);
    COHORT_THROW_UNLESS(leaf.dtype.find("float") == std::string::npos, "{}: the field {} holds {}, no integers",
                        location(), fields_[field].name, leaf.dtype);
    if (values.list.kind() != ListKind::kBytes) {
      if (!out.empty()) values.list.read(begin * elements, out);
      return;
    }
    for (std::int64_t t = 0; t < count; ++t)
      decode_tensor(text_at(values, field, begin + t), leaf,
                    out.subspan(static_cast<std::size_t>(t * elements), static_cast<std::size_t>(elements)));
  }

  std::string_view text(std::size_t field, std::int64_t step) const override {
    check_step(field, step, 1, StepKind::kText);
    const std::string fault = fields_[field].fault();
    COHORT_THROW_UNLESS(fault.empty(), "{}: the field {} {}", location(), fields_[field].name, fault);
    return text_at(values(field), field, step);
  }

  StoredImage image(std::size_t field, std::int64_t step, std::string&) const override {
    check_step(field, step, 1, StepKind::kImage);
    COHORT_THROW_UNLESS(!fields_[field].ragged, "{}: the field {} {}", location(), fields_[field].name,
                        fields_[field].fault());
    return {.encoding = ImageEncoding::kJpegOrPng, .bytes = text_at(values(field), field, step)};
  }

  std::string_view metadata(std::string_view name) const override {
    for (const auto& [key, text] : metadata_)
      if (key == name) return text;
    return "";
  }

  std::string location() const override { return records_.location(index_); }

  /// Memory that an episode keeps or will: its index of so many features, and the record's pages that it maps.
  static std::int64_t bytes(std::size_t record, std::size_t features, const std::vector<StepLeaf>& leaves,
                            std::int64_t steps) {
    std::size_t total = sizeof(RldsEpisode) + record + std::bit_ceil(features) * sizeof(Example::Entry) +
                        leaves.size() * (sizeof(LeafValues) + sizeof(std::atomic<bool>));
    for (const StepLeaf& leaf : leaves)
      if (is_late(leaf)) {
        const std::int64_t each = leaf.leaf.dtype == "string" ? std::max<std::int64_t>(1, leaf.elements) : 1;
        total += static_cast<std::size_t>(steps * each) * sizeof(std::string_view);
      }
    return static_cast<std::int64_t>(total);
  }

  /// Looks at every field. Throws Error at the first that is not sound.
  void check_everything() const {
    for (std::size_t f = 0; f < leaves_.size(); ++f) values(f);
    check_stored_pictures(*this, fields_);
  }

 private:
  /// Texts, images and packed tensors are not looked for before they are asked for: the list of a camera's frames leads
  /// through all of the record's pages.
  static bool is_late(const StepLeaf& leaf) {
    return leaf.leaf.kind != FeatureKind::kTensor || leaf.leaf.dtype == "string" ||
           leaf.leaf.encoding != FeatureEncoding::kNone;
  }

  LeafValues load(std::size_t field) const {
    try {
      LeafValues values = read_leaf(example_, leaves_[field].leaf);
      check(leaves_[field], values);
      return values;
    } catch (const Error& error) {
      const std::string place = location(), what = error.what();
      throw Error(what.starts_with(place) ? what : place + ": " + what);
    }
  }

  const LeafValues& values(std::size_t field) const {
    if (!is_late(leaves_[field]) || loaded_[field].load(std::memory_order_acquire)) return values_[field];
    std::lock_guard lock(mutex_);
    if (!loaded_[field].load(std::memory_order_relaxed)) {
      values_[field] = load(field);
      loaded_[field].store(true, std::memory_order_release);
    }
    return values_[field];
  }

  /// Every field has one entry per step.
  void check(const StepLeaf& leaf, const LeafValues& values) const {
    std::int64_t found = 0, expected = steps_;
    if (leaf.leaf.sequences.size() > 1) {
      found = values.row_lengths.empty() ? 0 : static_cast<std::int64_t>(values.row_lengths.front().size());
    } else if (leaf.elements < 0 || values.list.kind() == ListKind::kBytes) {
      found = values.list.size();
      if (leaf.leaf.kind == FeatureKind::kTensor && leaf.leaf.dtype == "string" && leaf.elements > 0)
        expected = steps_ * leaf.elements;
    } else {
      found = values.list.size();
      expected = steps_ * leaf.elements;
    }
    COHORT_THROW_UNLESS(found == expected, "{}: {} holds {} values, but the episode's {} steps need {}", location(),
                        leaf.leaf.key, found, steps_, expected);
  }

  void check_step(std::size_t field, std::int64_t begin, std::int64_t count, StepKind kind) const {
    COHORT_CHECK(field < fields_.size() && begin >= 0 && count >= 0 && begin + count <= steps_,
                 "steps [{}, {}) of field {} are asked from an episode of {}", begin, begin + count, field, steps_);
    COHORT_THROW_UNLESS(fields_[field].kind == kind, "{}: the field {} holds {}", location(), fields_[field].name,
                        fields_[field].kind == StepKind::kNumber  ? "numbers"
                        : fields_[field].kind == StepKind::kImage ? "images"
                                                                  : "texts");
  }

  /// One of a list of bytes that has one per step.
  std::string_view text_at(const LeafValues& values, std::size_t field, std::int64_t step) const {
    COHORT_THROW_UNLESS(static_cast<std::size_t>(step) < values.texts.size(),
                        "{}: {} holds {} values, but step {} is asked for", location(), leaves_[field].leaf.key,
                        values.texts.size(), step);
    return values.texts[static_cast<std::size_t>(step)];
  }

  std::int64_t number_elements(std::size_t field, std::int64_t begin, std::int64_t count, std::size_t room) const {
    check_step(field, begin, count, StepKind::kNumber);
    const std::int64_t elements = leaves_[field].elements;
    COHORT_THROW_UNLESS(elements >= 0, "{}: the field {} has another size in every step, so it is no array of numbers",
                        location(), fields_[field].name);
    COHORT_CHECK(room == static_cast<std::size_t>(count * elements), "room for {} values, not {}", room,
                 count * elements);
    return elements;
  }

  template <class T>
  void read_other(std::size_t field, std::int64_t begin, std::int64_t count, std::int64_t elements,
                  std::span<T> out) const {
    const LeafValues& values = this->values(field);
    if (values.list.kind() == ListKind::kBytes) {  // a tensor stored as bytes, one per step
      for (std::int64_t t = 0; t < count; ++t) {
        const std::vector<double> numbers =
            decode_tensor(text_at(values, field, begin + t), leaves_[field].leaf, elements);
        std::transform(numbers.begin(), numbers.end(), out.begin() + t * elements,
                       [](double v) { return static_cast<T>(v); });
      }
      return;
    }
    const bool is_unsigned = leaves_[field].leaf.dtype == "uint64";
    std::int64_t piece[256];
    for (std::size_t done = 0; done < out.size();) {
      const std::size_t n = std::min(out.size() - done, std::size(piece));
      values.list.read(begin * elements + static_cast<std::int64_t>(done), std::span(piece, n));
      for (std::size_t i = 0; i < n; ++i)
        out[done + i] = is_unsigned ? static_cast<T>(static_cast<std::uint64_t>(piece[i])) : static_cast<T>(piece[i]);
      done += n;
    }
  }

  const RldsRecords& records_;
  const std::int64_t index_;
  const std::vector<StepLeaf>& leaves_;
  const std::vector<StepField>& fields_;
  const std::int64_t steps_;
  const Example example_;
  mutable std::mutex mutex_;  // of what is looked for late
  mutable std::vector<LeafValues> values_;
  mutable std::vector<std::atomic<bool>> loaded_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

StepField make_field(const FeatureLeaf& leaf, std::int64_t& elements) {
  StepField field{.name = leaf.key.substr(kSteps.size()), .shape = leaf.shape};
  if (leaf.kind == FeatureKind::kImage)
    field.kind = StepKind::kImage;
  else if (leaf.kind == FeatureKind::kText || leaf.dtype == "string")
    field.kind = StepKind::kText;
  else
    field.type = element_type_for(leaf.dtype);
  if (leaf.sequences.size() > 1)
    field.shape.insert(field.shape.begin(), leaf.sequences.begin() + 1, leaf.sequences.end());
  elements = leaf.sequences.size() > 1 ? -1 : field.elements();
  if (leaf.sequences.size() > 1) field.shape[0] = -1;  // stored ragged even where the length is fixed
  field.ragged = leaf.sequences.size() > 1;
  if (field.kind != StepKind::kText) field.stored_type = leaf.dtype;
  return field;
}

}  // namespace

struct RldsEpisodes::Impl {
  Impl(const std::filesystem::path& path, const RldsSettings& wanted)
      : settings(wanted), records(path, wanted), cache(wanted.cache_bytes) {
    const std::string where = (records.folder() / "features.json").string();
    const Feature* steps_feature = records.schema().child("steps");
    COHORT_THROW_UNLESS(steps_feature && steps_feature->kind == FeatureKind::kSequence &&
                            steps_feature->children.front().second.kind == FeatureKind::kDict,
                        "{} has no feature `steps` that is a Dataset or Sequence of a dict: this is no RLDS data set",
                        where);
    for (FeatureLeaf& leaf : list_leaves(records.schema())) {
      if (!leaf.key.starts_with(kSteps)) {
        // One value per episode; what is left out of it convert_episodes() names.
        const bool one = leaf.sequences.empty() && std::all_of(leaf.shape.begin(), leaf.shape.end(),
                                                               [](std::int64_t extent) { return extent == 1; });
        if (one && leaf.kind != FeatureKind::kImage && leaf.encoding == FeatureEncoding::kNone) {
          metadata_names.push_back(leaf.key);
          metadata.push_back(std::move(leaf));
        }
        continue;
      }
      std::int64_t elements = 0;
      fields.push_back(make_field(leaf, elements));
      leaves.push_back({std::move(leaf), elements});
    }
    COHORT_THROW_UNLESS(!leaves.empty(), "{}: the steps have no fields", where);
    // The number of steps is told by a field with a fixed number of values per step; the smallest is the cheapest.
    for (const StepLeaf& leaf : leaves)
      if (leaf.elements > 0 && leaf.leaf.sequences.size() == 1 &&
          (!counting || leaf.elements < counting->elements ||
           (leaf.elements == counting->elements && leaf.leaf.kind == FeatureKind::kTensor &&
            counting->leaf.kind != FeatureKind::kTensor)))
        counting = &leaf;
    if (!counting)
      for (const StepLeaf& leaf : leaves)
        if (leaf.leaf.kind == FeatureKind::kImage && leaf.leaf.sequences.size() == 1) counting = &leaf;
    COHORT_THROW_UNLESS(counting, "{}: no field tells how many steps an episode has", where);
    count_steps();
  }

  std::int64_t steps_of(std::int64_t record) const {
    const Example example(records.payload(record));
    const LeafValues values = read_leaf(example, counting->leaf);
    const std::int64_t per_step =
        values.list.kind() == ListKind::kBytes && counting->leaf.dtype != "string" ? 1 : counting->elements;
    const std::int64_t n = std::max<std::int64_t>(per_step, 1);
    COHORT_THROW_UNLESS(values.list.size() > 0, "{}: the episode is empty (field {} has no value)",
                        records.location(record), counting->leaf.key);
    COHORT_THROW_UNLESS(values.list.size() % n == 0, "{}: {} holds {} values, which is no multiple of {}",
                        records.location(record), counting->leaf.key, values.list.size(), n);
    return values.list.size() / n;
  }

  void count_steps() {
    const std::int64_t count = records.size();
    std::vector<std::int64_t> all(static_cast<std::size_t>(count), 0);
    std::vector<std::string> faults(static_cast<std::size_t>(count));
    const bool skip = settings.on_corrupt == "skip";
    const int threads = settings.threads > 0 ? settings.threads : available_cores();
    constexpr std::int64_t kPerTask = 64;
    parallel_for((count + kPerTask - 1) / kPerTask, threads, [&](std::int64_t task) {
      for (std::int64_t r = task * kPerTask; r < std::min(count, (task + 1) * kPerTask); ++r) {
        const auto i = static_cast<std::size_t>(r);
        if (const auto known = records.known_steps(r)) {
          all[i] = *known;
          continue;
        }
        try {
          all[i] = steps_of(r);
          if (skip) RldsEpisode(records, r, leaves, metadata, fields, all[i]).check_everything();
        } catch (const Error& e) {
          const std::string place = records.location(r), what = e.what();
          faults[i] = what.starts_with(place) ? what : place + ": " + what;
          if (!skip) throw Error(format("{}; {} to go on without such episodes", faults[i], kSkipDamaged));
        }
        records.release(r);
      }
    });
    std::vector<std::int64_t> kept = all;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (!faults[i].empty()) kept[i] = -1;
    records.keep_steps(kept);
    for (const RecordFault& fault : records.faults()) {
      skipped.push_back(fault.message());
      skipped_records += fault.records;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!faults[i].empty()) {
        skipped.push_back(faults[i]);
        ++skipped_records;
        continue;
      }
      episodes.push_back(static_cast<std::int64_t>(i));
      steps.push_back(all[i]);
    }
    COHORT_THROW_UNLESS(!episodes.empty(), "{}: no sound episode is left; the first fault: {}",
                        records.folder().string(), skipped.empty() ? "none" : skipped.front());
    verified = std::vector<std::atomic<bool>>(episodes.size());
  }

  RldsSettings settings;
  RldsRecords records;
  std::vector<StepLeaf> leaves;
  std::vector<StepField> fields;
  std::vector<FeatureLeaf> metadata;
  std::vector<std::string> metadata_names;
  const StepLeaf* counting = nullptr;
  std::vector<std::int64_t> episodes, steps;  // record number and length of each
  std::vector<std::string> skipped;
  std::int64_t skipped_records = 0;
  mutable std::vector<std::atomic<bool>> verified;
  mutable EpisodeCache cache;
};

RldsEpisodes::RldsEpisodes(const std::filesystem::path& path, const RldsSettings& settings)
    : impl_(std::make_unique<Impl>(path, settings)) {}
RldsEpisodes::~RldsEpisodes() = default;

const RldsRecords& RldsEpisodes::records() const {
  return impl_->records;
}
const std::string& RldsEpisodes::name() const {
  return impl_->records.info().name;
}
std::int64_t RldsEpisodes::size() const {
  return static_cast<std::int64_t>(impl_->episodes.size());
}
const std::vector<StepField>& RldsEpisodes::fields() const {
  return impl_->fields;
}
const std::vector<std::string>& RldsEpisodes::metadata_names() const {
  return impl_->metadata_names;
}
std::int64_t RldsEpisodes::steps(std::int64_t episode) const {
  return impl_->steps[static_cast<std::size_t>(episode)];
}
const std::vector<std::string>& RldsEpisodes::skipped() const {
  return impl_->skipped;
}

std::int64_t RldsEpisodes::skipped_count() const {
  return impl_->skipped_records;
}

std::vector<MetadataType> RldsEpisodes::metadata_types(std::int64_t episode, std::vector<std::string>& left_out) const {
  std::vector<MetadataType> metadata = EpisodeSource::metadata_types(episode, left_out);
  for (const FeatureLeaf& leaf : list_leaves(records().schema()))
    if (!leaf.key.starts_with("steps/") && !set_metadata_type(metadata, leaf.key, leaf.dtype))
      left_out.push_back(leaf.key + ": not one text or number per episode");
  return metadata;
}
std::vector<std::string> RldsEpisodes::unselected_splits() const {
  std::vector<std::string> lines;
  const std::vector<SplitRange> selected = select_split(records().info(), records().split());
  for (const SplitInfo& split : records().info().splits)
    if (std::none_of(selected.begin(), selected.end(), [&](const SplitRange& r) { return r.split == split.name; }))
      lines.push_back(format("the split {}: convert it by itself, with --split {}", split.name, split.name));
  return lines;
}
std::vector<std::string> RldsEpisodes::element_names(const std::string& field_name) const {
  const std::filesystem::path file = impl_->records.folder() / kElementNamesFile;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  const auto json = try_json<nlohmann::json>(read_file(file));
  if (!json.is_object() || !json.contains(field_name) || !json.at(field_name).is_array()) return {};
  std::vector<std::string> names;
  for (const auto& name : json.at(field_name))
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

std::pair<std::filesystem::path, std::string> RldsEpisodes::place(std::int64_t episode) const {
  return impl_->records.place(impl_->episodes[static_cast<std::size_t>(episode)]);
}
std::string_view RldsEpisodes::record(std::int64_t episode) const {
  COHORT_CHECK(episode >= 0 && episode < size(), "episode {} of {}", episode, size());
  const std::int64_t number = impl_->episodes[static_cast<std::size_t>(episode)];
  impl_->records.verify(number);
  return impl_->records.payload(number);
}

std::shared_ptr<const Episode> RldsEpisodes::open(std::int64_t episode) const {
  COHORT_CHECK(episode >= 0 && episode < size(), "episode {} of {}", episode, size());
  // Captures no more than std::function holds without memory of its own.
  return impl_->cache.get(episode, bytes_when_open(episode, {}), [this, episode]() -> EpisodeCache::Made {
    const auto e = static_cast<std::size_t>(episode);
    const std::int64_t record = impl_->episodes[e];
    const std::string& when = impl_->settings.checksums;
    if (when == "always" || (when == "first" && !impl_->verified[e].load(std::memory_order_relaxed))) {
      impl_->records.verify(record);
      impl_->verified[e].store(true, std::memory_order_relaxed);
    }
    try {
      return {std::make_shared<RldsEpisode>(impl_->records, record, impl_->leaves, impl_->metadata, impl_->fields,
                                            impl_->steps[e]),
              bytes_when_open(episode, {})};
    } catch (const Error& error) {
      const std::string place = impl_->records.location(record), what = error.what();
      throw Error(what.starts_with(place) ? what : place + ": " + what);
    }
  });
}

std::int64_t RldsEpisodes::bytes_when_open(std::int64_t episode, std::span<const std::size_t>) const {
  const auto e = static_cast<std::size_t>(episode);
  return RldsEpisode::bytes(impl_->records.length(impl_->episodes[e]), impl_->leaves.size() + impl_->metadata.size(),
                            impl_->leaves, impl_->steps[e]);
}

std::uint64_t RldsEpisodes::content_hash() const {
  ContentHash hash;
  hash.add(write_features(impl_->records.schema()));
  for (const std::int64_t record : impl_->episodes) {
    hash.add(impl_->records.stored_checksum(record));
    hash.add(impl_->records.length(record));
  }
  return hash.value();
}

std::int64_t RldsEpisodes::stored_bytes() const {
  return impl_->records.stored_bytes();
}

std::int64_t RldsEpisodes::bytes_held() const {
  const std::size_t tables = impl_->episodes.size() * (2 * sizeof(std::int64_t) + sizeof(bool)) +
                             static_cast<std::size_t>(impl_->records.size()) * 32;
  return static_cast<std::int64_t>(tables) + impl_->cache.bytes();
}

}  // namespace cohort::data
