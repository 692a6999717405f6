/// Terms of a task file by name: each is a formula (tasks/terms/formula.h) with parameters. Names and meanings are those
/// of mjlab 1.6 and Isaac Lab where both agree; what differs is said.
#pragma once
#include <span>
#include <string>
#include <vector>

namespace cohort::tasks {

struct TermParameterEntry {
  /// kValue: a number, numbers or a formula; kJointValues: a number, or numbers by patterns of joints, for `joints`;
  /// kNames: names or patterns.
  enum Kind { kValue, kJointValues, kNames } kind = kValue;
  const char* name;
  const char* standard;  ///< where the file gives none, as JSON; "": it must
  const char* means;
};

struct TermEntry {
  const char* name;
  /// o: observation, r: reward, t: termination or success. Of a reward + or -: the more, the better, or the worse.
  const char* kinds;
  const char* formula;
  const char* unit;
  const char* means;
  std::vector<TermParameterEntry> parameters = {};
};

std::span<const TermEntry> term_entries();
/// null: there is none of this name and kind.
const TermEntry* find_term(const std::string& name, char kind);
std::vector<std::string> term_names(char kind);

}  // namespace cohort::tasks
