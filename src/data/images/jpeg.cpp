#include <memory>

#include <turbojpeg.h>

#include "core/error.h"
#include "data/images/codec_parts.h"

namespace cohort::data {

bool has_jpeg() {
  return true;
}

namespace codec {
namespace {

class Handle {
 public:
  explicit Handle(tjhandle handle) : handle_(handle) {
    COHORT_THROW_UNLESS(handle != nullptr, "libjpeg-turbo does not start: {}", tjGetErrorStr());
  }
  ~Handle() { tjDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  tjhandle get() const { return handle_; }

 private:
  tjhandle handle_;
};

/// One decompressor per thread. After anything but success it is made anew: libjpeg-turbo keeps tables of a damaged
/// image and then refuses sound ones.
class Decompressor {
 public:
  tjhandle get() {
    if (!handle_) handle_ = std::make_unique<Handle>(tjInitDecompress());
    return handle_->get();
  }
  void renew() { handle_.reset(); }

 private:
  std::unique_ptr<Handle> handle_;
};

Decompressor& decompressor() {
  thread_local Decompressor one;
  return one;
}

/// Throws for errors, and for data that end early; libjpeg warns about much else that harms nothing.
void check(int status) {
  if (status == 0) return;
  const tjhandle handle = decompressor().get();
  const std::string message = tjGetErrorStr2(handle);
  const bool harmless = tjGetErrorCode(handle) == TJERR_WARNING && message.find("remature end") == std::string::npos;
  decompressor().renew();
  COHORT_THROW_UNLESS(harmless || message.find("color conversion") == std::string::npos,
                      "the JPEG has colours of print (CMYK): save it as RGB");
  COHORT_THROW_UNLESS(harmless, "the JPEG is damaged: {}", message);
}

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Image jpeg_header(std::string_view bytes) {
  int width = 0, height = 0, subsampling = 0, colour = 0;
  check(
      tjDecompressHeader3(decompressor().get(), data_of(bytes), bytes.size(), &width, &height, &subsampling, &colour));
  COHORT_THROW_UNLESS(width > 0 && height > 0 && std::int64_t{width} * height <= kMaxImagePixels,
                      "the JPEG's header says {} x {} pixels", width, height);
  Image image;
  image.height = height;
  image.width = width;
  image.channels = colour == TJCS_GRAY ? 1 : 3;
  return image;
}

void decode_jpeg(std::string_view bytes, std::int64_t channels, Image& out) {
  const Image header = jpeg_header(bytes);
  out.resize(header.height, header.width, channels);
  check(tjDecompress2(decompressor().get(), data_of(bytes), bytes.size(), out.pixels.data(),
                      static_cast<int>(out.width), static_cast<int>(out.width * channels), static_cast<int>(out.height),
                      channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_LIMITSCANS | TJFLAG_FASTDCT));
}

}  // namespace codec

std::string encode_jpeg(const Image& image, int quality) {
  COHORT_CHECK(image.channels == 1 || image.channels == 3, "a JPEG has 1 or 3 channels, not {}", image.channels);
  COHORT_THROW_UNLESS(quality >= 1 && quality <= 100, "a JPEG's quality is 1 to 100, not {}", quality);
  const codec::Handle handle(tjInitCompress());
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const int subsampling = image.channels == 1 ? TJSAMP_GRAY : quality >= 90 ? TJSAMP_444 : TJSAMP_420;
  const int status =
      tjCompress2(handle.get(), image.pixels.data(), static_cast<int>(image.width), 0, static_cast<int>(image.height),
                  image.channels == 1 ? TJPF_GRAY : TJPF_RGB, &buffer, &size, subsampling, quality, 0);
  std::string bytes;
  if (status == 0) bytes.assign(reinterpret_cast<const char*>(buffer), size);
  tjFree(buffer);
  COHORT_THROW_UNLESS(status == 0, "a JPEG of {} x {} pixels could not be written: {}", image.width, image.height,
                      tjGetErrorStr2(handle.get()));
  return bytes;
}

}  // namespace cohort::data
