#include "contact_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/format.h"
#include "sim/host/import/unsupported.h"
#include "sim/kernels/collide/collide_round.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim::test {

namespace {

/// What contacts may differ by: those with a closed form by rounding alone.
constexpr ContactDifference kClosedTolerance{1e-5, 2e-5, 2e-4, 2e-3};
/// Those that a search finds, because either search ends at a tolerance: what the collisions' own tests ask for.
constexpr ContactDifference kSearchTolerance{5e-5, 1e-3, 5e-3, 2e-2};
/// Up to here the accelerations follow: what is left is rounding of the contacts, not their searches.
constexpr ContactDifference kExact{2e-6, 1e-5, 3e-5, 0};
/// Of a distance that a search finds from the true one, m.
constexpr double kTrueDistanceTolerance = 1e-4;
/// The search of a deep contact ends at a share of its depth where a shape is curved everywhere.
constexpr double kTrueDepthTolerance = 1e-2;
/// Times what a normal's difference makes of a tangent that is made of it.
constexpr double kTangentShare = 4;
/// A normal that is off by this much belongs to a distance that is right.
constexpr double kOpenNormal = 2e-2;
/// Between the normals of faces that count as lying on each other, ten degrees; what they have in common may lie by its
/// sine times their size from their farthest points.
constexpr double kFaceAngle = 0.18;

const char* const kShapeNames[] = {"plane",     "height field", "sphere", "capsule",
                                   "ellipsoid", "cylinder",     "box",    "mesh"};

struct Touch {
  double dist = 0;
  std::array<double, 3> pos{}, normal{}, tangent{};
  std::size_t index = 0;  ///< in MuJoCo's list
};
using Touches = std::vector<Touch>;
using GeomPair = std::pair<int, int>;

struct BothLists {
  Touches ours, theirs;
};

/// What no force can part is left out: its rows are zero, and whether it is listed is each engine's own affair.
bool may_part(const mjModel& m, int geom1, int geom2) {
  const int body1 = m.body_weldid[m.geom_bodyid[geom1]], body2 = m.body_weldid[m.geom_bodyid[geom2]];
  return body1 != body2 && (m.body_dofnum[body1] > 0 || m.body_dofnum[body2] > 0);
}

std::map<GeomPair, BothLists> contacts_by_pair(const mjModel& m, const mjData& d, const ModelView& view,
                                               BlockSpace<ScalarLane>& b) {
  std::map<GeomPair, BothLists> lists;
  for (int k = 0; k < b.c.count; ++k) {
    const Group& g = b.c.group[k];
    if (g.pair < 0) continue;
    const float* kept = b.c.pool + g.at + layout_of(g).size;
    if (kept[KeptContact::kDist] >= kFarApart) continue;
    const PairRecord& pair = view.pair[g.pair];
    float origin[3];
    reference_point<ScalarLane>(view, b.w, view.geom[pair.geom2].body, origin);
    Touch touch;
    touch.dist = kept[KeptContact::kDist];
    for (std::size_t i = 0; i < 3; ++i) {
      touch.pos[i] = kept[KeptContact::kPos + static_cast<int>(i)] + origin[i];
      touch.normal[i] = kept[KeptContact::kFrame + static_cast<int>(i)];
      touch.tangent[i] = kept[KeptContact::kFrame + 3 + static_cast<int>(i)];
    }
    const GeomPair geoms{view.geom[pair.geom1].id, view.geom[pair.geom2].id};
    if (may_part(m, geoms.first, geoms.second)) lists[geoms].ours.push_back(touch);
  }
  for (int c = 0; c < d.ncon; ++c) {
    const mjContact& contact = d.contact[c];
    Touch touch{contact.dist, {}, {}, {}, static_cast<std::size_t>(c)};
    std::copy_n(contact.pos, 3, touch.pos.begin());
    std::copy_n(contact.frame, 3, touch.normal.begin());
    std::copy_n(contact.frame + 3, 3, touch.tangent.begin());
    const GeomPair geoms{contact.geom[0], contact.geom[1]};
    if (may_part(m, geoms.first, geoms.second)) lists[geoms].theirs.push_back(touch);
  }
  return lists;
}

double largest_difference(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
}

const Touch& deepest(const Touches& list) {
  return *std::min_element(list.begin(), list.end(), [](const Touch& a, const Touch& b) { return a.dist < b.dist; });
}

/// One of MuJoCo's contacts and the nearest of ours.
struct Match {
  std::size_t ours = 0;
  ContactDifference difference;
};

ContactDifference difference_of(const Touch& ours, const Touch& theirs) {
  return {std::abs(ours.dist - theirs.dist), largest_difference(ours.pos, theirs.pos),
          largest_difference(ours.normal, theirs.normal), largest_difference(ours.tangent, theirs.tangent)};
}

/// How far our first tangent is from one that spans the same cone as MuJoCo's: that or its opposite or, where the
/// friction along both is the same, the second one.
double cone_difference(const Touch& ours, const mjContact& theirs) {
  double least = 1e9;
  for (int k = 1; k < (theirs.friction[0] == theirs.friction[1] ? 3 : 2); ++k) {
    for (double sign : {1.0, -1.0}) {
      std::array<double, 3> tangent;
      for (std::size_t i = 0; i < 3; ++i) tangent[i] = sign * theirs.frame[3 * k + static_cast<int>(i)];
      least = std::min(least, largest_difference(ours.tangent, tangent));
    }
  }
  return least;
}

/// A difference over what is allowed beside the noise of MuJoCo's contact `index`.
ContactDifference excess_of(const ContactDifference& d, const ContactDifference& allowed, std::size_t index,
                            const ReferenceAnswer::Noise& noise) {
  return {d.dist / (allowed.dist + kNoise * noise.dist[index]), d.place / (allowed.place + kNoise * noise.place[index]),
          d.normal / (allowed.normal + kNoise * noise.normal[index]), 0};
}
double largest(const ContactDifference& d) {
  return std::max({d.dist, d.place, d.normal});
}

/// For each of MuJoCo's contacts the nearest of ours that no earlier one has; there are as many of both.
std::vector<Match> match(const BothLists& lists) {
  std::vector<Match> matches;
  std::vector<bool> used(lists.ours.size(), false);
  for (const Touch& theirs : lists.theirs) {
    double best = 1e9;
    Match found;
    for (std::size_t k = 0; k < lists.ours.size(); ++k) {
      const Touch& ours = lists.ours[k];
      const double far = std::abs(ours.dist - theirs.dist) + largest_difference(ours.pos, theirs.pos);
      if (used[k] || far >= best) continue;
      best = far;
      found = {k, difference_of(ours, theirs)};
    }
    used[found.ours] = true;
    matches.push_back(found);
  }
  return matches;
}

struct Separation {
  double distance = -1e9;
  std::array<double, 3> direction{};
};

/// The largest separation that a search finds which starts along the normals of both engines.
Separation best_separation(const mjModel& m, const mjData& d, const GeomPair& geoms, const BothLists& lists) {
  Separation best;
  for (const Touches* list : {&lists.ours, &lists.theirs}) {
    if (list->empty()) continue;
    std::array<double, 3> n = deepest(*list).normal;
    double here = separation_along(m, d, geoms.first, geoms.second, n.data());
    for (double step = 0.1; step > 1e-6; step *= 0.5) {
      for (bool better = true; better;) {
        better = false;
        for (int axis = 0; axis < 6; ++axis) {
          std::array<double, 3> next = n;
          next[static_cast<std::size_t>(axis / 2)] += axis % 2 == 0 ? step : -step;
          mju_normalize3(next.data());
          const double there = separation_along(m, d, geoms.first, geoms.second, next.data());
          if (there > here + 1e-9) here = there, n = next, better = true;
        }
      }
    }
    if (here > best.distance) best = {here, n};
  }
  return best;
}

/// Judges one pair of geoms whose lists are not the same.
class PairJudge {
 public:
  PairJudge(const mjModel& m, const ReferenceAnswer& answer, const GeomPair& geoms, const BothLists& lists,
            ContactVerdict& verdict)
      : m_(m),
        d_(*answer.forward),
        geoms_(geoms),
        lists_(lists),
        verdict_(verdict),
        noise_(answer.noise),
        shapes_(format("{} and {}", kShapeNames[m.geom_type[geoms.first]], kShapeNames[m.geom_type[geoms.second]])) {}

  void judge() {
    const int kernel = mj::pair_kernel(m_.geom_type[geoms_.first], m_.geom_type[geoms_.second]);
    const bool plane_mesh = kernel == kPlaneMesh, height_field = kernel == kHeightFieldConvex;
    searched_ = plane_mesh || height_field || kernel == kConvexConvex;
    if (alike()) return;
    verdict_.same = verdict_.exact = false;
    if (plane_mesh || (kernel == kPlaneCylinder && stands_flat())) return judge_plane_and_mesh();
    if (height_field) return judge_height_field();
    if (searched_) return judge_searched();
    judge_closed_form();
  }

 private:
  void find(const std::string& what, double ours, double mujoco, double excess) {
    verdict_.findings.push_back({what + " of " + shapes_,
                                 format("geoms {} and {}", name(geoms_.first), name(geoms_.second)), ours, mujoco,
                                 excess, list("ours", lists_.ours) + list("MuJoCo's", lists_.theirs)});
  }
  static std::string list(const char* whose, const Touches& touches) {
    std::string text;
    for (const Touch& t : touches) {
      text += format("  {}: distance {:.6f}, place {:.5f} {:.5f} {:.5f}, normal {:.4f} {:.4f} {:.4f}\n", whose, t.dist,
                     t.pos[0], t.pos[1], t.pos[2], t.normal[0], t.normal[1], t.normal[2]);
    }
    return text;
  }
  void excuse(const std::string& reason) { verdict_.excuses.push_back(shapes_ + ": " + reason); }
  std::string name(int geom) const {
    const char* text = mj_id2name(&m_, mjOBJ_GEOM, geom);
    return text != nullptr && *text != 0 ? text : "#" + std::to_string(geom);
  }
  void find_number() {
    const double ours = static_cast<double>(lists_.ours.size()), theirs = static_cast<double>(lists_.theirs.size());
    find("number of contacts", ours, theirs, 1 + std::abs(ours - theirs));
  }

  /// Compares contact by contact and writes down by how much they differ; false where that is too much.
  bool alike() {
    if (lists_.ours.size() != lists_.theirs.size()) return false;
    matches_ = match(lists_);
    bool good = true;
    ContactDifference most;  // of all, because a row may be matched with one of a contact that is almost the same
    for (std::size_t c = 0; c < matches_.size(); ++c) {
      const std::size_t index = lists_.theirs[c].index;
      const ContactDifference& difference = matches_[c].difference;
      good =
          good && largest(excess_of(difference, searched_ ? kSearchTolerance : kClosedTolerance, index, noise_)) <= 1;
      if (searched_ && largest(excess_of(difference, kExact, index, noise_)) > 1) verdict_.exact = false;
      most = {std::max(most.dist, difference.dist), std::max(most.place, difference.place),
              std::max(most.normal, difference.normal), 0};
    }
    if (good) judge_tangents();
    for (const Touch& touch : lists_.theirs) verdict_.difference[touch.index] = most;
    return good;
  }

  /// Where a tangent's choice jumps, rounding decides it; elsewhere it is MuJoCo's, so that pyramids are the same.
  void judge_tangents() {
    for (std::size_t c = 0; c < matches_.size(); ++c) {
      const mjContact& contact = d_.contact[lists_.theirs[c].index];
      const double allowed = searched_ ? kSearchTolerance.tangent : kClosedTolerance.tangent;
      if (matches_[c].difference.tangent > allowed) verdict_.same_lists = false;
      const double difference = cone_difference(lists_.ours[matches_[c].ours], contact);
      const double excess = difference / (allowed + kTangentShare * matches_[c].difference.normal);
      if (contact.dim == 1 || excess <= 1) continue;
      verdict_.same_cones = false;
      if (!tangent_is_open(contact)) find("tangent", difference, 0, excess);
    }
  }

  /// The tangent is made of the y or the z axis, on either side of |normal_y| = 0.5, or of a capsule's axis on a plane,
  /// which may be the normal.
  bool tangent_is_open(const mjContact& contact) const {
    constexpr double kJump = 0.01;
    if (std::abs(std::abs(contact.frame[1]) - 0.5) < kJump) return true;
    if (mj::pair_kernel(m_.geom_type[geoms_.first], m_.geom_type[geoms_.second]) != kPlaneCapsule) return false;
    const double* rot = d_.geom_xmat + 9 * geoms_.second;
    const double along = rot[2] * contact.frame[0] + rot[5] * contact.frame[1] + rot[8] * contact.frame[2];
    return std::abs(along) > 1 - kJump;
  }

  void judge_closed_form() {
    if (lists_.ours.size() != lists_.theirs.size()) {
      if (!same_places()) return find_number();
      // Whether the second point of an edge is the first again is a matter of rounding in MuJoCo's arithmetic.
      return excuse("one contact or the same one twice");
    }
    for (std::size_t c = 0; c < matches_.size(); ++c) {
      const ContactDifference excess =
          excess_of(matches_[c].difference, kClosedTolerance, lists_.theirs[c].index, noise_);
      if (excess.dist > 1) find("distance", lists_.ours[matches_[c].ours].dist, lists_.theirs[c].dist, excess.dist);
      if (excess.place > 1) find("place", matches_[c].difference.place, 0, excess.place);
      if (excess.normal > 1) find("normal", matches_[c].difference.normal, 0, excess.normal);
    }
  }

  /// Whether every contact of either list has one of the other list in its place.
  bool same_places() const {
    const auto has = [&](const Touches& list, const Touch& touch) {
      return std::any_of(list.begin(), list.end(), [&](const Touch& other) {
        return largest(excess_of(difference_of(other, touch), kClosedTolerance, 0,
                                 {.dist = {0}, .place = {0}, .normal = {0}})) <= 1;
      });
    };
    const auto within = [&](const Touches& part, const Touches& whole) {
      return std::all_of(part.begin(), part.end(), [&](const Touch& touch) { return has(whole, touch); });
    };
    return within(lists_.ours, lists_.theirs) && within(lists_.theirs, lists_.ours);
  }

  /// MuJoCo makes prisms of a height field's cells and searches each, here its surface is what counts; and of more
  /// contacts than the sixteen kept another choice is as good. Ours may be deeper, never shallower.
  void judge_height_field() {
    if (lists_.ours.empty()) return find_number();
    const double ours = deepest(lists_.ours).dist;
    const double theirs = lists_.theirs.empty() ? ours : deepest(lists_.theirs).dist;
    if (ours > theirs + kSearchTolerance.dist)
      return find("distance", ours, theirs, (ours - theirs) / kSearchTolerance.dist);
    excuse("as deep as MuJoCo's or deeper");
  }

  /// A cylinder whose four points on a plane turn with it; MuJoCo's three follow the lowest one.
  bool stands_flat() const {
    const double *plane = d_.geom_xmat + 9 * geoms_.first, *cylinder = d_.geom_xmat + 9 * geoms_.second;
    double tilt[3];
    const double n[3] = {plane[2], plane[5], plane[8]}, axis[3] = {cylinder[2], cylinder[5], cylinder[8]};
    mju_cross(tilt, n, axis);
    return mju_norm3(tilt) < 1.01 * static_cast<double>(kStandsFlat);
  }

  /// m, from the lowest point of the rim to the lower of two quarters of it.
  double flat_rounding() const {
    constexpr double kBetweenQuarters = 0.293;  // 1 - cos(45 degrees)
    const bool cylinder = m_.geom_type[geoms_.second] == mjGEOM_CYLINDER;
    return cylinder ? kBetweenQuarters * static_cast<double>(kStandsFlat) * m_.geom_size[3 * geoms_.second] : 0;
  }

  /// Which corners beside the lowest one touch depends on the order of the mesh's vertices in MuJoCo. Of a flat cylinder
  /// the lowest point of the rim may lie between ours.
  void judge_plane_and_mesh() {
    if (lists_.ours.empty() || lists_.theirs.empty()) return find_number();
    const double ours = deepest(lists_.ours).dist, theirs = deepest(lists_.theirs).dist;
    const double excess = std::abs(ours - theirs) / (kSearchTolerance.dist + flat_rounding());
    if (excess > 1) return find("distance", ours, theirs, excess);
    excuse("other corners beside the lowest");
  }

  void judge_searched() {
    if (lists_.ours.empty()) return find_number();
    const Separation best = best_separation(m_, d_, geoms_, lists_);
    faces_meet() ? judge_faces(best) : judge_point(best);
    if (!verdict_.findings.empty()) return;
    const double ours = deepest(lists_.ours).dist;
    const bool alike = !lists_.theirs.empty() && std::abs(deepest(lists_.theirs).dist - ours) < kTrueDistanceTolerance;
    excuse(alike ? "another of several answers" : "nearer the true distance than MuJoCo's");
  }

  /// Several contacts, or one that MuJoCo has with the same normal in another place.
  bool faces_meet() const {
    if (lists_.ours.size() > 1 || lists_.theirs.empty()) return lists_.ours.size() > 1;
    return largest_difference(lists_.ours.front().normal, deepest(lists_.theirs).normal) < kSearchTolerance.normal;
  }

  /// Where several directions part two shapes equally well, or MuJoCo's search ends early, another answer is as good:
  /// no direction near either normal may part them farther than ours says.
  void judge_point(const Separation& best) {
    const Touch& ours = lists_.ours.front();
    const double along = separation_along(m_, d_, geoms_.first, geoms_.second, ours.normal.data());
    const double tolerance = kTrueDistanceTolerance + kTrueDepthTolerance * std::abs(best.distance);
    const double turned = (best.distance - along) / tolerance, off = std::abs(best.distance - ours.dist) / tolerance;
    if (off > 1) return find("distance", ours.dist, best.distance, off);
    const bool near = largest_difference(ours.normal, best.direction) < kOpenNormal;
    if (turned > 1 && !near) find("separation along the normal", along, best.distance, turned);
  }

  /// Where faces or edges lie on each other the normal is that of one of them, up to ten degrees from the direction
  /// that parts the shapes best, and the contacts are the corners of what both have in common.
  void judge_faces(const Separation& best) {
    const Touch& ours = deepest(lists_.ours);
    const double along = separation_along(m_, d_, geoms_.first, geoms_.second, ours.normal.data());
    const double tolerance = kTrueDistanceTolerance + kFaceAngle * smaller_radius();
    const double turned = (best.distance - along) / tolerance, off = std::abs(ours.dist - best.distance) / tolerance;
    if (turned > 1) return find("separation along the normal of faces", along, best.distance, turned);
    if (off > 1) return find("distance of faces", ours.dist, best.distance, off);
    if (has_twins(lists_.ours) && !has_twins(lists_.theirs)) find("the same contact twice", 2, 1, 2);
  }

  static bool has_twins(const Touches& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (largest_difference(list[i].pos, list[k].pos) < 1e-7) return true;
      }
    }
    return false;
  }
  double smaller_radius() const { return std::min(m_.geom_rbound[geoms_.first], m_.geom_rbound[geoms_.second]); }

  const mjModel& m_;
  const mjData& d_;
  const GeomPair& geoms_;
  const BothLists& lists_;
  ContactVerdict& verdict_;
  const ReferenceAnswer::Noise& noise_;
  std::string shapes_;
  std::vector<Match> matches_;
  bool searched_ = false;
};

}  // namespace

ContactVerdict compare_contacts(const mjModel& m, const ReferenceAnswer& answer, const ModelView& view,
                                BlockSpace<ScalarLane>& b) {
  ContactVerdict verdict;
  const mjData& d = *answer.forward;
  verdict.difference.resize(static_cast<std::size_t>(d.ncon));
  verdict.same_lists =
      std::all_of(d.contact, d.contact + d.ncon, [&](const mjContact& c) { return may_part(m, c.geom[0], c.geom[1]); });
  for (const auto& [geoms, lists] : contacts_by_pair(m, *answer.forward, view, b)) {
    PairJudge(m, answer, geoms, lists, verdict).judge();
  }
  return verdict;
}

}  // namespace cohort::sim::test
