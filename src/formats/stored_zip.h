/// Zip archives whose files are not compressed, as torch.save() writes them: where each file's bytes lie.
///
///   StoredZip zip("model.pt");
///   for (const auto& [name, record] : zip.records()) std::string bytes = zip.read(record.begin, record.size);
///
/// Format: PKWARE's APPNOTE.TXT 6.3.9, section 4.3, with the 64-bit records of 4.3.14.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace cohort {

class StoredZip {
 public:
  struct Record {
    std::uint64_t begin = 0, size = 0;  ///< bytes, in the archive
  };

  /// Throws Error naming the file: cannot be read, cut off, damaged, or with a file that is compressed.
  explicit StoredZip(const std::filesystem::path& path);

  /// Throw Error where the file ends before.
  std::string read(std::uint64_t begin, std::uint64_t count);
  void read_to(std::uint64_t begin, char* out, std::uint64_t count);

  const std::map<std::string, Record>& records() const { return records_; }

 private:
  void check(std::uint64_t begin, std::uint64_t count) const;
  void find_directory();
  void read_directory(const std::string& directory, std::uint64_t count);
  void read_extra(const std::string& extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& local) const;

  std::string path_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  std::map<std::string, Record> records_;
};

}  // namespace cohort
