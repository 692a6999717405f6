/// Narrow phases that one environment computes alone, in double: shapes whose contacts follow from long chains of
/// decisions. The lanes' kernel (queue.h) takes the environments of a block that passed the bounding test one by one,
/// so that an environment's bits cannot depend on its neighbours. On a CPU compiled once, without vector instructions
/// (cpu/queued.cpp); a GPU's thread computes them in place.
#pragma once
#include "sim/kernels/lane/data_view.h"
#include "sim/kernels/lane/model_view.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim {

/// A shape in the frame that both shapes share.
struct QueuedShape {
  const GeomRecord* geom;
  double pos[3];  ///< m
  double rot[9];
};

struct QueuedContact {
  double dist;       ///< m, negative: depth
  double pos[3];     ///< midway between the surfaces
  double normal[3];  ///< from shape 1 to shape 2
};

/// The first of the vertices (in blocks, see kVertexBlock) that lie farthest in a direction. The lanes look through a
/// mesh; every lane width finds the same vertex.
using FarthestVertex = int (*)(const float* blocks, int count, float x, float y, float z);

/// Writes at most kMaxPairContacts contacts nearer than `reach` and returns their number. `kernel`: PairKernel. apart:
/// when there is none, of kConvexConvex, a unit vector in the second shape's frame, towards the first, along which they
/// are apart; zero where that is not known.
int queued_narrow_phase(const ModelView& m, int kernel, const QueuedShape& s1, const QueuedShape& s2, double reach,
                        FarthestVertex farthest, QueuedContact* out, double* apart);

/// A sphere and a height field's prism (threes: three corners at the bottom, three above them), in the field's frame.
/// out: distance, place, normal. False: farther apart than `reach`.
bool sphere_and_prism(const float* prism, const float* centre, float radius, float reach, float* out);

/// The same of any other shape.
bool prism_and_shape(const ModelView& m, const float* prism, const QueuedShape& shape, float reach,
                     FarthestVertex farthest, float* out);

}  // namespace cohort::sim
