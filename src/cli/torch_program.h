/// The programs that link LibTorch: one executable, `cohort-torch`, holds them all, so that what they share lies on the disk and
/// in memory once. cohort-train, cohort-evaluate and the others in `bin` are files of a few kilobytes that become it.
///
///   const TorchProgram kPredict("cohort-predict", "cohort predict", &run_predict);   // at the end of predict.cpp
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

class TorchProgram {
 public:
  /// file: its name in `bin`. body: gets the words after it, and returns the exit code; errors are told as run_program tells
  /// them, under `title`.
  TorchProgram(std::string file, std::string title, int (*body)(const std::vector<std::string>& words));
};

}  // namespace cohort::cli
