/// How rows of checks are printed: `cohort tasks NAME --check` and `--check-policy`.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "core/format.h"
#include "tasks/task_check.h"

namespace cohort::cli {

/// A line for each, with what to do below those that failed, and a last line: `passes` where none did, else how many of
/// `whose` did. False where one did.
inline bool print_check_rows(const std::vector<tasks::CheckRow>& rows, const std::string& passes,
                             const std::string& whose) {
  using Outcome = tasks::CheckRow::Outcome;
  std::string text;
  std::int64_t failed = 0;
  for (const tasks::CheckRow& row : rows) {
    failed += row.outcome == Outcome::kFail;
    const char* word = row.outcome == Outcome::kPass ? "pass" : row.outcome == Outcome::kFail ? "FAIL" : "-";
    text += format("{:<12}  {:<4}  {}\n", row.name, word, row.found);
    if (!row.remedy.empty()) text += format("{:<12}        do: {}\n", "", row.remedy);
  }
  text += failed == 0 ? passes : format("{}: {} of {} checks failed", whose, failed, rows.size());
  std::puts(text.c_str());
  return failed == 0;
}

}  // namespace cohort::cli
