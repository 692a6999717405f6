#include "render/cuda/scene_memory.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "sim/index.h"

namespace cohort::render::cuda {

using sim::at;

namespace {

/// Arrays one behind the other, as they will lie from an address of the device on.
class Pieces {
 public:
  explicit Pieces(std::uintptr_t address) : address_(address) {}
  template <class T>
  const T* add(const T* values, std::size_t count) {
    constexpr std::size_t kAlign = 64;
    const std::size_t begin = (bytes_.size() + kAlign - 1) / kAlign * kAlign;
    bytes_.resize(begin + count * sizeof(T));
    if (count > 0) std::memcpy(bytes_.data() + begin, values, count * sizeof(T));
    return reinterpret_cast<const T*>(address_ + begin);
  }
  template <class T>
  const T* add(const std::vector<T>& values) {
    return add(values.data(), values.size());
  }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  std::uintptr_t address_;
  std::vector<unsigned char> bytes_;
};

MeshRecord add_mesh(Pieces& pieces, const TracedMesh& mesh, const MeshRecord& host) {
  MeshRecord r = host;
  if (host.node != nullptr) r.node = pieces.add(mesh.node);
  r.block = pieces.add(mesh.block);
  r.corner = pieces.add(mesh.corner), r.normal = pieces.add(mesh.normal);
  if (host.texcoord != nullptr) r.texcoord = pieces.add(mesh.texcoord);
  return r;
}

SceneRecord lay_out(const TracedScene& scene, Pieces& pieces) {
  SceneRecord s = scene.record();
  std::vector<TextureRecord> textures = scene.texture_records();
  for (std::size_t i = 0; i < textures.size(); ++i) textures[i].pixel = pieces.add(scene.textures()[i].pixel);
  const TextureRecord* texture = pieces.add(textures);
  std::vector<MeshRecord> meshes = scene.mesh_records();
  for (std::size_t i = 0; i < meshes.size(); ++i) {
    if (scene.meshes()[i] != nullptr) meshes[i] = add_mesh(pieces, *scene.meshes()[i], meshes[i]);
  }
  const MeshRecord* mesh = pieces.add(meshes);
  std::vector<GeomRecord> geoms(s.geom, s.geom + s.geoms);
  for (GeomRecord& g : geoms) {
    InstanceRecord& r = g.record;
    if (r.texture != nullptr) r.texture = texture + (r.texture - scene.texture_records().data());
    if (r.mesh != nullptr) r.mesh = mesh + (r.mesh - scene.mesh_records().data());
  }
  if (s.sky != nullptr) s.sky = texture + (s.sky - scene.texture_records().data());
  s.geom = pieces.add(geoms);
  s.ended = pieces.add(s.ended, at(s.endeds));
  s.link = pieces.add(s.link, at(s.links));
  s.light = pieces.add(s.light, at(s.lights));
  return s;
}

}  // namespace

sim::cuda::DeviceMemory upload_scene(const TracedScene& scene, int device, void* stream, SceneRecord& record) {
  Pieces sizes(0);
  lay_out(scene, sizes);
  sim::cuda::DeviceMemory memory = sim::cuda::make_device_scratch(device, sizes.bytes().size());
  Pieces pieces(reinterpret_cast<std::uintptr_t>(memory.get()));
  record = lay_out(scene, pieces);
  sim::cuda::need(sim::cuda::upload(device, stream, memory.get(), pieces.bytes().data(), pieces.bytes().size()), device,
                  "the scene cannot be copied");
  return memory;
}

}  // namespace cohort::render::cuda
