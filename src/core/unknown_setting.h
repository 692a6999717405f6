/// The error of a setting that does not exist, for who knows a better remedy than `--help`.
#pragma once
#include <string>
#include <utility>

#include "core/error.h"

namespace cohort::config {

class UnknownSetting : public Error {
 public:
  explicit UnknownSetting(std::string problem)
      : Error(problem + "; --help lists all settings"), problem_(std::move(problem)) {}
  /// What is wrong, without a remedy.
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

}  // namespace cohort::config
