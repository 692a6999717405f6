/// ModelEdits applied to a file's mjSpec.
#pragma once
#include <string>
#include <vector>

#include "sim/host/import/library.h"
#include "sim/host/model_edits.h"

namespace cohort::sim::mj {

/// Throws CompileFailure for a pattern that matches nothing, a name that is not there and a number that cannot be.
/// entity: its name, which may stand before those in the patterns, and stands in messages. Adds to `warnings`.
void apply_edits(mjSpec* spec, const ModelEdits& edits, const std::string& entity, std::vector<std::string>& warnings);

}  // namespace cohort::sim::mj
