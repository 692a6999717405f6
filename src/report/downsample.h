/// Fewer points that look the same.
#pragma once
#include <cstddef>
#include <vector>

namespace cohort::report {

struct Points {
  std::vector<double> xs;
  std::vector<double> ys;
};

/// A line of many points as the smallest and the largest of every bucket along x, in their order, so that no peak is
/// lost. At most 2 * buckets points and the two ends; shorter lines come back as they are. A value that is not drawable
/// marks a gap and is kept (one for each). xs ascend.
Points thin_line(const std::vector<double>& xs, const std::vector<double>& ys, std::size_t buckets);

/// A cloud of points with at most one in every cell of a grid, so that its outline and its outliers stay. Points that
/// are not drawable are left out. The grid gets coarser until at most `most` points are left.
Points thin_cloud(const std::vector<double>& xs, const std::vector<double>& ys, std::size_t most);

}  // namespace cohort::report
