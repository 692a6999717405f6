/// What reads a reference's command line as settings (act/flags.h, rdt/flags.h): its tables, and what a flag leads to.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "policies/algorithm.h"

namespace cohort::policies {

/// A flag whose value is that of one setting.
struct SameSetting {
  std::string_view flag, setting;
};

/// A flag that has no effect here, and why; or one that is refused, and what to do.
struct FlagReason {
  std::string_view flag, text;
};

inline bool is_true_flag(const std::string& value) {
  return value == "true" || value == "True" || value == "1";
}

class ForeignFlags {
 public:
  ForeignWords flags() && { return std::move(flags_); }

 protected:
  void set(const std::string& text) { flags_.overrides.push_back(text); }
  void note_without_effect(const std::string& flag, const std::string& value, std::string_view reason) {
    flags_.notes.push_back(format("--{}={} has no effect: {}", flag, value, reason));
  }
  /// A line of the message with which the command line is refused as a whole.
  void refuse(const std::string& flag, const std::string& value, std::string_view remedy) {
    refused_ += format("\n  --{}{}: {}", flag, value.empty() ? "" : "=" + value, remedy);
  }
  /// Whether one of the tables has the flag, which then is set or noted.
  bool take_of(std::span<const SameSetting> same, std::span<const FlagReason> without_effect, const std::string& flag,
               const std::string& value) {
    for (const SameSetting& one : same)
      if (flag == one.flag) {
        set(format("{}={}", one.setting, value));
        return true;
      }
    for (const FlagReason& one : without_effect)
      if (flag == one.flag) {
        note_without_effect(flag, value, one.text);
        return true;
      }
    return false;
  }

  ForeignWords flags_;
  std::string refused_;
};

}  // namespace cohort::policies
