#include "view/binary_document.h"

#include <zlib.h>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::view {

namespace {

void pad(std::string& bytes) {
  bytes.append((4 - bytes.size() % 4) % 4, '\0');
}

}  // namespace

nlohmann::json BinaryDocument::place(const char* data, std::size_t bytes, std::size_t count, const char* type) {
  const std::size_t at = arrays_.size();
  arrays_.append(data, bytes);
  pad(arrays_);
  return {{"at", at}, {"count", count}, {"type", type}};
}

std::string BinaryDocument::bytes() const {
  // Names of a file need not be UTF-8.
  const std::string json = json_text(text, -1, BadUtf8::kReplaced);
  const auto length = static_cast<std::uint32_t>(json.size());
  std::string out = "COHORTV1";
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(length >> shift & 255u);
  out += json;
  pad(out);
  return out + arrays_;
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  COHORT_CHECK(code == Z_OK, "zlib says {}", code);
  packed.resize(size);
  return packed;
}

std::string base64(const std::string& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kLetters[three >> (18 - 6 * k) & 63u];
  }
  return out;
}

}  // namespace cohort::view
