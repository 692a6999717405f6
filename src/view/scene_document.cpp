#include "view/scene_document.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/real_at.h"
#include "render/traced_scene.h"
#include "sim/host/visual_model.h"
#include "sim/index.h"
#include "view/binary_document.h"
#include "view/scene_json.h"
#include "view/thin_mesh.h"

namespace cohort::view {

namespace {

using nlohmann::json;
using sim::at;

const char* name_of(sim::VisualShape shape) {
  constexpr const char* kNames[] = {"plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"};
  return kNames[static_cast<int>(shape)];
}

/// Of each texture the first level that is drawn: the largest are halved until all fit.
std::vector<int> texture_levels(const std::vector<render::TextureRecord>& textures, const std::set<std::size_t>& used,
                                std::size_t most) {
  std::vector<int> level(textures.size(), 0);
  const auto bytes = [&](std::size_t i) {
    const render::TextureRecord& t = textures[i];
    return std::size_t{4} * (t.cube ? 6 : 1) * at(t.width[level[i]]) * at(t.height[level[i]]);
  };
  for (;;) {
    std::size_t total = 0, largest = textures.size();
    for (const std::size_t i : used) {
      total += bytes(i);
      if (level[i] + 1 < textures[i].levels && (largest == textures.size() || bytes(i) > bytes(largest))) largest = i;
    }
    if (total <= most || largest == textures.size()) return level;
    ++level[largest];
  }
}

json texture_json(const render::TextureRecord& t, int level, BinaryDocument& to) {
  const std::size_t size = std::size_t{4} * (t.cube ? 6 : 1) * at(t.width[level]) * at(t.height[level]);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(t.pixel + t.first[level]);  // little endian: red first
  return {{"cube", t.cube != 0},
          {"width", t.width[level]},
          {"height", t.height[level]},
          {"rgba", to.add(std::span(bytes, size))}};
}

/// Triangles that a mesh may keep: all of the small ones, a share in proportion of the others.
std::size_t share_of(std::size_t triangles, std::size_t all, std::size_t most) {
  constexpr std::size_t kFew = 200;
  if (all <= most) return triangles;
  return std::max(kFew, static_cast<std::size_t>(static_cast<double>(triangles) * static_cast<double>(most) /
                                                 static_cast<double>(all)));
}

json mesh_json(const ThinMesh& mesh, std::size_t triangles, BinaryDocument& to) {
  json out = {{"low", numbers(mesh.low)},
              {"high", numbers(mesh.high)},
              {"triangles", triangles},
              {"position", to.add(std::span<const std::uint16_t>(mesh.position))},
              {"normal", to.add(std::span<const std::int8_t>(mesh.normal))},
              {"index", to.add(std::span<const std::uint32_t>(mesh.index))}};
  if (!mesh.texcoord.empty()) out["texcoord"] = to.add(std::span<const float>(mesh.texcoord));
  return out;
}

/// Where environments stand: as the scene says, or so far apart that none touches another.
json offsets(const sim::Scene& scene, std::span<const std::int32_t> envs, double apart) {
  json out = json::array();
  bool spaced = false;
  for (const std::int32_t env : envs) {
    const std::array<double, 2> o = scene.environment_offset(env);
    spaced = spaced || o[0] != 0 || o[1] != 0;
    out.push_back(numbers(o));
  }
  if (spaced || envs.size() < 2) return out;
  const auto side = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(envs.size()))));
  for (std::size_t i = 0; i < envs.size(); ++i) {
    out[i] = {number(apart * (static_cast<double>(i % side))), number(apart * static_cast<double>(i / side))};
  }
  return out;
}

}  // namespace

std::vector<std::int32_t> moving_links(const sim::ModelInfo& info) {
  std::vector<std::int32_t> out;
  for (int i = 1; i < static_cast<int>(info.links.size()); ++i)
    if (!info.is_fixed(i)) out.push_back(i);
  return out;
}

render::RendererSettings document_geoms() {
  render::RendererSettings all;
  all.geom_groups.fill(true), all.site_groups.fill(true);
  all.culling = false;
  return all;
}

std::string scene_document(sim::Scene& scene, std::span<const std::int32_t> envs,
                           const SceneDocumentSettings& settings) {
  const std::shared_ptr<const sim::VisualModel> model = scene.visual_model();
  const render::TracedScene traced(*model, document_geoms());
  const render::SceneRecord& s = traced.record();
  const sim::ModelInfo& info = scene.info();

  BinaryDocument doc;
  json& t = doc.text;
  t["format"] = "cohort scene 1";
  t["name"] = info.name;
  t["timestep"] = info.timestep * scene.options().substeps;
  t["centre"] = numbers(model->centre), t["extent"] = number(model->extent);
  t["fovy"] = number(model->fovy), t["near"] = number(model->near), t["far"] = number(model->far);

  json links = json::array();
  for (std::size_t i = 0; i < info.links.size(); ++i) {
    links.push_back({{"name", info.links[i].name},
                     {"parent", model->links[i].parent},
                     {"mass", number(model->links[i].mass)},
                     {"com", numbers(model->links[i].com)}});
  }
  t["links"] = std::move(links);
  t["moving"] = moving_links(info);

  std::set<std::size_t> textures_used;
  std::set<std::size_t> meshes_used;
  double reach = 0;  // of what has an end, around the middle of the world
  json geoms = json::array();
  for (int i = 0; i < s.geoms; ++i) {
    const render::GeomRecord& g = s.geom[i];
    const render::InstanceRecord& r = g.record;
    const sim::VisualGeom& source = model->geoms[at(traced.sources()[at(i)])];
    json one = {{"id", source.id},
                {"link", g.link},
                {"shape", name_of(source.shape)},
                {"group", source.group},
                {"pos", numbers(g.pos)},
                {"quat", numbers(source.quat)},
                {"size", numbers(r.size)},
                {"rgba", numbers(r.rgba)},
                {"emission", number(static_cast<double>(r.emission))},
                {"specular", number(static_cast<double>(r.specular))},
                {"exponent", number(static_cast<double>(r.exponent))},
                {"radius", number(g.endless ? 0 : g.radius)}};
    if (source.id >= 0 && at(source.id) < info.geoms.size()) one["name"] = info.geoms[at(source.id)].name;
    if (!r.casts_shadow) one["shadowless"] = true;
    if (g.endless) one["endless"] = true, one["step"] = numbers(g.step);
    if (r.mesh != nullptr) {
      const auto number_of = static_cast<std::size_t>(r.mesh - traced.mesh_records().data());
      one["mesh"] = number_of;
      meshes_used.insert(number_of);
    }
    if (r.texture != nullptr && r.mapping != static_cast<int>(render::Mapping::kNone)) {
      const auto number_of = static_cast<std::size_t>(r.texture - traced.texture_records().data());
      one["texture"] = number_of, one["mapping"] = r.mapping;
      one["scale"] = numbers(r.scale), one["offset"] = numbers(r.offset);
      textures_used.insert(number_of);
    }
    if (!g.endless && g.link != 0) reach = std::max(reach, g.radius);
    geoms.push_back(std::move(one));
  }
  t["geoms"] = std::move(geoms);

  std::size_t triangles = 0;
  for (const std::size_t i : meshes_used) triangles += at(traced.meshes()[i]->triangles());
  t["triangles"] = triangles;
  json meshes = json::array();
  for (std::size_t i = 0; i < traced.meshes().size(); ++i) {
    if (!meshes_used.contains(i)) {
      meshes.push_back(nullptr);
      continue;
    }
    const render::TracedMesh& mesh = *traced.meshes()[i];
    const std::size_t n = at(mesh.triangles());
    meshes.push_back(mesh_json(
        thin_mesh(mesh.corner, mesh.normal, mesh.texcoord, share_of(n, triangles, settings.max_triangles)), n, doc));
  }
  t["meshes"] = std::move(meshes);

  if (s.sky != nullptr) textures_used.insert(static_cast<std::size_t>(s.sky - traced.texture_records().data()));
  const std::vector<int> level = texture_levels(traced.texture_records(), textures_used, settings.max_texture_bytes);
  json textures = json::array();
  for (std::size_t i = 0; i < level.size(); ++i)
    textures.push_back(textures_used.contains(i) ? texture_json(traced.texture_records()[i], level[i], doc)
                                                 : json(nullptr));
  t["textures"] = std::move(textures);
  t["quads"] = s.quads;
  if (s.sky != nullptr) t["sky"] = s.sky - traced.texture_records().data();

  if (s.mirror >= 0)
    t["mirror"] = {{"geom", s.mirror},
                   {"reflectance", number(static_cast<double>(s.geom[s.mirror].record.reflectance))}};
  if (s.sky != nullptr && s.haze_plane >= 0 && s.haze != 0)
    t["haze"] = {{"geom", s.haze_plane},
                 {"ratio", number(static_cast<double>(s.haze_ratio))},
                 {"turn", number(static_cast<double>(s.haze_turn))},
                 {"rgb", numbers(s.haze_rgb)}};
  json lights = json::array();
  for (int i = 0; i < s.lights; ++i) lights.push_back(light_json(s.light[i]));
  t["lights"] = std::move(lights);
  if (s.headlight) t["headlight"] = light_json(s.headlight_record);
  json cameras = json::array();
  for (const sim::VisualCamera& camera : model->cameras) cameras.push_back(camera_json(camera));
  t["cameras"] = std::move(cameras);

  t["envs"] = std::vector<std::int32_t>(envs.begin(), envs.end());
  // Poses of all links as they stand now: those that nothing moves keep them.
  const ArrayView pos = scene.host_view(sim::Field::kLinkPos), quat = scene.host_view(sim::Field::kLinkQuat);
  std::vector<float> poses;
  std::array<double, 2> low{1e9, 1e9}, high{-1e9, -1e9};
  const auto count = static_cast<std::int64_t>(info.links.size());
  for (const std::int32_t env : envs) {
    for (std::int64_t link = 0; link < count; ++link) {
      for (int k = 0; k < 3; ++k) poses.push_back(static_cast<float>(real_at(pos, env, 3 * link + k)));
      for (int k = 0; k < 4; ++k) poses.push_back(static_cast<float>(real_at(quat, env, 4 * link + k)));
      if (env != envs[0] || link == 0) continue;
      for (int k = 0; k < 2; ++k) {
        const double x = real_at(pos, env, 3 * link + k);
        low[at(k)] = std::min(low[at(k)], x), high[at(k)] = std::max(high[at(k)], x);
      }
    }
  }
  t["poses"] = doc.add(std::span<const float>(poses));
  const double wide = count > 1 ? std::max(high[0] - low[0], high[1] - low[1]) : 0;
  t["offsets"] = offsets(scene, envs, std::ceil(wide + 2 * reach + 1));
  return doc.bytes();
}

}  // namespace cohort::view
