/// Contacts of any two convex shapes: their distance, or their depth where they overlap.
#pragma once
#include "sim/kernels/collide/convex/epa.h"
#include "sim/kernels/collide/convex/faces.h"

namespace cohort::sim::collide {

/// A face of one polytope and a vertex of the other. of1: the face is a's.
COHORT_SEARCH inline void face_and_vertex(const ConvexShape& a, const ConvexShape& b, bool of1, int face, int vertex,
                                          Witness& out, NearestPart& part) {
  const ConvexShape& other = of1 ? b : a;
  const Features faces(of1 ? a : b, {});
  const Vec n = faces.normal(face), point = other.to_shared(other.vertex(vertex));
  out.dist = dot(n, point - faces.corner(faces.corner_of(face, 0)));
  out.normal = of1 ? n : -n;
  const Vec on_face = point - out.dist * n;
  out.on1 = of1 ? on_face : point, out.on2 = of1 ? point : on_face;
  (of1 ? part.face1 : part.face2) = face;
  for (int k = 0; k < 3; ++k) {
    (of1 ? part.vertex1 : part.vertex2)[k] = faces.corner_of(face, k);
    (of1 ? part.vertex2 : part.vertex1)[k] = vertex;
  }
}

/// Two edges that begin at p1 and p2; direction: roughly from shape 1 to shape 2.
COHORT_SEARCH inline void two_edges(Vec p1, Vec along1, Vec p2, Vec along2, Vec direction, Witness& out) {
  Vec n = cross(along1, along2);
  const double length = norm(n);
  n = length > 0 ? (dot(n, direction) < 0 ? -1 / length : 1 / length) * n : direction;
  const Vec between = p2 - p1;
  out.dist = dot(n, between);
  out.normal = n;
  // The lines' nearest points.
  const double aa = dot(along1, along1), ab = dot(along1, along2), bb = dot(along2, along2);
  const double da = dot(along1, between), db = dot(along2, between), det = aa * bb - ab * ab;
  const double share1 = det > 0 ? clamp((da * bb - ab * db) / det, 0, 1) : 0;
  const double share2 = det > 0 ? clamp((ab * da - aa * db) / det, 0, 1) : 0;
  out.on1 = p1 + share1 * along1;
  out.on2 = p2 + share2 * along2;
}

/// As search, of what touches along a face of the difference; normal: its normal but for rounding.
COHORT_SEARCH inline void of_face(const ConvexShape& a, const ConvexShape& b, const DifferenceFace& face, Vec normal,
                                  Witness& out, NearestPart& part) {
  if (face.face1 >= 0) return face_and_vertex(a, b, true, face.face1, face.edge2[0], out, part);
  if (face.face2 >= 0) return face_and_vertex(a, b, false, face.face2, face.edge1[0], out, part);
  // Edges of a face that lies flat on the other's edge say less of what touches than the face does.
  const Features first(a, {}), second(b, {});
  int flat = first.face_along(face.edge1, normal), vertex;
  const bool of1 = flat >= 0;
  if (!of1) flat = second.face_along(face.edge2, -normal);
  if (flat >= 0) {
    (of1 ? b : a).support(-(of1 ? first : second).normal(flat), vertex);
    return face_and_vertex(a, b, of1, flat, vertex, out, part);
  }
  for (int k = 0; k < 3; ++k) part.vertex1[k] = face.edge1[k > 0], part.vertex2[k] = face.edge2[k > 0];
  const Vec p1 = a.to_shared(a.vertex(face.edge1[0])), p2 = b.to_shared(b.vertex(face.edge2[0]));
  two_edges(p1, a.to_shared(a.vertex(face.edge1[1])) - p1, p2, b.to_shared(b.vertex(face.edge2[1])) - p2, normal, out);
}

/// What touches where the polytope is nearest to the origin, if that does not depend on how it was found. flats: a flat
/// part will do.
COHORT_SEARCH inline bool nearest_part(const ConvexShape& a, const ConvexShape& b, const Polytope& polytope, bool flats,
                                       Witness& out, NearestPart& part) {
  DifferenceFace face;
  if (!polytope.nearest_face(face)) return flats && polytope.flat_part(out, part);
  of_face(a, b, face, polytope.normal(), out, part);
  return true;
}

/// As convex_distance; apart: from b to a where the cores are apart, otherwise untouched. flats: of parallel parts the
/// caller asks for what lies on each other (face_contacts), not for the deepest point.
COHORT_SEARCH inline bool search(const ConvexShape& a, const ConvexShape& b, double reach, bool flats, Witness& out,
                                 NearestPart& part, Vec& apart, SearchSpace& space) {
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
      part.vertex1[k] = p.vertex1, part.vertex2[k] = p.vertex2;
    }
    return true;
  }
  // The cores overlap: the polytope of the whole shapes.
  if (around > 0 && gjk(a, b, true, 1e300, s, nearest) != Cores::kTouch) return false;
  Polytope polytope(a, b, space.polytope);
  if (!polytope.start(s)) return false;
  if (!polytope.expand()) return false;
  if (nearest_part(a, b, polytope, flats, out, part)) return true;
  part = {};
  polytope.witness(out);
  polytope.vertices(part.vertex1, part.vertex2);
  return true;
}

/// False when the shapes are farther apart than `reach` or, which takes a degenerate shape, no answer is found.
COHORT_DEVICE inline bool convex_distance(const ConvexShape& a, const ConvexShape& b, double reach, Witness& out,
                                          SearchSpace& space) {
  NearestPart part;
  Vec apart;
  return search(a, b, reach, false, out, part, apart, space);
}

/// Up to four contacts, as MuJoCo makes them: those of the faces and edges that lie on each other (faces.h), or the
/// deepest point. deepest_only: that alone. apart: as queued_narrow_phase's, written when there is none and the cores
/// are apart.
COHORT_DEVICE inline int convex_contacts(const ConvexShape& a, const ConvexShape& b, double reach, bool deepest_only,
                                         QueuedContact* out, double* apart, SearchSpace& space) {
  Witness w;
  NearestPart part;
  Vec between;
  const bool lies = !deepest_only && has_features(a) && has_features(b);
  if (!search(a, b, reach, lies, w, part, between, space)) {
    const double length = norm(between);
    if (length > 0) put(apart, b.along_own((1 / length) * between));
    return 0;
  }
  if (lies) {
    const int count = face_contacts(a, b, part, w.normal, reach, out, space.faces);
    if (count > 0) return count;
    // Of a flat part the deepest point is not known.
    if (part.flat && !search(a, b, reach, false, w, part = {}, between, space)) return 0;
  }
  out[0].dist = w.dist;
  put(out[0].pos, 0.5 * (w.on1 + w.on2));
  put(out[0].normal, w.normal);
  return 1;
}

/// The same of a pair's shapes. Their contacts are computed in the second one's frame.
COHORT_DEVICE inline int convex_pair(const ModelView& m, const QueuedShape& s1, const QueuedShape& s2, double reach,
                                     FarthestVertex farthest, QueuedContact* out, double* apart, SearchSpace& space) {
  ConvexShape a = convex_shape(m, s1, farthest), b = convex_shape(m, s2, farthest);
  a.pos = turn_back(b.rot, a.pos - b.pos);
  for (int k = 0; k < 3; ++k) {
    const Vec c = turn_back(b.rot, column(a.rot, k));
    for (int i = 0; i < 3; ++i) a.rot[3 * i + k] = c[i];
  }
  b.pos = {};
  for (int i = 0; i < 9; ++i) b.rot[i] = i % 4 == 0 ? 1 : 0;
  b.unturned = true;
  const int count = convex_contacts(a, b, reach, m.option.deepest_only != 0, out, apart, space);
  for (int i = 0; i < count; ++i) {
    put(out[i].pos, turn(s2.rot, vec(out[i].pos)) + vec(s2.pos));
    put(out[i].normal, turn(s2.rot, vec(out[i].normal)));
  }
  return count;
}

}  // namespace cohort::sim::collide
