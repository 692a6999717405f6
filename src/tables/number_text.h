/// Decimal text to float64, exactly rounded: the same bits as strtod in the "C" locale, several times faster.
///
/// Up to 19 significant digits are gathered into an integer w, eight at a time, so that the number is w * 10^q. Where a
/// number ends is found from a mask of the digits among 32 bytes before any digit is converted, so that the processor
/// works on several numbers at once. Where w and 10^|q| are both exact in float64 one operation rounds correctly
/// (Clinger, "How to read floating point numbers accurately", PLDI 1990). Else w is multiplied by a 128-bit
/// approximation of 10^q (Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51,
/// 2021). What neither covers (more digits, |q| > 54) goes to std::from_chars, which for all others takes twice as
/// long: 20 to 31 ns a number against 9 to 18, a whole CSV file 1.7 to 3.8 times as long (GCC 12, an AVX2 processor, 3
/// decimals to 17 digits; 2026-11-26).
#pragma once
#include <string_view>
#include <vector>

namespace cohort::tables {

/// Bytes that must be readable before a number's first and after its last character, of any content.
inline constexpr int kNumberPadding = 48;

/// Reads [+-]digits[.digits][(e|E)[+-]digits] at `text`; at least one digit before the exponent. Returns the character
/// after the number, or nullptr where there is none. The character after the text must be one that no number holds (a
/// separator, a line feed). `decimal` is the decimal mark. Too large a number gives infinity, too small a one zero, as
/// strtod does.
const char* parse_number(const char* text, char decimal, double& value);

/// The versions of parse_number that this processor runs, the fastest one last. All give the same bits.
using NumberParser = const char* (*)(const char* text, char decimal, double& value);
std::vector<NumberParser> number_parsers();

/// The fastest one, to be called many times.
NumberParser fastest_number_parser();

/// As above for a text of its own, without needs on what follows it. Also takes inf and infinity with a sign and in any
/// case. Returns false when `text` is not wholly a number.
bool parse_number(std::string_view text, char decimal, double& value);

}  // namespace cohort::tables
