/// The bytes of a CSV file, read in pieces at any offset from any thread. Pieces are copied out of the system's cache
/// rather than mapped: a copy into a buffer that stays in the processor's cache costs less than the page faults of a
/// mapping, and a file that is cut while it is read becomes an error instead of a SIGBUS.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cohort::tables {

class CsvSource {
 public:
  /// Throws Error when the file is missing, a folder, unreadable or empty. A pipe is read to its end here.
  static CsvSource open(const std::filesystem::path& path);
  /// Refers to `text`, which must stay.
  static CsvSource memory(std::string_view text, std::string name);
  CsvSource(CsvSource&& other) noexcept;
  CsvSource& operator=(CsvSource&&) = delete;
  ~CsvSource();

  const std::string& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// Copies bytes [offset, offset + length), which must lie inside. Throws Error when the file has become shorter or
  /// cannot be read.
  void read(std::int64_t offset, std::int64_t length, char* out) const;

 private:
  CsvSource() = default;
  std::string name_;
  int file_ = -1;
  std::string piped_;
  std::string_view memory_;
  std::int64_t size_ = 0;
};

}  // namespace cohort::tables
