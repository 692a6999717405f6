/// The message of the Error that a call throws.
#pragma once
#include <string>

#include "core/error.h"

namespace cohort {

/// Empty when `body` throws none.
template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace cohort
