#include "data/rlds/example.h"

#include <cstring>
#include <exception>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/error.h"

namespace cohort::data {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

// Field numbers of example.proto and feature.proto.
enum : protozero::pbf_tag_type {
  kExampleFeatures = 1,
  kFeaturesEntry = 1,
  kEntryKey = 1,
  kEntryValue = 2,
  kBytesList = 1,
  kFloatList = 2,
  kInt64List = 3,
  kListValue = 1,
};

std::string_view to_view(data_view view) {
  return {view.data(), view.size()};
}

/// protozero throws its own exceptions for bytes that are no message.
template <class Body>
auto parsing(const char* what, const Body& body) {
  try {
    return body();
  } catch (const protozero::exception& e) {
    throw Error(format("these bytes are no {}: {}", what, e.what()));
  }
}

/// Decodes the varint at `at` (which must hold one before `end`) and moves behind it.
std::int64_t next_varint(const char*& at, const char* end) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) {
    ++at;
    return byte;
  }
  return static_cast<std::int64_t>(protozero::decode_varint(&at, end));
}

std::int64_t count_varints(std::string_view packed) {
  std::int64_t count = 0;
  for (const char c : packed) count += (static_cast<unsigned char>(c) >> 7) ^ 1;
  return count;
}

}  // namespace

ExampleList::ExampleList(ListKind kind, std::string_view message) : kind_(kind), message_(message) {
  parsing("list of values", [&] {
    int pieces = 0;
    bool single = false;  // values outside a packed piece
    pbf_reader reader(message.data(), message.size());
    while (reader.next(kListValue)) {
      ++pieces;
      const pbf_wire_type wire = reader.wire_type();
      if (kind == ListKind::kBytes) {
        COHORT_THROW_UNLESS(wire == pbf_wire_type::length_delimited, "a list of bytes holds something else");
        reader.get_view();
        ++size_;
      } else if (wire == pbf_wire_type::length_delimited) {
        packed_ = to_view(reader.get_view());
        if (kind == ListKind::kFloat) {
          COHORT_THROW_UNLESS(packed_.size() % sizeof(float) == 0, "a list of float32 has {} bytes", packed_.size());
          size_ += static_cast<std::int64_t>(packed_.size() / sizeof(float));
        } else {
          COHORT_THROW_UNLESS(packed_.empty() || static_cast<unsigned char>(packed_.back()) < 0x80,
                              "a list of int64 ends inside a number");
          size_ += count_varints(packed_);
        }
      } else {
        COHORT_THROW_UNLESS(wire == (kind == ListKind::kFloat ? pbf_wire_type::fixed32 : pbf_wire_type::varint),
                            "a list of numbers holds something else");
        single = true;
        ++size_;
        if (kind == ListKind::kFloat)
          reader.get_float();
        else
          reader.get_int64();
      }
    }
    if (pieces != 1 || single) packed_ = {};
    return 0;
  });
}

void ExampleList::read(std::int64_t begin, std::span<float> out) const {
  COHORT_CHECK(kind_ == ListKind::kFloat && begin >= 0 && begin + static_cast<std::int64_t>(out.size()) <= size_,
               "values [{}, {}) are asked from a list of {}", begin, begin + static_cast<std::int64_t>(out.size()),
               size_);
  if (out.empty()) return;
  if (!packed_.empty()) {
    std::memcpy(out.data(), packed_.data() + begin * static_cast<std::int64_t>(sizeof(float)), out.size_bytes());
    return;
  }
  parsing("list of float32", [&] {
    std::int64_t i = 0;
    const std::int64_t end = begin + static_cast<std::int64_t>(out.size());
    const auto take = [&](float value) {
      if (i >= begin && i < end) out[static_cast<std::size_t>(i - begin)] = value;
      ++i;
    };
    pbf_reader reader(message_.data(), message_.size());
    while (reader.next(kListValue)) {
      if (reader.wire_type() != pbf_wire_type::length_delimited) {
        take(reader.get_float());
        continue;
      }
      const data_view piece = reader.get_view();
      for (std::size_t at = 0; at < piece.size(); at += sizeof(float)) {
        float value;
        std::memcpy(&value, piece.data() + at, sizeof value);
        take(value);
      }
    }
    return 0;
  });
}

void ExampleList::read(std::int64_t begin, std::span<std::int64_t> out) const {
  COHORT_CHECK(kind_ == ListKind::kInt64 && begin >= 0 && begin + static_cast<std::int64_t>(out.size()) <= size_,
               "values [{}, {}) are asked from a list of {}", begin, begin + static_cast<std::int64_t>(out.size()),
               size_);
  if (out.empty()) return;
  parsing("list of int64", [&] {
    if (!packed_.empty()) {
      const char* at = packed_.data();
      const char* const end = at + packed_.size();
      if (static_cast<std::int64_t>(packed_.size()) == size_)
        at += begin;  // every number takes one byte
      else
        for (std::int64_t left = begin; left > 0; ++at) left -= (static_cast<unsigned char>(*at) >> 7) ^ 1;
      for (std::int64_t& value : out) value = next_varint(at, end);
      return 0;
    }
    std::int64_t i = 0;
    const std::int64_t last = begin + static_cast<std::int64_t>(out.size());
    const auto take = [&](std::int64_t value) {
      if (i >= begin && i < last) out[static_cast<std::size_t>(i - begin)] = value;
      ++i;
    };
    pbf_reader reader(message_.data(), message_.size());
    while (reader.next(kListValue)) {
      if (reader.wire_type() != pbf_wire_type::length_delimited) {
        take(reader.get_int64());
        continue;
      }
      const data_view piece = reader.get_view();
      const char* at = piece.data();
      while (at < piece.data() + piece.size()) take(next_varint(at, piece.data() + piece.size()));
    }
    return 0;
  });
}

void ExampleList::append_to(std::vector<std::string_view>& out) const {
  COHORT_CHECK(kind_ == ListKind::kBytes || kind_ == ListKind::kEmpty, "texts are asked from a list of numbers");
  out.reserve(out.size() + static_cast<std::size_t>(size_));
  pbf_reader reader(message_.data(), message_.size());
  while (reader.next(kListValue)) out.push_back(to_view(reader.get_view()));
}

Example::Example(std::string_view record) {
  parsing("tf.train.Example", [&] {
    pbf_reader example(record.data(), record.size());
    while (example.next()) {
      if (example.tag() != kExampleFeatures || example.wire_type() != pbf_wire_type::length_delimited) {
        example.skip();
        continue;
      }
      pbf_reader features = example.get_message();
      while (features.next()) {
        if (features.tag() != kFeaturesEntry || features.wire_type() != pbf_wire_type::length_delimited) {
          features.skip();
          continue;
        }
        pbf_reader map_entry = features.get_message();
        Entry entry;
        std::optional<pbf_reader> feature;
        while (map_entry.next()) {
          if (map_entry.tag() == kEntryKey && map_entry.wire_type() == pbf_wire_type::length_delimited)
            entry.key = to_view(map_entry.get_view());
          else if (map_entry.tag() == kEntryValue && map_entry.wire_type() == pbf_wire_type::length_delimited)
            feature = map_entry.get_message();
          else
            map_entry.skip();
        }
        while (feature && feature->next()) {
          if (feature->wire_type() != pbf_wire_type::length_delimited || feature->tag() < kBytesList ||
              feature->tag() > kInt64List) {
            feature->skip();
            continue;
          }
          entry.kind = feature->tag() == kBytesList   ? ListKind::kBytes
                       : feature->tag() == kFloatList ? ListKind::kFloat
                                                      : ListKind::kInt64;
          entry.message = to_view(feature->get_view());
        }
        entries_.push_back(entry);
      }
    }
    return 0;
  });
}

const Example::Entry* Example::find(std::string_view key) const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (entry->key == key) return &*entry;
  return nullptr;
}

namespace {

/// One entry of the map, around a serialised list.
void append_entry(std::string& entries, std::string_view key, protozero::pbf_tag_type list_tag,
                  const std::string& list) {
  std::string feature, entry;
  protozero::pbf_writer(feature).add_message(list_tag, list);
  protozero::pbf_writer entry_writer(entry);
  entry_writer.add_string(kEntryKey, key.data(), key.size());
  entry_writer.add_message(kEntryValue, feature);
  protozero::pbf_writer(entries).add_message(kFeaturesEntry, entry);
}

}  // namespace

void ExampleWriter::add(std::string_view key, std::span<const float> values) {
  std::string list;
  protozero::pbf_writer(list).add_packed_float(kListValue, values.begin(), values.end());
  append_entry(entries_, key, kFloatList, list);
}

void ExampleWriter::add(std::string_view key, std::span<const std::int64_t> values) {
  std::string list;
  protozero::pbf_writer(list).add_packed_int64(kListValue, values.begin(), values.end());
  append_entry(entries_, key, kInt64List, list);
}

void ExampleWriter::add(std::string_view key, std::span<const std::string> values) {
  std::string list;
  protozero::pbf_writer writer(list);
  for (const std::string& value : values) writer.add_bytes(kListValue, value.data(), value.size());
  append_entry(entries_, key, kBytesList, list);
}

std::string ExampleWriter::finish() const {
  std::string example;
  protozero::pbf_writer(example).add_message(kExampleFeatures, entries_);
  return example;
}

}  // namespace cohort::data
