#include "tables/number_text.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// For what is compiled into callers of several instruction sets.
#define COHORT_INTO_CALLER inline __attribute__((always_inline))

namespace cohort::tables {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr int kLargestPower = 54;  // 5^54 < 2^126: the long division below cannot overflow 128 bits

struct Significand {
  std::uint64_t high;
  std::uint64_t low;
};

/// The 128 leading bits of 5^q for q in [-kLargestPower, kLargestPower], the first bit set. Exact for q >= 0, rounded
/// up for -27 <= q < 0 and down below, as the proofs ask (Mushtak and Lemire, "Fast number parsing without fallback",
/// Software: Practice and Experience 53, 2023).
constexpr std::array<Significand, 2 * kLargestPower + 1> make_powers_of_five() {
  std::array<Significand, 2 * kLargestPower + 1> table{};
  Wide power = 1;
  for (int q = 0; q <= kLargestPower; ++q) {
    Wide leading = power;
    while (!(leading >> 127)) leading <<= 1;
    table[static_cast<std::size_t>(kLargestPower + q)] = {static_cast<std::uint64_t>(leading >> 64),
                                                          static_cast<std::uint64_t>(leading)};
    if (q > 0) {
      // Long division of a power of two by 5^q until the quotient has 128 bits.
      Wide remainder = 1, quotient = 0;
      while (!(quotient >> 127)) {
        remainder <<= 1;
        quotient <<= 1;
        if (remainder >= power) {
          remainder -= power;
          quotient |= 1;
        }
      }
      if (q <= 27) quotient += 1;
      table[static_cast<std::size_t>(kLargestPower - q)] = {static_cast<std::uint64_t>(quotient >> 64),
                                                            static_cast<std::uint64_t>(quotient)};
    }
    power *= 5;
  }
  return table;
}
constexpr auto kPowersOfFive = make_powers_of_five();

constexpr std::array<double, 23> kExactPowersOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// w * 10^q for w != 0 and |q| <= kLargestPower, rounded to nearest, ties to even. Such a product is a normal float64.
/// Returns false in the rare case that the 128 bits do not decide.
COHORT_INTO_CALLER bool scale(std::uint64_t w, int q, double& value) {
  const int leading_zeros = std::countl_zero(w);
  w <<= leading_zeros;
  const Significand power = kPowersOfFive[static_cast<std::size_t>(q + kLargestPower)];
  const Wide first = Wide{w} * power.high;
  std::uint64_t high = static_cast<std::uint64_t>(first >> 64);
  std::uint64_t low = static_cast<std::uint64_t>(first);
  constexpr std::uint64_t kUndecided = 0x1FF;  // the bits below the 52 + 3 that rounding looks at
  if ((high & kUndecided) == kUndecided) {
    const std::uint64_t correction = static_cast<std::uint64_t>((Wide{w} * power.low) >> 64);
    low += correction;
    if (low < correction) ++high;
    if (low == std::numeric_limits<std::uint64_t>::max() && q < -27) return false;
  }
  const int upper_bit = static_cast<int>(high >> 63);
  const int shift = upper_bit + 64 - 52 - 3;
  std::uint64_t mantissa = high >> shift;
  // floor(log2(10^q)) by a multiplication that is exact in this range.
  const int binary_exponent = (((152170 + 65536) * q) >> 16) + 63 + upper_bit - leading_zeros + 1023;
  // Exactly halfway between two numbers: only possible for small |q|.
  if (low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 && (mantissa << shift) == high)
    mantissa &= ~std::uint64_t{1};
  mantissa += mantissa & 1;
  mantissa >>= 1;
  int exponent = binary_exponent;
  if (mantissa >= (std::uint64_t{2} << 52)) {
    mantissa = std::uint64_t{1} << 52;
    ++exponent;
  }
  mantissa &= ~(std::uint64_t{1} << 52);
  value = std::bit_cast<double>(mantissa | (static_cast<std::uint64_t>(exponent) << 52));
  return true;
}

bool is_digit(char c) {
  return static_cast<unsigned char>(c - '0') < 10;
}

COHORT_INTO_CALLER std::uint64_t load_eight(const char* text) {
  std::uint64_t bytes;
  std::memcpy(&bytes, text, 8);
  return bytes;
}

bool are_eight_digits(std::uint64_t bytes) {
  return (((bytes + 0x4646464646464646u) | (bytes - 0x3030303030303030u)) & 0x8080808080808080u) == 0;
}

/// Eight bytes of 0 to 9, the first digit in the lowest byte, to their value with three multiplications.
COHORT_INTO_CALLER std::uint32_t eight_digits(std::uint64_t bytes) {
  bytes = bytes * 10 + (bytes >> 8);
  const std::uint64_t pairs = 0x000000FF000000FFu;
  const std::uint64_t low = (bytes & pairs) * (100 + (std::uint64_t{1000000} << 32));
  const std::uint64_t high = ((bytes >> 16) & pairs) * (1 + (std::uint64_t{10000} << 32));
  return static_cast<std::uint32_t>((low + high) >> 32);
}

const char* gather_digits(const char* p, std::uint64_t& w) {
  if constexpr (std::endian::native == std::endian::little) {
    for (std::uint64_t bytes; are_eight_digits(bytes = load_eight(p)); p += 8)
      w = w * 100000000 + eight_digits(bytes - 0x3030303030303030u);
  }
  for (; is_digit(*p); ++p) w = w * 10 + static_cast<std::uint64_t>(*p - '0');
  return p;
}

/// The library's exact conversion of a text in the form that parse_number describes, without sign.
double convert_slowly(const char* begin, const char* end, char decimal, std::int64_t leading_exponent) {
  std::string copy;
  if (decimal != '.') {
    copy.assign(begin, end);
    const std::size_t mark = copy.find(decimal);
    if (mark != std::string::npos) copy[mark] = '.';
    begin = copy.data();
    end = begin + copy.size();
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(begin, end, value);
  static_cast<void>(rest);
  if (error == std::errc::result_out_of_range)
    return leading_exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return value;
}

/// Any number.
[[gnu::noinline]] const char* parse_general(const char* text, char decimal, double& value) {
  const char* p = text;
  const bool negative = *p == '-';
  if (negative || *p == '+') ++p;
  const char* const begin = p;
  std::uint64_t w = 0;
  p = gather_digits(p, w);
  std::int64_t digits = p - begin;
  std::int64_t exponent = 0;
  const char* const point = p;
  if (*p == decimal) {
    ++p;
    p = gather_digits(p, w);
    exponent = point + 1 - p;
    digits -= exponent;
  }
  if (digits == 0) return nullptr;
  const char* end = p;
  std::int64_t written_exponent = 0;
  if ((*p | 0x20) == 'e') {
    ++p;
    const bool negative_exponent = *p == '-';
    if (negative_exponent || *p == '+') ++p;
    if (!is_digit(*p)) return nullptr;
    for (; is_digit(*p); ++p)
      if (written_exponent < 1000000000) written_exponent = written_exponent * 10 + (*p - '0');
    if (negative_exponent) written_exponent = -written_exponent;
    exponent += written_exponent;
    end = p;
  }
  double magnitude = 0;
  bool done = false;
  if (digits > 19) {
    // Leading zeros do not count: 0.0000000000000000123 has three digits.
    const char* first = begin;
    while (*first == '0' || *first == decimal) {
      if (*first == '0') --digits;
      ++first;
      if (first == end) break;
    }
  }
  if (digits <= 19) {
    if (w == 0) {
      done = true;
    } else if (exponent >= -22 && exponent <= 22 && w <= (std::uint64_t{1} << 53)) {
      const auto exact = static_cast<double>(w);
      magnitude = exponent < 0 ? exact / kExactPowersOfTen[static_cast<std::size_t>(-exponent)]
                               : exact * kExactPowersOfTen[static_cast<std::size_t>(exponent)];
      done = true;
    } else if (exponent >= -kLargestPower && exponent <= kLargestPower) {
      done = scale(w, static_cast<int>(exponent), magnitude);
    }
  }
  // The sign of `exponent + digits` tells overflow from underflow: such numbers are hundreds of powers of ten from 1.
  if (!done) magnitude = convert_slowly(begin, end, decimal, exponent + digits);
  value = negative ? -magnitude : magnitude;
  return end;
}

#if defined(__SSE2__)

constexpr std::array<std::uint64_t, 20> kPowersOfTen = [] {
  std::array<std::uint64_t, 20> table{};
  std::uint64_t power = 1;
  for (std::uint64_t& entry : table) {
    entry = power;
    power *= 10;
  }
  return table;
}();

/// Bit i is set when text[i] is a digit.
COHORT_INTO_CALLER std::uint32_t digit_mask(const char* text) {
  const auto half = [](const char* p) {
    const __m128i value = _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_set1_epi8('0'));
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value)));
  };
  return half(text) | (half(text + 16) << 16);
}

/// The first `count` characters, 0 to 8 digits, as bytes of 0 to 9; zeros stand before them.
COHORT_INTO_CALLER std::uint64_t digits_at_end(const char* text, int count) {
  const int half = 4 * (8 - count);  // in two steps, since a shift by 64 is undefined
  return (load_eight(text) - 0x3030303030303030u) << half << half;
}

constexpr std::array<unsigned char, 32> kLastBytes = [] {
  std::array<unsigned char, 32> mask{};
  for (std::size_t i = 16; i < 32; ++i) mask[i] = 0xFF;
  return mask;
}();

/// All bits set in the last `count` (0 to 16) of 16 bytes.
COHORT_INTO_CALLER __m128i last_bytes(int count) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(kLastBytes.data() + count));
}

/// Sixteen bytes of 0 to 9, the first digit in the lowest byte, to their value.
COHORT_INTO_CALLER std::uint64_t sixteen_digits(__m128i digits) {
  const __m128i tens = _mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(0xFF)), _mm_set1_epi16(10));
  const __m128i pairs = _mm_add_epi16(tens, _mm_srli_epi16(digits, 8));
  const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(100 | (1 << 16)));
  const __m128i packed = _mm_packs_epi32(fours, fours);
  const auto halves =
      static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_madd_epi16(packed, _mm_set1_epi32(10000 | (1 << 16)))));
  return static_cast<std::uint32_t>(halves) * std::uint64_t{100000000} + (halves >> 32);
}

COHORT_INTO_CALLER double with_sign(double magnitude, bool negative) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | (std::uint64_t{negative} << 63));
}

/// The 16 characters before `last`, of which the last `fraction` stand behind a mark: the last `count` digits of them,
/// as a number. count <= 16 and fraction < 16.
COHORT_INTO_CALLER std::uint64_t digits_around_mark(const char* last, int fraction, int count) {
  // What stands before the mark and what stands behind it come from two loads that differ by one byte.
  const __m128i behind = _mm_loadu_si128(reinterpret_cast<const __m128i*>(last - 16));
  const __m128i before = _mm_loadu_si128(reinterpret_cast<const __m128i*>(last - 17));
  const __m128i is_behind = last_bytes(fraction);
  const __m128i joined = _mm_or_si128(_mm_and_si128(is_behind, behind), _mm_andnot_si128(is_behind, before));
  return sixteen_digits(_mm_and_si128(_mm_sub_epi8(joined, _mm_set1_epi8('0')), last_bytes(count)));
}

/// The usual forms only: perhaps a minus, digits, perhaps a mark and digits, 19 digits at most in all, no exponent.
/// nullptr for all others. It branches only on what is alike in most numbers of a column; signs and counts of digits
/// are often random, and where the next number starts must be known early.
COHORT_INTO_CALLER const char* parse_usual(const char* text, char decimal, double& value) {
  const bool negative = *text == '-';
  const int sign = negative;
  const std::uint32_t others = ~digit_mask(text) - static_cast<std::uint32_t>(sign);  // a minus is bit 0
  const int mark = std::countr_zero(others);
  const int whole = mark - sign;
  if (whole <= 0) [[unlikely]]
    return nullptr;
  if (text[mark] != decimal) {
    if (whole > 8 || (text[mark] | 0x20) == 'e') return nullptr;
    value = with_sign(static_cast<double>(eight_digits(digits_at_end(text + sign, whole))), negative);
    return text + mark;
  }
  const int size = std::countr_zero(others & (others - 1));
  const char* const end = text + size;
  const int fraction = size - mark - 1;
  const int count = whole + fraction;
  if (count > 19 || (*end | 0x20) == 'e') [[unlikely]]
    return nullptr;
  if (count <= 15) {
    const auto w = static_cast<std::int64_t>(digits_around_mark(end, fraction, count));
    value = with_sign(static_cast<double>(w) / kExactPowersOfTen[static_cast<std::size_t>(fraction)], negative);
    return end;
  }
  const int beyond = count - 16;  // digits of the fraction that do not fit into 16 bytes
  if (beyond > fraction) return nullptr;
  const char* const last = end - beyond;
  std::uint64_t w = digits_around_mark(last, fraction - beyond, 16);
  w = w * kPowersOfTen[static_cast<std::size_t>(beyond)] + eight_digits(digits_at_end(last, beyond));
  double magnitude = 0;
  if (w != 0 && !scale(w, -fraction, magnitude)) [[unlikely]]
    return nullptr;
  value = with_sign(magnitude, negative);
  return end;
}

const char* parse_number_x86_64(const char* text, char decimal, double& value) {
  if (const char* end = parse_usual(text, decimal, value)) [[likely]]
    return end;
  return parse_general(text, decimal, value);
}

/// The same instructions on registers that shift and multiply without flags (BMI2): a quarter faster.
[[gnu::target("avx2,bmi,bmi2,lzcnt")]] const char* parse_number_x86_64_v3(const char* text, char decimal,
                                                                          double& value) {
  if (const char* end = parse_usual(text, decimal, value)) [[likely]]
    return end;
  return parse_general(text, decimal, value);
}

}  // namespace

std::vector<NumberParser> number_parsers() {
  std::vector<NumberParser> versions{parse_general, parse_number_x86_64};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
      __builtin_cpu_supports("lzcnt"))
    versions.push_back(parse_number_x86_64_v3);
  return versions;
}

#else

}  // namespace

std::vector<NumberParser> number_parsers() {
  return {parse_general};
}

#endif

NumberParser fastest_number_parser() {
  static const NumberParser fastest = number_parsers().back();
  return fastest;
}

const char* parse_number(const char* text, char decimal, double& value) {
  return fastest_number_parser()(text, decimal, value);
}

bool parse_number(std::string_view text, char decimal, double& value) {
  constexpr std::size_t kShort = 64;
  char local[kShort + 2 * kNumberPadding + 1];
  std::string longer;
  char* copy = local;
  if (text.size() > kShort) {
    longer.resize(text.size() + 2 * kNumberPadding + 1);
    copy = longer.data();
  }
  std::memset(copy, '\n', kNumberPadding);
  copy += kNumberPadding;
  std::memcpy(copy, text.data(), text.size());
  std::memset(copy + text.size(), '\n', kNumberPadding + 1);
  const char* end = parse_number(copy, decimal, value);
  if (end != nullptr) return end == copy + text.size();
  const bool negative = !text.empty() && text.front() == '-';
  if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
  const auto same = [text](std::string_view word) {
    if (text.size() != word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i)
      if ((text[i] | 0x20) != word[i]) return false;
    return true;
  };
  if (!same("inf") && !same("infinity")) return false;
  value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return true;
}

}  // namespace cohort::tables
