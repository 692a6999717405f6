#include <zlib.h>

#include "data/hdf5/inflate.h"

namespace cohort::data {

bool inflate_exactly(std::string_view packed, char* out, std::size_t size) {
  uLongf written = size;
  return ::uncompress(reinterpret_cast<Bytef*>(out), &written, reinterpret_cast<const Bytef*>(packed.data()),
                      packed.size()) == Z_OK &&
         written == size;
}

}  // namespace cohort::data
