#include "sim/host/obj_mesh.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>

#include "core/error.h"

namespace cohort::sim {
namespace {

/// Calls visit(line) for every line.
template <class Visit>
void for_lines(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    visit(line);
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
  for_lines(obj, [&](std::string_view rest) {
    if (take_word(rest) != "f") return;
    const std::string_view corner = take_word(rest);  // "7", "7/2", "7/2/5" or "7//5"
    const std::size_t slash = corner.find('/');
    const bool textured = slash != std::string_view::npos && slash + 1 < corner.size() && corner[slash + 1] != '/';
    (textured ? with : without) = true;
  });
  return with && without;
}

TriangleMesh read_obj(std::string_view obj) {
  TriangleMesh mesh;
  for_lines(obj, [&](std::string_view rest) {
    const std::string_view kind = take_word(rest);
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

bool is_text_stl(std::string_view stl) {
  constexpr std::size_t kHeader = 84, kTriangle = 50, kBegin = 1024;
  if (stl.size() >= kHeader) {
    std::uint32_t triangles = 0;
    std::memcpy(&triangles, stl.data() + kHeader - sizeof triangles, sizeof triangles);
    if (kHeader + kTriangle * std::size_t{triangles} == stl.size()) return false;
  }
  const std::string_view begin = stl.substr(0, kBegin);
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && begin.substr(first).starts_with("solid") &&
         begin.find("facet") != std::string_view::npos;
}

TriangleMesh read_text_stl(std::string_view stl) {
  TriangleMesh mesh;
  std::map<std::array<float, 3>, int> known;
  std::size_t corners = 0;  // of the present facet
  for_lines(stl, [&](std::string_view line) {
    const std::string_view kind = take_word(line);
    if (kind == "facet" || kind == "endfacet") {
      COHORT_THROW_UNLESS(corners == 0 || (kind == "endfacet" && corners == 3),
                          "facet {} has {} corners, three are needed", mesh.face.size() / 3 + 1, corners);
      corners = 0;
    }
    if (kind != "vertex") return;
    std::array<float, 3> at{};
    for (float& value : at) {
      std::string_view word = take_word(line);
      if (word.starts_with('+')) word.remove_prefix(1);
      const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
      COHORT_THROW_UNLESS(read.ec == std::errc() && std::isfinite(value),
                          "a corner of facet {} has the coordinate '{}'", mesh.face.size() / 3 + 1, word);
    }
    const auto [found, is_new] = known.emplace(at, static_cast<int>(known.size()));
    if (is_new) mesh.vertex.insert(mesh.vertex.end(), at.begin(), at.end());
    mesh.face.push_back(found->second);
    ++corners;
  });
  COHORT_THROW_UNLESS(mesh.face.size() % 3 == 0 && corners == 0, "it ends within facet {}", mesh.face.size() / 3 + 1);
  COHORT_THROW_UNLESS(!mesh.face.empty(), "it holds no facets");
  return mesh;
}

}  // namespace cohort::sim
