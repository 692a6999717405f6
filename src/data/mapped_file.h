/// A file mapped into memory for reading: bytes are used where the system's cache holds them, never copied.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cohort::data {

class MappedFile {
 public:
  /// Throws Error naming the path and the system's reason. An empty file is an empty view.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {data_, size_}; }
  std::size_t size() const { return size_; }
  /// A number that no other mapping of this process has or had.
  std::uint64_t id() const { return id_; }
  /// Gives the physical pages of [offset, offset + length) back to the system's cache: they no longer count as this
  /// process's memory, and come back when they are read again. Neighbours that came with them are given back too.
  void release(std::size_t offset, std::size_t length) const;

 private:
  std::string path_;
  std::uint64_t id_ = 0;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cohort::data
