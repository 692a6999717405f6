#include "render/traced_scene.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "render/camera_pose.h"
#include "sim/index.h"

namespace cohort::render {

using sim::at;

namespace {

constexpr int kPlaneCells = 200;   // mjMAXPLANEGRID
constexpr float kOpaque = 0.995f;  // MuJoCo blends what has less alpha

float f32(double x) {
  return static_cast<float>(x);
}

/// Cells of a plane along an axis (makePlane in MuJoCo's render_context.c).
void set_grid(const sim::VisualModel& m, const sim::VisualGeom& g, std::size_t axis, GeomRecord& to) {
  const double half = g.size[axis];
  float* grid = to.record.grid[axis];
  if (half > 0) {
    const double step = std::max(g.size[2], half / (kPlaneCells - 2));
    auto cells = static_cast<int>(std::floor(half / std::max(1e-15, step)));
    cells -= cells % 2;
    const double pad = half - cells * step;
    grid[0] = f32(pad - half), grid[1] = f32(2 * step), grid[2] = f32(half - pad);
    return;
  }
  double increment = 2.1 * m.far / (kPlaneCells - 2);
  if (g.material >= 0 && m.materials[at(g.material)].repeat[axis] > 0) {
    increment = 2.0 / static_cast<double>(m.materials[at(g.material)].repeat[axis]);
  }
  grid[0] = 0, grid[1] = f32((2.1 * m.far + 2 * increment) / kPlaneCells), grid[2] = 0;
  to.step[axis] = 2 * increment;
}

/// Half sizes of the box around a geom that is no mesh.
Vec3 half_sizes(const sim::VisualGeom& geom) {
  switch (geom.shape) {
    case sim::VisualShape::kSphere:
      return {geom.size[0], geom.size[0], geom.size[0]};
    case sim::VisualShape::kCapsule:
      return {geom.size[0], geom.size[0], geom.size[0] + geom.size[1]};
    case sim::VisualShape::kCylinder:
      return {geom.size[0], geom.size[0], geom.size[1]};
    case sim::VisualShape::kPlane:
      return {geom.size[0], geom.size[1], 0};
    default:
      return geom.size;
  }
}

}  // namespace

TracedScene::TracedScene(const sim::VisualModel& model, const RendererSettings& settings) {
  for (const sim::VisualTexture& t : model.textures) textures_.push_back(trace_texture(t));
  for (const TracedTexture& t : textures_) texture_records_.push_back(t.record());
  record_.mirror = record_.haze_plane = -1;
  for (std::size_t i = 0; i < model.textures.size() && record_.sky == nullptr; ++i) {
    const bool is_sky = model.textures[i].kind == sim::VisualTexture::Kind::kSkybox;
    if (is_sky && texture_records_[i].levels > 0) record_.sky = &texture_records_[i];
  }
  const std::size_t meshes = model.meshes.size() + model.height_fields.size();
  meshes_.resize(meshes), mesh_records_.resize(meshes);
  for (const sim::VisualGeom& g : model.geoms) {
    const auto& groups = g.id >= 0 ? settings.geom_groups : settings.site_groups;
    if (groups[at(g.group)] && g.rgba[3] > 0) add(model, g, settings);
  }
  for (std::size_t i = 0; i < geoms_.size(); ++i) {
    if (!geoms_[i].endless) ended_.push_back(static_cast<int>(i));
  }
  add_links_and_lights(model);
  SceneRecord& s = record_;
  s.geom = geoms_.data(), s.geoms = static_cast<int>(geoms_.size());
  s.ended = ended_.data(), s.endeds = static_cast<int>(ended_.size());
  s.link = links_.data(), s.links = static_cast<int>(links_.size());
  s.light = lights_.data(), s.lights = static_cast<int>(lights_.size());
  s.quads = model.quads;
  s.shadows = settings.shadows, s.culling = settings.culling;
  // The height at which haze is densest (`haze` in MuJoCo's render_context.c).
  const double ratio = static_cast<double>(model.haze);
  const double alpha = std::atan2(1, ratio), beta = 0.75 * std::numbers::pi - alpha;
  s.haze = ratio > 0 && ratio < 1;
  s.haze_ratio = model.haze;
  s.haze_turn = static_cast<float>(std::sqrt(0.5) * ratio * std::sin(alpha) / std::sin(beta));
  std::copy_n(model.haze_rgba.begin(), 3, s.haze_rgb);
}

void TracedScene::add_links_and_lights(const sim::VisualModel& model) {
  for (const sim::VisualLink& link : model.links) {
    LinkRecord& r = links_.emplace_back();
    r.parent = link.parent, r.mass = link.mass;
    std::copy_n(link.com.begin(), 3, r.com);
  }
  record_.headlight = model.headlight;
  LightRecord& head = record_.headlight_record;
  head.directional = 1;
  std::copy_n(model.headlight_ambient.begin(), 3, head.ambient);
  std::copy_n(model.headlight_diffuse.begin(), 3, head.diffuse);
  std::copy_n(model.headlight_specular.begin(), 3, head.specular);
  for (const sim::VisualLight& light : model.lights) {
    const std::size_t most = at(kMostLights - record_.headlight);
    if (!light.active || light.kind == sim::VisualLight::Kind::kImage || lights_.size() == most) continue;
    lights_.push_back(light_record(light));
    light_sources_.push_back(static_cast<int>(&light - model.lights.data()));
  }
}

void set_colour(InstanceRecord& r, const float* rgba) {
  r.transparent = rgba[3] < kOpaque;
  std::copy_n(rgba, 4, r.rgba);
}

LightSource light_record(const sim::VisualLight& light) {
  LightSource l{};
  l.mount = mount_of(light.tracking), l.link = light.link, l.target = light.target;
  std::copy_n(light.pos.begin(), 3, l.pos), std::copy_n(light.dir.begin(), 3, l.dir);
  std::copy_n(light.pos0.begin(), 3, l.pos0), std::copy_n(light.pos_com0.begin(), 3, l.pos_com0);
  std::copy_n(light.dir0.begin(), 3, l.dir0);
  LightRecord& r = l.record;
  r.directional = light.kind == sim::VisualLight::Kind::kDirectional;
  r.shadow = light.casts_shadow;
  std::copy_n(light.attenuation.begin(), 3, r.attenuation);
  const bool cone = light.kind == sim::VisualLight::Kind::kSpot && light.cutoff <= 90;
  r.cos_cutoff = cone ? f32(std::cos(static_cast<double>(light.cutoff) * std::numbers::pi / 180)) : -2;
  r.exponent = light.exponent;
  std::copy_n(light.ambient.begin(), 3, r.ambient);
  std::copy_n(light.diffuse.begin(), 3, r.diffuse);
  std::copy_n(light.specular.begin(), 3, r.specular);
  return l;
}

void TracedScene::add(const sim::VisualModel& model, const sim::VisualGeom& geom, const RendererSettings& settings) {
  GeomRecord t{};
  InstanceRecord& r = t.record;
  t.link = geom.link;
  r.shape = static_cast<int>(geom.shape == sim::VisualShape::kHeightField ? sim::VisualShape::kMesh : geom.shape);
  r.id = geom.id;
  r.casts_shadow = geom.casts_shadow;
  set_colour(r, geom.rgba.data());
  sim::VisualMaterial material;
  if (geom.material >= 0) material = model.materials[at(geom.material)];
  r.emission = material.emission, r.specular = material.specular, r.exponent = material.shininess * 128;
  r.reflectance = material.reflectance;
  if (r.shape == static_cast<int>(sim::VisualShape::kMesh)) {
    r.mesh = mesh_of(model, geom, settings.culling);
    if (r.mesh->blocks == 0) return;
  } else if (geom.shape != sim::VisualShape::kPlane) {
    const Vec3 half = half_sizes(geom);
    if (!(half[0] > 0 && half[1] > 0 && half[2] > 0)) return;  // without extent
  }
  place(model, geom, t);
  const int number = static_cast<int>(geoms_.size());
  const bool mirrors = geom.shape == sim::VisualShape::kPlane || geom.shape == sim::VisualShape::kBox;
  if (settings.reflections && record_.mirror < 0 && mirrors && !r.transparent && r.reflectance > 0)
    record_.mirror = number;
  const bool both_endless = geom.size[0] == 0 && geom.size[1] == 0;
  if (record_.haze_plane < 0 && geom.shape == sim::VisualShape::kPlane && both_endless) record_.haze_plane = number;
  geoms_.push_back(t);
  sources_.push_back(static_cast<int>(&geom - model.geoms.data()));
}

void TracedScene::place(const sim::VisualModel& model, const sim::VisualGeom& geom, GeomRecord& t) const {
  InstanceRecord& r = t.record;
  const Mat3 rot = rotation_of(geom.quat);
  std::copy(geom.pos.begin(), geom.pos.end(), t.pos), std::copy(rot.begin(), rot.end(), t.rot);
  const Vec3 half = half_sizes(geom);
  if (geom.shape == sim::VisualShape::kPlane) {
    t.endless = geom.size[0] <= 0 || geom.size[1] <= 0;
    set_grid(model, geom, 0, t), set_grid(model, geom, 1, t);
  }
  const bool round = geom.shape == sim::VisualShape::kSphere || geom.shape == sim::VisualShape::kEllipsoid ||
                     geom.shape == sim::VisualShape::kBox || geom.shape == sim::VisualShape::kPlane;
  for (std::size_t k = 0; k < 3; ++k) {
    r.size[k] = f32(round ? half[k] : geom.size[k]);
    t.low[k] = -half[k], t.high[k] = half[k];
  }
  if (r.shape == static_cast<int>(sim::VisualShape::kMesh)) {
    for (std::size_t k = 0; k < 3; ++k) {
      t.low[k] = static_cast<double>(r.mesh->low[k]), t.high[k] = static_cast<double>(r.mesh->high[k]);
    }
  }
  double square = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    const double far = std::max(std::abs(t.low[k]), std::abs(t.high[k]));
    square += far * far;
  }
  t.radius = std::sqrt(square);
  set_texture(model, geom, r);
}

/// OpenGL's texture coordinates as MuJoCo's settexture (render_gl3.c) makes them, from points in the geom's frame.
void TracedScene::set_texture(const sim::VisualModel& model, const sim::VisualGeom& geom, InstanceRecord& r) const {
  r.mapping = static_cast<int>(Mapping::kNone);
  if (geom.material < 0) return;
  const sim::VisualMaterial& material = model.materials[at(geom.material)];
  if (material.texture < 0 || texture_records_[at(material.texture)].levels == 0) return;
  const TextureRecord& texture = texture_records_[at(material.texture)];
  const bool has_data = geom.shape == sim::VisualShape::kMesh || geom.shape == sim::VisualShape::kHeightField ||
                        geom.shape == sim::VisualShape::kPlane;
  // The size as mjv_initGeom spreads it over three axes.
  Vec3 size = geom.size;
  if (geom.shape == sim::VisualShape::kSphere) size = {size[0], size[0], size[0]};
  if (geom.shape == sim::VisualShape::kCapsule || geom.shape == sim::VisualShape::kCylinder) {
    size = {size[0], size[0], size[1]};
  }
  if (geom.shape == sim::VisualShape::kMesh && !model.meshes[at(geom.data)].texcoord.empty()) {
    if (texture.cube) return;
    r.mapping = static_cast<int>(Mapping::kTexcoord);
    for (std::size_t k = 0; k < 2; ++k) {
      r.scale[k] = f32(static_cast<double>(material.repeat[k]) * (material.uniform && size[k] > 0 ? size[k] : 1));
    }
  } else if (!texture.cube && !has_data) {
    r.mapping = static_cast<int>(Mapping::kAround);
    for (std::size_t k = 0; k < 2; ++k) {
      r.scale[k] = f32(static_cast<double>(material.repeat[k]) * (material.uniform && size[k] > 0 ? size[k] : 1));
    }
  } else if (!texture.cube) {
    r.mapping = static_cast<int>(Mapping::kLinear);
    for (std::size_t k = 0; k < 2; ++k) {
      double scale = static_cast<double>(material.repeat[k]);
      if (size[k] > 0) scale /= size[k];
      if (material.uniform && size[k] > 0) scale *= size[k];
      r.scale[k] = f32((k == 0 ? 0.5 : -0.5) * scale);
      // A plane with an end has coordinates from its corner on; the others' go out from the middle.
      const bool from_corner = geom.shape == sim::VisualShape::kPlane && size[k] > 0;
      r.offset[k] = f32(from_corner ? 0.5 * scale * size[k] : -0.5);
    }
  } else {
    r.mapping = static_cast<int>(Mapping::kCube);
    for (std::size_t k = 0; k < 3; ++k) {
      // Of shapes that MuJoCo scales from a unit shape the coordinates are the unit shape's.
      double scale = material.uniform ? size[k] : 1;
      if (!has_data && size[k] > 0) scale /= size[k];
      r.scale[k] = f32(scale);
    }
  }
  r.texture = &texture;
}

const MeshRecord* TracedScene::mesh_of(const sim::VisualModel& model, const sim::VisualGeom& geom, bool tree) {
  const bool field = geom.shape == sim::VisualShape::kHeightField;
  const std::size_t number = at(geom.data) + (field ? model.meshes.size() : 0);
  std::unique_ptr<TracedMesh>& mesh = meshes_[number];
  MeshRecord& record = mesh_records_[number];
  if (mesh == nullptr) {
    mesh = std::make_unique<TracedMesh>(field ? trace_height_field(model.height_fields[at(geom.data)], model.quads)
                                              : trace_mesh(model.meshes[at(geom.data)]));
    record = mesh->record(tree);
  }
  return &record;
}

}  // namespace cohort::render
