/// What each image library's file provides to codec.cpp; a build without the library has jpeg_missing.cpp or
/// png_missing.cpp instead.
#pragma once
#include "data/images/codec.h"

namespace cohort::data::codec {

void decode_jpeg(std::string_view bytes, std::int64_t channels, Image& out);
void decode_png(std::string_view bytes, std::int64_t channels, Image& out);
Image jpeg_header(std::string_view bytes);
Image png_header(std::string_view bytes);

}  // namespace cohort::data::codec
