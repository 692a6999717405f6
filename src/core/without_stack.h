/// LibTorch's exceptions carry a C++ stack of some 25 lines behind their message, which tells users nothing.
#pragma once
#include <string>

namespace cohort {

/// The message without the stack.
inline std::string without_stack(const std::string& message) {
  return message.substr(0, message.find("\nException raised from "));
}

}  // namespace cohort
