/// The batched engine's model: owned arrays of plain records, made from MuJoCo's compiled model once, saved and loaded
/// without MuJoCo.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/host/model_info.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

struct VisualModel;

/// A feature of the file that the batched engine does not run.
struct Unsupported {
  std::string feature;  ///< what, e.g. "muscle actuator"
  std::string name;     ///< of the element in the file; "" for a global option
};

/// "muscle actuator `biceps`, ...": for an error.
std::string to_string(std::span<const Unsupported> list);

struct Model {
  ModelInfo info;
  ModelView sizes{};  ///< sizes and options; its pointers are not set, see view()
  std::vector<BodyRecord> body;
  std::vector<JointRecord> joint;
  std::vector<DofRecord> dof;
  std::vector<int> pattern, pattern_start, below, below_start;
  std::vector<LinkRecord> link;
  std::vector<LimitRecord> limit;
  std::vector<FrictionRecord> friction;
  std::vector<WrapRecord> wrap;
  std::vector<TendonRecord> tendon;
  std::vector<SegmentRecord> segment;
  std::vector<int> segment_move;
  std::vector<ActuatorRecord> actuator;
  std::vector<MuscleRecord> muscle;
  std::vector<DelayRecord> delay;
  std::vector<IntervalRecord> interval;
  std::vector<DistanceRecord> distance;
  std::vector<GeomRecord> geom;
  std::vector<PairRecord> pair;
  std::vector<PairBoundRecord> pair_bound;
  std::vector<PairSpheresRecord> pair_spheres;
  std::vector<PairRunRecord> pair_run;
  std::vector<int> pair_window;
  std::vector<int> row_dof;
  std::vector<float> row_sign;
  std::vector<EqualityRecord> equality;
  std::vector<FrameRecord> frame;
  std::vector<FluidRecord> fluid;
  std::vector<SensorRecord> sensor;
  std::vector<PieceRecord> piece;
  std::vector<int> piece_start,
      piece_link;               ///< links of piece k: piece_link[piece_start[k]] to [piece_start[k + 1] - 1]
  std::vector<int> fluid_link;  ///< of each record of `fluid`
  std::vector<int> sensor_match;
  std::vector<GeomRecord> ray_geom;
  std::vector<RayMeshRecord> ray_mesh;
  std::vector<RayChunkRecord> ray_chunk;
  std::vector<float> ray_triangle;
  std::vector<MeshRecord> mesh;
  std::vector<float> mesh_vertex;
  std::vector<int> mesh_edge;
  std::vector<FaceRecord> mesh_face;
  std::vector<float> mesh_direction;
  std::vector<SideRecord> mesh_side;
  std::vector<HeightFieldRecord> height_field;
  std::vector<float> height;
  /// (nlink, 10) likewise: centre of mass (m) and axes of inertia (w x y z) in the link's frame, moments (kg m^2)
  std::vector<float> link_inertial;
  std::vector<float> geom_friction;  ///< (geoms of the file, 3): what environments may change
  /// (geoms of the file, 10) likewise: position (m) and orientation (w x y z) in the link's frame, size (m)
  std::vector<float> geom_frame;
  std::vector<float> qpos0, qpos_spring;

  /// Valid as long as this model is neither changed nor moved.
  ModelView view() const;
};

/// What `batched` lacks for this model; empty: it runs. Every setting of MuJoCo's model is either used by import_model,
/// found to have no effect, or listed here.
std::vector<Unsupported> find_unsupported(std::span<const std::uint8_t> mjb);

/// What the batched engine does otherwise than the model asks, and why that is no other model; "" where it is nothing.
std::string taken_otherwise(const ModelInfo& info);

/// Throws Error listing every unsupported feature with its name in the file, or saying how large a model is whose pairs
/// of geoms do not fit into the memory.
Model import_model(std::span<const std::uint8_t> mjb);

/// Writes the model to a file that load_model reads on a machine without MuJoCo; with what is seen of it, if given, so
/// that pictures can be made of it (load_visual_model). Throws Error.
void save_model(const Model& model, const std::filesystem::path& path, const VisualModel* seen = nullptr);
/// Throws Error for a file that is cut off, changed or of another version, or whose indices point nowhere.
Model load_model(const std::filesystem::path& path);

}  // namespace cohort::sim
