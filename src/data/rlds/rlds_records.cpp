#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>

#include <zlib.h>

#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/threads.h"
#include "data/rlds/rlds_episodes.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kIndexFromBytes = 64 << 20;  // below, the shards are read faster than an index is worth

/// What lies in the folder in a split's name: its shards may have been renamed, or be of another preparation.
std::string shards_there(const fs::path& folder, const DatasetInfo& info, const SplitInfo& split) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find("tfrecord") != std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto of_split = [&](const std::string& name) { return name.find("-" + split.name + ".") != std::string::npos; };
  std::stable_partition(names.begin(), names.end(), of_split);
  if (names.empty()) return "the folder holds no TFRecord file";
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostNamed) list += format(" and {} more", names.size() - kMostNamed);
  // cups-train.tfrecord-00000-of-00008
  const std::size_t of = names.front().rfind("-of-");
  std::int64_t said = 0;
  if (of != std::string::npos)
    std::from_chars(names.front().data() + of + 4, names.front().data() + names.front().size(), said);
  const bool other =
      of_split(names.front()) && said > 0 && said != static_cast<std::int64_t>(split.shard_lengths.size());
  return format(
      "the folder holds {}{}", list,
      other ? format("; the first is of {} shards: dataset_info.json is of another preparation of {}, or the file was "
                     "renamed",
                     said, info.name)
            : "");
}

/// What a sound record's number in its shard may be: one number, but for those between two gaps of unknown size.
struct RecordNumber {
  std::int64_t lowest, highest;
};

/// A record's number is its rank by offset among the sound ones and those that faults took. `length`: records of the
/// shard, as dataset_info.json says; those that no fault is said to have taken lie in one of the gaps.
std::vector<RecordNumber> number_records(const TfRecordFile& file, const std::vector<RecordFault>& faults,
                                         std::int64_t length) {
  std::int64_t spare = length - static_cast<std::int64_t>(file.size()), gaps = 0;
  for (const RecordFault& fault : faults) {
    spare -= fault.records;
    gaps += fault.is_gap ? 1 : 0;
  }
  spare = std::max<std::int64_t>(spare, 0);
  std::vector<RecordNumber> numbers(file.size());
  std::int64_t number = 0, gaps_before = 0;
  std::size_t fault = 0;
  for (std::size_t r = 0; r < file.size(); ++r, ++number) {
    for (; fault < faults.size() && faults[fault].offset < file.offset(r); ++fault) {
      number += faults[fault].records;
      gaps_before += faults[fault].is_gap ? 1 : 0;
    }
    numbers[r] = {number + (gaps_before == gaps ? spare : 0), number + (gaps_before > 0 ? spare : 0)};
  }
  return numbers;
}

/// Says what each gap of a shard took, as far as that can be told. `lost`: records that are neither sound nor damaged
/// by themselves. Returns how many of them no gap can be said to have taken.
std::int64_t share_among_gaps(std::vector<RecordFault>& faults, std::int64_t lost) {
  const auto gaps = std::count_if(faults.begin(), faults.end(), [](const RecordFault& f) { return f.is_gap; });
  // The only gap took all of them; one of several at least one, if there are enough.
  const std::int64_t each = gaps == 1 ? lost : lost >= gaps ? 1 : 0;
  for (RecordFault& fault : faults)
    if (fault.is_gap) fault.records = each;
  return lost - gaps * each;
}

}  // namespace

void describe(config::Fields& fields, RldsSettings& settings) {
  fields.add("split", settings.split, "records to read, as tfds.load takes it: train, train[:95%], train[10:]+test");
  fields.add_choice("on_corrupt", settings.on_corrupt, {"error", "skip"},
                    "what a damaged record does: end the work, or be left out, counted and named");
  fields.add_choice("checksums", settings.checksums, {"first", "always", "never"},
                    "when a record's checksum is verified: the first time it is read, every time, never");
  fields.add("cache_bytes", settings.cache_bytes, "bytes of opened episodes that are kept for reuse");
  fields.add("threads", settings.threads, "threads that index the shards; 0: one per core");
  fields.add("index_cache", settings.index_cache,
             "where the places and lengths of episodes are kept: auto, never, or a folder");
}

RldsRecords::RldsRecords(const fs::path& path, const RldsSettings& settings)
    : folder_(find_dataset_folder(path)), split_(settings.split) {
  COHORT_THROW_UNLESS(settings.on_corrupt == "error" || settings.on_corrupt == "skip",
                      "on_corrupt is error or skip, not '{}'", settings.on_corrupt);
  info_ = parse_dataset_info(read_file(folder_ / "dataset_info.json"), (folder_ / "dataset_info.json").string());
  COHORT_THROW_UNLESS(
      fs::exists(folder_ / "features.json"),
      "{} has dataset_info.json, but no features.json, which names the fields of a record: copy it from "
      "where the data set came from, or write it with tfds's folder_dataset.write_metadata",
      folder_.string());
  schema_ = parse_features(read_file(folder_ / "features.json"), (folder_ / "features.json").string());

  // The shards that the selected ranges touch, each opened once.
  struct Shard {
    fs::path path;
    std::int64_t length;  // records, as dataset_info.json says
  };
  struct Piece {
    std::size_t shard;
    std::int64_t begin, end;  // records of the shard
  };
  std::vector<Shard> shards;
  std::vector<Piece> pieces;
  for (const SplitRange& range : select_split(info_, settings.split)) {
    const SplitInfo* split = nullptr;
    for (const SplitInfo& candidate : info_.splits)
      if (candidate.name == range.split) split = &candidate;
    std::int64_t before = 0;
    for (std::size_t s = 0; s < split->shard_lengths.size(); ++s) {
      const std::int64_t length = split->shard_lengths[s];
      const std::int64_t begin = std::max<std::int64_t>(range.begin - before, 0);
      const std::int64_t end = std::min(range.end - before, length);
      before += length;
      if (begin >= end) continue;
      const fs::path shard = folder_ / shard_name(info_, *split, static_cast<std::int64_t>(s));
      std::size_t known = 0;
      while (known < shards.size() && shards[known].path != shard) ++known;
      if (known == shards.size()) {
        COHORT_THROW_UNLESS(fs::exists(shard),
                            "shard {} is missing: {} says that split {} has {} with {} records; {}; copy the missing "
                            "one, or select other records with data.splits (--split of cohort data)",
                            shard.string(), (folder_ / "dataset_info.json").string(), split->name,
                            split->shard_lengths.size(), split->size(), shards_there(folder_, info_, *split));
        shards.push_back({shard, length});
      }
      pieces.push_back({known, begin, end});
    }
  }

  std::vector<fs::path> paths;
  std::vector<std::int64_t> lengths;
  for (const Shard& shard : shards) {
    paths.push_back(shard.path);
    lengths.push_back(shard.length);
  }
  std::vector<std::vector<RecordFault>> faults(shards.size());
  open_shards(paths, lengths, settings, faults);
  for (const Piece& piece : pieces) {
    const std::vector<RecordNumber> numbers =
        number_records(files_[piece.shard], faults[piece.shard], lengths[piece.shard]);
    for (std::uint32_t r = 0; r < numbers.size(); ++r)
      if (numbers[r].lowest >= piece.begin && numbers[r].highest < piece.end)
        records_.push_back({static_cast<std::uint32_t>(piece.shard), r});
  }
  COHORT_THROW_UNLESS(!records_.empty(), "{}: no sound record is left in split {}", folder_.string(), settings.split);
}

void RldsRecords::open_shards(const std::vector<fs::path>& paths, const std::vector<std::int64_t>& lengths,
                              const RldsSettings& settings, std::vector<std::vector<RecordFault>>& faults) {
  const bool skip = settings.on_corrupt == "skip";
  std::vector<FileIdentity> identities;
  std::uint64_t bytes = 0;
  for (const fs::path& path : paths) bytes += identities.emplace_back(FileIdentity::of(path)).size;
  const bool small = settings.index_cache == "auto" && bytes < kIndexFromBytes;
  index_ = std::make_unique<Index>(Index{.kept = ShardIndex(KeptFiles(folder_, small ? "never" : settings.index_cache),
                                                            info_.name + "\n" + write_features(schema_)),
                                         .shards = std::move(identities),
                                         .records = std::vector<std::vector<IndexedRecord>>(paths.size()),
                                         .look_through = skip});
  std::vector<std::unique_ptr<TfRecordFile>> opened(paths.size());
  std::vector<std::optional<RecordFault>> between_gaps(paths.size());
  const int threads = settings.threads > 0 ? settings.threads : available_cores();
  parallel_for(static_cast<std::int64_t>(paths.size()), threads, [&](std::int64_t i) {
    const auto s = static_cast<std::size_t>(i);
    std::vector<IndexedRecord>& records = index_->records[s];
    const std::span<const IndexedRecord> known = index_->kept.find(index_->shards[s]);
    const bool looked_through = std::all_of(known.begin(), known.end(), [](const auto& r) { return r.verified; });
    if (!known.empty() && (!skip || looked_through)) {
      opened[s] = std::make_unique<TfRecordFile>(paths[s], known);
      records.assign(known.begin(), known.end());
    } else {
      opened[s] = skip ? std::make_unique<TfRecordFile>(paths[s], faults[s]) : std::make_unique<TfRecordFile>(paths[s]);
      for (std::size_t r = 0; r < opened[s]->size() && faults[s].empty(); ++r)
        records.push_back({.length = opened[s]->length(r), .checksum = opened[s]->stored_checksum(r)});
    }
    const auto gaps =
        std::count_if(faults[s].begin(), faults[s].end(), [](const RecordFault& fault) { return fault.is_gap; });
    const auto found = static_cast<std::int64_t>(opened[s]->size() + faults[s].size()) - gaps;
    COHORT_THROW_UNLESS(skip || found == lengths[s],
                        "{} holds {} records, but dataset_info.json says {}: the shard was cut between two records, or "
                        "is of another version; copy it again, or {} to go on without the rest",
                        paths[s].string(), found, lengths[s], kSkipDamaged);
    const std::int64_t unplaced = skip ? share_among_gaps(faults[s], std::max<std::int64_t>(0, lengths[s] - found)) : 0;
    if (unplaced > 0 && gaps == 0) {
      faults[s].push_back({.path = paths[s].string(),
                           .offset = fs::file_size(paths[s]),
                           .what = "dataset_info.json lists more records than are there",
                           .records = unplaced});
      records.clear();
    } else if (unplaced > 0) {
      const auto first =
          std::find_if(faults[s].begin(), faults[s].end(), [](const auto& fault) { return fault.is_gap; });
      between_gaps[s] = {.path = paths[s].string(),
                         .offset = first->offset,
                         .what = format("which of the shard's {} damaged places took how many records cannot be told; "
                                        "slices that end among them leave out what lies between",
                                        gaps),
                         .records = unplaced};
    }
  });
  files_.reserve(paths.size());
  for (std::size_t s = 0; s < paths.size(); ++s) {
    files_.push_back(std::move(*opened[s]));
    faults_.insert(faults_.end(), faults[s].begin(), faults[s].end());
    if (between_gaps[s]) faults_.push_back(*std::move(between_gaps[s]));
  }
}

std::optional<std::int64_t> RldsRecords::known_steps(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  if (!index_ || index_->records[place.file].empty()) return std::nullopt;
  const IndexedRecord& record = index_->records[place.file][place.record];
  if (record.steps < 0 || (index_->look_through && !record.verified)) return std::nullopt;
  return record.steps;
}

void RldsRecords::keep_steps(std::span<const std::int64_t> steps) {
  COHORT_CHECK(index_ && steps.size() == records_.size(), "steps of {} records, but there are {}", steps.size(),
               records_.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<IndexedRecord>& records = index_->records[records_[i].file];
    if (records.empty() || steps[i] < 0 || steps[i] > std::numeric_limits<std::int32_t>::max()) continue;
    records[records_[i].record].steps = static_cast<std::int32_t>(steps[i]);
    records[records_[i].record].verified |= index_->look_through;
  }
  for (std::size_t s = 0; s < index_->shards.size(); ++s)
    if (!index_->records[s].empty()) index_->kept.put(std::move(index_->shards[s]), std::move(index_->records[s]));
  index_->kept.save();
  index_.reset();
}

std::int64_t RldsRecords::stored_bytes() const {
  std::uint64_t bytes = 0;
  for (const TfRecordFile& file : files_) bytes += file.bytes();
  return static_cast<std::int64_t>(bytes);
}

std::string_view RldsRecords::payload(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  return files_[place.file].payload(place.record);
}

std::uint64_t RldsRecords::length(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  return files_[place.file].length(place.record);
}

std::string RldsRecords::location(std::int64_t i) const {
  const auto [path, where] = place(i);
  return path.string() + ": " + where;
}

std::pair<fs::path, std::string> RldsRecords::place(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  return {files_[place.file].path(), format("record at offset {}", files_[place.file].offset(place.record))};
}

void RldsRecords::verify(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  files_[place.file].verify(place.record);
}

void RldsRecords::release(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  files_[place.file].release(place.record);
}

std::uint32_t RldsRecords::stored_checksum(std::int64_t i) const {
  const Place place = records_[static_cast<std::size_t>(i)];
  return files_[place.file].stored_checksum(place.record);
}

namespace {

ListKind expected_kind(const FeatureLeaf& leaf) {
  if (leaf.kind != FeatureKind::kTensor || leaf.dtype == "string" || leaf.encoding != FeatureEncoding::kNone)
    return ListKind::kBytes;
  return leaf.dtype.find("float") != std::string::npos ? ListKind::kFloat : ListKind::kInt64;
}

const char* kind_name(ListKind kind) {
  switch (kind) {
    case ListKind::kBytes:
      return "bytes";
    case ListKind::kFloat:
      return "float32";
    case ListKind::kInt64:
      return "int64";
    case ListKind::kEmpty:
      break;
  }
  return "no";
}

std::vector<std::int64_t> read_integers(const Example& example, const std::string& key) {
  const Example::Entry* entry = example.find(key);
  if (!entry || entry->kind == ListKind::kEmpty) return {};
  COHORT_THROW_UNLESS(entry->kind == ListKind::kInt64, "{} holds {} values, not int64", key, kind_name(entry->kind));
  const ExampleList list(entry->kind, entry->message);
  std::vector<std::int64_t> values(static_cast<std::size_t>(list.size()));
  list.read(0, values);
  return values;
}

}  // namespace

LeafValues read_leaf(const Example& example, const FeatureLeaf& leaf) {
  LeafValues values;
  std::string key = leaf.key;
  if (leaf.sequences.size() > 1) {
    for (std::size_t level = 0; level + 1 < leaf.sequences.size(); ++level)
      values.row_lengths.push_back(read_integers(example, format("{}/ragged_row_lengths_{}", leaf.key, level)));
    key += "/ragged_flat_values";
  }
  if (leaf.dynamic_shape()) {
    values.dynamic_shape = read_integers(example, key + "/shape");
    key += "/value";
  }
  const Example::Entry* entry = example.find(key);
  if (!entry || entry->kind == ListKind::kEmpty) return values;
  const ListKind expected = expected_kind(leaf);
  COHORT_THROW_UNLESS(entry->kind == expected, "{} holds {} values, but features.json says {}", key,
                      kind_name(entry->kind), leaf.dtype);
  values.list = ExampleList(entry->kind, entry->message);
  if (expected == ListKind::kBytes) values.list.append_to(values.texts);
  return values;
}

namespace {

template <class T, class Out>
void convert(std::string_view bytes, std::span<Out> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<Out>(value);
  }
}

std::size_t dtype_bytes(const std::string& dtype) {
  if (dtype.ends_with("64")) return 8;
  if (dtype.ends_with("32")) return 4;
  if (dtype.ends_with("16")) return 2;
  return 1;
}

/// The tensor's bytes, inflated into `inflated` where they are packed; as many as its elements need.
std::string_view tensor_bytes(std::string_view bytes, const FeatureLeaf& leaf, std::size_t elements,
                              std::string& inflated) {
  const std::size_t expected = elements * dtype_bytes(leaf.dtype);
  if (leaf.encoding == FeatureEncoding::kZlib) {
    COHORT_THROW_UNLESS(expected <= (std::size_t{1} << 31), "{}: a tensor of {} elements is too large", leaf.key,
                        elements);
    inflated.resize(expected + 1);  // one more, so that too long a text does not look complete
    uLongf length = inflated.size();
    const int status = ::uncompress(reinterpret_cast<Bytef*>(inflated.data()), &length,
                                    reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    COHORT_THROW_UNLESS(status == Z_OK, "{}: the tensor's bytes do not inflate to {} bytes (zlib error {})", leaf.key,
                        expected, status);
    inflated.resize(length);
    bytes = inflated;
  }
  COHORT_THROW_UNLESS(bytes.size() == expected, "{}: the tensor has {} bytes, but {} elements of {} need {}", leaf.key,
                      bytes.size(), elements, leaf.dtype, expected);
  return bytes;
}

/// False where the dtype is none of integers or bools.
template <class Out>
bool convert_integers(const std::string& dtype, std::string_view bytes, std::span<Out> out) {
  if (dtype == "int64")
    convert<std::int64_t>(bytes, out);
  else if (dtype == "uint64")
    convert<std::uint64_t>(bytes, out);
  else if (dtype == "int32")
    convert<std::int32_t>(bytes, out);
  else if (dtype == "uint32")
    convert<std::uint32_t>(bytes, out);
  else if (dtype == "int16")
    convert<std::int16_t>(bytes, out);
  else if (dtype == "uint16")
    convert<std::uint16_t>(bytes, out);
  else if (dtype == "int8")
    convert<std::int8_t>(bytes, out);
  else if (dtype == "uint8" || dtype == "bool")
    convert<std::uint8_t>(bytes, out);
  else
    return false;
  return true;
}

}  // namespace

std::vector<double> decode_tensor(std::string_view bytes, const FeatureLeaf& leaf, std::int64_t elements) {
  std::string inflated;
  bytes = tensor_bytes(bytes, leaf, static_cast<std::size_t>(elements), inflated);
  std::vector<double> values(static_cast<std::size_t>(elements));
  if (leaf.dtype == "float64")
    convert<double>(bytes, std::span(values));
  else if (leaf.dtype == "float32")
    convert<float>(bytes, std::span(values));
  else if (leaf.dtype == "float16")
    convert<_Float16>(bytes, std::span(values));
  else if (!convert_integers(leaf.dtype, bytes, std::span(values)))
    throw Error(format("{}: tensors of {} stored as bytes are not read", leaf.key, leaf.dtype));
  return values;
}

void decode_tensor(std::string_view bytes, const FeatureLeaf& leaf, std::span<std::int64_t> out) {
  std::string inflated;
  bytes = tensor_bytes(bytes, leaf, out.size(), inflated);
  COHORT_THROW_UNLESS(convert_integers(leaf.dtype, bytes, out), "{}: a tensor of {} holds no integers", leaf.key,
                      leaf.dtype);
}

}  // namespace cohort::data
