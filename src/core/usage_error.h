/// A command line that is wrong.
#pragma once
#include "core/error.h"

namespace cohort {

/// Exit code 2 instead of 1, and a pointer to --help.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace cohort
