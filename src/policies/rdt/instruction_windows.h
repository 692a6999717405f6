/// What an RDT is told beside the windows of its data.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/robot_windows.h"

namespace cohort::policies {

/// Windows with what RDT is told beside them: "lang_row" () int64, a row among the instructions that the policy carries,
/// in the place of "instruction"; and, where data sets differ in it, "ctrl_freq" () float32, Hz.
class InstructionWindows final : public data::Dataset {
 public:
  /// `rows`: one per instruction of `windows`, or one for all where they have none. `frequencies`: one per data set, or
  /// none.
  InstructionWindows(std::shared_ptr<const data::RobotWindows> windows, std::vector<std::int64_t> rows,
                     std::vector<double> frequencies);
  std::int64_t size() const override { return windows_->size(); }
  std::vector<data::FieldSpec> fields() const override;
  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const override;

 private:
  std::shared_ptr<const data::RobotWindows> windows_;
  std::vector<std::int64_t> rows_;
  std::vector<double> frequencies_;
  std::optional<std::size_t> place_;  // of "instruction" among the windows' fields
};

}  // namespace cohort::policies
