/// The headers of zip archives whose files are stored without compression (PKWARE APPNOTE 6.3.10,
/// sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3). Whoever lays out such an archive knows every offset before the
/// first byte is written.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cohort {

/// A stored file. Sizes and offsets of 4 GiB and more take the format's 64-bit fields; others do not, so that readers
/// without those can read small archives.
struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;    ///< bytes
  std::uint64_t offset = 0;  ///< of its local header in the archive
  std::uint32_t crc = 0;     ///< zip_crc over its bytes
};

/// CRC-32 of ISO 3309; crc: that of the bytes before, 0 at the beginning.
std::uint32_t zip_crc(std::uint32_t crc, std::string_view bytes);

/// What stands before a file's bytes. Its length depends on name and size only.
std::string zip_local_header(const ZipEntry& entry);

/// What stands behind the last file; start: its own offset.
std::string zip_directory(std::span<const ZipEntry> entries, std::uint64_t start);

}  // namespace cohort
