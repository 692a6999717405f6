/// The framing of TFRecord files and of TensorBoard's event files (TensorFlow, core/lib/io/record_writer.h): per record
/// a little-endian u64 length, the masked CRC-32C of those 8 bytes, the bytes, and their masked CRC-32C.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort {

inline constexpr std::uint64_t kTfrecordHeader = 12;  ///< bytes before a record's own: length and its checksum
inline constexpr std::uint64_t kTfrecordFooter = 4;   ///< bytes behind them

/// Appends one framed record to `out`.
void append_tfrecord(std::string& out, std::string_view payload);

/// The length that a record's header says, and whether it has its checksum. `header`: 12 bytes.
std::uint64_t tfrecord_length(const char* header);
bool is_sound_tfrecord_header(const char* header);

/// Whether the bytes of a record have the checksum that lies behind them. `payload` is followed by 4 bytes.
bool is_sound_tfrecord(std::string_view payload);

/// The checksum as it is stored behind a record's bytes.
std::uint32_t stored_tfrecord_checksum(std::string_view payload);

}  // namespace cohort
