/// Lines above a table: a report's name, a date of export, blank fields. They are found where a file cannot be read, so
/// that the message names them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cohort::tables {

struct FrontRecord {
  std::vector<std::string> fields;
  std::int64_t line = 1;
};

/// The line in which the names of the columns seem to stand, where that is not the first record's; 0: it is, or nothing
/// tells. `records`: the first ones of the file. Names are the first record that has as many fields as most have and a
/// text in nearly each, where those before it have one text at most.
std::int64_t line_of_names(const std::vector<FrontRecord>& records);

}  // namespace cohort::tables
