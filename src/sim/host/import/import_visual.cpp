// From MuJoCo's compiled model to what is seen of it.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "sim/host/import/handle.h"
#include "sim/host/visual_model.h"
#include "sim/index.h"

namespace cohort::sim {

namespace {

template <std::size_t N, class T>
std::array<T, N> take(const T* from, std::int64_t row) {
  std::array<T, N> values;
  std::copy_n(from + static_cast<std::int64_t>(N) * row, N, values.begin());
  return values;
}

template <class T>
std::vector<T> slice(const T* from, std::int64_t first, std::int64_t count) {
  return count > 0 ? std::vector<T>(from + first, from + first + count) : std::vector<T>();
}

/// False for shapes that nothing draws from a model (arrows, lines and the like are for decoration).
bool visual_shape(int type, VisualShape& shape) {
  switch (type) {
    case mjGEOM_PLANE:
      shape = VisualShape::kPlane;
      return true;
    case mjGEOM_HFIELD:
      shape = VisualShape::kHeightField;
      return true;
    case mjGEOM_SPHERE:
      shape = VisualShape::kSphere;
      return true;
    case mjGEOM_CAPSULE:
      shape = VisualShape::kCapsule;
      return true;
    case mjGEOM_ELLIPSOID:
      shape = VisualShape::kEllipsoid;
      return true;
    case mjGEOM_CYLINDER:
      shape = VisualShape::kCylinder;
      return true;
    case mjGEOM_BOX:
      shape = VisualShape::kBox;
      return true;
    case mjGEOM_MESH:
    case mjGEOM_SDF:
      shape = VisualShape::kMesh;
      return true;
    default:
      return false;
  }
}

/// A material's colour unless the geom has one of its own (MuJoCo's setMaterial in engine_vis_visualize.c).
std::array<float, 4> colour_of(const mjModel& m, int material, const std::array<float, 4>& own) {
  const std::array<float, 4> unset{0.5f, 0.5f, 0.5f, 1.0f};
  return material >= 0 && own == unset ? take<4>(m.mat_rgba, material) : own;
}

void add_geoms(const mjModel& m, VisualModel& out) {
  for (int i = 0; i < m.ngeom; ++i) {
    VisualGeom g;
    if (!visual_shape(m.geom_type[i], g.shape)) continue;
    g.link = m.geom_bodyid[i];
    g.id = i;
    g.group = std::clamp(m.geom_group[i], 0, mjNGROUP - 1);
    g.material = m.geom_matid[i];
    g.data = m.geom_dataid[i];
    g.pos = take<3>(m.geom_pos, i);
    g.quat = take<4>(m.geom_quat, i);
    g.size = take<3>(m.geom_size, i);
    g.rgba = colour_of(m, g.material, take<4>(m.geom_rgba, i));
    g.casts_shadow = m.geom_castshadow[i] != 0;
    out.geoms.push_back(g);
  }
  for (int i = 0; i < m.nsite; ++i) {
    VisualGeom g;
    if (!visual_shape(m.site_type[i], g.shape)) continue;
    g.link = m.site_bodyid[i];
    g.group = std::clamp(m.site_group[i], 0, mjNGROUP - 1);
    g.material = m.site_matid[i];
    g.data = m.site_dataid[i];
    g.pos = take<3>(m.site_pos, i);
    g.quat = take<4>(m.site_quat, i);
    g.size = take<3>(m.site_size, i);
    g.rgba = colour_of(m, g.material, take<4>(m.site_rgba, i));
    out.geoms.push_back(g);
  }
  // A mesh without triangles, or none at all, is not drawn.
  std::erase_if(out.geoms, [](const VisualGeom& g) {
    return g.data < 0 && (g.shape == VisualShape::kMesh || g.shape == VisualShape::kHeightField);
  });
}

void add_assets(const mjModel& m, VisualModel& out) {
  for (int i = 0; i < m.nmat; ++i) {
    VisualMaterial material;
    material.texture = m.mat_texid[i * mjNTEXROLE + mjTEXROLE_RGB];
    material.uniform = m.mat_texuniform[i] != 0;
    material.repeat = take<2>(m.mat_texrepeat, i);
    material.emission = m.mat_emission[i];
    material.specular = m.mat_specular[i];
    material.shininess = m.mat_shininess[i];
    material.reflectance = m.mat_reflectance[i];
    out.materials.push_back(material);
  }
  for (int i = 0; i < m.ntex; ++i) {
    VisualTexture t;
    t.kind = m.tex_type[i] == mjTEXTURE_2D     ? VisualTexture::Kind::k2d
             : m.tex_type[i] == mjTEXTURE_CUBE ? VisualTexture::Kind::kCube
                                               : VisualTexture::Kind::kSkybox;
    t.width = m.tex_width[i], t.height = m.tex_height[i], t.channels = m.tex_nchannel[i];
    t.srgb = t.kind == VisualTexture::Kind::k2d && m.tex_colorspace[i] == mjCOLORSPACE_SRGB;
    t.pixels = slice(m.tex_data, m.tex_adr[i], std::int64_t{t.width} * t.height * t.channels);
    out.textures.push_back(std::move(t));
  }
  for (int i = 0; i < m.nmesh; ++i) {
    VisualMesh mesh;
    const std::int64_t faces = 3 * std::int64_t{m.mesh_facenum[i]}, first = 3 * std::int64_t{m.mesh_faceadr[i]};
    mesh.vertex = slice(m.mesh_vert, 3 * std::int64_t{m.mesh_vertadr[i]}, 3 * std::int64_t{m.mesh_vertnum[i]});
    mesh.normal = slice(m.mesh_normal, 3 * std::int64_t{m.mesh_normaladr[i]}, 3 * std::int64_t{m.mesh_normalnum[i]});
    mesh.face = slice(m.mesh_face, first, faces);
    mesh.face_normal = slice(m.mesh_facenormal, first, faces);
    if (m.mesh_texcoordadr[i] >= 0) {
      mesh.texcoord =
          slice(m.mesh_texcoord, 2 * std::int64_t{m.mesh_texcoordadr[i]}, 2 * std::int64_t{m.mesh_texcoordnum[i]});
      mesh.face_texcoord = slice(m.mesh_facetexcoord, first, faces);
    }
    out.meshes.push_back(std::move(mesh));
  }
  for (int i = 0; i < m.nhfield; ++i) {
    VisualHeightField field;
    field.rows = m.hfield_nrow[i], field.cols = m.hfield_ncol[i];
    field.size = take<4>(m.hfield_size, i);
    field.height = slice(m.hfield_data, m.hfield_adr[i], std::int64_t{field.rows} * field.cols);
    out.height_fields.push_back(std::move(field));
  }
}

void add_lights_and_cameras(const mjModel& m, VisualModel& out) {
  for (int i = 0; i < m.nlight; ++i) {
    VisualLight light;
    light.kind = static_cast<VisualLight::Kind>(m.light_type[i]);
    light.tracking = static_cast<VisualTracking>(m.light_mode[i]);
    light.link = m.light_bodyid[i], light.target = m.light_targetbodyid[i];
    light.active = m.light_active[i] != 0, light.casts_shadow = m.light_castshadow[i] != 0;
    light.pos = take<3>(m.light_pos, i), light.dir = take<3>(m.light_dir, i);
    light.pos_com0 = take<3>(m.light_poscom0, i), light.pos0 = take<3>(m.light_pos0, i);
    light.dir0 = take<3>(m.light_dir0, i);
    light.attenuation = take<3>(m.light_attenuation, i);
    light.ambient = take<3>(m.light_ambient, i), light.diffuse = take<3>(m.light_diffuse, i);
    light.specular = take<3>(m.light_specular, i);
    light.cutoff = m.light_cutoff[i], light.exponent = m.light_exponent[i];
    out.lights.push_back(light);
  }
  for (int i = 0; i < m.ncam; ++i) {
    VisualCamera camera;
    camera.name = m.names + m.name_camadr[i];
    camera.tracking = static_cast<VisualTracking>(m.cam_mode[i]);
    camera.link = m.cam_bodyid[i], camera.target = m.cam_targetbodyid[i];
    camera.pos = take<3>(m.cam_pos, i), camera.quat = take<4>(m.cam_quat, i);
    camera.pos_com0 = take<3>(m.cam_poscom0, i), camera.pos0 = take<3>(m.cam_pos0, i);
    camera.mat0 = take<9>(m.cam_mat0, i);
    camera.orthographic = m.cam_projection[i] == mjPROJ_ORTHOGRAPHIC;
    camera.fovy = m.cam_fovy[i];
    camera.width = m.cam_resolution[2 * i], camera.height = m.cam_resolution[2 * i + 1];
    camera.sensor_size = take<2>(m.cam_sensorsize, i);
    camera.intrinsic = take<4>(m.cam_intrinsic, i);
    out.cameras.push_back(std::move(camera));
  }
}

}  // namespace

VisualModel import_visual_model(std::span<const std::uint8_t> mjb) {
  const mj::ModelPtr loaded = mj::load(mjb);
  const mjModel& m = *loaded;
  VisualModel out;
  out.content = mj::describe(m).content;
  for (int b = 0; b < m.nbody; ++b) {
    out.links.push_back({m.body_parentid[b], m.body_mass[b], take<3>(m.body_ipos, b)});
  }
  add_geoms(m, out);
  add_assets(m, out);
  add_lights_and_cameras(m, out);
  const mjVisual& v = m.vis;
  out.headlight = v.headlight.active != 0;
  std::copy_n(v.headlight.ambient, 3, out.headlight_ambient.begin());
  std::copy_n(v.headlight.diffuse, 3, out.headlight_diffuse.begin());
  std::copy_n(v.headlight.specular, 3, out.headlight_specular.begin());
  std::copy_n(v.rgba.haze, 4, out.haze_rgba.begin());
  out.haze = v.map.haze;
  out.extent = m.stat.extent;
  out.near = static_cast<double>(v.map.znear) * m.stat.extent;
  out.far = static_cast<double>(v.map.zfar) * m.stat.extent;
  out.centre = {m.stat.center[0], m.stat.center[1], m.stat.center[2]};
  out.fovy = static_cast<double>(v.global.fovy);
  out.quads = std::max(1, v.quality.numquads);
  return out;
}

}  // namespace cohort::sim
