// Compiled twice: with the system's fmt for every module, with the one in LibTorch's include tree for those that see it.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include "core/format.h"

namespace cohort {

std::string vformat(fmt::string_view text, fmt::format_args arguments) {
  return fmt::vformat(text, arguments);
}

}  // namespace cohort
