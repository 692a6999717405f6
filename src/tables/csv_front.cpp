#include "tables/csv_front.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "tables/csv_layout.h"

namespace cohort::tables {

std::int64_t line_of_names(const std::vector<FrontRecord>& records) {
  std::map<std::size_t, std::size_t> widths;
  for (const FrontRecord& record : records) ++widths[record.fields.size()];
  const auto usual = std::max_element(widths.begin(), widths.end(), [](const auto& a, const auto& b) {
    return a.second < b.second || (a.second == b.second && a.first < b.first);
  });
  if (records.size() < 3 || usual->first < 2) return 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto filled =
        static_cast<std::size_t>(std::count_if(records[i].fields.begin(), records[i].fields.end(),
                                               [](const std::string& field) { return !trim_blanks(field).empty(); }));
    if (records[i].fields.size() == usual->first && filled + 1 >= usual->first && filled > 1)
      return i == 0 ? 0 : records[i].line;
    if (filled > 1) return 0;
  }
  return 0;
}

}  // namespace cohort::tables
