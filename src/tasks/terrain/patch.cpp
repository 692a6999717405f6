#include "tasks/terrain/patch.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace cohort::tasks {

namespace {

/// Whole cells in a length; 0.3 m are three of 0.1 m, whatever the quotient's last bit says.
int cells(double length, double cell) {
  return static_cast<int>(std::floor(length / cell + 1e-6));
}

double at_difficulty(const SubTerrain::Range& range, double difficulty) {
  return range[0] + difficulty * (range[1] - range[0]);
}

/// Numbers one after another, a function of the seed and the patch.
class Draws {
 public:
  explicit Draws(const PatchPlan& plan) : stream_(terrain_draws(plan.seed, plan.id, 0)) {}
  double between(double low, double high) { return low + (high - low) * static_cast<double>(stream_.uniform(next_++)); }
  int below(int n) { return static_cast<int>(stream_.below(next_++, static_cast<std::uint32_t>(n))); }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// One patch while it is filled. Columns lie along x, rows along y.
class Patch {
 public:
  Patch(const SubTerrain& type, const PatchPlan& plan, std::span<float> heights)
      : t_(type), p_(plan), heights_(heights), border_(cells(type.border_width, plan.cell)) {}

  void set(int col, int row, double height) {
    heights_[static_cast<std::size_t>(row) * static_cast<std::size_t>(p_.nx) + static_cast<std::size_t>(col)] =
        static_cast<float>(height);
  }
  /// Calls height(x, y) for every point, m from the patch's corner.
  template <class F>
  void each(F height) {
    for (int row = 0; row < p_.ny; ++row)
      for (int col = 0; col < p_.nx; ++col) set(col, row, height(col * p_.cell, row * p_.cell));
  }
  /// Calls height(col, row) for the points between the borders, counted from the first, in steps of vertical_scale.
  template <class F>
  void each_inner(F height) {
    for (int row = 0; row < inner(p_.ny); ++row)
      for (int col = 0; col < inner(p_.nx); ++col)
        set(border_ + col, border_ + row, std::nearbyint(height(col, row)) * p_.vertical_scale);
  }
  int inner(int n) const { return n - 2 * border_; }
  double width() const { return p_.nx * p_.cell; }
  double depth() const { return p_.ny * p_.cell; }
  bool on_platform(double x, double y) const {
    const double half = t_.platform_width / 2 + 1e-6;
    return std::abs(x - width() / 2) <= half && std::abs(y - depth() / 2) <= half;
  }
  double steps(double height) const { return std::trunc(height / p_.vertical_scale + std::copysign(1e-6, height)); }

  void stairs(double sign);
  void slope(double sign);
  void noise();
  void waves();
  void grid();
  void obstacles();
  void stones();

 private:
  const SubTerrain& t_;
  const PatchPlan& p_;
  std::span<float> heights_;
  int border_;
};

/// The riser of a step is one cell wide, on the outer side of the step that is farther from the border.
void Patch::stairs(double sign) {
  const double height = sign * at_difficulty(t_.step_height_range, p_.difficulty), border = t_.border_width;
  const auto steps_along = [&](double side) { return cells(side - 2 * border - t_.platform_width, 2 * t_.step_width); };
  const int last = std::max(0, std::min(steps_along(width()), steps_along(depth())));
  each([&](double x, double y) {
    const double inwards = std::min({x, width() - x, y, depth() - y}) - border;
    if (inwards < -1e-6) return 0.0;
    return (std::min(cells(inwards, t_.step_width), last) + 1) * height;
  });
}

/// The product of two ridges, cut off at the height of the platform's corner.
void Patch::slope(double sign) {
  const int nx = inner(p_.nx), ny = inner(p_.ny), cx = nx / 2, cy = ny / 2;
  const double top = steps(sign * at_difficulty(t_.slope_range, p_.difficulty) * (nx * p_.cell) / 2);
  const auto ridge = [&](int col, int row) {
    return top * (static_cast<double>(cx - std::abs(cx - col)) / cx) *
           (static_cast<double>(cy - std::abs(cy - row)) / cy);
  };
  const int half = cells(t_.platform_width / 2, p_.cell);
  const double platform = ridge(std::max(cx - half, 0), std::max(cy - half, 0));
  each_inner(
      [&](int col, int row) { return std::clamp(ridge(col, row), std::min(0.0, platform), std::max(0.0, platform)); });
}

void Patch::noise() {
  Draws draws(p_);
  const double scale = t_.scale_with_difficulty ? p_.difficulty : 1.0;
  const double low = t_.noise_range[0] * scale, high = t_.noise_range[1] * scale;
  const int choices = cells(high - low, t_.noise_step) + 1;
  const int nx = inner(p_.nx), ny = inner(p_.ny);
  const double spacing = t_.downsampled_scale == 0 ? p_.cell : t_.downsampled_scale;
  const int mx = std::max(2, cells(nx * p_.cell, spacing)), my = std::max(2, cells(ny * p_.cell, spacing));
  std::vector<double> drawn(static_cast<std::size_t>(mx) * static_cast<std::size_t>(my));
  for (double& d : drawn) d = (low + t_.noise_step * draws.below(choices)) / p_.vertical_scale;
  each_inner([&](int col, int row) {
    const double u = static_cast<double>(col) / (nx - 1) * (mx - 1), v = static_cast<double>(row) / (ny - 1) * (my - 1);
    const int i = std::min(static_cast<int>(u), mx - 2), k = std::min(static_cast<int>(v), my - 2);
    const double* at = &drawn[static_cast<std::size_t>(k) * static_cast<std::size_t>(mx) + static_cast<std::size_t>(i)];
    const double height = std::lerp(std::lerp(at[0], at[1], u - i), std::lerp(at[mx], at[mx + 1], u - i), v - k);
    if (t_.rise_range[1] <= 0) return height;
    const double far = p_.cell * std::hypot(col - 0.5 * (nx - 1), row - 0.5 * (ny - 1));
    const double way = std::max(t_.rise_range[1] - t_.rise_range[0], p_.cell);
    return height * std::clamp((far - t_.rise_range[0]) / way, 0.0, 1.0);
  });
}

void Patch::waves() {
  const double amplitude = steps(0.5 * at_difficulty(t_.amplitude_range, p_.difficulty));
  const double number = 2 * std::numbers::pi * t_.num_waves / inner(p_.nx);
  each_inner([&](int col, int row) { return amplitude * (std::cos(col * number) + std::sin(row * number)); });
}

void Patch::grid() {
  Draws draws(p_);
  const double most = at_difficulty(t_.grid_height_range, p_.difficulty);
  const int mx = std::max(1, cells(width(), t_.grid_width)), my = std::max(1, cells(depth(), t_.grid_width));
  const double left = (width() - mx * t_.grid_width) / 2, front = (depth() - my * t_.grid_width) / 2;
  std::vector<double> boxes(static_cast<std::size_t>(mx) * static_cast<std::size_t>(my));
  for (double& box : boxes) box = draws.between(-most, most);
  each([&](double x, double y) {
    const int i = cells(x - left, t_.grid_width), k = cells(y - front, t_.grid_width);
    if (i < 0 || i >= mx || k < 0 || k >= my || on_platform(x, y)) return 0.0;
    return boxes[static_cast<std::size_t>(k) * static_cast<std::size_t>(mx) + static_cast<std::size_t>(i)];
  });
}

void Patch::obstacles() {
  Draws draws(p_);
  const double most = at_difficulty(t_.obstacle_height_range, p_.difficulty);
  const double heights[] = {-most, -most / 2, most / 2, most};
  const int nx = inner(p_.nx), ny = inner(p_.ny);
  const int least = std::max(1, cells(t_.obstacle_width_range[0], p_.cell));
  const int widths = std::max(1, cells(t_.obstacle_width_range[1], p_.cell) - least + 1);
  for (int n = 0; n < t_.num_obstacles; ++n) {
    const int choice = draws.below(4), wide = least + draws.below(widths), deep = least + draws.below(widths);
    const int col = draws.below(nx), row = draws.below(ny);
    const double height = t_.obstacle_height_mode == "fixed" ? most : heights[choice];
    for (int r = row; r < std::min(row + deep, ny); ++r)
      for (int c = col; c < std::min(col + wide, nx); ++c)
        set(border_ + c, border_ + r, std::nearbyint(height / p_.vertical_scale) * p_.vertical_scale);
  }
  for (int row = 0; row < p_.ny; ++row)
    for (int col = 0; col < p_.nx; ++col)
      if (on_platform(col * p_.cell, row * p_.cell)) set(col, row, 0);
}

/// Stones on a grid that difficulty does not change; they shrink with it, so that the gaps between them grow.
void Patch::stones() {
  Draws draws(p_);
  const double border = t_.border_width, d = p_.difficulty;
  const double inner_x = width() - 2 * border, inner_y = depth() - 2 * border;
  const double nominal = t_.stone_size_range[1] + t_.stone_distance_range[0];
  const int mx = std::max(2, cells(inner_x, nominal) + 1), my = std::max(2, cells(inner_y, nominal) + 1);
  const double size = t_.stone_size_range[1] - d * (t_.stone_size_range[1] - t_.stone_size_range[0]);
  each([&](double x, double y) {
    const double inwards = std::min({x, width() - x, y, depth() - y}) - border;
    return inwards < -1e-6 || on_platform(x, y) ? t_.stone_height : -t_.floor_depth;
  });
  for (int k = 0; k < my; ++k) {
    for (int i = 0; i < mx; ++i) {
      const double off = t_.displacement_range * d, vary = t_.stone_size_variation * d,
                   lift = t_.stone_height_variation * d;
      const double x = border + i * inner_x / (mx - 1) + draws.between(-off, off);
      const double y = border + k * inner_y / (my - 1) + draws.between(-off, off);
      const double half_x = (size + draws.between(-vary, vary)) / 2, half_y = (size + draws.between(-vary, vary)) / 2;
      const double height = t_.stone_height + draws.between(-lift, lift);
      const int c0 = std::max(0, cells(x - half_x, p_.cell)), c1 = std::min(p_.nx - 1, cells(x + half_x, p_.cell));
      const int r0 = std::max(0, cells(y - half_y, p_.cell)), r1 = std::min(p_.ny - 1, cells(y + half_y, p_.cell));
      for (int row = r0; row <= r1; ++row) {
        for (int col = c0; col <= c1; ++col) {
          const double px = col * p_.cell, py = row * p_.cell;
          const double inwards = std::min({px, width() - px, py, depth() - py}) - border;
          if (std::abs(px - x) <= half_x + 1e-6 && std::abs(py - y) <= half_y + 1e-6 && inwards >= -1e-6 &&
              !on_platform(px, py))
            set(col, row, height);
        }
      }
    }
  }
}

}  // namespace

void fill_patch(const SubTerrain& type, const PatchPlan& plan, std::span<float> heights) {
  Patch patch(type, plan, heights);
  if (type.type == "pyramid_stairs") patch.stairs(1);
  if (type.type == "pyramid_stairs_inverted") patch.stairs(-1);
  if (type.type == "pyramid_slope") patch.slope(1);
  if (type.type == "pyramid_slope_inverted") patch.slope(-1);
  if (type.type == "random_uniform") patch.noise();
  if (type.type == "waves") patch.waves();
  if (type.type == "random_grid") patch.grid();
  if (type.type == "discrete_obstacles") patch.obstacles();
  if (type.type == "stepping_stones") patch.stones();
}

}  // namespace cohort::tasks
