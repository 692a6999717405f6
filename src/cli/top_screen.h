/// What `cohort top` shows of a machine, as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include "monitor/snapshot.h"

namespace cohort::cli {

/// Lines without a line's end, as wide as they need to be.
std::vector<std::string> top_lines(const monitor::Snapshot& now);

/// One JSON object; what is not known is null.
std::string top_json(const monitor::Snapshot& now);

}  // namespace cohort::cli
