/// Checks of messages.
#pragma once
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort::data {

/// The message of the Error that `body` throws, or "" when it throws none.
inline std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace cohort::data

/// The body throws Error, and its message has this text in it.
#define EXPECT_ERROR(body, text)                                                \
  do {                                                                          \
    const std::string message = ::cohort::data::message_of([&] { body; });      \
    EXPECT_NE(message.find(text), std::string::npos) << "message: " << message; \
  } while (false)
