#include "tasks/push_t/convex_area.h"

#include <cmath>
#include <vector>

namespace cohort::tasks {

double signed_area(std::span<const Point2> polygon) {
  double twice = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point2 p = polygon[i], q = polygon[(i + 1) % polygon.size()];
    twice += p.x * q.y - p.y * q.x;
  }
  return twice / 2;
}

double convex_intersection_area(std::span<const Point2> a, std::span<const Point2> b) {
  if (a.size() < 3 || b.size() < 3) return 0;
  const double side = signed_area(b) < 0 ? -1.0 : 1.0;
  std::vector<Point2> kept(a.begin(), a.end()), next;
  for (std::size_t i = 0; i < b.size() && !kept.empty(); ++i) {
    const Point2 from = b[i], to = b[(i + 1) % b.size()];
    // Positive inside the edge's half plane.
    const auto depth = [&](Point2 p) {
      return side * ((to.x - from.x) * (p.y - from.y) - (to.y - from.y) * (p.x - from.x));
    };
    next.clear();
    for (std::size_t j = 0; j < kept.size(); ++j) {
      const Point2 p = kept[j], q = kept[(j + 1) % kept.size()];
      const double dp = depth(p), dq = depth(q);
      if (dp >= 0) next.push_back(p);
      if ((dp > 0 && dq < 0) || (dp < 0 && dq > 0)) {
        const double t = dp / (dp - dq);
        next.push_back({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
      }
    }
    kept.swap(next);
  }
  return std::abs(signed_area(kept));
}

}  // namespace cohort::tasks
