// Large meshes become small ones of the same shape.
#include "view/thin_mesh.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace cohort::view {
namespace {

struct Ball {
  std::vector<float> corner, normal;
  explicit Ball(int rings) {
    const auto point = [&](int r, int s) {
      const double a = std::numbers::pi * r / rings, b = std::numbers::pi * s / rings;
      return std::array<float, 3>{static_cast<float>(std::sin(a) * std::cos(b)),
                                  static_cast<float>(std::sin(a) * std::sin(b)), static_cast<float>(std::cos(a))};
    };
    const auto add = [&](const std::array<float, 3>& p) {
      corner.insert(corner.end(), p.begin(), p.end()), normal.insert(normal.end(), p.begin(), p.end());
    };
    for (int r = 0; r < rings; ++r) {
      for (int s = 0; s < 2 * rings; ++s) {
        add(point(r, s)), add(point(r + 1, s)), add(point(r + 1, s + 1));
        add(point(r, s)), add(point(r + 1, s + 1)), add(point(r, s + 1));
      }
    }
  }
};

TEST(ThinMesh, ABallOfTwentyThousandTrianglesStaysRoundWithAThousand) {
  const Ball ball(71);
  const ThinMesh mesh = thin_mesh(ball.corner, ball.normal, {}, 1000);
  EXPECT_LE(mesh.triangles(), 1000u);
  EXPECT_GE(mesh.triangles(), 300u);
  for (std::size_t i = 0; i < mesh.position.size(); i += 3) {
    double square = 0, along = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const double x = static_cast<double>(mesh.low[k]) +
                       static_cast<double>(mesh.high[k] - mesh.low[k]) * mesh.position[i + k] / 65535;
      square += x * x, along += x * mesh.normal[i + k] / 127;
    }
    EXPECT_NEAR(std::sqrt(square), 1, 0.03);
    EXPECT_GT(along / std::sqrt(square), 0.9) << "a normal that looks outwards";
  }
}

TEST(ThinMesh, ASmallMeshKeepsEveryTriangleAndEachVertexOnce) {
  const Ball ball(6);
  const ThinMesh mesh = thin_mesh(ball.corner, ball.normal, {}, 1000);
  EXPECT_EQ(mesh.triangles(), ball.corner.size() / 9);
  EXPECT_LT(mesh.position.size() / 3, 85u);  // 7 rings of 12 points, of which the poles are one each
}

}  // namespace
}  // namespace cohort::view
