/// Where a compiled model's file holds what is seen: behind the model itself, so that files without it stay readable.
#pragma once
#include <string>
#include <string_view>

namespace cohort::sim {

/// The part of a compiled model's file behind its model; empty for a file that holds no more. Throws Error for one that
/// is no compiled model of this version.
std::string_view behind_model(std::string_view file, const std::string& name);
/// Throws Error unless this is empty or a whole visual model with its checksum.
void check_visual_bytes(std::string_view bytes, const std::string& file);

}  // namespace cohort::sim
