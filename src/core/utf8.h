/// UTF-8 (RFC 3629) at the borders of the program: file names, column names and names in HDF5 files are bytes, while
/// JSON and most formats that are written take UTF-8 only.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace cohort {

/// Bytes of the code point at the beginning of `text`, which is not empty; 0 where there is none: a stray or missing
/// continuation byte, an overlong form, a surrogate, a value above U+10FFFF.
std::size_t utf8_size(std::string_view text);

/// Offset of the first byte that belongs to no code point; npos where all is UTF-8.
std::size_t find_not_utf8(std::string_view text);

/// Any bytes as UTF-8, and back without loss: a byte that is part of no code point becomes U+EF00 plus the byte, in
/// the private use area, as do the bytes of a code point that lies there itself. UTF-8 stays as it is.
std::string bytes_to_utf8(std::string_view bytes);
std::string utf8_to_bytes(std::string_view text);

/// `text` in quotes for a message: shortened, with unprintable bytes written as \xNN.
std::string quoted_bytes(std::string_view text);

/// For messages about a file's text: what to do where it is in another encoding.
std::string utf8_remedy(const std::string& path);

}  // namespace cohort
