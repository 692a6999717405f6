/// The features of two polytopes that lie on each other (polytope_features.h), in the plane of the face that is one of
/// them: that face's corners, and the other shape's face or edge above it.
#pragma once
#include "sim/kernels/collide/polytope_features.h"

namespace cohort::sim {

/// The corners, read lane by lane; other lanes have zeros.
template <class L>
struct FeatureCorners {
  using V = typename L::V;
  static constexpr int kLanes = L::kWidth;
  /// A face, clockwise seen from outside, then its first corner again; in its shape's frame, m.
  struct Face {
    alignas(64) float at[kMostLaneCorners + 1][3][kLanes], normal[3][kLanes], count[kLanes];
    int most = 0;  ///< corners of the fullest lane

    COHORT_LANE void clear() {
      for (int k = 0; k <= most; ++k) {
        for (int i = 0; i < 3; ++i) store(at[k][i], V(0.0f));
      }
      for (int i = 0; i < 3; ++i) store(normal[i], V(0.0f));
      store(count, V(0.0f));
    }
    COHORT_LANE void read(const ModelView& m, const GeomRecord& g, int face, int lane) {
      const int corners = corner_count(m, g, face);
      float x[3];
      for (int k = 0; k <= corners; ++k) {
        corner_of(x, m, g, face_corner(m, g, face, k == corners ? corners - 1 : corners - 1 - k));
        for (int i = 0; i < 3; ++i) at[k][i][lane] = x[i];
      }
      face_normal(x, m, g, face);
      for (int i = 0; i < 3; ++i) normal[i][lane] = x[i];
      count[lane] = static_cast<float>(corners);
    }
  };
  Face region;  ///< what is lain on: a face of the first shape, or where `of_second` of the second
  Face other;   ///< faces: the second shape's; an edge: its ends

  COHORT_KERNEL void read(const ModelView& m, const PairRecord& p, const MeetingFeatures<L>& meeting) {
    const GeomRecord* const g[2] = {&m.geom[p.geom1], &m.geom[p.geom2]};
    alignas(64) float face[2][kLanes], ends[2][kLanes];
    store(face[0], meeting.face1), store(face[1], meeting.face2);
    store(ends[0], meeting.begin), store(ends[1], meeting.end);
    const unsigned faces = lane_bits(meeting.faces), second = lane_bits(meeting.of_second);
    const auto grow = [&](Face& f, int corners) { f.most = corners > f.most ? corners : f.most; };
    each_lane(meeting.faces | meeting.edge, [&](int lane) {
      const int which = second >> lane & 1u ? 1 : 0;
      grow(region, corner_count(m, *g[which], static_cast<int>(face[which][lane])));
      grow(other, faces >> lane & 1u ? corner_count(m, *g[1], static_cast<int>(face[1][lane])) : 1);
    });
    region.clear(), other.clear();
    each_lane(meeting.faces | meeting.edge, [&](int lane) {
      const int which = second >> lane & 1u ? 1 : 0;
      region.read(m, *g[which], static_cast<int>(face[which][lane]), lane);
      if (faces >> lane & 1u) return other.read(m, *g[1], static_cast<int>(face[1][lane]), lane);
      for (int k = 0; k < 2; ++k) {
        float x[3];
        corner_of(x, m, *g[1 - which], static_cast<int>(ends[k][lane]));
        for (int i = 0; i < 3; ++i) other.at[k][i][lane] = x[i];
      }
    });
  }
};

/// A half plane: a x + b y >= offset; slack: what counts as in it, m, times the length of (a, b).
template <class V>
struct HalfPlane {
  V a, b, offset, slack;
};

/// A face as a plane with its corners.
template <class L>
struct FaceRegion {
  using V = typename L::V;
  using M = typename L::M;
  V x[kMostLaneCorners + 1], y[kMostLaneCorners + 1];  ///< m, clockwise seen from outside; then the first again
  V count;
  int most;                 ///< corners of the fullest lane
  V origin[3], axes[3][3];  ///< a corner, unit vectors in the plane and the normal outwards; in its shape's frame
  V turn[3][3], moved[3];   ///< what takes the other shape's points to x, y and the height over the plane

  COHORT_LANE void lay_out(const typename FeatureCorners<L>::Face& face, M lanes) {
    V* const type = nullptr;
    most = face.most;
    count = load(face.count, type);
    V along[3];
    for (int i = 0; i < 3; ++i) {
      origin[i] = load(face.at[0][i], type);
      along[i] = load(face.at[1][i], type) - origin[i];
      axes[2][i] = select(lanes, load(face.normal[i], type), V(i == 2 ? 1.0f : 0.0f));
    }
    // Heights count from the face's first corner, the last of these.
    for (int k = 1; k < most; ++k) {
      const M last = count == V(static_cast<float>(k + 1));
      for (int i = 0; i < 3; ++i) origin[i] = select(last, load(face.at[k][i], type), origin[i]);
    }
    const V up = dot3(along, axes[2]);
    for (int i = 0; i < 3; ++i) along[i] = fma(-up, axes[2][i], along[i]);
    const V inverse = V(1.0f) / sqrt(max(dot3(along, along), V(1e-30f)));
    for (int i = 0; i < 3; ++i) axes[0][i] = along[i] * inverse;
    cross(axes[1], axes[2], axes[0]);
    for (int k = 0; k <= most; ++k) {
      V at[3];
      for (int i = 0; i < 3; ++i) at[i] = load(face.at[k][i], type) - origin[i];
      x[k] = dot3(axes[0], at), y[k] = dot3(axes[1], at);
    }
  }

  /// second: lanes whose face is the second shape's.
  COHORT_LANE void see_other(const RelativePose<V>& relative, M second) {
    V R[9], away[3];
    for (int i = 0; i < 9; ++i) R[i] = select(second, relative.turned[i], relative.R[i]);
    for (int i = 0; i < 3; ++i) away[i] = select(second, relative.back[i], relative.to[i]) - origin[i];
    for (int k = 0; k < 3; ++k) {
      rotate_back(turn[k], R, axes[k]);
      moved[k] = dot3(axes[k], away);
    }
  }

  /// Corner k of the other shape's feature.
  COHORT_LANE void place(V* at, const typename FeatureCorners<L>::Face& other, int k) const {
    V local[3];
    for (int i = 0; i < 3; ++i) local[i] = load(other.at[k][i], static_cast<V*>(nullptr));
    for (int i = 0; i < 3; ++i) at[i] = dot3(turn[i], local) + moved[i];
  }

  /// Inside side k.
  COHORT_LANE HalfPlane<V> inside(int k, float slack) const {
    const V a = y[k + 1] - y[k], b = x[k] - x[k + 1];
    return {a, b, fma(a, x[k], b * y[k]), V(slack) * sqrt(fma(a, a, b * b))};
  }
  /// Lanes whose face has a side k.
  COHORT_LANE M has(int k) const { return V(static_cast<float>(k)) < count; }
};

}  // namespace cohort::sim
