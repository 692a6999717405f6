/// Contacts of two polytopes that overlap, over lanes: those of the features that lie on each other, or the deepest
/// point. Points and choices are those of faces.h.
#pragma once
#include "sim/kernels/collide/convex/pick_four.h"
#include "sim/kernels/collide/face_region.h"
#include "sim/kernels/collide/polygon_clip.h"

namespace cohort::sim {

/// Corners nearer to each other than this are one (convex/faces.h), m: twice what single precision leaves.
inline constexpr float kOneCorner = 2e-6f;

/// The points that make contacts, in the axes of the face they lie on.
template <class L>
struct FoundPoints {
  using V = typename L::V;
  V at[kFewContacts][3], count;
};

/// Of two faces: the corners of what they share no higher than `reach`, and of more than four, four.
template <class L>
COHORT_KERNEL void face_points(FoundPoints<L>& found, const LanePolygon<L>& polygon, float reach, typename L::M lanes) {
  using V = typename L::V;
  constexpr int kLanes = L::kWidth;
  alignas(64) float at[kFewContacts][3][kLanes], counts[kLanes];
  for (int k = 0; k < kFewContacts; ++k) {
    for (int i = 0; i < 3; ++i) store(at[k][i], found.at[k][i]);
  }
  store(counts, found.count);
  each_lane(lanes, [&](int lane) {
    float point[LanePolygon<L>::kMostSlots][3];
    int count = 0, slot = static_cast<int>(get_lane(polygon.start, lane));
    for (int k = 0; k < polygon.slots; ++k, slot = slot + 1 == polygon.slots ? 0 : slot + 1) {
      if (get_lane(polygon.corner[slot], lane) == 0 || get_lane(polygon.at[2][slot], lane) > reach) continue;
      for (int i = 0; i < 3; ++i) point[count][i] = get_lane(polygon.at[i][slot], lane);
      // What cuts a polygon at a corner leaves two there, which lie beside each other.
      const auto same = [&](int other) {
        float square = 0;
        for (int i = 0; i < 3; ++i) {
          const float off = point[other][i] - point[count][i];
          square = fma(off, off, square);
        }
        return square < kOneCorner * kOneCorner;
      };
      if (count > 0 && (same(count - 1) || same(0))) continue;
      ++count;
    }
    int picked[kFewContacts] = {0, 1, 2, 3};
    if (count > kFewContacts) {
      // Seen along the normal all areas are smaller by one factor.
      pick_four(count, picked, [&](int a, int b, int c, int d) {
        const float x = point[c][0] - point[a][0], y = point[c][1] - point[a][1];
        const float area = x * (point[d][1] - point[b][1]) - y * (point[d][0] - point[b][0]);
        return area * area;
      });
      count = kFewContacts;
    }
    for (int k = 0; k < count; ++k) {
      for (int i = 0; i < 3; ++i) at[k][i][lane] = point[picked[k]][i];
    }
    counts[lane] = static_cast<float>(count);
  });
  V* const type = nullptr;
  for (int k = 0; k < kFewContacts; ++k) {
    for (int i = 0; i < 3; ++i) found.at[k][i] = load(at[k][i], type);
  }
  found.count = load(counts, type);
}

/// Of an edge on a face: its ends, as far as they are over the face. An end that is cut off counts twice where it is
/// the only low one, as it does in a polygon of two corners.
template <class L>
COHORT_LANE void edge_points(FoundPoints<L>& found, const FaceRegion<L>& region, typename L::V (*end)[3], float reach,
                             float slack, typename L::M lanes) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), one(1.0f), two(2.0f);
  V copies[2] = {one, one};
  M left = lanes;
  for (int k = 0; k < region.most; ++k) {
    const M active = lanes & region.has(k);
    const HalfPlane<V> h = region.inside(k, slack);
    const V over0 = fma(h.a, end[0][0], h.b * end[0][1]) - h.offset;
    const V over1 = fma(h.a, end[1][0], h.b * end[1][1]) - h.offset;
    const M out0 = active & flip(over0 >= -h.slack), out1 = active & flip(over1 >= -h.slack), both = out0 & out1;
    left = left & flip(both);
    const M cut0 = out0 & flip(both), cut1 = out1 & flip(both), cut = cut0 | cut1;
    const V share = clip(over0 / select(cut, over0 - over1, one), zero, one);
    for (int i = 0; i < 3; ++i) {
      const V at = fma(share, end[1][i] - end[0][i], end[0][i]);
      end[0][i] = select(cut0, at, end[0][i]), end[1][i] = select(cut1, at, end[1][i]);
    }
    copies[0] = select(cut0, two, copies[0]), copies[1] = select(cut1, two, copies[1]);
  }
  const M low0 = left & (end[0][2] <= V(reach)), low1 = left & (end[1][2] <= V(reach)), both = low0 & low1;
  const V count = select(both, two, select(low0, copies[0], select(low1, copies[1], zero)));
  found.count = select(lanes, count, found.count);
  for (int i = 0; i < 3; ++i) {
    const V first = select(low0, end[0][i], end[1][i]);
    found.at[0][i] = select(lanes, first, found.at[0][i]);
    found.at[1][i] = select(lanes, select(both, end[1][i], first), found.at[1][i]);
  }
}

/// Where features lie on each other: the points, the plane they lie on, and which way out.
template <class L>
struct FeatureContacts {
  using V = typename L::V;
  using M = typename L::M;
  FaceRegion<L> region;
  FoundPoints<L> found;
  V outward[3];  ///< unit, from the face to the other shape, in the face's shape's frame

  COHORT_KERNEL void find(const ModelView& m, const PairRecord& p, const RelativePose<V>& relative,
                          const MeetingFeatures<L>& meeting) {
    FeatureCorners<L> corners;
    corners.read(m, p, meeting);
    region.lay_out(corners.region, meeting.faces | meeting.edge);
    region.see_other(relative, meeting.of_second);
    const float slack = kAxisRounding * (m.geom[p.geom1].radius + m.geom[p.geom2].radius), reach = p.margin + p.gap;
    // An edge and a face meet along the face's normal, two faces along the second's.
    for (int i = 0; i < 3; ++i) outward[i] = region.axes[2][i];
    if (any(meeting.edge)) {
      V end[2][3];
      for (int k = 0; k < 2; ++k) region.place(end[k], corners.other, k);
      edge_points(found, region, end, reach, slack, meeting.edge);
    }
    if (!any(meeting.faces)) return;
    shared_polygon(corners.other, slack, reach, meeting.faces);
    V normal[3];
    for (int i = 0; i < 3; ++i) normal[i] = load(corners.other.normal[i], static_cast<V*>(nullptr));
    rotate(normal, relative.R, normal);
    for (int i = 0; i < 3; ++i) outward[i] = select(meeting.faces, -normal[i], outward[i]);
  }

 private:
  COHORT_LANE void shared_polygon(const typename FeatureCorners<L>::Face& other, float slack, float reach, M lanes) {
    LanePolygon<L> polygon;
    const V count = load(other.count, static_cast<V*>(nullptr));
    for (int k = 0; k < other.most; ++k) {
      V at[3];
      region.place(at, other, k);
      const M is_corner = V(static_cast<float>(k)) < count;
      for (int i = 0; i < 3 && k > 0; ++i) at[i] = select(is_corner, at[i], polygon.at[i][0]);
      polygon.add(at[0], at[1], at[2], is_corner);
    }
    for (int k = 0; k < region.most; ++k) {
      const HalfPlane<V> h = region.inside(k, slack);
      polygon.clip(h.a, h.b, h.offset, h.slack, lanes & region.has(k));
    }
    face_points(found, polygon, reach, lanes);
  }
};

/// A sphere whose centre is in a polytope leaves it through the nearest face.
template <class L>
COHORT_LANE int sphere_in_polytope(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                   const PairPose<typename L::V>& pose, const LeastOverlap<typename L::V>& least,
                                   const typename L::V* axis, typename L::M near) {
  using V = typename L::V;
  out[0].dist = select(near, least.apart, V(kFarApart));
  const V way = fma(V(0.5f), least.apart, V(m.geom[p.geom1].size[0]));
  for (int i = 0; i < 3; ++i) {
    out[0].pos[i] = fma(way, axis[i], pose.pos1[i]);
    out[0].normal[i] = axis[i], out[0].hint[i] = V(0.0f);
  }
  return 1;
}

/// Contacts of the lanes in `near`, which overlap. Returns how many the fullest lane has.
template <class L>
COHORT_KERNEL int polytope_contacts(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                                    const PairPose<typename L::V>& pose, const RelativePose<typename L::V>& relative,
                                    const LeastOverlap<typename L::V>& least, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  const V zero(0.0f), half(0.5f);
  MeetingFeatures<L> meeting;
  meeting_features<L>(meeting, m, p, relative, least, near);
  FeatureContacts<L> contacts;
  FoundPoints<L>& found = contacts.found;
  found.count = zero;
  for (auto& point : found.at) point[0] = point[1] = point[2] = zero;
  const bool look = m.option.deepest_only == 0 && any(meeting.faces | meeting.edge);
  if (look) contacts.find(m, p, relative, meeting);
  // The deepest point, where nothing lies on anything.
  const M alone = near & (found.count == zero), second = meeting.of_second & flip(alone);
  V rot[9], origin[3], normal[3], share = zero;
  for (int i = 0; i < 9; ++i) rot[i] = select(second, pose.rot2[i], pose.rot1[i]);
  for (int i = 0; i < 3; ++i) {
    origin[i] = select(second, pose.pos2[i], pose.pos1[i]);
    normal[i] = least.axis[i];
    if (!look) continue;
    normal[i] = select(alone, normal[i], select(second, -contacts.outward[i], contacts.outward[i]));
    share = fma(contacts.region.axes[2][i], contacts.outward[i], share);
  }
  rotate(normal, rot, normal);
  int most = 1;
  while (most < kFewContacts && any(near & (found.count > V(static_cast<float>(most))))) ++most;
  for (int k = 0; k < most; ++k) {
    V at[3], dist = select(alone, least.apart, V(kFarApart));
    if (k > 0) dist = V(kFarApart);
    for (int i = 0; i < 3; ++i) at[i] = meeting.deepest[i];
    if (look) {
      // What a point is deep is measured along the contact's normal; it is taken to the face along the face's.
      const M here = near & (found.count > V(static_cast<float>(k)));
      const V deep = share * found.at[k][2];
      const auto& axes = contacts.region.axes;
      dist = select(here, deep, dist);
      for (int i = 0; i < 3; ++i) {
        const V on_face = contacts.region.origin[i] + fma(axes[0][i], found.at[k][0], axes[1][i] * found.at[k][1]);
        at[i] = select(here, fma(half * deep, contacts.outward[i], on_face), at[i]);
      }
    }
    out[k].dist = dist;
    rotate(out[k].pos, rot, at);
    for (int i = 0; i < 3; ++i) {
      out[k].pos[i] += origin[i];
      out[k].normal[i] = normal[i];
      out[k].hint[i] = zero;
    }
  }
  return most;
}

}  // namespace cohort::sim
