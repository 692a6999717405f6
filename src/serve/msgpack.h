/// msgpack (https://github.com/msgpack/msgpack/blob/master/spec.md), as much of it as openpi's clients and servers send,
/// with NumPy arrays as openpi_client/msgpack_numpy.py (openpi-client 0.1.2) writes them: maps whose keys are bytes,
/// {b"__ndarray__": True, b"data": bytes, b"dtype": dtype.str, b"shape": [...]}, and numbers with a dtype as
/// {b"__npgeneric__": True, b"data": number, b"dtype": dtype.str}.
///
/// A reader of its own, because nlohmann::json takes no keys of bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "serve/value.h"

namespace cohort::serve {

/// What a message may hold, so that nobody's message takes more memory than a small multiple of its bytes.
inline constexpr int kMaxDepth = 16;
inline constexpr std::size_t kMaxValues = 100'000;

/// Reads one message. Also read: keys "__ndarray__" that are texts, and OmniGibson's tensors (__torch__). Throws Error
/// saying at which byte what is wrong: a message that ends early, bytes behind its end, types that are not taken
/// (extensions, keys that are no texts), more than kMaxDepth or kMaxValues, arrays whose bytes do not fit their shape.
Value unpack(std::string_view bytes);

/// The type of an array's keys: openpi's clients write and read bytes, vla-eval's texts.
enum class ArrayKeys : std::uint8_t { kBytes, kTexts };

std::string pack(const Value& value, ArrayKeys keys = ArrayKeys::kBytes);

}  // namespace cohort::serve
