/// What is seen of a model: every geom and site with its link and local pose, colours, textures, meshes, lights and
/// cameras. Plain data, made from MuJoCo's compiled model once (a batched model keeps physics only) and saved with
/// compiled models. A renderer places it by the links' poses (Field::kLinkPos, kLinkQuat).
///
/// Fields and meanings are those of MuJoCo's mjModel and mjVisual (mjmodel.h); lengths in m, angles in degrees.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/host/mesh_tree.h"
#include "sim/host/visual_shape.h"

namespace cohort::sim {

struct VisualGeom {
  VisualShape shape = VisualShape::kSphere;
  int link = 0;
  int id = -1;  ///< geom of the file; -1: a site
  int group = 0;
  int material = -1;
  int data = -1;                                      ///< mesh or height field
  std::array<double, 3> pos{0, 0, 0};                 ///< in the link's frame
  std::array<double, 4> quat{1, 0, 0, 0};             ///< likewise, w x y z
  std::array<double, 3> size{0, 0, 0};                ///< MuJoCo's geom_size
  std::array<float, 4> rgba{0.5f, 0.5f, 0.5f, 1.0f};  ///< its own, or its material's
  bool casts_shadow = true;
};

struct VisualMaterial {
  int texture = -1;
  bool uniform = false;  ///< texture repeats per metre, not per object
  std::array<float, 2> repeat{1, 1};
  float emission = 0, specular = 0.5f, shininess = 0.5f, reflectance = 0;
};

struct VisualTexture {
  enum class Kind : int { k2d, kCube, kSkybox };
  Kind kind = Kind::k2d;
  int width = 0, height = 0;  ///< of a cube: height is width (one face for all) or 6 * width
  int channels = 3;
  bool srgb = false;
  std::vector<std::uint8_t> pixels;  ///< (height, width, channels), row 0 at t = 0
};

/// Triangles with a normal and, where the file gives them, texture coordinates at each corner.
struct VisualMesh {
  std::vector<float> vertex;                                   ///< (n, 3)
  std::vector<float> normal;                                   ///< (m, 3)
  std::vector<float> texcoord;                                 ///< (k, 2); empty: none
  std::vector<std::int32_t> face, face_normal, face_texcoord;  ///< (triangles, 3) each; the last empty without texcoord
  MeshTree tree;                                               ///< in a compiled model; else empty
};

struct VisualHeightField {
  int rows = 0, cols = 0;
  std::array<double, 4> size{0, 0, 0, 0};  ///< half extents x and y, greatest height, thickness of the base
  std::vector<float> height;               ///< (rows, cols), 0 to 1
};

/// How a camera or light follows its link: MuJoCo's mjtCamLight.
enum class VisualTracking : int { kFixed, kTrack, kTrackCom, kTargetBody, kTargetBodyCom };

struct VisualLight {
  enum class Kind : int { kSpot, kDirectional, kPoint, kImage };
  Kind kind = Kind::kDirectional;
  VisualTracking tracking = VisualTracking::kFixed;
  int link = 0, target = -1;
  bool active = true, casts_shadow = true;
  std::array<double, 3> pos{0, 0, 0}, dir{0, 0, -1};                       ///< in the link's frame
  std::array<double, 3> pos_com0{0, 0, 0}, pos0{0, 0, 0}, dir0{0, 0, -1};  ///< for kTrack and kTrackCom, in the world
  std::array<float, 3> attenuation{1, 0, 0}, ambient{0, 0, 0}, diffuse{0.7f, 0.7f, 0.7f}, specular{0.3f, 0.3f, 0.3f};
  float cutoff = 45, exponent = 10;
};

struct VisualCamera {
  std::string name;
  VisualTracking tracking = VisualTracking::kFixed;
  int link = 0, target = -1;
  std::array<double, 3> pos{0, 0, 0};
  std::array<double, 4> quat{1, 0, 0, 0};  ///< columns of its rotation: right, up, back
  std::array<double, 3> pos_com0{0, 0, 0}, pos0{0, 0, 0};
  std::array<double, 9> mat0{1, 0, 0, 0, 1, 0, 0, 0, 1};
  bool orthographic = false;
  double fovy = 45;                            ///< degrees; of an orthographic one m
  int width = 1, height = 1;                   ///< pixels; 1: the file does not say
  std::array<float, 2> sensor_size{0, 0};      ///< m; 0: fovy holds
  std::array<float, 4> intrinsic{0, 0, 0, 0};  ///< focal length and principal point, m
};

/// For cameras and lights that follow centres of mass.
struct VisualLink {
  int parent = 0;
  double mass = 0;
  std::array<double, 3> com{0, 0, 0};  ///< in the link's frame
};

struct VisualModel {
  std::uint64_t content = 0;  ///< ModelInfo::content of the model that it belongs to
  std::vector<VisualLink> links;
  std::vector<VisualGeom> geoms;  ///< those of the file in its order, then the sites
  std::vector<VisualMaterial> materials;
  std::vector<VisualTexture> textures;
  std::vector<VisualMesh> meshes;
  std::vector<VisualHeightField> height_fields;
  std::vector<VisualLight> lights;
  std::vector<VisualCamera> cameras;
  bool headlight = true;
  std::array<float, 3> headlight_ambient{0.1f, 0.1f, 0.1f}, headlight_diffuse{0.4f, 0.4f, 0.4f},
      headlight_specular{0.5f, 0.5f, 0.5f};
  std::array<float, 4> haze_rgba{1, 1, 1, 1};
  float haze = 0.3f;
  double near = 0.01, far = 50;           ///< m
  std::array<double, 3> centre{0, 0, 0};  ///< of the model as its file describes it
  double extent = 1;                      ///< m, likewise
  double fovy = 45;                       ///< degrees, of a camera that is placed freely
  int quads = 4;  ///< divisions of a box's face and a plane: light is computed at their corners, as OpenGL does
};

/// From MuJoCo's binary model.
VisualModel import_visual_model(std::span<const std::uint8_t> mjb);
/// The bytes that save_model() puts behind a model; meshes that have no tree get theirs.
std::string visual_model_bytes(VisualModel model);
/// What stands in a compiled model's file; null where it holds no pictures (an older file). Throws Error for a damaged
/// one.
std::shared_ptr<const VisualModel> load_visual_model(const std::filesystem::path& path);

}  // namespace cohort::sim
