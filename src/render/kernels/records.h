/// What a picture is drawn from: plain records with pointers, the same for a CPU's lanes and a GPU's threads.
///
/// Frames: a geom's own ("local"), and the world turned to the camera's place: the world's axes, the camera at the
/// origin, so that floats suffice wherever the camera stands.
#pragma once
#include "sim/host/mesh_tree_node.h"

namespace cohort::render {

inline constexpr int kTile = 8;  ///< pixels along a side; what is culled is culled per tile

using NodeRecord = sim::MeshTreeNode;
/// Eight triangles: a corner and two edges each; an empty place has edges of length zero.
struct TriangleBlock {
  float corner[3][8], edge1[3][8], edge2[3][8];
  int triangle[8];
};
struct MeshRecord {
  const NodeRecord* node;  ///< node 0 is the root; null: every block is looked at
  const TriangleBlock* block;
  int blocks;
  const float* corner;    ///< (triangles, 3, 3): positions
  const float* normal;    ///< (triangles, 3, 3): at the corners
  const float* texcoord;  ///< (triangles, 3, 2), or null
  float low[3], high[3];
};

inline constexpr int kMostLevels = 16;
/// Levels of half the size each; of a cube, six squares behind each other (+x, -x, +y, -y, +z, -z).
struct TextureRecord {
  int cube;
  int levels;
  int width[kMostLevels], height[kMostLevels];
  int first[kMostLevels];  ///< where a level begins
  const unsigned* pixel;   ///< red in the lowest eight bits, then green, blue, alpha
};

/// kTexcoord: a mesh's own coordinates; kAround: once around a round shape, or once on each face; kLinear: by x and y;
/// kCube: by the direction from the middle.
enum class Mapping : int { kNone, kTexcoord, kAround, kLinear, kCube };

struct InstanceRecord {
  int shape;  ///< sim::VisualShape; height fields are meshes
  int id;     ///< what segmentation says
  int transparent, casts_shadow;
  int behind;    ///< of a plane: the camera is behind it
  float rot[9];  ///< local to world, row-major
  float pos[3];
  float size[3];
  float rgba[4];
  float emission, specular, exponent, reflectance;
  int mapping;  ///< Mapping
  const TextureRecord* texture;
  float scale[3];    ///< of local coordinates, or a surface's own, to texture coordinates
  float offset[2];   ///< likewise, where they go by x and y
  float grid[2][3];  ///< of a plane: where its second column of cells begins, the cells' width, where they end
  const MeshRecord* mesh;
  float nearest;            ///< m: no point of it is nearer along the camera's axis
  float radius, middle[3];  ///< a sphere around it; radius < 0: none (a plane without end)
};

inline constexpr int kMostLights = 8;  ///< as many as OpenGL's fixed function has
struct LightRecord {
  int directional, shadow;
  float pos[3], dir[3];  ///< dir: the way the light goes, unit
  float attenuation[3];  ///< constant, linear, quadratic
  float cos_cutoff;      ///< below -1: no cone
  float exponent;
  float ambient[3], diffuse[3], specular[3];
};

struct FrameRecord {
  int width, height;
  int columns;  ///< of tiles
  int orthographic;
  float right[3], up[3], forward[3];
  float left, bottom, step_x, step_y, top;  ///< of the frustum at 1 m; steps: of a pixel
  float nearest, farthest;                  ///< m
  const InstanceRecord* instance;
  int instances;
  const int* tile_first;     ///< (tiles + 1): where each tile's instances begin
  const int* tile_instance;  ///< near to far
  const int* transparent;    ///< instances, near to far as MuJoCo sorts them
  int transparents;
  const LightRecord* light;
  int lights;
  float global_ambient;
  int quads;
  int shadows;
  int mirror;                ///< the instance that reflects; -1: none
  const TextureRecord* sky;  ///< null: black
  float sky_reach;           ///< m: half height and radius of the cylinder on which the sky is drawn
  int haze;                  ///< 0: none
  float haze_normal[3], haze_height, haze_ratio, haze_turn, haze_rgb[3];
  unsigned char* rgb;  ///< null: not wanted
  float* depth;
  int* segmentation;
  float* normal;
};

}  // namespace cohort::render
