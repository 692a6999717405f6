#include "view/shown_looks.h"

#include <algorithm>
#include <cmath>

#include "core/json_text.h"
#include "render/own_looks.h"
#include "sim/index.h"
#include "view/binary_document.h"
#include "view/scene_document.h"
#include "view/scene_json.h"

namespace cohort::view {

using nlohmann::json;
using sim::at;

namespace {

/// w x y z of a rotation, row-major (Shepperd, "Quaternion from Rotation Matrix", 1978): by its largest component.
std::array<double, 4> quaternion_of(const double* r) {
  const std::array<double, 4> squares{1 + r[0] + r[4] + r[8], 1 + r[0] - r[4] - r[8], 1 - r[0] + r[4] - r[8],
                                      1 - r[0] - r[4] + r[8]};
  const auto largest = static_cast<std::size_t>(std::ranges::max_element(squares) - squares.begin());
  const double twice = std::sqrt(squares[largest]), half = 0.5 / twice;
  const double x = (r[7] - r[5]) * half, y = (r[2] - r[6]) * half, z = (r[3] - r[1]) * half;
  const double xy = (r[1] + r[3]) * half, xz = (r[2] + r[6]) * half, yz = (r[5] + r[7]) * half;
  switch (largest) {
    case 0:
      return {twice / 2, x, y, z};
    case 1:
      return {x, twice / 2, xy, xz};
    case 2:
      return {y, xy, twice / 2, yz};
    default:
      return {z, xz, yz, twice / 2};
  }
}

}  // namespace

struct ShownLooks::Drawn {
  Drawn(const std::shared_ptr<const sim::VisualModel>& of, const render::RendererSettings& settings)
      : model(of), traced(*of, settings) {}
  std::shared_ptr<const sim::VisualModel> model;
  render::TracedScene traced;
  render::OwnLooks own;
};

ShownLooks::ShownLooks(sim::Scene& scene, std::vector<std::int32_t> envs)
    : scene_(scene), envs_(std::move(envs)), last_(envs_.size()) {}
ShownLooks::~ShownLooks() = default;

std::vector<OwnLook> ShownLooks::changed() {
  std::vector<OwnLook> out;
  const sim::Looks& looks = scene_.looks();
  if (!looks.any()) return out;
  for (std::size_t place = 0; place < envs_.size(); ++place) {
    std::vector<float> now;
    for (int i = 0; i < sim::kLookCount; ++i) {
      const auto look = static_cast<sim::Look>(i);
      if (!looks.has(look)) continue;
      const float* const values = looks.of(look, envs_[place]);
      now.insert(now.end(), values, values + looks.size(look));
    }
    if (now == last_[place]) continue;
    last_[place] = std::move(now);
    out.push_back(look_of(place));
  }
  return out;
}

std::vector<OwnLook> ShownLooks::all() {
  std::vector<OwnLook> out;
  if (!scene_.looks().any()) return out;
  for (std::size_t place = 0; place < envs_.size(); ++place) out.push_back(look_of(place));
  return out;
}

OwnLook ShownLooks::look_of(std::size_t place) {
  if (!drawn_) drawn_ = std::make_unique<Drawn>(scene_.visual_model(), document_geoms());
  const sim::VisualModel& model = *drawn_->model;
  const sim::Looks& looks = scene_.looks();
  const std::int32_t env = envs_[place];
  const render::SceneRecord& record = drawn_->own.of(drawn_->traced, model, looks, env);
  OwnLook out;
  out.env = place;
  for (int i = 0; i < record.geoms; ++i) {
    const render::GeomRecord& g = record.geom[i];
    for (const double x : g.pos) out.geoms.push_back(static_cast<float>(x));
    for (const double x : quaternion_of(g.rot)) out.geoms.push_back(static_cast<float>(x));
    for (const float x : g.record.size) out.geoms.push_back(x);
    for (const float x : g.record.rgba) out.geoms.push_back(x);
  }
  json lights = json::array(), cameras = json::array();
  for (int i = 0; i < record.lights; ++i) lights.push_back(light_json(record.light[i]));
  for (std::size_t i = 0; i < model.cameras.size(); ++i)
    cameras.push_back(camera_json(render::own_camera(model.cameras[i], looks, static_cast<int>(i), env)));
  // Names come from a file and need not be UTF-8.
  out.lights = json_text(lights), out.cameras = json_text(cameras, -1, BadUtf8::kReplaced);
  return out;
}

json looks_json(const std::vector<OwnLook>& looks, BinaryDocument& doc) {
  json out = json::array();
  for (const OwnLook& look : looks) {
    out.push_back({{"env", look.env},
                   {"geoms", doc.add(std::span<const float>(look.geoms))},
                   {"lights", parse_json<json>(look.lights)},
                   {"cameras", parse_json<json>(look.cameras)}});
  }
  return out;
}

}  // namespace cohort::view
