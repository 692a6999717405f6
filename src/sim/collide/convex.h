/// Contacts of any two convex shapes: their distance, or their depth where they overlap.
#pragma once
#include "sim/collide/faces.h"
#include "sim/collide/polytope.h"

namespace cohort::sim::collide {

/// A sphere and a mesh whose faces are known: where the centre is inside, it leaves through the nearest face. 1: met,
/// -1: apart by more than `reach`, 0: it takes a search. apart: as search's.
COHORT_SEARCH inline int sphere_in_mesh(const ConvexShape& sphere, const ConvexShape& mesh, double reach, Witness& out,
                                        Vec& apart) {
  const Vec centre = turn_back(mesh.rot, sphere.pos - mesh.pos);
  double farthest = -1e300;
  Vec outwards;
  for (int f = 0; f < mesh.face_count; ++f) {
    const FaceRecord& face = mesh.faces[f];
    const Vec n{static_cast<double>(face.normal[0]), static_cast<double>(face.normal[1]),
                static_cast<double>(face.normal[2])};
    const double beyond = dot(n, centre - mesh.vertex(mesh.indices[face.first_corner]));
    if (beyond > farthest) farthest = beyond, outwards = n;
  }
  const double radius = sphere.radius();
  outwards = turn(mesh.rot, outwards);
  if (farthest > reach + radius) {
    apart = outwards;
    return -1;
  }
  if (farthest > 0) return 0;
  out.dist = farthest - radius;
  out.normal = -outwards;
  out.on1 = sphere.pos - radius * outwards;
  out.on2 = sphere.pos - farthest * outwards;
  return 1;
}

/// As convex_distance; vertex1, vertex2: of both shapes, three each, those of the part of the Minkowski difference that
/// is nearest; apart: from b to a where the cores are apart, otherwise untouched.
COHORT_SEARCH inline bool search(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out, int* vertex1,
                                 int* vertex2, Vec& apart, SearchSpace& space) {
  Simplex s;
  Vec nearest;
  const double around = a.radius() + b.radius();
  // A hair more than the reach, so that rounding decides nothing here.
  const Cores cores = gjk(a, b, false, (reach + around) * (1 + 1e-9) + kTouching, s, nearest);
  if (cores != Cores::kTouch) apart = nearest;
  if (cores == Cores::kFar) return false;
  if (cores == Cores::kApart) {
    const double distance = norm(nearest);
    out.dist = distance - around;
    if (out.dist > reach) return false;
    Vec on1, on2;
    for (int i = 0; i < s.count; ++i) on1 = on1 + s.weight[i] * s.p[i].a, on2 = on2 + s.weight[i] * s.p[i].b;
    out.normal = (-1 / distance) * nearest;
    out.on1 = on1 + a.radius() * out.normal;
    out.on2 = on2 - b.radius() * out.normal;
    for (int k = 0; k < 3; ++k) {
      const Support& p = s.p[k < s.count ? k : s.count - 1];
      vertex1[k] = p.vertex1, vertex2[k] = p.vertex2;
    }
    return true;
  }
  // The cores overlap: the polytope of the whole shapes.
  if (around > 0 && gjk(a, b, true, 1e300, s, nearest) != Cores::kTouch) return false;
  Polytope polytope(a, b, space.polytope);
  if (!polytope.start(s)) return false;
  if (!polytope.expand()) return false;
  polytope.witness(out);
  polytope.vertices(vertex1, vertex2);
  return true;
}

/// False when the shapes are farther apart than `reach` or, which takes a degenerate shape, no answer is found.
COHORT_DEVICE inline bool convex_distance(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out,
                                          SearchSpace& space) {
  int vertex1[3], vertex2[3];
  Vec apart;
  return search(a, b, reach, out, vertex1, vertex2, apart, space);
}

/// Up to four contacts, as MuJoCo makes them: those of the faces and edges that lie on each other (faces.h), or the
/// deepest point. apart: as queued_narrow_phase's, written when there is none and the cores are apart.
COHORT_DEVICE inline int convex_contacts(const ConvexShape& a, const ConvexShape& b, double reach, QueuedContact* out,
                                         double* apart, SearchSpace& space) {
  Witness w;
  int vertex1[3], vertex2[3];
  Vec between;
  const int direct = a.shape == kSphere && b.face_count > 0 ? sphere_in_mesh(a, b, reach, w, between) : 0;
  if (direct < 0 || (direct == 0 && !search(a, b, reach, w, vertex1, vertex2, between, space))) {
    const double length = norm(between);
    if (length > 0) put(apart, turn_back(b.rot, (1 / length) * between));
    return 0;
  }
  if (has_features(a) && has_features(b)) {
    const int count = face_contacts(a, b, vertex1, vertex2, w.normal, reach, out, space.faces);
    if (count > 0) return count;
  }
  out[0].dist = w.dist;
  put(out[0].pos, 0.5 * (w.on1 + w.on2));
  put(out[0].normal, w.normal);
  return 1;
}

}  // namespace cohort::sim::collide
