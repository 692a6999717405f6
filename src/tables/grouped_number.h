/// Numbers whose thousands are set apart: 1.282,6 and 1 234 567.
#pragma once
#include <array>
#include <string_view>

namespace cohort::tables {

/// Names of settings for what sets thousands apart. A space is also the no-break and the narrow no-break one (U+00A0,
/// U+202F), an apostrophe also the typographic one (U+2019).
inline constexpr std::array<std::string_view, 4> kThousands{".", ",", "space", "apostrophe"};

/// As parse_number(text, decimal, value) where nothing is set apart. False where groups do not have three digits each
/// (the first one to three), where `thousands` is the decimal mark, and where the text is no number. `thousands`: one of
/// kThousands.
bool parse_grouped_number(std::string_view text, char decimal, std::string_view thousands, double& value);

}  // namespace cohort::tables
