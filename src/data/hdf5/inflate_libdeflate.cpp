#include <memory>

#include <libdeflate.h>

#include "data/hdf5/inflate.h"

namespace cohort::data {

bool inflate_exactly(std::string_view packed, char* out, std::size_t size) {
  thread_local const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  std::size_t written = 0;
  return decompressor &&
         libdeflate_zlib_decompress(decompressor.get(), packed.data(), packed.size(), out, size, &written) ==
             LIBDEFLATE_SUCCESS &&
         written == size;
}

}  // namespace cohort::data
