/// What a scene is made of. Lengths in metres, masses in kg, angles in radians, quaternions as (w, x, y, z).
#pragma once
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/host/model_edits.h"
#include "sim/pose.h"

namespace cohort::sim {

/// What every shape has in common.
struct ShapeOptions {
  Pose pose{};
  bool fixed = false;  ///< true: part of the world; false: moves freely
  /// Seen and nothing else: it touches nothing, and stands where Field::kMocapPos and kMocapQuat put it.
  bool marker = false;
  double density = 1000;                             ///< kg/m^3, unless mass is given
  std::optional<double> mass;                        ///< kg
  std::array<double, 3> friction{1, 0.005, 0.0001};  ///< sliding, torsional (m), rolling (m)
  std::array<float, 4> rgba{0.5f, 0.5f, 0.5f, 1.0f};
};

/// A model file. The first MJCF entity without a pose keeps its names; where all have one, the first gives the scene
/// its options (timestep, integrator, ...); without any, the first URDF's <mujoco> element does. The names of all
/// others begin with their entity's: bodies, joints, sensors, keyframes ("robot/home"). What a file puts into its world
/// frame itself goes into the scene's world.
struct Mjcf {
  std::string file;            ///< path; or
  std::string xml{};           ///< the text itself
  std::optional<Pose> pose{};  ///< where its world frame goes, that of its keyframes too
  std::string folder{};        ///< of a text: where its <include> and asset files lie; empty: the working directory
  ModelEdits edits{};          ///< before it is compiled
};
struct Urdf {
  std::string file;
  std::string xml{};
  Pose pose{};
  /// true: the base link is part of the world; false: it moves freely. A file says so itself with a `floating` joint, or
  /// with a base link that is named `world`, which is the world.
  bool fixed = false;
  /// SRDF file whose pairs of links do not collide; empty: the file beside `file` that has its name and the suffix
  /// .srdf, where there is one.
  std::string srdf{};
  ModelEdits edits{};  ///< before it is compiled
};
struct Plane {
  Pose pose{};
  std::array<double, 3> friction{1, 0.005, 0.0001};
  std::array<float, 4> rgba{0.6f, 0.6f, 0.6f, 1.0f};
};
struct Sphere {
  double radius = 0.5;
  ShapeOptions shape{};
};
struct Capsule {
  double radius = 0.1;
  double length = 0.5;  ///< of the cylindrical part
  ShapeOptions shape{};
};
struct Cylinder {
  double radius = 0.1;
  double height = 0.5;
  ShapeOptions shape{};
};
struct Box {
  std::array<double, 3> size{1, 1, 1};  ///< full edge lengths
  ShapeOptions shape{};
};
struct Ellipsoid {
  std::array<double, 3> radii{0.1, 0.2, 0.3};
  ShapeOptions shape{};
};
struct Mesh {
  std::string file;  ///< STL, OBJ or MSH; collides as its convex hull
  std::array<double, 3> scale{1, 1, 1};
  ShapeOptions shape{};
};
/// A height field, part of the world.
struct Terrain {
  int rows = 0;                  ///< along y
  int cols = 0;                  ///< along x
  std::vector<float> heights{};  ///< (rows, cols), row-major; scaled so that the least is 0 and the greatest `height`
  std::array<double, 2> size{10, 10};  ///< full extent along x and y
  double height = 1;                   ///< between lowest and highest point
  double base = 0.1;                   ///< thickness below the lowest point
  Pose pose{};
  std::array<double, 3> friction{1, 0.005, 0.0001};
};

using Morph = std::variant<Mjcf, Urdf, Plane, Sphere, Capsule, Cylinder, Box, Ellipsoid, Mesh, Terrain>;

/// A camera of the scene; the renderer draws through it.
struct CameraOptions {
  std::string name;
  std::array<double, 3> pos{3, 0, 2};
  std::array<double, 3> lookat{0, 0, 0.5};
  double fov = 45;                ///< vertical, degrees
  int width = 320, height = 240;  ///< pixels
};

}  // namespace cohort::sim
