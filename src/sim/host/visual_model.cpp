#include "sim/host/visual_model.h"

#include <string_view>
#include <type_traits>

#include "core/error.h"
#include "core/files.h"
#include "sim/archive.h"
#include "sim/host/model.h"
#include "sim/host/visual_model_file.h"

namespace cohort::sim {

namespace {

constexpr std::string_view kVisualMagic = "COHORTVI";
constexpr std::uint32_t kVisualVersion = 2;

}  // namespace

template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualLink>
void for_each_member(Action& io, T& x) {
  io(x.parent), io(x.mass), io(x.com);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualGeom>
void for_each_member(Action& io, T& x) {
  io(x.shape), io(x.link), io(x.id), io(x.group), io(x.material), io(x.data), io(x.pos), io(x.quat), io(x.size);
  io(x.rgba), io(x.casts_shadow);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualMaterial>
void for_each_member(Action& io, T& x) {
  io(x.texture), io(x.uniform), io(x.repeat), io(x.emission), io(x.specular), io(x.shininess), io(x.reflectance);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualTexture>
void for_each_member(Action& io, T& x) {
  io(x.kind), io(x.width), io(x.height), io(x.channels), io(x.srgb), io(x.pixels);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualMesh>
void for_each_member(Action& io, T& x) {
  io(x.vertex), io(x.normal), io(x.texcoord), io(x.face), io(x.face_normal), io(x.face_texcoord);
  io(x.tree.node), io(x.tree.triangle);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualHeightField>
void for_each_member(Action& io, T& x) {
  io(x.rows), io(x.cols), io(x.size), io(x.height);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualLight>
void for_each_member(Action& io, T& x) {
  io(x.kind), io(x.tracking), io(x.link), io(x.target), io(x.active), io(x.casts_shadow), io(x.pos), io(x.dir);
  io(x.pos_com0), io(x.pos0), io(x.dir0), io(x.attenuation), io(x.ambient), io(x.diffuse), io(x.specular);
  io(x.cutoff), io(x.exponent);
}
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualCamera>
void for_each_member(Action& io, T& x) {
  io(x.name), io(x.tracking), io(x.link), io(x.target), io(x.pos), io(x.quat), io(x.pos_com0), io(x.pos0), io(x.mat0);
  io(x.orthographic), io(x.fovy), io(x.width), io(x.height), io(x.sensor_size), io(x.intrinsic);
}
/// Every member of a visual model, in the order of the file.
template <class Action, class T>
requires std::is_same_v<std::remove_const_t<T>, VisualModel>
void for_each_member(Action& io, T& x) {
  io(x.content), io(x.links), io(x.geoms), io(x.materials), io(x.textures), io(x.meshes), io(x.height_fields);
  io(x.lights), io(x.cameras), io(x.headlight), io(x.headlight_ambient), io(x.headlight_diffuse);
  io(x.headlight_specular), io(x.haze_rgba), io(x.haze), io(x.near), io(x.far), io(x.centre), io(x.extent), io(x.fovy);
  io(x.quads);
}

namespace {

/// -1 stands for none where `optional`.
bool is_index(int i, std::size_t count, bool optional = false) {
  return (optional && i == -1) || (i >= 0 && static_cast<std::size_t>(i) < count);
}

bool are_corners(const std::vector<std::int32_t>& face, std::size_t triangles, std::size_t values, std::size_t width) {
  if (face.size() != 3 * triangles || values % width != 0) return false;
  for (const std::int32_t i : face) {
    if (!is_index(i, values / width)) return false;
  }
  return true;
}

bool is_sound(const VisualMesh& mesh) {
  const std::size_t triangles = mesh.face.size() / 3;
  return mesh.face.size() % 3 == 0 && are_corners(mesh.face, triangles, mesh.vertex.size(), 3) &&
         are_corners(mesh.face_normal, triangles, mesh.normal.size(), 3) &&
         (mesh.texcoord.empty() || are_corners(mesh.face_texcoord, triangles, mesh.texcoord.size(), 2)) &&
         is_sound(mesh.tree, triangles);
}

std::vector<float> corners_of(const VisualMesh& mesh) {
  std::vector<float> corners;
  corners.reserve(3 * mesh.face.size());
  for (const std::int32_t vertex : mesh.face) {
    const float* p = &mesh.vertex[3 * static_cast<std::size_t>(vertex)];
    corners.insert(corners.end(), p, p + 3);
  }
  return corners;
}

bool is_sound(const VisualTexture& t) {
  if (t.width < 0 || t.height < 0 || t.channels < 1 || t.kind < VisualTexture::Kind::k2d ||
      t.kind > VisualTexture::Kind::kSkybox) {
    return false;
  }
  return static_cast<double>(t.width) * t.height * t.channels == static_cast<double>(t.pixels.size());
}

/// What damage that a checksum does not see would point nowhere.
bool is_sound(const VisualModel& m) {
  const std::size_t links = m.links.size();
  bool sound = links > 0 && m.quads >= 1;
  for (const VisualLink& link : m.links) sound = sound && is_index(link.parent, links);
  for (const VisualGeom& g : m.geoms) {
    const bool shape = g.shape >= VisualShape::kPlane && g.shape <= VisualShape::kMesh;
    const bool data = g.shape == VisualShape::kMesh          ? is_index(g.data, m.meshes.size())
                      : g.shape == VisualShape::kHeightField ? is_index(g.data, m.height_fields.size())
                                                             : true;
    sound = sound && shape && data && is_index(g.link, links) && is_index(g.material, m.materials.size(), true) &&
            is_index(g.group, 6);
  }
  for (const VisualMaterial& material : m.materials) {
    sound = sound && is_index(material.texture, m.textures.size(), true);
  }
  for (const VisualTexture& texture : m.textures) sound = sound && is_sound(texture);
  for (const VisualMesh& mesh : m.meshes) sound = sound && is_sound(mesh);
  for (const VisualHeightField& field : m.height_fields) {
    sound = sound && field.rows >= 2 && field.cols >= 2 &&
            static_cast<double>(field.rows) * field.cols == static_cast<double>(field.height.size());
  }
  for (const VisualLight& light : m.lights) {
    sound = sound && is_index(light.link, links) && is_index(light.target, links, true);
  }
  for (const VisualCamera& camera : m.cameras) {
    sound = sound && is_index(camera.link, links) && is_index(camera.target, links, true);
  }
  return sound;
}

}  // namespace

std::string visual_model_bytes(VisualModel model) {
  for (VisualMesh& mesh : model.meshes) {
    if (mesh.tree.empty()) mesh.tree = build_mesh_tree(corners_of(mesh));
  }
  BytesWriter writer;
  writer(model);
  return part_of_file(kVisualMagic, kVisualVersion, 0, writer.bytes);
}

void check_visual_bytes(std::string_view bytes, const std::string& file) {
  if (bytes.empty()) return;
  PartHeader header{};
  COHORT_THROW_UNLESS(read_part_header(bytes, header), "{} is damaged: {} bytes stand behind its model", file,
                      bytes.size());
  bytes.remove_prefix(sizeof header);
  COHORT_THROW_UNLESS(is_part(header, kVisualMagic),
                      "{} is damaged: what stands behind its model is nothing that is seen", file);
  COHORT_THROW_UNLESS(header.bytes == bytes.size() && header.checksum == part_checksum(bytes),
                      "{} is damaged: the checksum of what is seen does not fit", file);
}

std::shared_ptr<const VisualModel> load_visual_model(const std::filesystem::path& path) {
  const std::string file = read_file(path);
  const std::string_view bytes = behind_model(file, path.string());
  if (bytes.empty()) return nullptr;
  check_visual_bytes(bytes, path.string());
  PartHeader header{};
  read_part_header(bytes, header);
  COHORT_THROW_UNLESS(header.version == kVisualVersion,
                      "what is seen in {} was written by another version of Cohort (format {}, this one reads {}): "
                      "compile the model again",
                      path.string(), header.version, kVisualVersion);
  auto model = std::make_shared<VisualModel>();
  BytesReader reader(bytes.substr(sizeof header), path.string());
  reader(*model);
  COHORT_THROW_UNLESS(reader.at_end() && is_sound(*model), "{} is damaged: what is seen points nowhere", path.string());
  return model;
}

}  // namespace cohort::sim
