#include "sim/host/import/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/format.h"

namespace cohort::sim::mj {
namespace {

using Vec = std::array<double, 3>;

constexpr double kLongest = 10;      // m, of a part: of a robot's none is longer, and in millimetres most are
constexpr double kHeavy = 500;       // kg: a small thing of a toy model may have any density
constexpr double kDensest = 22'600;  // kg/m^3, osmium

std::string name_of(const mjModel& m, int address) {
  return m.names + address;
}

/// Poses of all bodies where the model is at qpos0: no joint has moved.
struct Poses {
  std::vector<double> pos, quat;

  explicit Poses(const mjModel& m)
      : pos(3 * static_cast<std::size_t>(m.nbody), 0), quat(4 * static_cast<std::size_t>(m.nbody), 0) {
    quat[0] = 1;
    for (int b = 1; b < m.nbody; ++b) {
      const int parent = m.body_parentid[b];
      mju_rotVecQuat(&pos[3 * index(b)], m.body_pos + 3 * b, &quat[4 * index(parent)]);
      for (std::size_t i = 0; i < 3; ++i) pos[3 * index(b) + i] += pos[3 * index(parent) + i];
      mju_mulQuat(&quat[4 * index(b)], &quat[4 * index(parent)], m.body_quat + 4 * b);
    }
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
};

/// The box around what it has been given.
struct Bounds {
  Vec low{INFINITY, INFINITY, INFINITY}, high{-INFINITY, -INFINITY, -INFINITY};

  void add(const mjModel& m, const Poses& poses, int geom) {
    const int body = m.geom_bodyid[geom];
    const double* const box = m.geom_aabb + 6 * geom;  // middle and half of the edges, in the geom's frame
    double quat[4], rot[9], middle[3], place[3];
    mju_rotVecQuat(middle, box, m.geom_quat + 4 * geom);
    for (int i = 0; i < 3; ++i) middle[i] += m.geom_pos[3 * geom + i];
    mju_rotVecQuat(place, middle, &poses.quat[4 * Poses::index(body)]);
    mju_mulQuat(quat, &poses.quat[4 * Poses::index(body)], m.geom_quat + 4 * geom);
    mju_quat2Mat(rot, quat);
    for (std::size_t i = 0; i < 3; ++i) {
      const double at = place[i] + poses.pos[3 * Poses::index(body) + i];
      double half = 0;
      for (std::size_t k = 0; k < 3; ++k) half += std::abs(rot[3 * i + k]) * box[3 + k];
      low[i] = std::min(low[i], at - half), high[i] = std::max(high[i], at + half);
    }
  }
  double volume() const {
    double all = 1;
    for (std::size_t i = 0; i < 3; ++i) all *= std::max(0.0, high[i] - low[i]);
    return all;
  }
};

double length_of(const mjModel& m, int geom) {
  return 2 * *std::max_element(m.geom_aabb + 6 * geom + 3, m.geom_aabb + 6 * geom + 6);
}

/// "`a`, `b` and 5 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i)
    text += format("{}`{}`", i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  return names.size() > kShown ? text + format(" and {} more", names.size() - kShown) : text;
}

}  // namespace

std::vector<std::string> remarks_on_units(const mjModel& m, const std::string& from, std::span<const int> links,
                                          const std::string& scale) {
  const Poses poses(m);
  const std::set<int> own(links.begin(), links.end());
  const auto moves = [&](int body) { return own.contains(body) && m.body_weldid[body] != 0; };
  std::vector<std::string> remarks, meshes, others;
  std::set<int> seen;
  double longest_mesh = 0, longest = 0, mass = 0;
  Bounds bounds;
  for (int g = 0; g < m.ngeom; ++g) {
    const int body = m.geom_bodyid[g], type = m.geom_type[g];
    if (!moves(body) || type == mjGEOM_PLANE || type == mjGEOM_HFIELD) continue;
    bounds.add(m, poses, g);
    const double length = length_of(m, g);
    if (length <= kLongest) continue;
    const int mesh = m.geom_dataid[g];
    if (type == mjGEOM_MESH && mesh >= 0) {
      longest_mesh = std::max(longest_mesh, length);
      if (seen.insert(mesh).second) meshes.push_back(name_of(m, m.name_meshadr[mesh]));
    } else {
      longest = std::max(longest, length);
      const std::string link = name_of(m, m.name_bodyadr[body]);
      if (std::ranges::find(others, link) == others.end()) others.push_back(link);
    }
  }
  for (int b = 1; b < m.nbody; ++b)
    if (moves(b)) mass += m.body_mass[b];
  if (!meshes.empty())
    remarks.push_back(format(
        "{}{} {} {} {:.3g} m long: in millimetres that would be {:.3g} m, in inches {:.3g} m; {} takes millimetres",
        from, meshes.size() == 1 ? "the mesh" : "the meshes", listed(meshes), meshes.size() == 1 ? "is" : "are up to",
        longest_mesh, longest_mesh * 0.001, longest_mesh * 0.0254, scale));
  if (!others.empty())
    remarks.push_back(format(
        "{}{} {} {} a shape {:.3g} m long: in millimetres that would be {:.3g} m; sizes and places are metres here: "
        "divide them by 1000 where the file has millimetres",
        from, others.size() == 1 ? "the link" : "the links", listed(others), others.size() == 1 ? "has" : "have",
        longest, longest * 0.001));
  // Of lengths in another unit a density says nothing.
  const double volume = bounds.volume();
  if (meshes.empty() && others.empty() && mass > kHeavy && volume > 0 && mass > kDensest * volume)
    remarks.push_back(
        format("{}its moving links weigh {:.4g} kg in a box of {:.3g} m^3, denser than any metal: in grams that would "
               "be {:.3g} "
               "kg; masses are kilograms here, and inertias kg m^2: divide both by 1000 where the file has grams",
               from, mass, volume, mass * 0.001));
  return remarks;
}

}  // namespace cohort::sim::mj
