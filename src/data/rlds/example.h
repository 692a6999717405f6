/// tf.train.Example (TensorFlow, core/example/example.proto) read without copies: every list refers to the record.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

enum class ListKind : std::uint8_t { kEmpty, kBytes, kFloat, kInt64 };

/// The value of one key: a list of bytes, float32 or int64. Views the record.
class ExampleList {
 public:
  ExampleList() = default;
  /// `message` is a BytesList, FloatList or Int64List. Throws Error when it is no such message.
  ExampleList(ListKind kind, std::string_view message);

  ListKind kind() const { return kind_; }
  /// Number of values.
  std::int64_t size() const { return size_; }
  /// Values [begin, begin + out.size()) of a float list; they must exist.
  void read(std::int64_t begin, std::span<float> out) const;
  /// Likewise of an int64 list.
  void read(std::int64_t begin, std::span<std::int64_t> out) const;
  /// Appends a view of every value of a bytes list.
  void append_to(std::vector<std::string_view>& out) const;

 private:
  ListKind kind_ = ListKind::kEmpty;
  std::string_view message_;
  /// The packed values, where they lie in one piece (as every writer does it); empty otherwise.
  std::string_view packed_;
  std::int64_t size_ = 0;
};

/// All keys of a record, in the order of its bytes.
class Example {
 public:
  struct Entry {
    std::string_view key;
    ListKind kind = ListKind::kEmpty;
    std::string_view message;  ///< the list, not yet looked into
  };

  Example() = default;
  /// Walks over the keys only; the lists are not touched. Throws Error when the bytes are no Example.
  explicit Example(std::string_view record);

  const std::vector<Entry>& entries() const { return entries_; }
  /// nullptr where the record lacks the key. Of a key that occurs twice it is the last one, as in protocol buffers.
  const Entry* find(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
};

/// Writes an Example: keys in the order added.
class ExampleWriter {
 public:
  void add(std::string_view key, std::span<const float> values);
  void add(std::string_view key, std::span<const std::int64_t> values);
  void add(std::string_view key, std::span<const std::string> values);
  /// The serialised Example.
  std::string finish() const;

 private:
  std::string entries_;
};

}  // namespace cohort::data
