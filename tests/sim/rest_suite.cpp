#include "rest_suite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "core/error.h"
#include "core/format.h"
#include "sim/host/scene.h"

namespace cohort::sim::test {

namespace {

using Point = std::array<double, 3>;
using Quat = std::array<double, 4>;

/// Of the shapes that are put down, m: about a tenth of a metre to each side.
constexpr double kSize = 0.1;
constexpr double kDrop = 0.005, kSlope = 10 * std::numbers::pi / 180, kTimestep = 0.002;
constexpr int kSteps = 1000, kWatched = 50, kEnvironments = 3;
constexpr double kLight = 100, kHeavy = 8000;  // kg/m^3
/// What MuJoCo's figures are allowed beside: m/s, rad/s, m.
constexpr double kSlow = 1e-3, kSlowTurning = 1e-2, kSinking = 1e-4, kShare = 1.1;

/// A shape to put down: how it lies, and how far its centre then is above what it lies on.
struct Upper {
  std::string name, asset, geom;
  double height;
  bool round = false;  ///< rolls: on level ground only, and not on a cylinder
  bool along = false;  ///< lies on its side: turned so that its axis points down the slope
};

std::string text(const std::vector<Point>& v) {
  std::string s;
  for (const Point& p : v) s += format("{:.7g} {:.7g} {:.7g} ", p[0], p[1], p[2]);
  return s;
}
std::string mesh_asset(const std::string& name, const std::vector<Point>& v) {
  return format("<mesh name='{}' vertex='{}'/>", name, text(v));
}
/// n corners below and n above.
std::vector<Point> prism(int n, double radius, double half) {
  std::vector<Point> v;
  for (double z : {-half, half}) {
    for (int k = 0; k < n; ++k) {
      const double a = 2 * std::numbers::pi * k / n + 0.3;
      v.push_back({radius * std::cos(a), radius * std::sin(a), z});
    }
  }
  return v;
}
/// A sole with round ends, wider below.
std::vector<Point> foot() {
  std::vector<Point> v;
  for (double z : {-0.02, 0.0, 0.02}) {
    const double wide = z > -0.01 ? 0.75 : 1;
    for (double end : {-1.0, 1.0}) {
      for (int k = 0; k < 24; ++k) {
        const double a = 2 * std::numbers::pi * k / 24;
        v.push_back({end * kSize + 0.05 * std::cos(a) * wide, 0.04 * std::sin(a) * wide, z});
      }
    }
  }
  return v;
}

std::vector<Upper> uppers() {
  std::vector<Upper> list{
      {"sphere", "", "type='sphere' size='.1'", .1, true},
      {"ellipsoid", "", "type='ellipsoid' size='.12 .1 .06'", .06, true},
      {"capsule", "", "type='capsule' size='.05 .1' euler='0 90 0'", .05, false, true},
      {"cylinder_lying", "", "type='cylinder' size='.06 .1' euler='0 90 0'", .06, false, true},
      {"cylinder", "", "type='cylinder' size='.1 .05'", .05},
      {"disc", "", "type='cylinder' size='.1 .01'", .01},
      {"box", "", "type='box' size='.1 .07 .05'", .05},
      {"plate", "", "type='box' size='.12 .1 .01'", .01},
      {"foot", mesh_asset("upper", foot()), "type='mesh' mesh='upper'", .02},
      {"mesh4", mesh_asset("upper", {{-.1, -.06, 0}, {.1, -.06, 0}, {0, .11, 0}, {0.01, 0, .1}}),
       "type='mesh' mesh='upper' pos='0 0 0'", 0},
      {"mesh5", mesh_asset("upper", {{-.1, -.06, 0}, {.1, -.06, 0}, {.09, .07, 0}, {-.1, .08, 0}, {0, 0, .1}}),
       "type='mesh' mesh='upper'", 0},
  };
  for (int sides : {3, 4, 6, 12, 50, 200}) {
    list.push_back(
        {format("mesh{}", 2 * sides), mesh_asset("upper", prism(sides, kSize, .03)), "type='mesh' mesh='upper'", .03});
  }
  return list;
}

/// What carries: one geom whose top, at its middle, is the origin.
struct Lower {
  std::string name, asset, geom;
  bool round = false;
};

std::vector<Lower> lowers() {
  std::vector<Lower> list{
      {"plane", "", "type='plane' size='2 2 .1'"},
      {"box", "", "type='box' size='.4 .3 .1' pos='0 0 -.1'"},
      {"mesh", mesh_asset("lower", prism(7, .5, .1)), "type='mesh' mesh='lower' pos='0 0 -.1'"},
      {"mesh_round", mesh_asset("lower", prism(80, .5, .1)), "type='mesh' mesh='lower' pos='0 0 -.1'"},
      {"cylinder", "", "type='cylinder' size='.5 .1' pos='0 0 -.1'"},
      {"cylinder_lying", "", "type='cylinder' size='.5 .4' pos='0 0 -.5' euler='90 0 0'", true},
  };
  for (double share : {.1, .3, 1., 3., 10.}) {
    // Not about a corner of its cells.
    const double cell = share * 2 * kSize;
    const int cells = std::max(2, static_cast<int>(std::ceil(1.0 / cell)));
    const double half = cell * cells / 2;
    std::string heights;
    for (int i = 0; i < (cells + 1) * (cells + 1); ++i) heights += "0 ";
    list.push_back({format("field{:g}", share),
                    format("<hfield name='field' nrow='{0}' ncol='{0}' size='{1:.6g} {1:.6g} .1 .2' elevation='{2}'/>",
                           cells + 1, half, heights),
                    format("type='hfield' hfield='field' pos='{:.6g} {:.6g} 0'", .23 * cell, .31 * cell)});
  }
  return list;
}

template <class T>
const T& named(const std::vector<T>& list, const std::string& name) {
  for (const T& each : list) {
    if (each.name == name) return each;
  }
  throw Error(format("no shape is called {}", name));
}

Quat multiply(const Quat& a, const Quat& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}
Quat about(int axis, double angle) {
  Quat q{std::cos(angle / 2), 0, 0, 0};
  q[static_cast<std::size_t>(axis) + 1] = std::sin(angle / 2);
  return q;
}

/// Shape i of a scene: light or heavy, on level or sloped ground; its support stands here.
constexpr int kBodies = 4;
bool is_heavy(int i) {
  return i % 2 == 1;
}
bool is_sloped(int i) {
  return i / 2 == 1;
}
Point support(int i) {
  return {3.0 * i, 0, 1};
}
/// Normal of the support, its slope goes down along x.
Point normal_of(int i) {
  return is_sloped(i) ? Point{std::sin(kSlope), 0, std::cos(kSlope)} : Point{0, 0, 1};
}

bool may_rest(const Upper& u, const Lower& l) {
  if (u.round && l.round) return false;
  return true;
}
bool used(const Upper& u, int i) {
  return !(u.round && is_sloped(i));
}

/// The start of every environment: shapes turned and shifted over their supports.
std::vector<float> starts(const Upper& u, const Lower& l) {
  std::vector<float> all;
  for (int e = 0; e < kEnvironments; ++e) {
    for (int i = 0; i < kBodies; ++i) {
      const double turn = u.along || l.round ? 0 : 0.37 * e * (i + 1);
      Point shift{0.013 * e + 0.004 * i, -0.017 * e, u.height + kDrop};
      if (l.round) shift[0] = 0;
      Quat q = about(2, turn);
      const double angle = is_sloped(i) ? kSlope : 0;
      q = multiply(about(1, angle), q);
      const Point at{shift[0] * std::cos(angle) + shift[2] * std::sin(angle), shift[1],
                     -shift[0] * std::sin(angle) + shift[2] * std::cos(angle)};
      const Point origin = support(i);
      for (std::size_t k = 0; k < 3; ++k) all.push_back(static_cast<float>(at[k] + origin[k]));
      for (double x : q) all.push_back(static_cast<float>(x));
    }
  }
  return all;
}

/// A case's scene at its start.
class RestScene {
 public:
  RestScene(const RestCase& c, EngineKind engine) : scene(options(engine)) {
    scene.add_entity(Mjcf{.file = "", .xml = rest_scene(c)});
    scene.build(kEnvironments);
    scene.set_qpos(starts(named(uppers(), c.upper), named(lowers(), c.lower)));
  }
  Scene scene;

 private:
  static SceneOptions options(EngineKind engine) {
    SceneOptions o;
    o.engine = engine;
    return o;
  }
};

std::vector<RestFigures> run(const RestCase& c, EngineKind engine) {
  const Upper u = named(uppers(), c.upper);
  RestScene at_start(c, engine);
  Scene& scene = at_start.scene;
  std::vector<RestFigures> figures(kBodies);
  for (int s = 0; s < kSteps; ++s) {
    scene.step();
    if (s < kSteps - kWatched) continue;
    const std::vector<float> q = scene.get_qpos(), v = scene.get_qvel();
    for (std::size_t e = 0; e < kEnvironments; ++e) {
      for (std::size_t i = 0; i < kBodies; ++i) {
        const float *pos = q.data() + 7 * (e * kBodies + i), *vel = v.data() + 6 * (e * kBodies + i);
        const Point n = normal_of(static_cast<int>(i)), origin = support(static_cast<int>(i));
        double height = -u.height, speed = 0, turning = 0;
        for (std::size_t k = 0; k < 3; ++k) {
          height += n[k] * (static_cast<double>(pos[k]) - origin[k]);
          speed += static_cast<double>(vel[k]) * static_cast<double>(vel[k]);
          turning += static_cast<double>(vel[3 + k]) * static_cast<double>(vel[3 + k]);
        }
        RestFigures& f = figures[i];
        f.speed = std::max(f.speed, std::sqrt(speed));
        f.turning = std::max(f.turning, std::sqrt(turning));
        f.height = std::min(f.height, height);
      }
    }
  }
  return figures;
}

std::string judged(const RestFigures& ours, const RestFigures& mujoco) {
  std::string wrong;
  const auto add = [&](bool bad, const char* what) {
    if (bad) wrong += std::string(wrong.empty() ? "" : ", ") + what;
  };
  // A speed that is no number is wrong, too.
  add(!(ours.speed <= std::max(kSlow, kShare * mujoco.speed)), "moves");
  add(!(ours.turning <= std::max(kSlowTurning, kShare * mujoco.turning)), "turns");
  add(!(ours.height >= std::min(kShare * mujoco.height, mujoco.height - kSinking)), "sinks");
  return wrong;
}

}  // namespace

std::vector<std::string> rest_uppers() {
  std::vector<std::string> names;
  for (const Upper& u : uppers()) names.push_back(u.name);
  return names;
}
std::vector<std::string> rest_lowers() {
  std::vector<std::string> names;
  for (const Lower& l : lowers()) names.push_back(l.name);
  return names;
}

std::vector<RestCase> rest_cases() {
  std::vector<RestCase> all;
  const std::vector<Lower> below = lowers();
  for (const Upper& u : uppers()) {
    for (const Lower& l : below) {
      if (may_rest(u, l)) all.push_back({u.name, l.name});
    }
  }
  return all;
}

std::string rest_scene(const RestCase& c) {
  const Upper u = named(uppers(), c.upper);
  const Lower l = named(lowers(), c.lower);
  std::string bodies, supports;
  // Nothing touches but a shape and its own support.
  for (int i = 0; i < kBodies; ++i) {
    const Point at = support(i);
    supports += format("<body pos='{} {} {}' euler='0 {} 0'><geom {} contype='{}' conaffinity='0'/></body>", at[0],
                       at[1], at[2], is_sloped(i) ? 10 : 0, l.geom, 2 << i);
    bodies += format("<body pos='{} 0 3'><freejoint/><geom {} density='{}' contype='0' conaffinity='{}'/></body>",
                     at[0], u.geom, is_heavy(i) ? kHeavy : kLight, 2 << i);
  }
  return format("<mujoco><option timestep='{}'/><asset>{}{}</asset><worldbody>{}{}</worldbody></mujoco>", kTimestep,
                u.asset, l.asset, supports, bodies);
}

std::vector<RestResult> run_rest_case(const RestCase& c) {
  const std::vector<RestFigures> ours = run(c, EngineKind::kBatched), mujoco = run(c, EngineKind::kMujoco);
  const Upper u = named(uppers(), c.upper);
  std::vector<RestResult> results;
  for (int i = 0; i < kBodies; ++i) {
    if (!used(u, i)) continue;
    const auto k = static_cast<std::size_t>(i);
    results.push_back({c, is_heavy(i), is_sloped(i), ours[k], mujoco[k], judged(ours[k], mujoco[k])});
  }
  return results;
}

std::string rest_contacts(const RestCase& c) {
  std::string text;
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    RestScene at_start(c, engine);
    for (int s = 0; s < kSteps; ++s) at_start.scene.step();
    for (int last = 0; last < 2; ++last) {
      at_start.scene.step();
      for (const Contact& contact : at_start.scene.get_contacts()) {
        const auto i = static_cast<int>(std::lround(contact.pos[0] / 3));
        const Point o = support(i);
        text +=
            format("{} env {} {} {}: depth {:.1f} um at {:.4f} {:.4f} {:.4f}, normal {:.4f} {:.4f} {:.4f}, {:.3f} N\n",
                   to_string(engine), contact.env, is_heavy(i) ? "heavy" : "light", is_sloped(i) ? "10deg" : "level",
                   -1e6 * contact.distance, contact.pos[0] - o[0], contact.pos[1] - o[1], contact.pos[2] - o[2],
                   contact.normal[0], contact.normal[1], contact.normal[2],
                   std::hypot(contact.force[0], contact.force[1], contact.force[2]));
      }
    }
  }
  return text;
}

std::string rest_columns() {
  return "upper,lower,weight,ground,speed_mm_s,mujoco_speed_mm_s,turning_rad_s,mujoco_turning_rad_s,height_um,mujoco_"
         "height_um,verdict";
}

std::string rest_line(const RestResult& r) {
  return format("{},{},{},{},{:.3f},{:.3f},{:.5f},{:.5f},{:.1f},{:.1f},{}", r.pair.upper, r.pair.lower,
                r.heavy ? "heavy" : "light", r.sloped ? "10deg" : "level", 1e3 * r.ours.speed, 1e3 * r.mujoco.speed,
                r.ours.turning, r.mujoco.turning, 1e6 * r.ours.height, 1e6 * r.mujoco.height,
                r.wrong.empty() ? "rests" : r.wrong);
}

}  // namespace cohort::sim::test
