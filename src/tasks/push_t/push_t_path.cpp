#include "tasks/push_t/push_t_path.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace cohort::tasks {
namespace {

constexpr int kCells = 64;          // in each direction
constexpr double kCell = 8;         // px
constexpr double kMargin = 2.5;     // px between rim and block on the way
constexpr double kNearEnough = 40;  // px from a path's end to its grid point

Point2 centre(int cell) {
  return {kCell * (cell % kCells + 0.5), kCell * (cell / kCells + 0.5)};
}

/// The free cell nearest to a point, or -1.
int nearest_free(const std::vector<char>& free, Point2 point) {
  int best = -1;
  double best_distance = kNearEnough;
  for (int cell = 0; cell < kCells * kCells; ++cell) {
    const double d = distance(centre(cell), point);
    if (free[static_cast<std::size_t>(cell)] && d < best_distance) {
      best = cell;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace

double distance_to_t(const PushTPose& pose, Point2 point) {
  const double c = std::cos(pose.angle), s = std::sin(pose.angle);
  const double dx = point.x - pose.origin.x, dy = point.y - pose.origin.y;
  const Point2 local = {c * dx + s * dy, -s * dx + c * dy};
  double nearest = std::numeric_limits<double>::infinity();
  for (const auto& box : push_t_boxes()) {
    // Corners 0 and 2 lie opposite. Signed distance of a point to a box.
    const double qx = std::abs(local.x - (box[0].x + box[2].x) / 2) - std::abs(box[0].x - box[2].x) / 2;
    const double qy = std::abs(local.y - (box[0].y + box[2].y) / 2) - std::abs(box[0].y - box[2].y) / 2;
    const double outside = std::hypot(std::max(qx, 0.0), std::max(qy, 0.0));
    nearest = std::min(nearest, outside + std::min(std::max(qx, qy), 0.0));
  }
  return nearest;
}

std::vector<Point2> path_around_t(const PushTPose& pose, Point2 from, Point2 to) {
  constexpr double kUnreached = std::numeric_limits<double>::infinity();
  constexpr auto kCount = static_cast<std::size_t>(kCells * kCells);
  std::vector<char> free(kCount);
  for (int cell = 0; cell < kCells * kCells; ++cell)
    free[static_cast<std::size_t>(cell)] = distance_to_t(pose, centre(cell)) >= kPushTAgentRadius + kMargin;
  // Searched from the end, so that the links lead from the start to it.
  const int start = nearest_free(free, from), end = nearest_free(free, to);
  if (start < 0 || end < 0) return {};
  std::vector<double> cost(kCount, kUnreached);
  std::vector<int> link(kCount, -1);
  using Entry = std::pair<double, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> open;
  cost[static_cast<std::size_t>(end)] = 0;
  open.push({0, end});
  while (!open.empty()) {
    const auto [reached, cell] = open.top();
    open.pop();
    if (cell == start) break;
    if (reached > cost[static_cast<std::size_t>(cell)]) continue;
    for (int dy = -1; dy <= 1; ++dy)
      for (int dx = -1; dx <= 1; ++dx) {
        const int x = cell % kCells + dx, y = cell / kCells + dy;
        if ((dx == 0 && dy == 0) || x < 0 || y < 0 || x >= kCells || y >= kCells) continue;
        const int next = y * kCells + x;
        const auto n = static_cast<std::size_t>(next);
        const double length = reached + kCell * std::hypot(dx, dy);
        if (!free[n] || length >= cost[n]) continue;
        cost[n] = length;
        link[n] = cell;
        open.push({length, next});
      }
  }
  if (cost[static_cast<std::size_t>(start)] == kUnreached) return {};
  std::vector<Point2> path;
  for (int cell = start; cell >= 0; cell = link[static_cast<std::size_t>(cell)]) path.push_back(centre(cell));
  path.push_back(to);
  return path;
}

}  // namespace cohort::tasks
