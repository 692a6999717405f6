/// Every array of a model, once: what saves, loads, uploads, counts or checks them all goes through here. A new array
/// is a member of Model, one of ModelView where kernels read it, and a line below.
#pragma once
#include <cstddef>
#include <vector>

#include "sim/host/model.h"

namespace cohort::sim {

/// An array's name, where it is, and how long it has to be: per * sizes.*count + more.
template <class T>
struct ModelArray {
  const char* name;
  std::vector<T> Model::*items;
  const T* ModelView::*pointer;     ///< null: kernels do not read it
  int ModelView::*count = nullptr;  ///< null: any length, records say where their parts are
  int per = 1, more = 0;
};

/// Calls f(ModelArray) for each, in the order of a compiled model's file.
template <class F>
void for_each_array(F f) {
  using M = Model;
  using V = ModelView;
  f(ModelArray<BodyRecord>{"body", &M::body, &V::body, &V::nbody});
  f(ModelArray<JointRecord>{"joint", &M::joint, &V::joint, &V::njnt});
  f(ModelArray<DofRecord>{"dof", &M::dof, &V::dof, &V::nv});
  f(ModelArray<int>{"pattern", &M::pattern, &V::pattern, &V::npattern});
  f(ModelArray<int>{"pattern_start", &M::pattern_start, &V::pattern_start, &V::nv, 1, 1});
  f(ModelArray<int>{"below", &M::below, &V::below});
  f(ModelArray<int>{"below_start", &M::below_start, &V::below_start, &V::nv, 1, 1});
  f(ModelArray<LinkRecord>{"link", &M::link, &V::link, &V::nlink});
  f(ModelArray<LimitRecord>{"limit", &M::limit, &V::limit, &V::nlimit});
  f(ModelArray<FrictionRecord>{"friction", &M::friction, &V::friction, &V::nfriction});
  f(ModelArray<WrapRecord>{"wrap", &M::wrap, &V::wrap, &V::nwrap});
  f(ModelArray<TendonRecord>{"tendon", &M::tendon, &V::tendon, &V::ntendon});
  f(ModelArray<SegmentRecord>{"segment", &M::segment, &V::segment, &V::nsegment});
  f(ModelArray<int>{"segment_move", &M::segment_move, &V::segment_move});
  f(ModelArray<ActuatorRecord>{"actuator", &M::actuator, &V::actuator, &V::nact});
  f(ModelArray<MuscleRecord>{"muscle", &M::muscle, &V::muscle, &V::nmuscle});
  f(ModelArray<DelayRecord>{"delay", &M::delay, &V::delay, &V::ndelay});
  f(ModelArray<IntervalRecord>{"interval", &M::interval, &V::interval, &V::ninterval});
  f(ModelArray<DistanceRecord>{"distance", &M::distance, &V::distance, &V::ndistance});
  f(ModelArray<GeomRecord>{"geom", &M::geom, &V::geom, &V::ngeom});
  f(ModelArray<PairRecord>{"pair", &M::pair, &V::pair, &V::npair});
  f(ModelArray<PairBoundRecord>{"pair_bound", &M::pair_bound, &V::pair_bound, &V::npair});
  f(ModelArray<PairSpheresRecord>{"pair_spheres", &M::pair_spheres, &V::pair_spheres, &V::npair});
  f(ModelArray<PairRunRecord>{"pair_run", &M::pair_run, &V::pair_run, &V::npairrun});
  f(ModelArray<int>{"pair_window", &M::pair_window, &V::pair_window});
  f(ModelArray<int>{"row_dof", &M::row_dof, &V::row_dof, &V::nrowdof});
  f(ModelArray<float>{"row_sign", &M::row_sign, &V::row_sign, &V::nrowdof});
  f(ModelArray<EqualityRecord>{"equality", &M::equality, &V::equality, &V::neq});
  f(ModelArray<FrameRecord>{"frame", &M::frame, &V::frame, &V::nframe});
  f(ModelArray<FluidRecord>{"fluid", &M::fluid, &V::fluid, &V::nfluid});
  f(ModelArray<SensorRecord>{"sensor", &M::sensor, &V::sensor, &V::nsensor});
  f(ModelArray<PieceRecord>{"piece", &M::piece, &V::piece, &V::npiece});
  f(ModelArray<int>{"sensor_match", &M::sensor_match, &V::sensor_match, &V::nmatch});
  f(ModelArray<GeomRecord>{"ray_geom", &M::ray_geom, &V::ray_geom, &V::nray});
  f(ModelArray<RayMeshRecord>{"ray_mesh", &M::ray_mesh, &V::ray_mesh});
  f(ModelArray<RayChunkRecord>{"ray_chunk", &M::ray_chunk, &V::ray_chunk});
  f(ModelArray<float>{"ray_triangle", &M::ray_triangle, &V::ray_triangle});
  f(ModelArray<MeshRecord>{"mesh", &M::mesh, &V::mesh, &V::nmesh});
  f(ModelArray<float>{"mesh_vertex", &M::mesh_vertex, &V::mesh_vertex});
  f(ModelArray<int>{"mesh_edge", &M::mesh_edge, &V::mesh_edge});
  f(ModelArray<FaceRecord>{"mesh_face", &M::mesh_face, &V::mesh_face});
  f(ModelArray<float>{"mesh_direction", &M::mesh_direction, &V::mesh_direction});
  f(ModelArray<SideRecord>{"mesh_side", &M::mesh_side, &V::mesh_side});
  f(ModelArray<HeightFieldRecord>{"height_field", &M::height_field, &V::height_field, &V::nheightfield});
  f(ModelArray<float>{"height", &M::height, &V::height});
  f(ModelArray<float>{"qpos0", &M::qpos0, &V::qpos0, &V::nq});
  f(ModelArray<float>{"qpos_spring", &M::qpos_spring, &V::qpos_spring, &V::nq});
  // Not for kernels.
  f(ModelArray<int>{"piece_start", &M::piece_start, nullptr});
  f(ModelArray<int>{"piece_link", &M::piece_link, nullptr});
  f(ModelArray<int>{"fluid_link", &M::fluid_link, nullptr, &V::nfluid});
  f(ModelArray<float>{"link_inertial", &M::link_inertial, nullptr, &V::nlink, 10});
  f(ModelArray<float>{"geom_friction", &M::geom_friction, nullptr, &V::nfilegeom, 3});
  f(ModelArray<float>{"geom_frame", &M::geom_frame, nullptr, &V::nfilegeom, 10});
}

}  // namespace cohort::sim
