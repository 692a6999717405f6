#include "data/rlds/dataset_info.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/settings_file.h"
#include "data/local_path.h"
#include "data/rlds/json_values.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

/// Orders 1.10.0 behind 1.9.0.
std::vector<int> version_numbers(const std::string& name) {
  std::vector<int> numbers;
  const char* at = name.data();
  const char* const end = at + name.size();
  while (at < end) {
    int value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next < end && *next != '.')) return {};
    numbers.push_back(value);
    at = next < end ? next + 1 : next;
  }
  return numbers;
}

std::optional<fs::path> newest_version(const fs::path& folder) {
  std::optional<fs::path> best;
  std::vector<int> best_numbers;
  std::error_code error;  // of links that lead nowhere
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory(error) || !fs::exists(entry.path() / "dataset_info.json", error)) continue;
    const std::vector<int> numbers = version_numbers(entry.path().filename().string());
    if (!best || numbers > best_numbers) {
      best = entry.path();
      best_numbers = numbers;
    }
  }
  return best;
}

/// Python's round(): halves to even.
std::int64_t round_half_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

struct Bound {
  std::optional<double> value;
  std::string unit;
};

Bound parse_bound(std::string_view text, const std::string& expression) {
  Bound bound;
  if (text.empty()) return bound;
  if (text.ends_with('%')) {
    bound.unit = "%";
    text.remove_suffix(1);
  } else if (text.ends_with("shard")) {
    bound.unit = "shard";
    text.remove_suffix(5);
  }
  std::string digits(text);
  std::erase(digits, '_');
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  COHORT_THROW_UNLESS(error == std::errc() && end == digits.data() + digits.size() &&
                          std::abs(value) < (bound.unit == "%" ? 1e6 : 1e15) &&
                          digits.find_first_of("eEnN") == std::string::npos,
                      "the split '{}' has the bound '{}': write numbers, percentages (10%) or shards (2shard), as in "
                      "train[:95%]",
                      expression, text);
  bound.value = value;
  return bound;
}

/// Where slicing [:n] of a Python list of `size` elements ends.
std::int64_t python_end(std::int64_t n, std::int64_t size) {
  return n < 0 ? std::max<std::int64_t>(0, size + n) : std::min(n, size);
}

SplitRange select_one(const DatasetInfo& info, const std::string& part, const std::string& expression) {
  const std::size_t bracket = part.find('[');
  const std::string name = part.substr(0, bracket);
  const auto split =
      std::find_if(info.splits.begin(), info.splits.end(), [&](const SplitInfo& s) { return s.name == name; });
  if (split == info.splits.end()) {
    std::string names;
    for (const SplitInfo& s : info.splits) names += (names.empty() ? "" : ", ") + s.name;
    throw Error(format("the data set {} has no split '{}' (asked by '{}'); it has {}", info.name, name, expression,
                       names.empty() ? "none" : names));
  }
  const std::int64_t size = split->size();
  if (size == 0) {
    std::string full;
    for (const SplitInfo& s : info.splits)
      if (s.size() > 0) full += (full.empty() ? "" : ", ") + s.name;
    throw Error(format("the split '{}' of the data set {} is empty{}; splits with records: {}", name, info.name,
                       split->shard_lengths.empty()
                           ? ": dataset_info.json gives it no shardLengths, for it was not prepared to its end"
                           : "",
                       full.empty() ? "none" : full));
  }
  if (bracket == std::string::npos) return {name, 0, size};
  COHORT_THROW_UNLESS(part.ends_with(']'), "the split '{}' lacks its closing ]", expression);
  const std::string selector = part.substr(bracket + 1, part.size() - bracket - 2);
  const std::size_t colon = selector.find(':');
  Bound from, to;
  if (colon == std::string::npos) {
    from = parse_bound(selector, expression);
    COHORT_THROW_UNLESS(from.value && from.unit == "shard",
                        "the split '{}' must be a slice, as in train[10:20]; only shards are picked one by one: "
                        "train[0shard]",
                        expression);
    to = {*from.value + 1, "shard"};
  } else {
    from = parse_bound(std::string_view(selector).substr(0, colon), expression);
    to = parse_bound(std::string_view(selector).substr(colon + 1), expression);
    COHORT_THROW_UNLESS(from.value || to.value, "the split '{}' has an empty slice; leave the brackets out",
                        expression);
  }
  const std::string unit = !from.unit.empty() ? from.unit : to.unit;
  std::int64_t begin = 0, end = size;
  if (unit == "%") {
    if (from.value) begin = round_half_even(*from.value * static_cast<double>(size) / 100.0);
    if (to.value) end = round_half_even(*to.value * static_cast<double>(size) / 100.0);
  } else {
    const auto whole = [&](const Bound& bound) {
      COHORT_THROW_UNLESS(*bound.value == std::floor(*bound.value), "the split '{}' has a bound that is not whole",
                          expression);
      return static_cast<std::int64_t>(*bound.value);
    };
    if (from.value) begin = whole(from);
    if (to.value) end = whole(to);
    if (unit == "shard") {
      const std::vector<std::int64_t>& lengths = split->shard_lengths;
      const auto shards = static_cast<std::int64_t>(lengths.size());
      const auto records_before = [&](std::int64_t n) {
        return std::accumulate(lengths.begin(), lengths.begin() + python_end(n, shards), std::int64_t{0});
      };
      begin = from.value ? records_before(begin) : 0;
      if (to.value) end = records_before(end <= 0 ? shards + end : end);
    }
  }
  COHORT_THROW_UNLESS(std::abs(begin) <= size && std::abs(end) <= size,
                      "the split '{}' asks for records {} to {}, but {} has {}", expression, begin, end, name, size);
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  COHORT_THROW_UNLESS(begin < end, "the split '{}' selects no record of the {} in {}", expression, size, name);
  return {name, begin, end};
}

}  // namespace

std::int64_t SplitInfo::size() const {
  return std::accumulate(shard_lengths.begin(), shard_lengths.end(), std::int64_t{0});
}

DatasetInfo parse_dataset_info(std::string_view json, const std::string& source) {
  const Json root = read_json_text(std::string(json), source);
  COHORT_THROW_UNLESS(root.is_object(), "{}: is no object", source);
  DatasetInfo info;
  info.name = text_of(root, "name", source, "");
  info.version = text_of(root, "version", source, "");
  info.description = text_of(root, "description", source, "");
  info.file_format = text_of(root, "fileFormat", source, "tfrecord");
  COHORT_THROW_UNLESS(!info.name.empty(), "{}: the field name is missing", source);
  COHORT_THROW_UNLESS(info.file_format == "tfrecord",
                      "{}: fileFormat is '{}'; only tfrecord is read: convert it with tensorflow-datasets "
                      "(tfds build --file_format=tfrecord)",
                      source, info.file_format);
  const auto splits = root.find("splits");
  COHORT_THROW_UNLESS(splits != root.end() && splits->is_array(), "{}: the list splits is missing", source);
  for (const Json& json_split : *splits) {
    COHORT_THROW_UNLESS(json_split.is_object(), "{}: a split is no object", source);
    SplitInfo split;
    split.name = text_of(json_split, "name", source, "");
    COHORT_THROW_UNLESS(!split.name.empty(), "{}: a split has no name", source);
    split.filepath_template = text_of(json_split, "filepathTemplate", source, split.filepath_template);
    if (json_split.contains("numBytes")) split.bytes = whole_number(json_split["numBytes"], source, "numBytes");
    const auto lengths = json_split.find("shardLengths");
    const bool said = lengths != json_split.end() && !lengths->is_null();
    COHORT_THROW_UNLESS(!said || lengths->is_array(), "{}: split {}: shardLengths is {}, no list", source, split.name,
                        said ? json_text(*lengths) : "");
    static const Json kNone = Json::array();  // an empty split is a fault for whoever asks for it: select_split()
    for (const Json& length : said ? *lengths : kNone) {
      split.shard_lengths.push_back(whole_number(length, source, "a shard's length"));
      COHORT_THROW_UNLESS(split.shard_lengths.back() >= 0 && split.shard_lengths.back() < std::int64_t{1} << 40,
                          "{}: a shard of split {} has {} records", source, split.name, split.shard_lengths.back());
    }
    info.splits.push_back(std::move(split));
  }
  return info;
}

std::string write_dataset_info(const DatasetInfo& info) {
  Json root;
  root["description"] = info.description;
  root["fileFormat"] = info.file_format;
  root["moduleName"] = "cohort";
  root["name"] = info.name;
  root["releaseNotes"] = Json::object();
  root["splits"] = Json::array();
  for (const SplitInfo& split : info.splits) {
    Json lengths = Json::array();
    for (const std::int64_t length : split.shard_lengths) lengths.push_back(std::to_string(length));
    root["splits"].push_back({{"filepathTemplate", split.filepath_template},
                              {"name", split.name},
                              {"numBytes", std::to_string(split.bytes)},
                              {"shardLengths", lengths}});
  }
  root["version"] = info.version;
  return json_text(root, 2, BadUtf8::kReplaced);
}

std::string shard_name(const DatasetInfo& info, const SplitInfo& split, std::int64_t shard) {
  std::string name = split.filepath_template;
  replace_all(name, "{DATASET}", info.name);
  replace_all(name, "{SPLIT}", split.name);
  replace_all(name, "{FILEFORMAT}", info.file_format);
  replace_all(name, "{SHARD_X_OF_Y}", "{SHARD_INDEX}-of-{NUM_SHARDS}");
  replace_all(name, "{SHARD_INDEX}", format("{:05}", shard));
  replace_all(name, "{NUM_SHARDS}", format("{:05}", split.shard_lengths.size()));
  return name;
}

std::optional<fs::path> find_shard(const fs::path& folder) {
  constexpr int kDeepest = 2;  // folder/SET/VERSION/shard
  std::vector<fs::path> shards;
  for (auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied);
       entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    std::error_code error;  // of a link that leads nowhere
    if (entry->is_regular_file(error) && entry->path().filename().string().find(".tfrecord") != std::string::npos)
      shards.push_back(entry->path());
  }
  if (shards.empty()) return std::nullopt;
  return *std::min_element(shards.begin(), shards.end());
}

fs::path find_dataset_folder(const fs::path& path) {
  need_local_path(path, "folder");
  std::error_code error;
  COHORT_THROW_UNLESS(fs::is_directory(path, error), "{} is a file; RLDS data are named by the folder that holds {}",
                      path.string(), "dataset_info.json and the shards");
  if (fs::exists(path / "dataset_info.json")) return path;
  if (const auto version = newest_version(path)) return *version;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_directory(error))
      if (const auto version = newest_version(entry.path())) found.push_back(*version);
  std::sort(found.begin(), found.end());
  std::string names;
  for (const fs::path& folder : found) names += (names.empty() ? "" : ", ") + folder.string();
  COHORT_THROW_UNLESS(found.size() <= 1, "{} holds several RLDS data sets: name one of {}", path.string(), names);
  if (found.size() == 1) return found.front();
  const auto shard = find_shard(path);
  COHORT_THROW_UNLESS(
      !shard,
      "{} holds TFRecord files, but no dataset_info.json, which says how many records each of them has: "
      "copy it (and features.json) from where the data set came from, or write it with tfds's "
      "folder_dataset.write_metadata",
      shard ? shard->parent_path().string() : "");
  throw Error(
      format("no dataset_info.json in {}, its version folders or those of its data sets: name the folder that "
             "tensorflow-datasets wrote (…/droid/1.0.0)",
             path.string()));
}

std::vector<SplitRange> select_split(const DatasetInfo& info, const std::string& expression) {
  std::vector<SplitRange> ranges;
  for (std::size_t begin = 0; begin <= expression.size();) {
    const std::size_t plus = std::min(expression.find('+', begin), expression.size());
    std::string part = expression.substr(begin, plus - begin);
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!part.empty() && blank(part.back())) part.pop_back();
    while (!part.empty() && blank(part.front())) part.erase(0, 1);
    COHORT_THROW_UNLESS(!part.empty(), "the split '{}' has an empty part", expression);
    if (part == "all") {
      for (const SplitInfo& split : info.splits)
        if (split.size() > 0) ranges.push_back({split.name, 0, split.size()});
      COHORT_THROW_UNLESS(!ranges.empty(), "the data set {} has no split with records", info.name);
    } else {
      ranges.push_back(select_one(info, part, expression));
    }
    begin = plus + 1;
  }
  return ranges;
}

}  // namespace cohort::data
