/// Checks of messages.
#pragma once
#include <string>

#include <gtest/gtest.h>

#include "core/message_of.h"

/// The body throws Error, and its message has this text in it.
#define EXPECT_ERROR(body, text)                                                \
  do {                                                                          \
    const std::string message = ::cohort::message_of([&] { body; });            \
    EXPECT_NE(message.find(text), std::string::npos) << "message: " << message; \
  } while (false)
