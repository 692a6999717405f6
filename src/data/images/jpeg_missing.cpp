#include "core/error.h"
#include "data/images/codec_parts.h"

namespace cohort::data {
namespace {

[[noreturn]] void throw_missing() {
  throw Error("this build has no JPEG: install libturbojpeg0-dev, configure and build again");
}

}  // namespace

bool has_jpeg() {
  return false;
}
void codec::decode_jpeg(std::string_view, std::int64_t, Image&) {
  throw_missing();
}
Image codec::jpeg_header(std::string_view) {
  throw_missing();
}
std::string encode_jpeg(const Image&, int) {
  throw_missing();
}

}  // namespace cohort::data
