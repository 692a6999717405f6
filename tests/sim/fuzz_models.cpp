#include "sim/fuzz_models.h"

#include <algorithm>
#include <iterator>

#include "core/philox.h"

namespace cohort::sim {

namespace {

/// Values that numbers and names of a model file are not meant to have.
const char* const kHostile[] = {"nan",
                                "-1",
                                "1e308",
                                "-1e308",
                                "0",
                                "1e-300",
                                "99999999999999999999",
                                "2147483648",
                                "'",
                                "<",
                                "\\0",
                                "&#0;",
                                "inf",
                                "-",
                                "0 0 0 0 0 0 0 0 0 0",
                                "",
                                "world",
                                "../../../../../x",
                                "1e10 1e10 1e10",
                                "true",
                                "\xff\xfe"};
/// Attributes and elements that may turn up where they do not belong.
const char* const kWords[] = {" size='1'",
                              " mass='0'",
                              " type='mesh'",
                              " type='free'",
                              " quat='0 0 0 0'",
                              " range='1 -1'",
                              " density='-5'",
                              " condim='7'",
                              " class='none'",
                              " solref='0 0'",
                              " gear='nan'",
                              " armature='-1'",
                              " margin='1e9'",
                              " timestep='0'",
                              " limited='true'",
                              " axis='0 0 0'",
                              "<freejoint/>",
                              "<geom/>",
                              "<body/>",
                              "<joint/>",
                              "<site name='x'/>",
                              "<include file='x'/>",
                              "<replicate count='9999'>",
                              "</body>",
                              "<!--",
                              "<geom size='0 0 0'/>",
                              "<inertial mass='0'/>"};

}  // namespace

std::string mutant(const std::string& text, std::uint64_t sample) {
  const RandomStream random(22, RandomPurpose::kTest, sample, 0);
  std::uint64_t next = 0;
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(static_cast<double>(random.uniform(next++)) * static_cast<double>(n)) % n;
  };
  std::string s = text;
  const std::size_t injuries = 1 + below(3);
  for (std::size_t k = 0; k < injuries && s.size() > 8; ++k) {
    const std::size_t at = below(s.size() - 1), length = 1 + below(std::min<std::size_t>(40, s.size() - at - 1) + 1);
    switch (below(8)) {
      case 0:
        s[at] = static_cast<char>(s[at] ^ (1 << below(7)));
        break;
      case 1:
        s.erase(at, length);
        break;
      case 2:
        s.insert(at, s.substr(at, length));
        break;
      case 3: {
        const std::size_t digit = s.find_first_of("0123456789", at);
        if (digit != std::string::npos) s.replace(digit, 1, kHostile[below(std::size(kHostile))]);
        break;
      }
      case 4: {  // the whole value of an attribute
        const std::size_t open = s.find("=\"", at), close = open == std::string::npos ? open : s.find('"', open + 2);
        if (close != std::string::npos) s.replace(open + 2, close - open - 2, kHostile[below(std::size(kHostile))]);
        break;
      }
      case 5: {  // an attribute or an element more
        const std::size_t end = s.find_first_of("/>", at);
        if (end != std::string::npos) s.insert(end, kWords[below(std::size(kWords))]);
        break;
      }
      case 6: {  // a line elsewhere
        const std::size_t begin = s.find('\n', at), end = begin == std::string::npos ? begin : s.find('\n', begin + 1);
        if (end != std::string::npos) s.insert(below(s.size()), s.substr(begin, end - begin));
        break;
      }
      default:
        s.resize(at + 1);
    }
  }
  return s;
}

}  // namespace cohort::sim
