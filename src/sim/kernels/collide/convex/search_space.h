/// Memory of a search over convex shapes: on a CPU on the stack, on a GPU in the thread's workspace, where stacks of
/// this size would be reserved for every thread that the device could hold.
#pragma once
#include "sim/kernels/collide/convex/vectors.h"

namespace cohort::sim::collide {

inline constexpr int kMostPolytopeVertices = 132, kMostPolytopeFaces = 264;
/// Most corners of two faces together that are clipped; of faces with more, some of the corners are.
inline constexpr int kMostCorners = 256;
/// Most faces around a vertex that are looked at.
inline constexpr int kMostAround = 64;

/// A point of the Minkowski difference with the points it comes from, and which vertices they are.
struct Support {
  Vec w, a, b;
  int vertex1, vertex2;
};

/// Of a Polytope. Faces: unit normals outwards, distances from the origin, corners.
struct PolytopeSpace {
  Support vertex[kMostPolytopeVertices + 4];
  double x[kMostPolytopeFaces], y[kMostPolytopeFaces], z[kMostPolytopeFaces], dist[kMostPolytopeFaces];
  unsigned char corner[kMostPolytopeFaces][3];
  unsigned char edge[3 * kMostPolytopeFaces][2];
  short seen[kMostPolytopeFaces];
};

/// Of face_contacts.
struct FaceSpace {
  Vec corner[2][kMostCorners];
  double inside[kMostCorners];
  double along[kMostAround][3];
  int face1[kMostAround], face2[kMostAround], other[kMostAround], around[kMostAround], end[kMostAround];
};

/// One after the other. A union keeps the numbers from being zeroed, which takes longer than most searches: they are
/// written before they are read.
struct SearchSpace {
  union {
    PolytopeSpace polytope;
    FaceSpace faces;
  };
  COHORT_DEVICE SearchSpace() {}   // NOLINT
  COHORT_DEVICE ~SearchSpace() {}  // NOLINT
};

}  // namespace cohort::sim::collide
