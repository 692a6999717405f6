/// Failing in three tiers, with the values in the message.
///
/// COHORT_ASSERT       debug builds only: what cannot happen, in hot code.
/// COHORT_CHECK        always: a programmer's error (a broken invariant of ours, a misused interface).
/// COHORT_THROW_UNLESS always: bad input (files, shapes, configuration). Name what was wrong, where, and the remedy.
///
/// All three throw cohort::Error; only cli/ turns exceptions into exit codes.
#pragma once
#include <stdexcept>
#include <string>

#include "core/format.h"

namespace cohort {

/// The one exception type of the library. what() is a message for the user.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// Throws Error("<file>:<line>: check `<condition>` failed: <message>").
[[noreturn]] void throw_check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace cohort

#define COHORT_THROW_UNLESS(condition, ...)                 \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      throw ::cohort::Error(::cohort::format(__VA_ARGS__)); \
  } while (false)

#define COHORT_CHECK(condition, ...)                                                               \
  do {                                                                                             \
    if (!(condition)) [[unlikely]]                                                                 \
      ::cohort::throw_check_failed(#condition, __FILE__, __LINE__, ::cohort::format(__VA_ARGS__)); \
  } while (false)

#ifdef NDEBUG
#define COHORT_ASSERT(condition, ...) \
  do {                                \
  } while (false)
#else
#define COHORT_ASSERT(condition, ...) COHORT_CHECK(condition, __VA_ARGS__)
#endif
