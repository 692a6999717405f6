#include "core/error.h"
#include "data/images/codec_parts.h"

namespace cohort::data {
namespace {

[[noreturn]] void throw_missing() {
  throw Error("this build has no PNG: install libpng-dev, configure and build again");
}

}  // namespace

bool has_png() {
  return false;
}
void codec::decode_png(std::string_view, std::int64_t, Image&) {
  throw_missing();
}
Image codec::png_header(std::string_view) {
  throw_missing();
}
std::string encode_png(const Image&) {
  throw_missing();
}

}  // namespace cohort::data
