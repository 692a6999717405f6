#include "core/error.h"

namespace cohort {

void throw_check_failed(const char* condition, const char* file, int line, const std::string& message) {
  throw Error(format("{}:{}: check `{}` failed: {}", file, line, condition, message));
}

}  // namespace cohort
