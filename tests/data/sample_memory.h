/// One sample of robot windows in memory of its own; poisoned before it is read.
#pragma once
#include <string>
#include <vector>

#include "core/error.h"
#include "data/robot_windows.h"

namespace cohort::data {

struct Sample {
  std::vector<FieldSpec> specs;
  std::vector<std::vector<std::byte>> memory;
  std::vector<ArrayView> rows;

  Sample(const RobotWindows& windows, std::int64_t index, std::uint64_t epoch) : specs(windows.fields()) {
    for (const FieldSpec& spec : specs) {
      std::int64_t elements = 1;
      for (const std::int64_t n : spec.sample_shape) elements *= n;
      memory.emplace_back(static_cast<std::size_t>(elements) * element_size(spec.type), std::byte{0xAA});
    }
    for (std::size_t f = 0; f < specs.size(); ++f)
      rows.push_back(make_view(memory[f].data(), specs[f].type, specs[f].sample_shape));
    windows.read(index, epoch, rows);
  }
  std::size_t field(const std::string& name) const {
    for (std::size_t f = 0; f < specs.size(); ++f)
      if (specs[f].name == name) return f;
    throw Error("no field " + name);
  }
  std::span<const float> floats(const std::string& name) const { return rows[field(name)].span<float>(); }
  std::vector<bool> mask(const std::string& name) const {
    std::vector<bool> values;
    for (const std::byte b : memory[field(name)]) values.push_back(b != std::byte{0});
    return values;
  }
};

}  // namespace cohort::data
