#include "view/thin_mesh.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace cohort::view {

namespace {

constexpr float kPositionSteps = 65535;  // of a position along the mesh's box

struct Box {
  std::array<float, 3> low, high;
  float side(std::size_t axis) const { return high[axis] - low[axis]; }
};

Box box_of(std::span<const float> corner) {
  constexpr float kFar = std::numeric_limits<float>::max();
  Box box{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}};
  for (std::size_t i = 0; i < corner.size(); ++i) {
    box.low[i % 3] = std::min(box.low[i % 3], corner[i]);
    box.high[i % 3] = std::max(box.high[i % 3], corner[i]);
  }
  return box;
}

/// The numbers of a cell, 21 bits each.
std::uint64_t cell_of(const Box& box, const float* p, float size) {
  std::uint64_t key = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    const float along = size > 0 ? (p[k] - box.low[k]) / size : 0;
    key = key << 21 | static_cast<std::uint64_t>(std::clamp(along, 0.0f, 2097151.0f));
  }
  return key;
}

struct Mean {
  std::array<double, 3> sum{};
  double count = 0;
};

struct VertexKey {
  std::uint64_t position, normal, texture;
  bool operator==(const VertexKey&) const = default;
};
struct VertexHash {
  std::size_t operator()(const VertexKey& k) const {
    std::uint64_t h = k.position * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ k.normal) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::size_t>((h ^ h >> 32 ^ k.texture) * 0x94d049bb133111ebu);
  }
};

/// Triangles that keep three different cells.
std::size_t triangles_left(const Box& box, std::span<const float> corner, float size) {
  std::size_t left = 0;
  for (std::size_t t = 0; t < corner.size(); t += 9) {
    const std::uint64_t a = cell_of(box, &corner[t], size), b = cell_of(box, &corner[t + 3], size),
                        c = cell_of(box, &corner[t + 6], size);
    left += a != b && b != c && a != c;
  }
  return left;
}

/// The smallest cell that leaves at most max_triangles.
float cell_size(const Box& box, std::span<const float> corner, std::size_t max_triangles) {
  const float longest = std::max({box.side(0), box.side(1), box.side(2)});
  float fine = longest / 4096, coarse = longest / 2;
  for (int i = 0; i < 14; ++i) {
    const float middle = std::sqrt(fine * coarse);
    (triangles_left(box, corner, middle) > max_triangles ? fine : coarse) = middle;
  }
  return coarse;
}

/// Triangles as corners, normals and texture coordinates in a row.
struct Corners {
  std::vector<float> corner, normal, texcoord;
};

using Vec = std::array<double, 3>;
Vec minus(const Vec& a, const Vec& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
double product(const Vec& a, const Vec& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Vec across(const Vec& a, const Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// Cells' means instead of corners. Normals are made anew: at each corner the mean of the faces around it that lie
/// within 40 degrees, so that edges stay sharp; what the old ones said decides which way a face looks.
Corners clustered(std::span<const float> corner, std::span<const float> normal, std::span<const float> texcoord,
                  const Box& box, float size) {
  constexpr double kSmooth = 0.766;
  std::unordered_map<std::uint64_t, Mean> mean;
  for (std::size_t i = 0; i < corner.size(); i += 3) {
    Mean& m = mean[cell_of(box, &corner[i], size)];
    for (std::size_t k = 0; k < 3; ++k) m.sum[k] += static_cast<double>(corner[i + k]);
    ++m.count;
  }
  struct Face {
    std::size_t first;  ///< of its corners
    std::array<std::uint64_t, 3> cell;
    Vec area;  ///< along its normal, twice the area long
  };
  std::vector<Face> faces;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> around;
  const auto place = [&](std::uint64_t cell) {
    const Mean& m = mean[cell];
    return Vec{m.sum[0] / m.count, m.sum[1] / m.count, m.sum[2] / m.count};
  };
  for (std::size_t t = 0; t < corner.size(); t += 9) {
    Face f{t / 3, {}, {}};
    for (std::size_t k = 0; k < 3; ++k) f.cell[k] = cell_of(box, &corner[t + 3 * k], size);
    if (f.cell[0] == f.cell[1] || f.cell[1] == f.cell[2] || f.cell[0] == f.cell[2]) continue;
    const Vec a = place(f.cell[0]);
    f.area = across(minus(place(f.cell[1]), a), minus(place(f.cell[2]), a));
    Vec old{};
    for (std::size_t k = 0; k < 9; ++k) old[k % 3] += static_cast<double>(normal[t + k]);
    if (product(f.area, old) < 0)
      for (double& x : f.area) x = -x;
    for (const std::uint64_t cell : f.cell) around[cell].push_back(faces.size());
    faces.push_back(f);
  }
  Corners out;
  for (const Face& f : faces) {
    for (std::size_t k = 0; k < 3; ++k) {
      const Vec p = place(f.cell[k]);
      Vec sum{};
      for (const std::size_t other : around[f.cell[k]]) {
        const Vec& n = faces[other].area;
        const double along = product(n, f.area);
        if (along < kSmooth * std::sqrt(product(n, n) * product(f.area, f.area))) continue;
        for (std::size_t i = 0; i < 3; ++i) sum[i] += n[i];
      }
      const double length = std::sqrt(product(sum, sum));
      for (std::size_t i = 0; i < 3; ++i) {
        out.corner.push_back(static_cast<float>(p[i]));
        out.normal.push_back(static_cast<float>(length > 0 ? sum[i] / length : 0));
      }
      if (texcoord.empty()) continue;
      const float* from = &texcoord[2 * (f.first + k)];
      out.texcoord.insert(out.texcoord.end(), from, from + 2);
    }
  }
  return out;
}

}  // namespace

ThinMesh thin_mesh(std::span<const float> corner, std::span<const float> normal, std::span<const float> texcoord,
                   std::size_t max_triangles) {
  ThinMesh out;
  if (corner.empty()) return out;
  const Box box = box_of(corner);
  Corners fewer;
  if (corner.size() / 9 > max_triangles) {
    fewer = clustered(corner, normal, texcoord, box, cell_size(box, corner, max_triangles));
    corner = fewer.corner, normal = fewer.normal, texcoord = fewer.texcoord;
  }
  out.low = box.low, out.high = box.high;
  std::unordered_map<VertexKey, std::uint32_t, VertexHash> number;
  for (std::size_t i = 0; i < corner.size() / 3; ++i) {
    std::array<std::uint16_t, 3> at;
    std::array<std::int8_t, 3> way;
    VertexKey key{};
    for (std::size_t k = 0; k < 3; ++k) {
      const float part = box.side(k) > 0 ? (corner[3 * i + k] - box.low[k]) / box.side(k) : 0;
      at[k] = static_cast<std::uint16_t>(std::lround(kPositionSteps * std::clamp(part, 0.0f, 1.0f)));
      way[k] = static_cast<std::int8_t>(std::lround(127 * std::clamp(normal[3 * i + k], -1.0f, 1.0f)));
      key.position = key.position << 16 | at[k];
      key.normal = key.normal << 8 | static_cast<std::uint8_t>(way[k]);
    }
    if (!texcoord.empty()) {  // to a 4096th of the picture
      for (std::size_t k = 0; k < 2; ++k)
        key.texture = key.texture << 32 | static_cast<std::uint32_t>(std::lround(texcoord[2 * i + k] * 4096));
    }
    const auto [found, is_new] = number.try_emplace(key, static_cast<std::uint32_t>(number.size()));
    out.index.push_back(found->second);
    if (!is_new) continue;
    out.position.insert(out.position.end(), at.begin(), at.end());
    out.normal.insert(out.normal.end(), way.begin(), way.end());
    if (!texcoord.empty()) out.texcoord.insert(out.texcoord.end(), &texcoord[2 * i], &texcoord[2 * i] + 2);
  }
  return out;
}

}  // namespace cohort::view
