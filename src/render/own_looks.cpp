#include "render/own_looks.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "sim/index.h"

namespace cohort::render {

using sim::at;
using sim::Look;

namespace {

template <class T>
void take(std::array<T, 3>& to, const float* from) {
  for (std::size_t k = 0; k < 3; ++k) to[k] = static_cast<T>(from[k]);
}

/// Roll about x, then pitch about y, then yaw about z.
Mat3 turned_by(const float* rpy) {
  const double r = static_cast<double>(rpy[0]), p = static_cast<double>(rpy[1]), y = static_cast<double>(rpy[2]);
  const Mat3 x{1, 0, 0, 0, std::cos(r), -std::sin(r), 0, std::sin(r), std::cos(r)};
  const Mat3 about_y{std::cos(p), 0, std::sin(p), 0, 1, 0, -std::sin(p), 0, std::cos(p)};
  const Mat3 z{std::cos(y), -std::sin(y), 0, std::sin(y), std::cos(y), 0, 0, 0, 1};
  return product(z, product(about_y, x));
}

/// w x y z of the same rotation as turned_by.
std::array<double, 4> quat_by(const float* rpy) {
  const double r = static_cast<double>(rpy[0]) / 2, p = static_cast<double>(rpy[1]) / 2,
               y = static_cast<double>(rpy[2]) / 2;
  const double cr = std::cos(r), sr = std::sin(r), cp = std::cos(p), sp = std::sin(p), cy = std::cos(y),
               sy = std::sin(y);
  return {cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
          cr * cp * sy - sr * sp * cy};
}

std::array<double, 4> turned_quat(const std::array<double, 4>& a, const std::array<double, 4>& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}

}  // namespace

sim::VisualGeom own_geom(const sim::VisualGeom& geom, const sim::Looks& looks, int env) {
  sim::VisualGeom own = geom;
  if (geom.id < 0) return own;
  const auto take_row = [&](Look look, auto& to) {
    if (!looks.has(look)) return;
    const float* const from = looks.of(look, env) + static_cast<int>(to.size()) * geom.id;
    for (std::size_t k = 0; k < to.size(); ++k)
      to[k] = static_cast<typename std::remove_reference_t<decltype(to)>::value_type>(from[k]);
  };
  take_row(Look::kGeomRgba, own.rgba);
  take_row(Look::kGeomPos, own.pos);
  take_row(Look::kGeomQuat, own.quat);
  take_row(Look::kGeomSize, own.size);
  return own;
}

sim::VisualCamera own_camera(const sim::VisualCamera& camera, const sim::Looks& looks, int index, int env) {
  sim::VisualCamera own = camera;
  if (looks.has(Look::kCameraPos))
    for (auto* pos : {&own.pos, &own.pos0, &own.pos_com0}) take(*pos, looks.of(Look::kCameraPos, env) + 3 * index);
  if (looks.has(Look::kCameraTurn)) {
    const float* const rpy = looks.of(Look::kCameraTurn, env) + 3 * index;
    if (rpy[0] != 0 || rpy[1] != 0 || rpy[2] != 0) {
      own.quat = turned_quat(quat_by(rpy), own.quat);
      own.mat0 = product(turned_by(rpy), own.mat0);
    }
  }
  if (looks.has(Look::kCameraFovy)) own.fovy = static_cast<double>(looks.of(Look::kCameraFovy, env)[index]);
  return own;
}

sim::VisualLight own_light(const sim::VisualLight& light, const sim::Looks& looks, int index, int env) {
  sim::VisualLight own = light;
  if (looks.has(Look::kLightPos))
    for (auto* pos : {&own.pos, &own.pos0, &own.pos_com0}) take(*pos, looks.of(Look::kLightPos, env) + 3 * index);
  if (looks.has(Look::kLightDir))
    for (auto* dir : {&own.dir, &own.dir0}) {
      take(*dir, looks.of(Look::kLightDir, env) + 3 * index);
      *dir = unit(*dir);
    }
  if (looks.has(Look::kLightAmbient)) take(own.ambient, looks.of(Look::kLightAmbient, env) + 3 * index);
  if (looks.has(Look::kLightDiffuse)) take(own.diffuse, looks.of(Look::kLightDiffuse, env) + 3 * index);
  if (looks.has(Look::kLightSpecular)) take(own.specular, looks.of(Look::kLightSpecular, env) + 3 * index);
  return own;
}

const SceneRecord& OwnLooks::of(const TracedScene& scene, const sim::VisualModel& model, const sim::Looks& looks,
                                int env) {
  record_ = scene.record();
  const bool moved = looks.has(Look::kGeomPos) || looks.has(Look::kGeomQuat) || looks.has(Look::kGeomSize);
  if (moved || looks.has(Look::kGeomRgba)) {
    geoms_.assign(record_.geom, record_.geom + record_.geoms);
    for (std::size_t i = 0; i < geoms_.size(); ++i) {
      const sim::VisualGeom& geom = model.geoms[at(scene.sources()[i])];
      if (geom.id < 0) continue;
      const sim::VisualGeom own = own_geom(geom, looks, env);
      if (moved) scene.place(model, own, geoms_[i]);
      if (looks.has(Look::kGeomRgba)) set_colour(geoms_[i].record, own.rgba.data());
    }
    record_.geom = geoms_.data();
  }
  lights_.clear();
  for (int i = 0; i < record_.lights; ++i) {
    const int index = scene.light_sources()[at(i)];
    lights_.push_back(light_record(own_light(model.lights[at(index)], looks, index, env)));
  }
  record_.light = lights_.data();
  return record_;
}

}  // namespace cohort::render
