#include "sim/host/obj_mesh.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "core/error.h"

namespace cohort::sim {
namespace {

/// Calls visit(kind, rest) for every line "KIND REST".
template <class Visit>
void for_lines(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t blank = line.find_first_of(" \t");
    if (blank != std::string_view::npos) visit(line.substr(0, blank), line.substr(blank));
  }
}

/// The next word of the line; "" at its end.
std::string_view take_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

bool mixes_texture_coordinates(std::string_view obj) {
  bool with = false, without = false;
  for_lines(obj, [&](std::string_view kind, std::string_view rest) {
    if (kind != "f") return;
    const std::string_view corner = take_word(rest);  // "7", "7/2", "7/2/5" or "7//5"
    const std::size_t slash = corner.find('/');
    const bool textured = slash != std::string_view::npos && slash + 1 < corner.size() && corner[slash + 1] != '/';
    (textured ? with : without) = true;
  });
  return with && without;
}

TriangleMesh read_obj(std::string_view obj) {
  TriangleMesh mesh;
  for_lines(obj, [&](std::string_view kind, std::string_view rest) {
    if (kind == "v") {
      for (int k = 0; k < 3; ++k) {
        const std::string_view word = take_word(rest);
        float value = 0;
        const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
        COHORT_THROW_UNLESS(read.ec == std::errc(), "its vertex {} has the coordinate '{}'", mesh.vertex.size() / 3 + 1,
                            word);
        mesh.vertex.push_back(value);
      }
    } else if (kind == "f") {
      const auto vertices = static_cast<int>(mesh.vertex.size() / 3);
      int first = -1, last = -1;
      for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
        int index = 0;
        const auto read = std::from_chars(word.data(), word.data() + word.size(), index);
        if (index < 0) index += vertices + 1;  // counted from the last one
        COHORT_THROW_UNLESS(read.ec == std::errc() && index >= 1 && index <= vertices,
                            "a face has the corner '{}', and there are {} vertices", word, vertices);
        const int corner = index - 1;
        if (first >= 0 && last >= 0) mesh.face.insert(mesh.face.end(), {first, last, corner});
        if (first < 0)
          first = corner;
        else
          last = corner;
      }
    }
  });
  COHORT_THROW_UNLESS(!mesh.face.empty(), "it holds no faces");
  return mesh;
}

}  // namespace cohort::sim
