/// LIBERO's suites and the order of their tasks, from libero/libero/benchmark/libero_suite_task_map.py: a dictionary of
/// lists of texts, read as data. A comma between two texts may be missing, as one is in LIBERO-Pro's.
///
///   const SuiteMap map = read_suite_map(read_file(path), path);
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cohort::tasks::libero::compose {

using SuiteMap = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Throws Error naming `source` and the byte where something else than such a dictionary stands.
SuiteMap read_suite_map(const std::string& text, const std::string& source);

}  // namespace cohort::tasks::libero::compose
