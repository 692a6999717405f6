#include "sim/cuda/model_memory.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace cohort::sim::cuda {

namespace {

/// Where an array may begin.
constexpr std::size_t kAlign = 256;

/// Calls f(array, pointer to it in the view) for every array of the model.
template <class F>
void for_arrays(const Model& m, ModelView& v, F f) {
  f(m.body, v.body);
  f(m.joint, v.joint);
  f(m.dof, v.dof);
  f(m.pattern, v.pattern);
  f(m.pattern_start, v.pattern_start);
  f(m.below, v.below);
  f(m.below_start, v.below_start);
  f(m.link, v.link);
  f(m.limit, v.limit);
  f(m.friction, v.friction);
  f(m.wrap, v.wrap);
  f(m.tendon, v.tendon);
  f(m.stretch, v.stretch);
  f(m.stretch_move, v.stretch_move);
  f(m.actuator, v.actuator);
  f(m.geom, v.geom);
  f(m.pair, v.pair);
  f(m.pair_bound, v.pair_bound);
  f(m.pair_spheres, v.pair_spheres);
  f(m.pair_run, v.pair_run);
  f(m.pair_window, v.pair_window);
  f(m.row_dof, v.row_dof);
  f(m.row_sign, v.row_sign);
  f(m.equality, v.equality);
  f(m.frame, v.frame);
  f(m.fluid, v.fluid);
  f(m.sensor, v.sensor);
  f(m.piece, v.piece);
  f(m.sensor_match, v.sensor_match);
  f(m.ray_geom, v.ray_geom);
  f(m.ray_mesh, v.ray_mesh);
  f(m.ray_chunk, v.ray_chunk);
  f(m.ray_triangle, v.ray_triangle);
  f(m.mesh, v.mesh);
  f(m.mesh_vertex, v.mesh_vertex);
  f(m.mesh_edge, v.mesh_edge);
  f(m.mesh_face, v.mesh_face);
  f(m.mesh_direction, v.mesh_direction);
  f(m.mesh_side, v.mesh_side);
  f(m.height_field, v.height_field);
  f(m.height, v.height);
  f(m.qpos0, v.qpos0);
  f(m.qpos_spring, v.qpos_spring);
}

template <class Array>
std::size_t padded(const Array& array) {
  return (array.size() * sizeof(array[0]) + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

std::size_t model_bytes(const Model& model) {
  ModelView unused{};
  std::size_t bytes = 0;
  for_arrays(model, unused, [&](const auto& array, auto&) { bytes += padded(array); });
  return bytes;
}

DeviceMemory upload_model(const Model& model, int device, void* stream, ModelView& view) {
  std::vector<std::uint8_t> image(model_bytes(model));
  DeviceMemory memory = make_device_memory(device, stream, image.size());
  view = model.sizes;
  std::size_t at = 0;
  for_arrays(model, view, [&](const auto& array, auto& pointer) {
    if (!array.empty()) std::memcpy(image.data() + at, array.data(), array.size() * sizeof(array[0]));
    using Pointer = std::remove_reference_t<decltype(pointer)>;
    pointer = reinterpret_cast<Pointer>(static_cast<std::uint8_t*>(memory.get()) + at);
    at += padded(array);
  });
  need(upload(device, stream, memory.get(), image.data(), image.size()), device, "the model cannot be copied");
  return memory;
}

}  // namespace cohort::sim::cuda
