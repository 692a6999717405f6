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

/// Which of six sides a normal faces most.
std::uint64_t side_of(const float* n) {
  std::size_t axis = 0;
  for (std::size_t k = 1; k < 3; ++k)
    if (std::abs(n[k]) > std::abs(n[axis])) axis = k;
  return 2 * axis + (n[axis] < 0);
}

struct Mean {
  std::array<double, 3> sum{};
  double count = 0;
};

struct VertexKey {
  std::uint64_t cell, rest, texture;
  bool operator==(const VertexKey&) const = default;
};
struct VertexHash {
  std::size_t operator()(const VertexKey& k) const {
    std::uint64_t h = k.cell * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 29 ^ k.rest) * 0xbf58476d1ce4e5b9u;
    return static_cast<std::size_t>((h ^ h >> 32 ^ k.texture) * 0x94d049bb133111ebu);
  }
};

std::uint64_t packed(std::int8_t a, std::int8_t b, std::int8_t c) {
  const auto byte = [](std::int8_t x) { return static_cast<std::uint64_t>(static_cast<std::uint8_t>(x)); };
  return byte(a) << 16 | byte(b) << 8 | byte(c);
}

std::int8_t small_normal(double x) {
  return static_cast<std::int8_t>(std::lround(127 * std::clamp(x, -1.0, 1.0)));
}

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

}  // namespace

ThinMesh thin_mesh(std::span<const float> corner, std::span<const float> normal, std::span<const float> texcoord,
                   std::size_t max_triangles) {
  ThinMesh out;
  if (corner.empty()) return out;
  const Box box = box_of(corner);
  out.low = box.low, out.high = box.high;
  const std::size_t corners = corner.size() / 3;
  const bool thin = corners / 3 > max_triangles;
  const float size = thin ? cell_size(box, corner, max_triangles) : 0;

  std::array<float, 3> scale;
  for (std::size_t k = 0; k < 3; ++k) scale[k] = box.side(k) > 0 ? kPositionSteps / box.side(k) : 0;
  const auto step = [&](double x, std::size_t k) {
    return static_cast<std::uint16_t>(std::lround((x - static_cast<double>(box.low[k])) * static_cast<double>(scale[k])));
  };
  std::unordered_map<std::uint64_t, Mean> position;  // of each cell, where some are thinned
  if (thin) {
    for (std::size_t i = 0; i < corners; ++i) {
      Mean& mean = position[cell_of(box, &corner[3 * i], size)];
      for (std::size_t k = 0; k < 3; ++k) mean.sum[k] += static_cast<double>(corner[3 * i + k]);
      ++mean.count;
    }
  }
  std::unordered_map<VertexKey, std::uint32_t, VertexHash> number;
  std::vector<Mean> normals;
  std::vector<std::uint32_t> vertex(corners);
  for (std::size_t i = 0; i < corners; ++i) {
    const float *p = &corner[3 * i], *n = &normal[3 * i];
    std::array<std::uint16_t, 3> at;
    VertexKey key{};
    if (thin) {
      key.cell = cell_of(box, p, size), key.rest = side_of(n);
      const Mean& mean = position[key.cell];
      for (std::size_t k = 0; k < 3; ++k) at[k] = step(mean.sum[k] / mean.count, k);
    } else {
      for (std::size_t k = 0; k < 3; ++k) at[k] = step(static_cast<double>(p[k]), k), key.cell = key.cell << 16 | at[k];
      const auto small = [&](std::size_t k) { return small_normal(static_cast<double>(n[k])); };
      key.rest = packed(small(0), small(1), small(2));
    }
    if (!texcoord.empty()) {  // to a 2048th of the picture
      const auto part = [&](std::size_t k) {
        return static_cast<std::uint64_t>(static_cast<std::uint32_t>(std::lround(texcoord[2 * i + k] * 2048.0f)));
      };
      key.texture = part(0) << 32 | (part(1) & 0xffffffffu);
    }
    const auto [found, is_new] = number.try_emplace(key, static_cast<std::uint32_t>(normals.size()));
    vertex[i] = found->second;
    if (is_new) {
      normals.emplace_back();
      out.position.insert(out.position.end(), at.begin(), at.end());
      if (!texcoord.empty()) out.texcoord.insert(out.texcoord.end(), &texcoord[2 * i], &texcoord[2 * i] + 2);
    }
    Mean& mean = normals[found->second];
    for (std::size_t k = 0; k < 3; ++k) mean.sum[k] += static_cast<double>(n[k]);
  }
  for (const Mean& mean : normals) {
    const double length = std::sqrt(mean.sum[0] * mean.sum[0] + mean.sum[1] * mean.sum[1] + mean.sum[2] * mean.sum[2]);
    for (const double x : mean.sum) out.normal.push_back(small_normal(length > 0 ? x / length : 0));
  }
  for (std::size_t t = 0; t < corners; t += 3) {
    const auto place = [&](std::size_t k) { return thin ? cell_of(box, &corner[3 * (t + k)], size) : k; };
    if (thin && (place(0) == place(1) || place(1) == place(2) || place(0) == place(2))) continue;
    out.index.insert(out.index.end(), &vertex[t], &vertex[t] + 3);
  }
  return out;
}

}  // namespace cohort::view
